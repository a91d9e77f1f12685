"""Threshold allocation: where and when a job starts on nodes with shared resources."""

from optsched.models.threshold_allocation.problem import Goal, Placement, ThresholdAllocation

__all__ = ["Goal", "Placement", "ThresholdAllocation"]
