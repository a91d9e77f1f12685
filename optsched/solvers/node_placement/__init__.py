"""Solvers of node placement (`optsched.models.node_placement`)."""
