"""The study of Franke et al. 1999: gang scheduling on modelled workloads."""

from optsched.studies.franke_1999.study import Franke1999 as Franke1999
