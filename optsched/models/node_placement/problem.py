"""Node placement: pending jobs onto the free nodes of a site.

Model page: ``models/node-placement/README.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.fields import LARGEST_FIELD, Fields, Parsed, Table, first_few
from optsched.models.fields import Amounts, Integers, LabelSets, Numbers, Texts
from optsched.models.node_placement.fields import (
    WHOLE,
    Devices,
    GroupRows,
    RuleColumns,
    beyond_limits,
    is_allowed,
)
from optsched.models.problem import Choice, Problem, Violation, wrong_length
from optsched.models.schema import declared, field, labels
from optsched.registry import models

COUNTABLE = 2**53
"""Upper limit of the objective, so that every solver represents it exactly."""

SHOWN = 20
"""Most jobs that `NodePlacement.describe` lists."""


class Placements(NamedTuple):
    """Nodes and devices of the chunks of each job.

    Parameters
    ----------
    nodes : tuple of tuple of int
        The node of each chunk of each job, from 0, in ascending order; an empty tuple for a job
        that is not placed.
    devices : tuple of tuple of tuple of int
        The devices, from 0 on the node, of each of these chunks.
    """

    nodes: tuple[tuple[int, ...], ...]
    devices: tuple[tuple[tuple[int, ...], ...], ...]

    def only(self, jobs: Iterable[int]) -> Placements:
        """Return the placements of some jobs alone."""
        inside = {*jobs}
        nodes = (at if job in inside else () for job, at in enumerate(self.nodes))
        devices = (on if job in inside else () for job, on in enumerate(self.devices))
        return Placements(tuple(nodes), tuple(devices))


@models.register("node-placement")
@declared
class NodePlacement(Problem[Placements]):
    """Pending jobs onto the free nodes of a site.

    A job is a number of equal chunks, which are all placed or none. A chunk needs an amount of each
    resource of its node, and perhaps devices there, such as GPUs.

    Raises
    ------
    InputError
        If lengths do not match, an amount is negative, a label is unknown, or the objective could
        exceed 2^53; the message lists all mistakes.

    Examples
    --------
    Two nodes of 4 cores and 8 GB, and three jobs:

    >>> problem = NodePlacement(
    ...     resources=["cores", "memory"], free=np.array([[4, 8], [4, 8]]),
    ...     chunks=[1, 2, 1], demand=np.array([[4, 2], [3, 6], [1, 1]]),
    ...     weights=[4, 6, 1])
    >>> plan = Placements(((), (0, 1), (0,)), ((), ((), ()), ((),)))
    >>> problem.violations(plan), problem.objective(plan)
    ([], 7)
    """

    resources: tuple[str, ...] = field(
        Texts(), "names of the countable resources of nodes, `cores` and `memory` for instance"
    )
    free: Ints = field(
        Amounts("resources"), "free amount of each resource of each node", symbol="C_nr"
    )
    chunks: Ints = field(Integers(1), "number of chunks of each job", symbol="c_j")
    demand: Ints = field(
        Amounts("resources", like="chunks"),
        "amount of each resource that a chunk of the job needs",
        symbol="d_jr",
    )
    weights: Ints = field(Integers(0, like="chunks"), "priority of each job", symbol="w_j", each=1)
    then: tuple[str, ...] = field(
        Texts("switches", "nodes", "fragmentation"),
        "what is minimized among the placements of greatest weight, in this order: `switches`, "
        "the leaf switches that jobs span; `nodes`, the idle nodes that receive a chunk; "
        "`fragmentation`, the free shares of devices that a chunk of the jobs cannot use, over all "
        "of their chunks",
        default=(),
        always=True,
    )
    most_per_node: Ints = field(
        Integers(0, like="chunks"),
        "most chunks of the job on a node, 0 for no limit",
        symbol="u_j",
        each=0,
    )
    devices: tuple[tuple[int, ...], ...] = field(
        Devices("free"), "free thousandths of each device of each node", symbol="G_ng", each=()
    )
    share: Ints = field(
        Integers(0, like="chunks"),
        "thousandths of devices that a chunk needs: below 1000 a share of one device, from 1000 a "
        "number of whole devices",
        symbol="s_j",
        each=0,
    )
    kinds: Sequence[str] | None = labels(
        "free", "kind of each node, which stands for its features and partitions", as_text=True
    )
    allowed: tuple[tuple[str, ...] | None, ...] = field(
        LabelSets("kinds", like="chunks"),
        "kinds of nodes that the job may use; null for all",
        symbol="K_j",
        each=None,
    )
    switches: Sequence[str] | None = labels("free", "leaf switch of each node", as_text=True)
    blocks: Sequence[str] | None = labels(
        "free", "block, or higher switch, of each node", as_text=True
    )
    span: tuple[str, ...] = field(
        Texts("anywhere", "switch", "block", like="chunks"),
        "what holds all chunks of the job: the nodes of one `switch`, of one `block`, or "
        "`anywhere`",
        each="anywhere",
    )
    exclusive: tuple[int, ...] = field(
        Numbers("job", of="chunks", distinct=True),
        "jobs that share their nodes with no other job",
        default=(),
    )
    busy: tuple[int, ...] = field(
        Numbers("node", first=0, of="free"), "nodes on which other jobs run", default=()
    )
    licences: Ints = field(
        Integers(0), "free number of each licence of the site", symbol="L_l", default=()
    )
    licences_of: Ints = field(
        Amounts("licences", like="chunks"),
        "number of each licence that the job needs",
        symbol="l_jl",
        each=0,
    )
    levels: tuple[str, ...] = field(
        Texts(),
        "names of further levels at which nodes are grouped, `racks` for instance",
        default=(),
    )
    groups: tuple[tuple[str, ...], ...] = field(
        GroupRows("free", like="levels"), "group of each node, for each level", default=()
    )
    most_groups: Ints = field(
        Amounts("levels", like="chunks"),
        "most groups of each level that the job may span, 0 for any number",
        symbol="q_jh",
        each=0,
    )
    segments: Ints = field(
        Amounts("levels", like="chunks"),
        "number of chunks in each segment of the job, all of them in one group of the level, 0 "
        "for no segments; a divisor of the number of chunks",
        symbol="f_jh",
        each=0,
    )
    nodes: Sequence[str | int] | None = labels("free", "a name for each node")
    jobs: Sequence[str | int] | None = labels("chunks", "a name for each job")
    columns: Mapping[str, Mapping[str, Any]] | None = field(
        RuleColumns(),
        "what rules read of jobs, of nodes and of running jobs, their `user` for instance; `nodes` "
        "of running jobs are the numbers of their nodes, from 0",
        default=None,
    )

    sense = "max"
    default_solver = "column-generation"

    @staticmethod
    def joint_mistakes(fields: Fields, *, on_file: bool) -> list[str]:
        """Return the mistakes in shares, spans without labels, segments, and too large weights."""
        found = first_few(
            "share",
            [
                f"share[{job}]: {share}; expected at most {WHOLE}, or a multiple of it"
                for job, share in enumerate(fields["share"].tolist())
                if share > WHOLE and share % WHOLE
            ],
        )
        for place, span in enumerate(fields["span"]):
            needed = {"switch": "switches", "block": "blocks"}.get(span)
            if needed and fields[needed] is None:
                found.append(f"span[{place}]: {span}; expected {needed}, one for each node")
        chunks, segments = fields["chunks"], fields["segments"]
        uneven = np.argwhere(chunks[:, None] % np.maximum(segments, 1))
        found += first_few(
            "segments",
            [
                f"segments[{job}][{level}]: {segments[job, level]}; expected a divisor of "
                f"{chunks[job]}, the number of chunks"
                for job, level in uneven.tolist()
            ],
        )
        if "switches" in fields["then"] and fields["switches"] is None:
            found.append("then: switches; expected switches, one for each node")
        radices = _radices(fields)
        most = sum(fields["weights"].tolist()) * math.prod(radices)
        if most > COUNTABLE:
            found.append(f"weights: the objective may reach {most}; expected at most 2^53")
        return found

    @property
    def size(self) -> str:
        """Jobs x nodes."""
        return f"{len(self.chunks)}x{len(self.free)}"

    @property
    def radices(self) -> tuple[int, ...]:
        """For each entry of `then`, one more than its measure can reach."""
        return _radices(vars(self))

    def measures(self, solution: Placements) -> dict[str, int]:
        """Return the weight placed, and the measures that `then` may name, by name.

        Fragmentation, which takes longer, is left out if `then` does not name it.
        """
        placed = [job for job, nodes in enumerate(solution.nodes) if nodes]
        spans = 0
        if self.switches is not None:
            spans = sum(len({self.switches[n] for n in solution.nodes[job]}) for job in placed)
        used = {node for job in placed for node in solution.nodes[job]}
        found = {
            "weight": sum(int(self.weights[job]) for job in placed),
            "switches": spans,
            "nodes": len(used - {*self.busy}),
        }
        if "fragmentation" in self.then:
            found["fragmentation"] = unusable(self, solution, task_types(self))
        return found

    def objective(self, solution: Placements) -> int:
        """Return the weight placed, then minus each measure of `then`, in lexicographic order."""
        measures = self.measures(solution)
        value = measures["weight"]
        for name, radix in zip(self.then, self.radices):
            value = value * radix - measures[name]
        return value

    def violations(self, solution: Placements) -> list[Violation]:
        """Check chunks, nodes, resources, devices, groups, exclusive nodes and licences."""
        found = wrong_length(solution.nodes, len(self.chunks))
        found = found or wrong_length(solution.devices, len(self.chunks))
        if found:
            return found
        nodes = len(self.free)
        used: dict[int, Counter[int]] = {}  # chunks of each job, by node
        taken: Counter[tuple[int, int]] = Counter()  # thousandths of each device
        for job, (at, devices) in enumerate(zip(solution.nodes, solution.devices)):
            name = f"job {job + 1}"
            if not at and not devices:
                continue
            if len(at) != self.chunks[job] or len(devices) != len(at):
                detail = f"{name} has {len(at)} nodes and {len(devices)} lists of devices for its "
                found.append(Violation("chunks", f"{detail}{self.chunks[job]} chunks"))
                continue
            if outside := [node for node in at if not 0 <= node < nodes]:
                found.append(Violation("node", f"{name} is on node {outside[0]}, of {nodes}"))
                continue
            span = self.span[job]
            found += beyond_limits(
                name,
                at,
                kinds=self.kinds,
                allowed=self.allowed[job],
                most_per_node=int(self.most_per_node[job]),
                groups={"switch": self.switches, "block": self.blocks}.get(span),
                span=span,
            )
            found += self._violations_of_levels(job, name, at)
            share = int(self.share[job])
            whole = max(1, share // WHOLE) if share else 0
            for node, chosen in zip(at, devices):
                used.setdefault(node, Counter())[job] += 1
                there = {*chosen} & {*range(len(self.devices[node]))}
                if not len(there) == len(chosen) == whole:
                    on = f"{list(chosen)} of node {node} for {share} thousandths"
                    found.append(Violation("devices", f"{name} has devices {on}"))
                    continue
                for device in chosen:
                    taken[node, device] += min(share, WHOLE)
        for (node, device), share in taken.items():
            free = self.devices[node][device]
            if share > free:
                detail = f"{share} of {free} thousandths of device {device} of node {node} are used"
                found.append(Violation("device", detail))
        exclusive = {*self.exclusive}
        for node, counts in used.items():
            for resource, name in enumerate(self.resources):
                demand, free = self.demand[:, resource], self.free[node, resource]
                needed = sum(count * int(demand[job]) for job, count in counts.items())
                if needed > free:
                    detail = f"{needed} of {free} {name} of node {node} are used"
                    found.append(Violation("resource", detail))
            alone = [job for job in counts if job in exclusive]
            if alone and (len(counts) > 1 or node in self.busy):
                detail = f"job {alone[0] + 1} shares node {node} with other jobs"
                found.append(Violation("exclusive", detail))
        placed = [job for job, at in enumerate(solution.nodes) if at]
        licences = zip(self.licences.tolist(), self.licences_of[placed].sum(axis=0).tolist())
        for licence, (free, needed) in enumerate(licences):
            if needed > free:
                detail = f"{needed} of {free} of licence {licence + 1} are used"
                found.append(Violation("licence", detail))
        return found

    def _violations_of_levels(self, job: int, name: str, at: Sequence[int]) -> list[Violation]:
        found = []
        for level, group_of in enumerate(self.groups):
            in_groups = Counter(group_of[node] for node in at)
            most, segment = int(self.most_groups[job, level]), int(self.segments[job, level])
            if most and len(in_groups) > most:
                detail = f"{name} spans {len(in_groups)} of {self.levels[level]}, more than {most}"
                found.append(Violation("groups", detail))
            for group, count in in_groups.items():
                if segment and count % segment:
                    detail = f"{name} has {count} chunks in {group}, in segments of {segment}"
                    found.append(Violation("segment", detail))
        return found

    def choice(self, objective: int) -> Choice | None:
        """Return whether jobs had to be left out."""
        if len(self.chunks) == 1:
            return Choice.ONE_JOB
        most_without = (int(self.weights.sum()) - 1) * math.prod(self.radices)
        return Choice.ALL_PLACED if objective > most_without else Choice.CONTESTED

    def solution_to_json(self, solution: Placements) -> dict[str, Any]:
        """Return the node of each chunk, from 0, and the devices; null for a job not placed."""
        fields: dict[str, Any] = {"nodes": [list(at) or None for at in solution.nodes]}
        if self.share.any():
            fields["devices"] = [
                [list(chosen) for chosen in devices] or None for devices in solution.devices
            ]
        return fields

    def solution_from_json(self, fields: Mapping[str, Any]) -> Placements:
        """Return the placements written by `solution_to_json`."""
        table = Table(fields)
        kind = Parsed(_lists, "a list of nodes from 0, or null, for each job")
        nodes = table.read("nodes", kind, instead=())
        kind = Parsed(_devices, "a list of devices for each chunk")
        devices = table.read("devices", kind, tuple(((),) * len(at) for at in nodes))
        table.done(self.name)
        return Placements(nodes, devices)

    def describe(self, solution: Placements | None = None) -> list[tuple[str, str]]:
        """Return the free resources and the jobs, or the nodes of the jobs placed."""
        jobs = [str(job) for job in self.jobs or range(1, len(self.chunks) + 1)]
        if solution is None:
            free = self.free.sum(axis=0).tolist()
            lines = [
                ("nodes", f"{len(self.free):,}, of which {len(self.busy):,} run jobs"),
                ("free", ", ".join(f"{n:,} {name}" for n, name in zip(free, self.resources))),
                ("jobs", f"{len(jobs):,} of {int(self.chunks.sum()):,} chunks"),
            ]
            if any(self.devices):
                shares = sum(map(sum, self.devices))
                lines.insert(2, ("free devices", f"{shares / WHOLE:,.2f}"))
            return lines
        names = [str(node) for node in self.nodes or range(len(self.free))]
        placed = [job for job, at in enumerate(solution.nodes) if at]
        lines = [
            (
                f"job {jobs[job]}",
                " ".join(names[node] for node in dict.fromkeys(solution.nodes[job])),
            )
            for job in placed[:SHOWN]
        ]
        if len(placed) > SHOWN:
            lines.append(("more", f"{len(placed) - SHOWN:,} jobs"))
        left = [name for job, name in enumerate(jobs) if not solution.nodes[job]]
        more = "" if len(left) <= SHOWN else f" and {len(left) - SHOWN:,} more"
        return [*lines, ("not placed", f"{' '.join(left[:SHOWN])}{more}" or "-")]


def _radices(fields: Mapping[str, Any]) -> tuple[int, ...]:
    """Return for each entry of `then` one more than its measure can reach."""
    chunks, there = fields["chunks"], len({*(fields["switches"] or ())})
    most = {"switches": int(np.minimum(chunks, there).sum()), "nodes": len(fields["free"])}
    with_devices = int(chunks[fields["share"] > 0].sum())
    most["fragmentation"] = with_devices * sum(map(sum, fields["devices"]))
    return tuple(most[name] + 1 for name in fields["then"])


def _lists(value: Any, *, null: bool = True) -> tuple[tuple[int, ...], ...]:
    """Return a list of lists of numbers from 0, with an empty one for null if that may be."""
    rows = [[] if row is None and null else row for row in value]
    if not isinstance(value, list) or not all(
        isinstance(row, list) and all(type(n) is int and 0 <= n <= LARGEST_FIELD for n in row)
        for row in rows
    ):
        raise ValueError
    return tuple(map(tuple, rows))


def _devices(value: Any) -> tuple[tuple[tuple[int, ...], ...], ...]:
    if not isinstance(value, list):
        raise ValueError
    return tuple(_lists([] if entry is None else entry, null=False) for entry in value)


class TaskType(NamedTuple):
    """Chunks that need the same.

    Parameters
    ----------
    job : int
        The first job that has such chunks, from 0.
    chunks : int
        Number of such chunks of all jobs.
    """

    job: int
    chunks: int


def first_alike(problem: NodePlacement) -> list[int]:
    """Return for each job the first job, from 0, whose chunks are of the same type.

    Chunks are of one type if they need the same resources, the same share of devices and nodes of
    the same kinds, and if neither or both share their nodes with other jobs.
    """
    exclusive = {*problem.exclusive}
    first: dict[object, int] = {}
    needs = zip(problem.demand.tolist(), problem.share.tolist(), problem.allowed)
    return [
        first.setdefault((*demand, share, allowed, job in exclusive), job)
        for job, (demand, share, allowed) in enumerate(needs)
    ]


def task_types(problem: NodePlacement, most: int | None = None) -> list[TaskType]:
    """Return the types of chunks that need devices, the most frequent first.

    Of equally frequent types, the first in the queue comes first; jobs are taken for those that
    will come.
    """
    chunks: Counter[int] = Counter()
    for job, first in enumerate(first_alike(problem)):
        if problem.share[job]:
            chunks[first] += int(problem.chunks[job])
    return [TaskType(*entry) for entry in chunks.most_common(most)]


def fragmentation(
    problem: NodePlacement, solution: Placements | None = None, types: int | None = None
) -> float:
    """Return the expected number of free devices that a task drawn from the mix cannot use.

    The mix are the types of chunks of all jobs that need devices, each as probable as it is
    frequent. If a chunk of the type fits on a node, it cannot use the free shares of devices that
    have less free than it needs of one; if it does not, for lack of a resource or of devices, or
    because it may not run there, it cannot use any free share of that node. The sum over nodes is
    the measure.

    Q. Weng, L. Yang, Y. Yu, W. Wang, X. Tang, G. Yang, L. Zhang, "Beware of fragmentation:
    scheduling GPU-sharing workloads with fragmentation gradient descent", USENIX ATC 2023.

    `solution`: valid placements, after which devices are free; by default, before any; `types`:
    number of types that count, the most frequent ones; by default, all. The measure is 0 if no
    job needs devices.

    Half a device is free on node 0, two on node 1. The first job can use the two only, the second
    one all:

    >>> from optsched.models import NodePlacement
    >>> problem = NodePlacement(
    ...     resources=["cores"], free=np.array([[8], [8]]), devices=[[500], [1000, 1000]],
    ...     chunks=[1, 1], demand=np.array([[1], [1]]), share=[1000, 300])
    >>> fragmentation(problem)
    0.25
    """
    mix = task_types(problem, types)
    return unusable(problem, solution, mix) / (WHOLE * max(1, sum(task.chunks for task in mix)))


def unusable(problem: NodePlacement, solution: Placements | None, mix: Sequence[TaskType]) -> int:
    """Return the free thousandths of devices that tasks cannot use, over all chunks of a mix."""
    free, devices, others, owned = _left(problem, solution)
    whole = (devices == WHOLE).sum(axis=1)
    total = 0
    for job, chunks in mix:
        share = int(problem.share[job])
        small = devices < min(share, WHOLE)
        fits = (free >= problem.demand[job]).all(axis=1) & ~owned
        fits &= whole >= share // WHOLE if share >= WHOLE else ~small.all(axis=1)
        fits &= is_allowed(problem.kinds, problem.allowed[job], len(fits))
        if job in problem.exclusive:
            fits &= ~others
        total += chunks * int(devices[small | ~fits[:, None]].sum())
    return total


def _left(problem: NodePlacement, solution: Placements | None) -> tuple[Ints, Ints, Flags, Flags]:
    """Return free amounts, thousandths of devices, nodes with jobs, and with exclusive ones."""
    free = problem.free.copy()
    devices = np.zeros((len(free), max(map(len, problem.devices), default=0)), dtype=np.int64)
    for node, row in enumerate(problem.devices):
        devices[node, : len(row)] = row
    others, owned = np.zeros((2, len(free)), dtype=bool)
    others[list(problem.busy)] = True
    if solution is not None:
        for job, (nodes, chosen) in enumerate(zip(solution.nodes, solution.devices)):
            for node, on in zip(nodes, chosen):
                free[node] -= problem.demand[job]
                devices[node, list(on)] -= min(int(problem.share[job]), WHOLE)
                others[node] = True
                owned[node] |= job in problem.exclusive
    return free, devices, others, owned
