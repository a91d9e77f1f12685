"""Published rules for data placement: list scheduling, each by its own score."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.models.data_placement import DataPlacement
from optsched.models.data_placement.fields import HEAVIEST
from optsched.models.data_placement.solution import Plan
from optsched.registry import solvers
from optsched.solvers.data_placement.score import Score
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.solver import Solver

if TYPE_CHECKING:
    from optsched.solvers.data_placement._plan import Options


@dataclass(frozen=True)
class Rule(Heuristic):
    """List scheduling in queue order, each job on the node with the least score.

    Work is counted in jobs times nodes.

    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024.
    """

    # Whether a job may start before one that is ahead of it: ``holes``, only now, on cores
    # that are reserved for the job ahead; ``conservative``, at any time, without delay of
    # that job
    backfill: Literal["none", "holes", "conservative"] = "none"
    # End of a partial plan: ``full``, when every core that is free now is reserved;
    # ``short``, when fewer unreserved cores are free now than the next job requests
    stop: Literal["full", "short"] = "full"
    # Time from which the rest of a load in progress is counted: ``now``, that of the
    # decision, as in the authors' program; ``start``, the start t_k of the job, as in section
    # IV.A, case 3
    loads: Literal["now", "start"] = "now"

    models = frozenset({"data-placement"})
    work_unit = "jobs times nodes"
    seconds_per_work = 5e-9
    is_rule = True

    def __post_init__(self) -> None:
        for name in [option.name for option in fields(self) if option.type == "int"]:
            if not 0 <= (value := getattr(self, name)) <= HEAVIEST:
                raise InputError(f"{name} {value}; expected a whole number from 0 to {HEAVIEST}")

    @abstractmethod
    def score(self) -> Score:
        """Return the score of the rule."""

    def place(self, problem: DataPlacement) -> Plan:
        """Return the plan of the rule."""
        if self.backfill == "conservative":
            from optsched.solvers.data_placement._conservative import plan_conservatively

            return Plan(*plan_conservatively(problem.arrays, self.score()).T)
        from optsched.solvers.data_placement._plan import plan

        options = self.options(*problem.available.shape)
        return Plan(*plan(problem.arrays, options, widest_noticed(problem)).T)

    def options(self, nodes: int, cores: int) -> Options:
        """Return the options for the kernel, with space for a number of nodes of so many cores."""
        from optsched.solvers.data_placement._plan import Options, last_order

        backfill, short = self.backfill == "holes", self.stop == "short"
        return Options(self.score(), backfill, short, last_order(nodes, cores))

    def effort(self, problem: DataPlacement) -> int:
        """Return the number of jobs times the number of nodes."""
        return len(problem.available) * len(problem.processors)


@solvers.register("fcfs")
@dataclass(frozen=True)
class FirstComeFirstServed(Rule):
    """The node that has enough cores first (Algorithm 1 of Gonthier et al. 2024)."""

    def score(self) -> Score:
        """Return a score that does not see files."""
        return Score(loading=0)


@solvers.register("eft")
@dataclass(frozen=True)
class EarliestFinishTime(Rule):
    """The node where the job has cores and its file first (Algorithm 2 of Gonthier et al. 2024)."""

    def score(self) -> Score:
        """Return a score in which a second of loading is one of waiting."""
        return Score(loading=1, from_start=self.loads == "start")


@solvers.register("lea")
@dataclass(frozen=True)
class LocalityAndEvictionAware(Rule):
    """Loading counts W times, reloading the evicted once (Algorithm 3 of Gonthier et al. 2024)."""

    weight: int = 500  # w, the weight of a second of loading relative to one of waiting
    # Files of a node of which a job evicts a part: ``unused``, those that no job uses any
    # longer at its start, as in the authors' program; ``memory``, all that are in memory
    # then, in use or not, as in line 6 of Algorithm 3
    evicted: Literal["unused", "memory"] = "unused"

    def score(self) -> Score:
        """Return the score of Algorithm 3."""
        return Score(
            self.weight,
            reloading=1,
            from_start=self.loads == "start",
            in_memory=self.evicted == "memory",
        )


@solvers.register("leo")
@dataclass(frozen=True)
class LocalityAndEvictionOpportunistic(LocalityAndEvictionAware):
    """As LEA, unless the job can start now (Algorithm 4 of Gonthier et al. 2024)."""

    # Nodes that are scored as by EFT: ``node``, those on which the job can start now, as in
    # Algorithm 4; ``scan``, the first of them and all behind it, as in the authors' program
    opportune: Literal["scan", "node"] = "scan"

    def score(self) -> Score:
        """Return the score of Algorithm 4."""
        return super().score()._replace(opportune=True, whole_scan=self.opportune == "scan")


@solvers.register("lem")
@dataclass(frozen=True)
class LocalityAndEvictionMixed(LocalityAndEvictionAware):
    """As LEA while enough nodes run a job, else as EFT (Algorithm 5 of Gonthier et al. 2024)."""

    threshold: int = 100  # percentage of nodes that run a job, from which the rule is LEA

    def score(self) -> Score:
        """Return the score of Algorithm 5."""
        return super().score()._replace(threshold=self.threshold)


def is_published(solver: Solver) -> TypeGuard[Rule]:
    """Return whether a solver is one of these rules, and not a subclass."""
    return isinstance(solver, Rule) and type(solver).__module__ == __name__


def widest_noticed(problem: DataPlacement) -> NDArray[np.int64]:
    """Return the cores and the node of the widest known hole."""
    if problem.noticed is not None:
        return np.array(problem.noticed)
    if problem.reserved is None:
        return np.zeros(2, dtype=np.int64)
    cores = np.count_nonzero(problem.reserved, axis=1)
    return np.array([cores.max(), cores.argmax()])
