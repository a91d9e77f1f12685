"""Locality and eviction opportunistic: aware of them unless the job can start now."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.models.data_placement import DataPlacement
from optsched.registry import solvers
from optsched.solvers.data_placement.rule import Rule
from optsched.solvers.data_placement.score import Score


@solvers.register("leo")
@dataclass(frozen=True)
class LocalityAndEvictionOpportunistic(Rule):
    """As LEA, unless the job can start now (Algorithm 4 of Gonthier et al. 2024).

    As in the authors' program, that holds for the nodes behind the first that is free now as well.

    References
    ----------
    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024.
    """

    def score(self, problem: DataPlacement) -> Score:
        """Return the score of Algorithm 4."""
        return Score(problem.weight, reloading=1, opportune=True)
