"""Figures of runs: of the jobs, and those that a kind of machine adds, one file each."""
