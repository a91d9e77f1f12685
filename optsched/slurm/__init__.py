"""Slurm: its queue as a placement problem."""
