"""Solvers of the window knapsack (`optsched.models.window_mkp`)."""
