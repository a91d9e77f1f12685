"""Solvers of the data-placement problem."""
