"""What Franke et al. 1999 say of their baseline workload and of Figure 9."""

from __future__ import annotations

JOBS = 10_000
"""Of each workload."""

NODES = 320
"""Of the CTR machine."""

LARGE_FROM = 33
"""Nodes: a job is large that uses more than 32 (section 6)."""

MPLS = (2, 3, 5)
"""The multiprogramming levels."""

DAYS = 60.0
"""About what the baseline workload spans."""

UTILISATION = 0.55
"""Of the baseline workload."""

LARGE_SHARE = 0.30
"""About the share of the large jobs among all jobs."""

LARGE_WORK = 0.80
"""What their share of the work exceeds."""

HIGHEST = 0.90
"""The utilisation that gang scheduling with a level of 2 or 3 allows."""

LU_MEMORY = 45.0
"""MB of an instance of LU class A in Figure 9."""

LU_NODES = (128.0, 256.0)
"""MB of the two nodes of Figure 9."""

LU_SLOWDOWN = 3.5
"""Three instances take so many times as long on the smaller node as on the larger."""
