"""Published rules for data placement: list scheduling, each by its own score."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optsched.models.data_placement import DataPlacement
from optsched.models.data_placement.solution import Plan
from optsched.registry import solvers
from optsched.solvers.data_placement.score import Score
from optsched.solvers.heuristic import Heuristic


class Rule(Heuristic):
    """List scheduling in queue order, each job on the node with the least score.

    Work is counted in jobs times nodes.

    References
    ----------
    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024.
    """

    models = frozenset({"data-placement"})
    work_unit = "jobs x nodes"
    seconds_per_work = 5e-9
    is_rule = True

    @abstractmethod
    def score(self, problem: DataPlacement) -> Score:
        """Return the score of the rule."""

    def place(self, problem: DataPlacement) -> Plan:
        """Return the plan of the rule."""
        holes = np.zeros_like(problem.available) if problem.reserved is None else problem.reserved
        jobs = (problem.processors, problem.walltimes, problem.files, problem.loads)
        given = (problem.available, holes.copy(), problem.occupied, np.column_stack(jobs))
        memory = (problem.resident, problem.started, problem.kept == "next")
        rule = (*memory, self.score(problem), problem.capacity)
        if problem.backfill == "conservative":
            from optsched.solvers.data_placement._conservative import plan_conservatively

            return Plan(*plan_conservatively(*given, *rule, problem.partial).T)
        from optsched.solvers.data_placement._plan import plan

        backfill = problem.backfill == "holes"
        ends = (problem.partial, problem.stop == "short")
        return Plan(*plan(*given, *rule, backfill, widest_noticed(problem, holes), *ends).T)

    def effort(self, problem: DataPlacement) -> int:
        """Return the number of jobs times the number of nodes."""
        return len(problem.available) * len(problem.processors)


@solvers.register("fcfs")
@dataclass(frozen=True)
class FirstComeFirstServed(Rule):
    """The node that has enough cores first (Algorithm 1 of Gonthier et al. 2024)."""

    def score(self, problem: DataPlacement) -> Score:
        """Return a score that does not see files."""
        return Score(loading=0)


@solvers.register("eft")
@dataclass(frozen=True)
class EarliestFinishTime(Rule):
    """The node where the job has cores and its file first (Algorithm 2 of Gonthier et al. 2024)."""

    def score(self, problem: DataPlacement) -> Score:
        """Return a score in which a second of loading is one of waiting."""
        return Score(loading=1)


@solvers.register("lea")
@dataclass(frozen=True)
class LocalityAndEvictionAware(Rule):
    """Loading counts W times, reloading what is evicted once (Algorithm 3 of Gonthier et al. 2024).

    W is ``weight`` of the problem.
    """

    def score(self, problem: DataPlacement) -> Score:
        """Return the score of Algorithm 3."""
        return Score(problem.weight, reloading=1)


@solvers.register("leo")
@dataclass(frozen=True)
class LocalityAndEvictionOpportunistic(Rule):
    """As LEA, unless the job can start now (Algorithm 4 of Gonthier et al. 2024).

    As in the authors' program, that holds for the nodes behind the first that is free now as well.
    """

    def score(self, problem: DataPlacement) -> Score:
        """Return the score of Algorithm 4."""
        return Score(problem.weight, reloading=1, opportune=True)


@solvers.register("lem")
@dataclass(frozen=True)
class LocalityAndEvictionMixed(Rule):
    """As LEA while enough nodes run a job, else as EFT (Algorithm 5 of Gonthier et al. 2024)."""

    def score(self, problem: DataPlacement) -> Score:
        """Return the score of Algorithm 5."""
        return Score(problem.weight, reloading=1, threshold=problem.threshold)


def widest_noticed(problem: DataPlacement, holes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cores and the node of the widest known hole."""
    if problem.noticed is not None:
        return np.array(problem.noticed)
    cores = np.count_nonzero(holes, axis=1)
    return np.array([cores.max(), cores.argmax()])
