"""The study of Gonthier et al. 2024: jobs on the nodes that have their input files."""
