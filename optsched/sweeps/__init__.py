"""Sweeps: many simulations from one file, each of them run once."""
