"""What Li et al. 2015 say of their system and of its evaluation."""

from __future__ import annotations

TORUS = (24, 24, 24)
NODES_PER_ROUTER = 2
LINKS = (2, 1, 2)
"""Blue Waters: routers in each dimension, nodes on each, speeds of links (section 2)."""

LARGE = 1024
"""Nodes: a job of more is large (section 1)."""

WINDOWS = {100: 5, 500: 6, 1000: 7}
"""Jobs of the scan windows, and the numbers of their figures (section 7)."""

UTILISATION = 0.90
"""The level around which the utilisation is in Figures 5 to 7. Their bars are not given in
numbers."""
