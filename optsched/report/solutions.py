"""Pictures of solutions: a function for each model, and `PICTURES`, in which they are found."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.boxes.box import Box
from optsched.column_sets import runs_of
from optsched.errors import InputError
from optsched.models.node_placement.fields import WHOLE
from optsched.models.window_mkp import NOT_PLACED
from optsched.numbers import counted
from optsched.report import style, torus_maps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optsched.models.box_placement import BoxPlacement
    from optsched.models.box_placement import Placement as Boxes
    from optsched.models.gang_packing import GangPacking, Packing
    from optsched.models.migration import Migration, Plan
    from optsched.models.node_placement import NodePlacement, Placements
    from optsched.models.partition_mkp import PartitionMKP
    from optsched.models.partition_mkp import Placement as InBins
    from optsched.models.problem import Problem
    from optsched.models.reconfiguration import Arrangement, Reconfiguration
    from optsched.models.threshold_allocation import Placement, ThresholdAllocation
    from optsched.models.window_mkp import Assignment, WindowMKP

HIGHEST, TALLEST = 0.26, 9.0  # largest height of a row and of all rows, in inches
READABLE = 0.12  # least height of a row with labels, in inches
INSIDE = 7.2  # approximate width of all panels, in inches; it depends on the names of rows
CHARACTER = 0.075  # width of a character of a label, in inches


class Stretch(NamedTuple):
    """Part of a row that a job has, from `begin` to before `end`."""

    row: int
    begin: float
    end: float
    fill: str
    label: str


class Panel(NamedTuple):
    """Rows of one kind: the label along them, the length of each row, and the jobs in them."""

    along: str
    lengths: Sequence[float]
    stretches: Sequence[Stretch]


@style.applied()
def row_figure(
    title: str, heading: str, across: str, names: Sequence[str], panels: Sequence[Panel]
) -> Figure:
    """Return a picture of rows, the first one on top, in panels side by side.

    `heading` is a sentence below the title, `across` the label across the rows, and `names` are
    those of the rows, which all panels have in common.
    """
    height = min(HIGHEST, TALLEST / max(1, len(names)))
    shown = range(0, len(names), math.ceil(READABLE / height))
    drawing = style.new_figure(1.1 + height * len(names), title)
    first, *others = drawing.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    style.subtitle(first, heading)
    first.set_ylabel(across)
    first.set_yticks(list(shown), [names[row] for row in shown], fontsize=8)
    first.set_ylim(len(names) - 0.4, -0.6)
    for axes, panel in zip((first, *others), panels):
        _draw(axes, panel, INSIDE / len(panels), labeled=height >= READABLE)
    return drawing


def _draw(axes: Axes, panel: Panel, inside: float, *, labeled: bool) -> None:
    axes.grid(visible=False)
    look: dict[str, Any] = {"height": 0.8, "linewidth": 0.6, "clip_on": False}
    axes.barh(range(len(panel.lengths)), panel.lengths, color="white", edgecolor=style.GREY, **look)
    longest = max((*panel.lengths, 1))
    rows, begins, ends, fills, names = zip(*panel.stretches) if panel.stretches else ((),) * 5
    widths = [end - begin for begin, end in zip(begins, ends)]
    axes.barh(rows, widths, left=begins, color=fills, edgecolor=style.INK, **look)
    for row, begin, width, name in zip(rows, begins, widths, names):
        if labeled and width / longest * inside >= CHARACTER * len(name):
            axes.text(begin + width / 2, row, name, ha="center", va="center", fontsize=8)
    axes.set_xlim(0, longest)
    axes.set_xlabel(panel.along)
    style.count_ticks(axes.xaxis)


FEW, MOST = 30, 70
"""Most nodes that are all drawn, and most of those that receive a chunk where there are more."""

FEW_IN_TIME = 8  # most nodes that are all drawn; of more, only those of the job
BEHIND = 1.2  # time drawn, from now on, relative to the time until the job ends
HIGHEST_OF_NODE = 0.45  # largest height of a node, in inches
READABLE_OF_NODE = 0.14  # least height of a node with its name, in inches
FILLED = 0.85  # height of the highest demand of a node, as a share of the node's height
AREA: dict[str, Any] = {"fill": True, "linewidth": 0.6}  # style of a demand

LIMIT: dict[str, Any] = {"color": style.INK, "linewidth": 0.8, "linestyle": (0, (4, 2))}
"""Style of a capacity."""


def box_placement(problem: BoxPlacement, solution: Boxes) -> Figure:
    """Return the torus with running jobs in gray, and placed ones in color."""
    names = problem.waiting_jobs or range(1, len(solution) + 1)
    boxes = {job: box for job, box in enumerate(solution) if box is not None}
    parts = torus_maps.holes_of(problem.holes)
    parts += [torus_maps.Part(box, torus_maps.BUSY) for box in problem.running]
    parts += torus_maps.parts_of(problem.grid, boxes, names)
    heading = f"{len(boxes):,} of {counted(len(solution), 'job')} placed"
    legend = [torus_maps.Entry("running", torus_maps.BUSY)] if problem.running else []
    legend += [torus_maps.HOLES] if problem.holes else []
    title = f"{problem.name} {problem.size}"
    return torus_maps.figure_of(title, problem.grid, [torus_maps.Panel(heading, parts)], legend)


def gang_packing(problem: GangPacking, solution: Packing) -> Figure:
    """Return the matrix with running jobs in gray, and placed ones in color."""
    running = problem.running_jobs or [f"r{job + 1}" for job in range(len(problem.running))]
    waiting = problem.waiting_jobs or [f"w{job + 1}" for job in range(len(problem.waiting))]
    stretches = [
        Stretch(row, begin, end, style.FAINT, str(name))
        for name, row, columns in zip(running, solution.rows_of_running, problem.running)
        for begin, end in runs_of(columns)
    ]
    placed = [
        job
        for job in zip(waiting, solution.rows_of_waiting, solution.columns_of_waiting)
        if job[1] >= 0
    ]
    stretches += [
        Stretch(row, begin, end, style.FILLS[place % len(style.FILLS)], str(name))
        for place, (name, row, columns) in enumerate(placed)
        for begin, end in runs_of(columns)
    ]
    jobs = counted(len(problem.waiting), "waiting job")
    return row_figure(
        f"{problem.name} {problem.size}",
        f"{len(placed):,} of {jobs} placed, in color; running jobs in gray",
        "row",
        [str(row + 1) for row in range(problem.rows)],
        [Panel("columns", [problem.columns] * problem.rows, stretches)],
    )


def migration(problem: Migration, solution: Plan) -> Figure:
    """Return the torus before the plan, and after the last step with the large job."""
    label = "" if problem.incoming_job is None else problem.incoming_job
    after = f"after: the large job of {counted(problem.incoming, 'node')} in {solution.place}"
    return _relocation(problem, solution, after, [solution.place], [label])


def _relocation(
    problem: Migration | Reconfiguration,
    solution: Plan | Arrangement,
    heading: str,
    boxes: Sequence[Box | None],
    labels: Sequence[str | int],
) -> Figure:
    """Return the torus before the steps, and after with the boxes and labels of incoming jobs."""
    running = len(problem.running)
    moves = torus_maps.moves_of(solution.steps, problem.running_jobs or range(1, running + 1))
    before = dict(enumerate(problem.running))
    coming = {running + job: box for job, box in enumerate(boxes) if box is not None}
    ends = dict(enumerate(problem.ending, start=running + len(boxes)))
    to_end = f", {len(ends)} to end" if ends else ""
    return torus_maps.relocation_figure(
        f"{problem.name} {problem.size}",
        (f"before: {counted(len(moves), 'job')} to move{to_end}; numbers are steps", heading),
        problem.grid,
        problem.holes,
        before | ends,
        before | solution.destinations | coming,
        moves,
        {job: str(labels[job - running]) for job in coming},
    )


def node_placement(problem: NodePlacement, solution: Placements) -> Figure:
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
    looks = [
        (style.FILLS[job % len(style.FILLS)], str(name))
        for job, name in enumerate(problem.jobs or range(1, len(problem.chunks) + 1))
    ]
    panels = [
        _panel_of_resource(problem, solution, resource, row_of, looks)
        for resource in range(len(problem.resources))
        if problem.demand[:, resource].any()
    ]
    if problem.share.any():
        panels.append(_panel_of_devices(problem, solution, row_of, looks))
    placed = sum(1 for at in solution.nodes if at)
    heading = f"{placed:,} of {counted(len(solution.nodes), 'job')} placed"
    if len(nodes) < len(used):
        heading += f"; the first {len(nodes):,} of {len(used):,} nodes with jobs"
    elif len(nodes) < len(problem.free):
        heading += f"; the {counted(len(nodes), 'node')} with jobs"
    jobs, on = counted(len(solution.nodes), "job"), counted(len(problem.free), "node")
    return row_figure(f"Placement of {jobs} on {on}", heading, "node", labels, panels)


def _panel_of_resource(
    problem: NodePlacement,
    solution: Placements,
    resource: int,
    row_of: dict[int, int],
    looks: Sequence[tuple[str, str]],
) -> Panel:
    exclusive = {*problem.exclusive}
    free = problem.free[:, resource].tolist()
    demand = problem.demand[:, resource].tolist()
    filled: Counter[int] = Counter()
    stretches = []
    for job, at in enumerate(solution.nodes):
        for node, chunks in Counter(node for node in at if node in row_of).items():
            begin = filled[node]
            filled[node] += free[node] if job in exclusive else chunks * demand[job]
            if filled[node] > begin:
                stretches.append(Stretch(row_of[node], begin, filled[node], *looks[job]))
    what = problem.resources[resource]
    unit = {"cpus": "CPUs", "gpus": "GPUs"}.get(what, what)
    return Panel(f"free {unit}", [free[node] for node in row_of], stretches)


def _panel_of_devices(
    problem: NodePlacement,
    solution: Placements,
    row_of: dict[int, int],
    looks: Sequence[tuple[str, str]],
) -> Panel:
    stretches = []
    filled: defaultdict[tuple[int, int], float] = defaultdict(float)
    for node, row in row_of.items():
        for device, free in enumerate(problem.devices[node]):
            filled[node, device] = device + 1 - free / WHOLE
            if free < WHOLE:
                stretches.append(Stretch(row, device, filled[node, device], style.FAINT, ""))
    for job, (at, devices) in enumerate(zip(solution.nodes, solution.devices)):
        share = min(int(problem.share[job]), WHOLE) / WHOLE
        for node, chosen in zip(at, devices):
            for device in chosen if node in row_of else ():
                begin = filled[node, device]
                filled[node, device] += share
                stretches.append(Stretch(row_of[node], begin, begin + share, *looks[job]))
    return Panel("devices, gray if in use", [len(problem.devices[n]) for n in row_of], stretches)


def partition_mkp(problem: PartitionMKP, solution: InBins) -> Figure:
    """Return the torus with bins outlined, jobs in color, and routers outside bins in gray."""
    names = problem.waiting_jobs or range(1, len(solution) + 1)
    boxes = {job: box for job, box in enumerate(problem.boxes(solution)) if box is not None}
    everything = Box(0, 0, 0, *problem.torus)
    parts = [torus_maps.Part(everything, torus_maps.BUSY, outline=0.0)]
    parts += [torus_maps.Part(box, "white", outline=0.0) for box in (*problem.bins, *problem.holes)]
    parts += torus_maps.holes_of(problem.holes)
    parts += torus_maps.parts_of(problem.grid, boxes, names)
    parts += [torus_maps.Part(box, None, outline=torus_maps.THICK) for box in problem.bins]
    heading = f"{len(boxes):,} of {counted(len(solution), 'job')} placed"
    heading += f" in {counted(len(problem.bins), 'bin')}"
    legend = [
        torus_maps.Entry("bin", None, outline=torus_maps.THICK),
        torus_maps.Entry("in no bin", torus_maps.BUSY, outline=0.0),
    ]
    legend += [torus_maps.HOLES] if problem.holes else []
    title = f"{problem.name} {problem.size}"
    return torus_maps.figure_of(title, problem.grid, [torus_maps.Panel(heading, parts)], legend)


def reconfiguration(problem: Reconfiguration, solution: Arrangement) -> Figure:
    """Return the torus before the steps, and after the last one with the waiting jobs started."""
    waiting = len(problem.waiting)
    labels = problem.waiting_jobs or [f"w{job + 1}" for job in range(waiting)]
    started = sum(box is not None for box in solution.boxes)
    after = f"after: {started:,} of {counted(waiting, 'job')} started"
    return _relocation(problem, solution, after, solution.boxes, labels)


@style.applied()
def threshold_allocation(problem: ThresholdAllocation, solution: Placement) -> Figure:
    """Return the demand on the nodes of the job, or on all nodes if these are at most a few.

    At each time, the resource with the highest demand relative to its capacity is shown. The demand
    of the job is stacked on that of others, in gray; a line is at the capacity of each node.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    used = np.flatnonzero(solution.processes).tolist()
    nodes = list(range(problem.nodes)) if problem.nodes <= FEW_IN_TIME else used
    demands = [_demand(problem, solution, node) for node in nodes]
    height = min(HIGHEST_OF_NODE, TALLEST / max(1, len(nodes)))
    highest = max((share for _, _, total in demands for share in total), default=1.0)
    scale = FILLED / max(highest, 1.0)
    drawing = style.new_figure(1.4 + height * len(nodes), f"{problem.name} {problem.size}")
    axes = drawing.subplots()
    processes = "1 process" if problem.asked == 1 else f"{problem.asked:,} processes"
    style.subtitle(
        axes,
        f"{processes} on {counted(len(used), 'node')} at {solution.start:,} s, "
        f"penalty factor {problem.factor(solution):.3f}"
        f"{'; at each time, the scarcest resource' if len(problem.capacity) > 1 else ''}",
    )
    axes.grid(visible=False, axis="y")
    fill = style.FILLS[0]
    for row, (times, others, total) in enumerate(demands):
        floor = row + 0.5
        lower = [floor - scale * share for share in others]
        upper = [floor - scale * share for share in total]
        axes.stairs(lower, times, baseline=floor, color=style.FAINT, **AREA)
        axes.stairs(upper, times, baseline=lower, color=fill, **AREA)
        axes.axhline(floor, color=style.GREY, linewidth=0.6)
        axes.axhline(floor - scale, **LIMIT)
    shown = range(0, len(nodes), math.ceil(READABLE_OF_NODE / height))
    axes.set_yticks(list(shown), [str(nodes[row]) for row in shown], fontsize=8)
    axes.set_ylim(len(nodes) - 0.4, -0.5)
    axes.set_xlim(0, max((times[-1] for times, _, _ in demands), default=1))
    axes.set_xlabel("seconds from now")
    axes.set_ylabel("node")
    style.count_ticks(axes.xaxis)
    drawing.legend(
        handles=[
            Patch(color=fill, label="the job"),
            Patch(color=style.FAINT, label="others"),
            Line2D([], [], label="capacity", **LIMIT),
        ],
        loc="outside lower center",
        ncols=3,
    )
    return drawing


def _demand(
    problem: ThresholdAllocation, solution: Placement, node: int
) -> tuple[list[int], list[float], list[float]]:
    """Return edges of time, and the largest share of a capacity between, of others and in all."""
    end = solution.start + problem.walltime
    horizon = int(BEHIND * end) + 1
    held = problem.held[problem.held[:, 0] == node]
    times = np.unique(np.concatenate(([0, solution.start, end, horizon], held[:, 2:4].ravel())))
    times = times[times <= horizon]
    begins = times[:-1, None]
    inside = (held[:, 2] <= begins) & (begins < held[:, 3])
    others = inside @ (held[:, 1:2] * held[:, 4:])
    runs = (solution.start <= begins) & (begins < end)
    total = others + runs * int(solution.processes[node]) * problem.demand
    # one more column, of zeros, where nothing is shared
    of_others, of_all = (
        np.pad(demand / problem.capacity, ((0, 0), (0, 1))) for demand in (others, total)
    )
    steps, scarcest = np.arange(len(of_all)), of_all.argmax(axis=1)
    return times.tolist(), of_others[steps, scarcest].tolist(), of_all[steps, scarcest].tolist()


def window_mkp(problem: WindowMKP, solution: Assignment) -> Figure:
    """Return a row for each slot, with its jobs side by side from its first node on."""
    names = problem.jobs or range(1, len(solution) + 1)
    slots = problem.slots or range(1, len(problem.capacities) + 1)
    weights = problem.weights.tolist()
    placed = [job for job, slot in enumerate(solution) if slot != NOT_PLACED]
    filled = [0] * len(problem.capacities)
    stretches: list[Stretch] = []
    for job in sorted(placed, key=solution.__getitem__):  # so that neighbors differ in color
        slot, fill = solution[job], style.FILLS[len(stretches) % len(style.FILLS)]
        begin, filled[slot] = filled[slot], filled[slot] + weights[job]
        stretches.append(Stretch(slot, begin, filled[slot], fill, str(names[job])))
    jobs = counted(len(solution), "job")
    return row_figure(
        f"{problem.name} {problem.size}",
        f"{len(placed):,} of {jobs} placed, on {sum(filled):,} nodes",
        "slot",
        [str(slot) for slot in slots],
        [Panel("nodes", problem.capacities.tolist(), stretches)],
    )


PICTURES: dict[str, Callable[[Any, Any], Figure]] = {
    "box-placement": box_placement,
    "gang-packing": gang_packing,
    "migration": migration,
    "node-placement": node_placement,
    "partition-mkp": partition_mkp,
    "reconfiguration": reconfiguration,
    "threshold-allocation": threshold_allocation,
    "window-mkp": window_mkp,
}
"""The functions that draw a problem and its solution, by name of the model."""


def find_picture(model: str) -> Callable[[Problem[Any], Any], Figure]:
    """Return the function that draws solutions of a model."""
    if model not in PICTURES:
        expected = f"expected {', '.join(PICTURES)}"
        raise InputError(f"no picture of solutions of {model}; {expected}")
    return PICTURES[model]
