"""Locality and eviction mixed: aware of them while the cluster is busy."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.models.data_placement import DataPlacement
from optsched.registry import solvers
from optsched.solvers.data_placement.rule import Rule
from optsched.solvers.data_placement.score import Score


@solvers.register("lem")
@dataclass(frozen=True)
class LocalityAndEvictionMixed(Rule):
    """As LEA while enough nodes run a job, else as EFT (Algorithm 5 of Gonthier et al. 2024).

    References
    ----------
    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024.
    """

    def score(self, problem: DataPlacement) -> Score:
        """Return the score of Algorithm 5."""
        return Score(problem.weight, reloading=1, threshold=problem.threshold)
