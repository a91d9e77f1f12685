"""Solvers of integer programs of a special kind (`optsched.models.integer_program`)."""
