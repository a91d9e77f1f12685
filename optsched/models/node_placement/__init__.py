"""Node placement: pending jobs onto the free nodes of a site."""

from optsched.models.node_placement.problem import NodePlacement, Placements, fragmentation

__all__ = ["NodePlacement", "Placements", "fragmentation"]
