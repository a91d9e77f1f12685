"""Solvers of hold (`optsched.models.hold`)."""
