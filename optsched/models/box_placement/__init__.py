"""Box placement: waiting jobs into free boxes of a three-dimensional torus."""

from optsched.models.box_placement.problem import BoxPlacement, Placement

__all__ = ["BoxPlacement", "Placement"]
