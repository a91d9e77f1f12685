"""Data-locality-aware scheduling on a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from optsched.errors import InputError
from optsched.machines.cluster import Cluster
from optsched.numbers import LONGEST
from optsched.policies._locality import LocalityDecisions, Rule
from optsched.registry import policies
from optsched.settings import later
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.system import System
from optsched.solvers.data_placement.rules import LocalityAndEvictionMixed
from optsched.traces.rackham import BEFORE, RUNNING
from optsched.traces.trace import Trace

OF_RULES = ("backfill", "stop", "weight", "threshold", "loads", "evicted", "opportune")
"""Settings that are options of the rules."""


@policies.register("locality")
@dataclass
class Locality(Policy):
    """All waiting jobs have a planned place and start, chosen by the solver.

    Jobs are planned in the order of submission; `replan` says when the plan is recomputed. A job
    starts at its planned start.

    Parameters
    ----------
    backfill : {"none", "holes", "conservative"}
        Whether a job may start before one that was submitted earlier, on cores that are reserved
        for the earlier one. With ``holes``, the authors' backfilling, only now, on cores that are
        free now; with ``conservative`` at any time, without delay of earlier jobs.
    weight : int
        W, the weight of a second of loading against one of waiting (LEA, LEO, LEM).
    threshold : int
        Percentage of busy nodes from which on LEM saves loads.
    replan : {"authors", "events"}
        Times of a complete replan. ``authors``: when a job has ended while others waited, as in
        the authors' program; newly submitted jobs are added to the plan. ``events``: at every
        submission and end, as in the paper. ``conservative`` profiles are always rebuilt.
    stop : {"full", "short"}
        End of planning: when no free core is unreserved, or when fewer are than the next job
        requests, which saves time in the authors' last program.
    loads : {"now", "start"}
        Time from which the rest of a load in progress is counted: the decision, as in the authors'
        program, or the start of the job, as in the paper.
    evicted : {"unused", "memory"}
        Files of which a job evicts a part (LEA, LEO, LEM): those that no job uses any longer, as in
        the authors' program, or all in memory, as in the paper.
    opportune : {"scan", "node"}
        Nodes that LEO scores as EFT does: the first on which the job can start now and all behind
        it, as in the authors' program, or those on which it can start now, as in the paper.
    throttle : float
        Interval of planning in seconds, if above 0: only events at its multiples cause a plan, as
        in the program of the authors' published results (30). Jobs submitted at other times wait
        for such an event.

    Raises
    ------
    InputError
        If a number is negative, or too large.

    References
    ----------
    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024, section IV.
    """

    backfill: Literal["none", "holes", "conservative"] = "none"
    weight: int = 500
    threshold: int = 100
    replan: Literal["authors", "events"] = "authors"
    stop: Literal["full", "short"] = "full"
    loads: Literal["now", "start"] = later("now")
    evicted: Literal["unused", "memory"] = later("unused")
    opportune: Literal["scan", "node"] = later("scan")
    throttle: float = 0.0

    machines: ClassVar[frozenset[str]] = frozenset({"cluster"})
    models: ClassVar[Mapping[str, Answers]] = {"data-placement": Answers("lea", "fcfs")}
    execution: ClassVar[str | None] = "file-loading"

    def __post_init__(self) -> None:
        LocalityAndEvictionMixed(weight=self.weight, threshold=self.threshold)  # checks them
        if not 0 <= self.throttle <= LONGEST:
            raise InputError(f"throttle {self.throttle}; expected seconds from 0 to {LONGEST:,}")

    def posed(self) -> Mapping[str, Answers]:
        """Return the model, with the options of the rules."""
        options = {name: getattr(self, name) for name in OF_RULES}
        return {model: one._replace(options=options) for model, one in self.models.items()}

    def admits(self, job: int, system: System) -> bool:
        """Return whether one node has enough cores."""
        assert isinstance(system.machine, Cluster)
        return system.processors[job] <= system.machine.cores

    def compiled(self, run: CompiledRun) -> CompiledDecisions:
        """Bind the decision kernel to a run, with an empty plan."""
        opens_at, running_before = history(run.trace)
        always = self.replan == "events" or self.backfill == "conservative"
        rule = Rule(self.backfill == "holes", always, float(self.throttle), float(opens_at))
        return LocalityDecisions(run, rule, running_before)


def history(trace: Trace) -> tuple[float, dict[int, int]]:
    """Return the time of the first decision, and the nodes of the jobs that run at that time.

    The time is the submission of the first job after the history, or of the first job of all. The
    running jobs are in the order of their starts.
    """
    category = trace.annotations.get("category")
    if category is None or not (category == BEFORE).any():
        return trace.submit[0], {}
    first = int(np.flatnonzero(category == BEFORE)[0])
    running = np.flatnonzero(category == RUNNING)
    if not len(running):
        return trace.submit[first], {}
    begun = np.argsort(trace.annotations["history_start"][running], kind="stable")
    running = running[begun]
    nodes = trace.annotations["history_node"][running]
    return trace.submit[first], dict(zip(running.tolist(), nodes.tolist()))
