"""Solvers of migrations."""
