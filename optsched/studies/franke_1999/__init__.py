"""The study of Franke et al. 1999: gang scheduling on modelled workloads."""
