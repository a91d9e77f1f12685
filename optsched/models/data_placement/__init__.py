"""Data placement: queued jobs to nodes, cores and starts, near the files that they read."""

from optsched.models.data_placement.problem import DataPlacement

__all__ = ["DataPlacement"]
