"""Locality and eviction aware: loading counts W times, and what is evicted once."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.models.data_placement import DataPlacement
from optsched.registry import solvers
from optsched.solvers.data_placement.rule import Rule
from optsched.solvers.data_placement.score import Score


@solvers.register("lea")
@dataclass(frozen=True)
class LocalityAndEvictionAware(Rule):
    """Loading counts W times, reloading what is evicted once (Algorithm 3 of Gonthier et al. 2024).

    References
    ----------
    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024.
    """

    def score(self, problem: DataPlacement) -> Score:
        """Return the score of Algorithm 3."""
        return Score(problem.weight, reloading=1)
