"""Nodes with countable resources, features and partitions: ``site:PATH`` or ``site:NAME``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Ints
from optsched.column_sets import runs_text
from optsched.content import bundled_sites
from optsched.errors import InputError
from optsched.machines.machine import Machine
from optsched.numbers import counted
from optsched.registry import machines
from optsched.sites.loading import find_site, load_site
from optsched.sites.parts import untimely
from optsched.sites.requests import Chunks, LastStart, Queues, Requests, last_starts
from optsched.sites.site import Site
from optsched.sites.site_file import site_of_table

if TYPE_CHECKING:
    from optsched.machines._site_nodes import Asked


class Held(NamedTuple):
    """Nodes of a job."""

    alternative: int  # the alternative of its request, as a number in `Requests.alternatives`
    nodes: Ints  # numbers of the nodes, ascending
    chunks: Ints  # of the job on each, from 1


@machines.register("site")
class SiteMachine(Machine):
    """Nodes with cores, memory and further resources, which jobs share unless they are exclusive.

    What a job asks is the number of its request, see `optsched.sites.requests`. By default it gets
    the first nodes that can hold its chunks, as many chunks on each as fit. Nodes that are down or
    drained run no jobs, nor do reserved ones whose reservation is not known. Whether a reservation
    lets a job start is up to policies, see `optsched.policies.site.partition_queues`.

    `path`: file or folder that describes the site. `stated`: the path or name in the specification;
    by default `path`. `requests`: requests of the jobs of the trace. `queues`: queues of the jobs
    of the trace. `nodes`: what is free on each node. Read-only for callers. `asked`: the requests,
    for kernels.

    >>> site = Site("small", ("c1", "c2"), ("cores", "memory"), np.array([[4, 900], [8, 900]]))
    >>> machine = SiteMachine(site)
    >>> jobs = {"processors": np.array([6, 1]), "requested_time": np.array([60, 60])}
    >>> wide, narrow = machine.demands(jobs)
    >>> held = machine.allocate(wide)
    >>> held.nodes.tolist(), held.chunks.tolist(), machine.resources(held), machine.free
    ([0, 1], [4, 2], '0-1', 6)
    >>> machine.fits(narrow), machine.fits(wide)
    (True, True)
    """

    usage = "site:PATH|NAME"
    follows_requests = True

    def __init__(
        self, site: Site, path: Path | None = None, notes: Sequence[str] = (), stated: str = ""
    ) -> None:
        self.site = site
        self.path = path
        self.notes = self._notes = tuple(notes)
        self.stated = stated or str(site.name if path is None else path)
        capacity = np.where(site.is_usable[:, None], site.capacity, 0)
        self._capacity = capacity
        self.size = self.free = int(capacity[:, 0].sum())
        if not self.size:
            raise InputError("no node with cores is up; expected one at least", field="nodes")

    @classmethod
    def from_spec(cls, text: str) -> Self:
        """Build the site of a path or a name, see `load_site`."""
        notes: list[str] = []
        return cls(load_site(text, notes), find_site(text), notes, text)

    @classmethod
    def located(cls, text: str, base: Path) -> str:
        """Return the path, joined to `base`, or the name of a bundled site."""
        path = base / text
        return text if text in bundled_sites() and not os.path.lexists(path) else str(path)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """Build the site of the tables of a site file."""
        return cls(site_of_table(table))

    @classmethod
    def from_file(cls, path: Path, table: Mapping[str, Any]) -> Self:
        """Build the site of a site file; its name is that of the file unless it has one."""
        return cls(site_of_table(table, name=path.stem), path)

    @property
    def spec(self) -> str:
        """Specification that builds an equal machine, if the site is that of a file."""
        return f"site:{self.stated}"

    @property
    def configuration(self) -> Path | None:
        """The ``slurm.conf`` that describes the site, if there is one."""
        path = self.path
        if path is not None and path.is_dir():
            path = path / "slurm.conf"
        return path if path is not None and path.name == "slurm.conf" and path.is_file() else None

    def stated_as(self, stated: str) -> Self:
        """Return an empty machine of the same site, with another path in its specification."""
        path = None if self.path is None else self.path.absolute()
        return type(self)(self.site, path, self._notes, stated)

    def emptied(self) -> Self:
        """Return a machine of the same site without jobs."""
        return type(self)(self.site, self.path, self._notes, self.stated)

    def demands(self, jobs: Mapping[str, NDArray[Any]]) -> Sequence[int]:
        """Return the number of the request of each job; negative if it can never start."""
        self.serve(Requests(self.site, jobs), Queues(self.site, jobs))
        self.notes = (*self._notes, *self._reservation_notes(jobs))
        return self.requests.numbers

    def serve(self, requests: Requests, queues: Queues) -> None:
        """Let all nodes be free for the jobs of some requests, in their queues."""
        from optsched.machines._site_nodes import Free, Place

        self.requests, self.queues = requests, queues
        self.asked = _for_kernels(requests)
        nodes = len(self.site.nodes)
        self.nodes = Free(
            self._capacity.copy(),
            np.zeros(nodes, dtype=np.int64),
            np.array([*self.site.licences.values()], dtype=np.int64),
            self._capacity.sum(axis=0),
        )
        self._place = Place(*np.zeros((2, nodes), dtype=np.int64))
        self._anywhere = np.ones(nodes, dtype=bool)

    def _reservation_notes(self, jobs: Mapping[str, NDArray[Any]]) -> Iterator[str]:
        """Yield what of the reservations has no effect on expected jobs."""
        if self.queues.unknown:
            jobs_there = counted(self.queues.unknown, "job")
            where = f"{jobs_there} in reservations that the site does not have"
            yield f"reservations: {where}, taken as in none"
        times = jobs.get("unix_time", np.empty(0))
        if self.site.reservations and len(times):
            last = float((times + jobs["requested_time"]).max())
            if note := untimely(self.site.reservations, float(times.min()), last):
                yield f"reservations: {note}"

    def why_never(self, demand: int) -> str:
        """Return why a job can never start; empty if it can."""
        return self.requests.why_never(demand) if demand < 0 else ""

    def last_starts(
        self, submit: Sequence[float], requested: Sequence[float]
    ) -> dict[int, LastStart]:
        """Return until when jobs can start because of the reservations of the site."""
        return last_starts(self.requests, self.queues, submit, requested)

    def fits(self, demand: int) -> bool:
        """Return whether a job can start now."""
        return self._first_fit(demand) is not None

    def allocate(self, processors: int) -> Held:
        """Allocate the first nodes that can hold a job, given the number of its request."""
        held = self._first_fit(processors)
        if held is None:
            raise ValueError(f"request {processors} does not fit")
        return self.claim(held, processors)

    def claim(self, place: Held, processors: int) -> Held:
        """Allocate the nodes that a policy chose for a job of a request."""
        from optsched.machines._site_nodes import Place, can_take, hold

        one, nodes, chunks = place
        where = Place(nodes, chunks)
        if not can_take(self.asked, self.nodes, processors, one, where):
            raise ValueError(f"request {processors} cannot have nodes {self.resources(place)} now")
        hold(self.asked, self.nodes, one, where, 0, len(nodes), -1)
        self.free = int(self.nodes.total[0])
        return place

    def release(self, allocation: Held) -> None:
        """Free the nodes of a job."""
        from optsched.machines._site_nodes import Place, hold

        one, nodes, chunks = allocation
        hold(self.asked, self.nodes, one, Place(nodes, chunks), 0, len(nodes), 1)
        self.free = int(self.nodes.total[0])

    def resources(self, allocation: Held) -> str:
        """Return the numbers of the nodes of an allocation as an interval set."""
        runs: list[list[int]] = []
        for node in allocation.nodes.tolist():
            if runs and runs[-1][1] == node:
                runs[-1][1] += 1
            else:
                runs.append([node, node + 1])
        return runs_text((start, stop) for start, stop in runs)

    def place_text(self, allocation: Held) -> str:
        """Return the chunks on each node, ``3:4 5:2`` for 4 on node 3 and 2 on node 5."""
        pairs = zip(allocation.nodes.tolist(), allocation.chunks.tolist())
        return " ".join(f"{node}:{chunks}" for node, chunks in pairs)

    def job_measures(self, resources: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Measure allocations: ``runs``, and ``switches`` if the site has any.

        ``switches`` is the number of leaf switches, or blocks, of the default topology that the
        nodes of a job are on; a node on none counts as one.
        """
        measures = super().job_measures(resources)
        leaves = self.site.leaves()
        if (leaves < 0).all():
            return measures
        groups = np.where(leaves < 0, -1 - np.arange(len(leaves)), leaves)
        spanned: dict[str, int] = {}
        for text in resources:
            if text not in spanned:
                ends = (run.partition("-") for run in text.split(" "))
                runs = (groups[int(first) : int(last or first) + 1] for first, _, last in ends)
                spanned[text] = len(np.unique(np.concatenate([*runs])))
        return measures | {"switches": np.array([spanned[text] for text in resources])}

    def violations(self, held: Mapping[int, Held]) -> list[str]:
        """Compare free amounts and licences with what the running jobs hold."""
        site, found = self.site, []
        left = self._capacity.copy()
        licences = np.array([*site.licences.values()], dtype=np.int64)
        jobs_on: dict[int, list[int]] = {}
        alone = set()
        for job, allocation in held.items():
            chunks = self.requests.alternatives[allocation.alternative]
            found += [f"job {job}: {mistake}" for mistake in self._misfits(allocation, chunks)]
            nodes = allocation.nodes
            np.subtract.at(left, nodes, allocation.chunks[:, None] * np.array(chunks.demand))
            licences -= np.array(chunks.licences, dtype=np.int64)
            for node in nodes.tolist():
                jobs_on.setdefault(node, []).append(job)
            if chunks.exclusive:
                alone.add(job)
        for node, resource in np.argwhere(left < 0).tolist():
            found.append(f"{-left[node, resource]} {site.resources[resource]} of node {node} lack")
        found += [
            f"job {job} shares node {node}"
            for node, jobs in jobs_on.items()
            for job in jobs
            if job in alone and len(jobs) > 1
        ]
        found += [
            f"{-count} licences {name} lack"
            for name, count in zip(site.licences, licences.tolist())
            if count < 0
        ]
        counted = [
            -1 if alone.intersection(jobs_on.get(node, ())) else len(jobs_on.get(node, ()))
            for node in range(len(site.nodes))
        ]
        for what, seen, there in (
            ("amounts", self.nodes.amount, left),
            ("totals", self.nodes.total, left.sum(axis=0)),
            ("licences", self.nodes.licences, licences),
            ("jobs of nodes", self.nodes.jobs, counted),
            ("cores", self.free, left[:, 0].sum()),
        ):
            if not np.array_equal(seen, there):
                found.append(f"the free {what} are wrongly counted")
        return found

    def _first_fit(self, request: int) -> Held | None:
        from optsched.machines._site_nodes import first_possible

        one, used = first_possible(self.asked, self.nodes, request, self._anywhere, self._place)
        if not used:
            return None
        return Held(one, self._place.node[:used].copy(), self._place.chunks[:used].copy())

    def _misfits(self, place: Held, chunks: Chunks) -> list[str]:
        """Return where a place is not what an alternative asks."""
        _, nodes, counts = place
        found = []
        if counts.sum() != chunks.chunks or (counts < 1).any():
            found.append(f"{counts.sum()} chunks in place of {chunks.chunks}")
        if (counts > chunks.most_per_node).any():
            found.append(f"more than {chunks.most_per_node} chunks on a node")
        if (np.diff(nodes) <= 0).any():
            found.append("nodes that do not ascend")
        if not self.requests.nodes[chunks.nodes][nodes].all():
            found.append("a node that the job may not use")
        return found


def _for_kernels(requests: Requests) -> Asked:
    from optsched.machines._site_nodes import Asked

    all_of_them, count = requests.alternatives, len(requests.alternatives)
    members = [np.flatnonzero(nodes) for nodes in requests.nodes]

    def column(name: str) -> Ints:
        return np.array([getattr(each, name) for each in all_of_them], dtype=np.int64)

    return Asked(
        np.array(requests.first, dtype=np.int64),
        column("chunks"),
        column("most_per_node"),
        column("exclusive") > 0,
        column("demand").reshape(count, len(requests.site.resources)),
        column("licences").reshape(count, len(requests.site.licences)),
        column("nodes"),
        np.concatenate([np.zeros(0, dtype=np.int64), *members]),
        np.cumsum([0, *map(len, members)]),
        np.array(requests.nodes, dtype=bool).reshape(len(members), len(requests.site.nodes)),
    )
