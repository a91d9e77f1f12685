"""Metrics of runs: those of the jobs, and those of certain kinds of machines."""
