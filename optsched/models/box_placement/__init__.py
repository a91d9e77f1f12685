"""Box placement: free boxes of a three-dimensional torus for waiting jobs."""

from optsched.models.box_placement.problem import BoxPlacement, Placement

__all__ = ["BoxPlacement", "Placement"]
