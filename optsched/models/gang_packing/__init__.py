"""Gang packing: jobs into the rows and columns of a time-slice matrix."""

from optsched.models.gang_packing.problem import NOT_PLACED, GangPacking, Packing

__all__ = ["NOT_PLACED", "GangPacking", "Packing"]
