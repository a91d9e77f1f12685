"""Comparison of solvers on the same snapshots: solutions, proofs and times."""

from optsched.solvers.comparison.comparing import Comparison, compare

__all__ = ["Comparison", "compare"]
