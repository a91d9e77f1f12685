"""Earliest finish time: the node where the job can begin to work first."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.models.data_placement import DataPlacement
from optsched.registry import solvers
from optsched.solvers.data_placement.rule import Rule
from optsched.solvers.data_placement.score import Score


@solvers.register("eft")
@dataclass(frozen=True)
class EarliestFinishTime(Rule):
    """The node where the job has cores and its file first (Algorithm 2 of Gonthier et al. 2024).

    References
    ----------
    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024.
    """

    def score(self, problem: DataPlacement) -> Score:
        """Return a score in which a second of loading is one of waiting."""
        return Score(loading=1)
