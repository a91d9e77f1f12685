"""Solvers of data placement (`optsched.models.data_placement`)."""
