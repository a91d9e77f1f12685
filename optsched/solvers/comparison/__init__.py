"""Solvers side by side on the same snapshots: what they find and prove, and how long they take."""

from optsched.solvers.comparison.comparing import Comparison, compare

__all__ = ["Comparison", "compare"]
