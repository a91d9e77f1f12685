"""The window knapsack: contiguous free slots for the jobs of a scheduling window."""

from optsched.models.window_mkp.problem import NOT_PLACED, Assignment, WindowMKP

__all__ = ["NOT_PLACED", "Assignment", "WindowMKP"]
