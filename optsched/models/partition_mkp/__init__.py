"""The partition knapsack: free boxes of a torus filled with waiting jobs, layer by layer."""

from optsched.models.partition_mkp.problem import PartitionMKP
from optsched.models.partition_mkp.solution import Place, Placement

__all__ = ["PartitionMKP", "Place", "Placement"]
