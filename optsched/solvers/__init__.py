"""Solvers: a module for each generic one, a package for the specialized ones of each model."""
