"""Data placement: nodes, cores and starts for queued jobs, near their input files."""

from optsched.models.data_placement.problem import DataPlacement

__all__ = ["DataPlacement"]
