"""The study of Gonthier et al. 2024: jobs on the nodes that have their input files."""

from optsched.studies.gonthier_2024.study import Gonthier2024 as Gonthier2024
