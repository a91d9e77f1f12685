"""Migration: room for one large job on a torus, by relocating running ones at least cost."""

from optsched.models.migration.problem import LARGE, Migration
from optsched.models.migration.solution import Plan, Step

__all__ = ["LARGE", "Migration", "Plan", "Step"]
