"""Solvers: generic ones, one module each, and special ones in a package per model."""
