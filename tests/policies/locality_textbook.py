"""Textbook statement of locality-aware scheduling: the plan as a list, the cores as sets.

Its only purpose is to be compared with `optsched.policies.locality`.
"""

import math
from collections import namedtuple

import numpy as np

from optsched.machines.cluster import Cores
from optsched.models.data_placement import DataPlacement
from optsched.policies.locality import Locality
from optsched.simulator.policy import Start, Wake

Planned = namedtuple("Planned", "start job place")
"""A job with its planned start and place."""


class TextbookLocality(Locality):
    """Locality-aware scheduling in the engine, its decisions in Python."""

    def begin(self, system):
        """Begin with an empty plan, but for the jobs that ran before the first decision."""
        machine, notes = system.machine, system.annotations
        jobs = len(system.processors)
        self._file = notes.get("file", np.full(jobs, -1)).tolist()
        self._load = (notes.get("file_size", np.zeros(jobs, int)) // machine.bandwidth).tolist()
        # a core is a node and a number there
        self._every = [(n, c) for n in range(machine.nodes) for c in range(machine.cores)]
        self._free_from = dict.fromkeys(self._every, -math.inf)
        self._hole_until = dict.fromkeys(self._every, 0.0)
        self._widest = (0, 0)  # cores and node
        self._held, self._plan, self._waiting, self._added = {}, [], [], []
        self._wakes_at = -math.inf
        self._opens_at, self._ran = system.submit[0], []
        category = notes.get("category", np.array([])).tolist()
        if 0 in category:
            self._opens_at = system.submit[category.index(0)]
            self._ran = [job for job, each in enumerate(category) if each == -2]
            self._ran.sort(key=lambda job: notes["history_start"][job])
        for job in self._ran:
            node = int(notes["history_node"][job]) % machine.nodes
            order = sorted(range(machine.cores), key=lambda core: self._free_from[node, core])
            chosen = [(node, core) for core in order[: system.processors[job]]]
            start = max(self._opens_at, *(self._free_from[core] for core in chosen))
            for core in chosen:
                self._free_from[core] = start + system.requested_time[job]
            self._plan.append(Planned(start, job, Cores(node, sum(1 << c for _, c in chosen))))

    def decide(self, system):
        """Start the jobs planned for now, plan, and start the jobs that are then due."""
        (self._waiting if system.ended else self._added).extend(system.submitted)
        for job in system.ended:
            del self._held[job]
        if system.now < self._opens_at:
            return
        self._added = [job for job in self._added if job not in self._ran]
        self._waiting, self._ran = self._ran + self._waiting, []
        yield from self._start_due(system)
        since = system.now - self._opens_at
        if self.throttle == 0 or (since != 0 and since % self.throttle == 0):
            self._replan(system)
            yield from self._start_due(system)
        upcoming = min((planned.start for planned in self._plan), default=math.inf)
        if system.now < upcoming < math.inf and upcoming != self._wakes_at:
            self._wakes_at = upcoming
            yield Wake(upcoming)

    def _start_due(self, system):
        """Start the jobs whose planned start has come, unless their cores are still held."""
        due = [planned for planned in self._plan if planned.start <= system.now]
        self._plan = [planned for planned in self._plan if planned.start > system.now]
        for planned in due:
            if cores_of(planned.place) & self._busy():
                self._plan.append(planned)
                continue
            self._waiting.remove(planned.job)
            self._held[planned.job] = planned.place
            yield Start(planned.job, planned.place)

    def _busy(self):
        return {core for place in self._held.values() for core in cores_of(place)}

    def _replan(self, system):
        """Replan all waiting jobs, or add the submitted jobs to the plan."""
        always = self.replan == "events" or self.backfill == "conservative"
        if self._added and (always or not self._held):
            self._waiting += self._added
            self._added = []
        elif not (self._waiting and system.ended):
            if system.submitted:
                self._pose(self._added, system)
                self._waiting += self._added
                self._added = []
            return
        self._plan = []
        self._free_from = dict.fromkeys(self._every, -math.inf)
        for job, place in self._held.items():
            for core in cores_of(place):
                self._free_from[core] = system.running.estimated_end(job)
        self._hole_until = dict.fromkeys(self._every, 0.0)
        self._widest = (0, self._widest[1])
        self._pose(self._waiting, system)

    def _pose(self, queue, system):
        """Plan jobs on the cores that are not planned yet, and book their cores."""
        machine, now = system.machine, system.now
        shape = (machine.nodes, machine.cores)
        ceiled = [math.ceil(max(0.0, self._free_from[core] - now)) for core in self._every]
        holes = [math.ceil(max(0.0, self._hole_until[core] - now)) for core in self._every]
        backfills = self.backfill == "holes"
        busy = {node for node, _ in self._busy()}
        plan = system.pose(
            DataPlacement(
                np.reshape(ceiled, shape),
                [system.processors[job] for job in queue],
                [math.ceil(system.requested_time[job]) for job in queue],
                np.array([self._file[job] for job in queue]),
                [self._load[job] for job in queue],
                resident=machine.files.residents(now),
                reserved=np.reshape(holes, shape) if backfills and any(holes) else None,
                occupied=np.array([node in busy for node in range(machine.nodes)]),
                capacity=machine.memory // machine.bandwidth,
                partial=True,
                noticed=self._widest if backfills else None,
                kept=machine.files.kept,
                started=machine.files.started(now),
            )
        )
        for job, node, after, mask in zip(queue, *plan.rows.tolist()):
            if node < 0:
                continue
            planned = Planned(now + after, job, Cores(node, mask))
            self._plan.append(planned)
            self._book(planned, math.ceil(system.requested_time[job]), now)

    def _book(self, planned, walltime, now):
        """Book cores; those that are free until a later start are a hole."""
        for core in cores_of(planned.place):
            if planned.start < self._free_from[core]:  # in a hole, which the job uses up
                self._hole_until[core] = 0.0
                continue
            if planned.start > now and self._free_from[core] <= now:
                self._hole_until[core] = planned.start
            self._free_from[core] = planned.start + walltime
        if planned.place.node == self._widest[1]:
            in_holes = [0] * (self._every[-1][0] + 1)
            for (node, _), until in self._hole_until.items():
                in_holes[node] += until > 0
            self._widest = max(in_holes), in_holes.index(max(in_holes))


def cores_of(place):
    """Return the cores of a place."""
    return {(place.node, core) for core in range(62) if place.cores >> core & 1}
