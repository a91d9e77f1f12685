"""Migration: a box for a large job on a torus, by moving running jobs at the least cost."""

from optsched.models.migration.problem import LARGE, Migration
from optsched.models.migration.solution import Plan, Step

__all__ = ["LARGE", "Migration", "Plan", "Step"]
