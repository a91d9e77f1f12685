"""Picture of a node placement: the chunks of the placed jobs in what is free on each node."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from optsched.models.node_placement.fields import WHOLE
from optsched.numbers import counted
from optsched.report.rows import Panel, Stretch, figure_of
from optsched.report.style import FAINT, FILLS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.models.node_placement import NodePlacement, Placements

FEW, MOST = 30, 70
"""Most nodes that are all drawn, and most of those that receive a chunk where there are more."""


def figure(problem: NodePlacement, solution: Placements) -> Figure:
    """Return the nodes as rows, by leaf switch, with a panel for each resource that jobs need.

    A job that shares its nodes with no other job has all that is free on them.
    """
    used = {node for nodes in solution.nodes for node in nodes}
    switches = problem.switches or [""] * len(problem.free)
    order = {switch: place for place, switch in enumerate(dict.fromkeys(switches))}
    candidates = range(len(problem.free)) if len(problem.free) <= FEW else used
    nodes = sorted(candidates, key=lambda node: (order[switches[node]], node))[:MOST]
    names = problem.nodes or range(len(problem.free))
    labels = [f"{switches[node]} {names[node]}".strip() for node in nodes]
    row_of = {node: row for row, node in enumerate(nodes)}
    panels = [
        _panel_of_resource(problem, solution, resource, row_of)
        for resource in range(len(problem.resources))
        if problem.demand[:, resource].any()
    ]
    if problem.share.any():
        panels.append(_panel_of_devices(problem, solution, row_of))
    placed = sum(1 for at in solution.nodes if at)
    heading = f"{placed:,} of {counted(len(solution.nodes), 'job')} placed"
    if len(nodes) < len(used):
        heading += f"; the first {len(nodes):,} of {len(used):,} nodes with jobs"
    elif len(nodes) < len(problem.free):
        heading += f"; the {counted(len(nodes), 'node')} with jobs"
    jobs, on = counted(len(solution.nodes), "job"), counted(len(problem.free), "node")
    return figure_of(f"Placement of {jobs} on {on}", heading, "node", labels, panels)


def _panel_of_resource(
    problem: NodePlacement, solution: Placements, resource: int, row_of: dict[int, int]
) -> Panel:
    names, exclusive = _names(problem), {*problem.exclusive}
    free = problem.free[:, resource].tolist()
    demand = problem.demand[:, resource].tolist()
    filled: Counter[int] = Counter()
    stretches = []
    for job, at in enumerate(solution.nodes):
        for node, chunks in Counter(node for node in at if node in row_of).items():
            begin = filled[node]
            filled[node] += free[node] if job in exclusive else chunks * demand[job]
            if filled[node] > begin:
                place = row_of[node], begin, filled[node]
                stretches.append(Stretch(*place, FILLS[job % len(FILLS)], names[job]))
    what = problem.resources[resource]
    unit = {"cpus": "CPUs", "gpus": "GPUs"}.get(what, what)
    return Panel(f"free {unit}", [free[node] for node in row_of], stretches)


def _panel_of_devices(
    problem: NodePlacement, solution: Placements, row_of: dict[int, int]
) -> Panel:
    names = _names(problem)
    stretches = []
    filled: defaultdict[tuple[int, int], float] = defaultdict(float)
    for node, row in row_of.items():
        for device, free in enumerate(problem.devices[node]):
            filled[node, device] = device + 1 - free / WHOLE
            if free < WHOLE:
                stretches.append(Stretch(row, device, filled[node, device], FAINT, ""))
    for job, (at, devices) in enumerate(zip(solution.nodes, solution.devices)):
        share = min(int(problem.share[job]), WHOLE) / WHOLE
        for node, chosen in zip(at, devices):
            for device in chosen if node in row_of else ():
                begin = filled[node, device]
                filled[node, device] += share
                place = row_of[node], begin, begin + share
                stretches.append(Stretch(*place, FILLS[job % len(FILLS)], names[job]))
    return Panel("devices, gray if in use", [len(problem.devices[n]) for n in row_of], stretches)


def _names(problem: NodePlacement) -> list[str]:
    return [str(name) for name in problem.jobs or range(1, len(problem.chunks) + 1)]
