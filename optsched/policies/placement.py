"""Placement of the first jobs of the queue on the nodes of a site, in one decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags, Ints
from optsched.errors import InputError
from optsched.machines.site import Held, SiteMachine
from optsched.metrics.measure import Group, measures_in
from optsched.models.node_placement import NodePlacement
from optsched.models.node_placement.problem import COUNTABLE
from optsched.models.node_placement.rules import rules_at, with_rules
from optsched.policies.site.partition_queues import SiteRoom
from optsched.registry import policies
from optsched.simulator.policy import Action, Answers, Policy
from optsched.simulator.system import System
from optsched.sites.parts import Torus, Tree
from optsched.sites.requests import Chunks
from optsched.sites.site import Site


@policies.register("placement")
@dataclass
class Placement(Policy):
    """The first jobs of the queue are placed on nodes, all in one decision, with EASY backfilling.

    The problem is `node-placement`: as many cores as possible are given to jobs, then the jobs span
    as few leaf switches as possible. The jobs at the queue head that fit together count for more
    than all others, so each of them is placed. The first job that is not has a reservation as under
    `easy`; a later one starts where it was placed unless that delays the reserved job. Then further
    jobs are backfilled. Jobs of a higher tier are first, and the reservations of the site hold;
    there is one queue for all partitions.

    Parameters
    ----------
    window : int
        Number of jobs from the queue head that are decided on together.
    interval : float
        Seconds between two decisions. With 0, a decision follows every event.
    then : {"switches", "nodes", "none"}
        What is minimized among placements of most cores: leaf switches, or blocks, that jobs span
        in the default topology of the site, if it has one; or idle nodes that are used.
    rules : str
        Rules of the site: FILE.py or FILE.py:NAME, several with commas. With rules, no job has a
        reservation, and only jobs that are decided on together start.

    Raises
    ------
    InputError
        If the window holds no job or the interval is negative.
    """

    window: int = 50
    interval: float = 30.0
    then: Literal["switches", "nodes", "none"] = "switches"
    rules: str = ""

    machines = frozenset({"site"})
    models: ClassVar[Mapping[str, Answers]] = {
        "node-placement": Answers("tree-best-fit", "first-fit")
    }

    def __post_init__(self) -> None:
        if self.window < 1:
            raise InputError(f"window {self.window}; expected a whole number from 1")
        if not self.interval >= 0:
            raise InputError(f"interval {self.interval}; expected seconds from 0")
        places = [place.strip() for place in filter(None, self.rules.split(","))]
        self._rules = rules_at(places, "rules")

    def begin(self, system: System) -> None:
        """Forget the reservation."""
        assert isinstance(system.machine, SiteMachine)
        self._machine = system.machine
        self._room = SiteRoom(system, system.machine)
        self._switches = _switches(system.machine.site)
        self._put_off = 0

    def decide(self, system: System) -> Iterable[Action]:
        """Start the jobs that the solver placed, except for those that delay the first left out."""
        room = self._room
        room.hear(system)
        if system.queue:
            yield from room.ask_again()
        if not system.queue or not self._machine.free:
            return
        room.forget_heads()
        jobs = [*room.by_tier(system.queue)]
        places = self._place(jobs[: self.window], system)
        if self._rules:
            for job in [job for job in jobs if job in places]:
                yield from room.start_first(job, places[job])
            return
        blocked = None
        for job in jobs:
            if blocked is None and job in places:
                yield from room.start_first(job, places[job])
            elif blocked is None:
                blocked = job
                room.reserve(job)
            elif job in places:
                yield from room.start_beside(job, places[job])
                self._put_off += system.start[job] is None
        if blocked is None:
            return
        if (place := room.place_head(blocked)) is not None:
            yield from room.start(blocked, place)
        elif self._machine.free:
            waiting = {*system.queue}
            yield from room.backfill([job for job in jobs if job in waiting and job != blocked])

    def promised(self, system: System) -> Mapping[int, float]:
        """Return the first shadow time of the blocked job."""
        return self._room.promised

    measures = measures_in(
        Group.POLICY,
        placements_put_off=("placements put off", "placements",
            "Placements of the solver that would have delayed the reserved job."),
    )  # fmt: skip

    def figures(self, system: System) -> Mapping[str, Any]:
        """Return the number of placements that would have delayed the reserved job."""
        return {"placements_put_off": self._put_off}

    def _place(self, jobs: Sequence[int], system: System) -> dict[int, Held]:
        """Return the places of jobs that the solver has chosen."""
        chosen, together = self._room.survey(jobs)
        fitting = [at for at, one in enumerate(chosen) if one >= 0]
        if not fitting:
            return {}
        nodes = np.flatnonzero(self._machine.nodes.amount[:, 0])
        if self._rules:
            nodes = np.arange(len(self._machine.nodes.amount))
        alternatives = [self._machine.requests.alternatives[chosen[at]] for at in fitting]
        names = [system.job_id[jobs[at]] for at in fitting]
        sets = [self._allowed(jobs[at], chosen[at])[nodes] for at in fitting]
        first = sum(at < together for at in fitting)
        problem = self._problem(alternatives, names, first, nodes, sets)
        if self._rules:
            problem = self._ruled(problem, [jobs[at] for at in fitting], system)
        solution = system.pose(problem)
        places = {}
        for at, where in zip(fitting, () if solution is None else solution.nodes):
            if where:
                used, chunks = np.unique(where, return_counts=True)
                places[jobs[at]] = Held(chosen[at], nodes[used], chunks)
        return places

    def _ruled(self, problem: NodePlacement, jobs: Sequence[int], system: System) -> NodePlacement:
        """Return the problem with the rules of the site, which see the running jobs, too."""
        held = system.held
        running = [*held]
        alternatives = self._machine.requests.alternatives
        totals = np.zeros((len(running), len(problem.resources)), dtype=np.int64)
        for place, job in enumerate(running):
            totals[place] = alternatives[held[job].alternative].demand
            totals[place] *= held[job].chunks.sum()
        amounts = dict(zip(problem.resources, totals.T.tolist()))
        nodes = [held[job].nodes.tolist() for job in running]
        return with_rules(
            problem,
            self._rules,
            jobs=_who(jobs, system),
            running={"nodes": nodes, **_who(running, system), **amounts},
        )

    def _allowed(self, job: int, one: int) -> Flags:
        """Return the nodes on which a job may start now with an alternative, shape (nodes,)."""
        requests = self._machine.requests
        allowed = requests.nodes[requests.alternatives[one].nodes]
        return allowed & self._room.open_to(job)

    def _problem(
        self,
        jobs: Sequence[Chunks],
        names: list[int],
        first: int,
        nodes: Ints,
        sets: Sequence[Flags],
    ) -> NodePlacement:
        """Return the problem of placing jobs, the `first` of which must be, each in its set."""
        state, site = self._machine.nodes, self._machine.site
        kinds, allowed = _kinds(sets)
        switches = None if self._switches is None else self._switches[nodes].tolist()
        is_left_out = self.then == "none" or (self.then == "switches" and switches is None)
        cores = np.array([one.chunks * one.demand[0] for one in jobs])
        most = COUNTABLE // ((sum(one.chunks for one in jobs) + 1) * (len(nodes) + 1))
        scale = max(1, -(-int(cores.sum()) * (first + 2) // most))
        weights = np.maximum(1, cores // scale)
        weights[:first] += weights.sum()
        return NodePlacement(
            resources=list(site.resources),
            free=np.where(state.jobs[nodes, None] < 0, 0, state.amount[nodes]),
            chunks=[one.chunks for one in jobs],
            demand=np.array([one.demand for one in jobs]),
            weights=weights,
            then=() if is_left_out else (self.then,),
            most_per_node=[one.most_per_node for one in jobs],
            kinds=kinds,
            allowed=allowed,
            switches=switches,
            exclusive=tuple(place for place, one in enumerate(jobs) if one.exclusive),
            busy=tuple(np.flatnonzero(state.jobs[nodes]).tolist()),
            licences=state.licences.copy(),
            licences_of=np.array([one.licences for one in jobs], dtype=np.int64),
            nodes=[site.nodes[node] for node in nodes.tolist()],
            jobs=names,
        )


def _who(jobs: Sequence[int], system: System) -> dict[str, list[int]]:
    """Return the numbers of the trace that rules read of jobs, -1 for none."""
    columns = {
        "user": system.user_of,
        "account": system.group_of,
        "queue": system.queue_of,
        "partition": system.partition_of,
    }
    known = {name: map(of, jobs) for name, of in columns.items()}
    return {name: [-1 if one is None else one for one in of] for name, of in known.items()}


def _switches(site: Site) -> NDArray[np.object_] | None:
    """Return the leaf switch, or block, of each node; None if the site has no such topology."""
    topology = site.topology()
    if topology is None or isinstance(topology, Torus):
        return None
    names = topology.switches if isinstance(topology, Tree) else topology.names
    if not names:
        return None
    alone = zip(site.nodes, topology.group.tolist())
    labels = [names[group] if group >= 0 else f"none of {node}" for node, group in alone]
    return np.array(labels, dtype=object)


def _kinds(sets: Sequence[Flags]) -> tuple[list[str], list[tuple[str, ...] | None]]:
    """Return the kind of each node, so that the sets consist of whole kinds, and those of each."""
    member = np.array(sets)
    _, first, kind = np.unique(member, axis=1, return_index=True, return_inverse=True)
    names = [f"kind {place}" for place in range(1, len(first) + 1)]
    allowed = [
        None if inside.all() else tuple(name for name, there in zip(names, inside) if there)
        for inside in member[:, first]
    ]
    return [names[place] for place in kind.ravel().tolist()], allowed
