"""Heuristics for the partition knapsack (`optsched.models.partition_mkp`)."""
