"""The window knapsack: jobs of a scheduling window into contiguous free slots."""

from optsched.models.window_mkp.problem import NOT_PLACED, Assignment, WindowMKP

__all__ = ["NOT_PLACED", "Assignment", "WindowMKP"]
