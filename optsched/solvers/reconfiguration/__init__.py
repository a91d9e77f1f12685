"""Solvers of reconfiguration (`optsched.models.reconfiguration`)."""
