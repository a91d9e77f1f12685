"""Solvers of threshold allocation (`optsched.models.threshold_allocation`)."""
