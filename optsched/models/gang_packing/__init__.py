"""Gang packing: rows and columns of an Ousterhout matrix for jobs."""

from optsched.models.gang_packing.problem import NOT_PLACED, GangPacking, Packing

__all__ = ["NOT_PLACED", "GangPacking", "Packing"]
