"""Solvers of box placement (`optsched.models.box_placement`)."""
