"""The partition knapsack: free boxes of a torus filled with waiting jobs, layer by layer."""

from optsched.models.partition_mkp.problem import PartitionMKP, Place, Placement

__all__ = ["PartitionMKP", "Place", "Placement"]
