"""Solvers: a module for each generic one, a module or a package for those of each model."""
