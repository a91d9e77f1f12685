"""Threshold allocation: nodes and start of a job on nodes with shared resources."""

from optsched.models.threshold_allocation.problem import Goal, Placement, ThresholdAllocation

__all__ = ["Goal", "Placement", "ThresholdAllocation"]
