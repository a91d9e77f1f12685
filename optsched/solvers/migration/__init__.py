"""Solvers of the migration problem (`optsched.models.migration`)."""
