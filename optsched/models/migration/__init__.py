"""Migration: a box for a large job on a torus, by moving running jobs at the least cost."""

from optsched.models.migration.problem import Migration, Plan
from optsched.models.torus import Step

__all__ = ["Migration", "Plan", "Step"]
