"""Hypothesis strategies for problems, including unusual ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from optsched.boxes.box import Box, Grid
from optsched.models.box_placement import BoxPlacement
from optsched.models.data_placement import DataPlacement
from optsched.models.gang_packing import GangPacking
from optsched.models.hold import Hold
from optsched.models.migration import Migration
from optsched.models.node_placement import NodePlacement
from optsched.models.partition_mkp import PartitionMKP
from optsched.models.reconfiguration import Reconfiguration
from optsched.models.threshold_allocation import ThresholdAllocation
from optsched.models.threshold_allocation.problem import GOALS
from optsched.models.window_mkp import WindowMKP

T = TypeVar("T")

NO_FILE = -1

LABELS = st.integers(0, 10**6) | st.text(max_size=5)


@st.composite
def window_mkps(draw: st.DrawFn, max_jobs: int = 6, max_slots: int = 4) -> WindowMKP:
    """Draw a window knapsack.

    No jobs or no slots, slots and jobs of size 0, jobs larger than every slot, equal jobs and
    slots, profits of 0 or equal to the weights, with and without labels.
    """
    size = st.one_of(st.integers(0, 8), st.integers(1, 128), st.sampled_from([1, 2, 4, 8, 16, 32]))
    jobs, slots = draw(st.integers(0, max_jobs)), draw(st.integers(0, max_slots))
    return WindowMKP(
        weights=draw(_lists(size, jobs)),
        capacities=draw(_lists(size | st.integers(0, 300), slots)),
        profits=draw(st.none() | _lists(st.integers(0, 400), jobs)),
        jobs=draw(st.none() | _lists(LABELS, jobs)),
        slots=draw(st.none() | _lists(LABELS, slots)),
    )


@st.composite
def gang_packings(
    draw: st.DrawFn, max_running: int = 5, max_waiting: int = 4, max_rows: int = 3
) -> GangPacking:
    """Draw a gang packing.

    No running or no waiting jobs, one column, one row, empty rows between used ones, columns in
    many pieces, jobs as wide as the matrix, with and without labels.
    """
    columns, rows = draw(st.integers(1, 8)), draw(st.integers(1, max_rows))
    running, in_rows, held = [], [], [0] * rows
    for _ in range(draw(st.integers(0, max_running))):
        row = draw(st.integers(0, rows - 1))
        mask = draw(st.integers(0, (1 << columns) - 1)) & ~held[row]
        if mask:
            running.append(mask)
            in_rows.append(row)
            held[row] |= mask
    waiting = draw(st.lists(st.integers(1, columns), max_size=max_waiting))
    return GangPacking(
        columns,
        rows,
        running,
        in_rows,
        waiting,
        admission=draw(st.sampled_from(["fcfs", "skip"])),
        rerow=draw(st.booleans()),
        running_jobs=draw(st.none() | _lists(LABELS, len(running))),
        waiting_jobs=draw(st.none() | _lists(LABELS, len(waiting))),
    )


@st.composite
def node_placements(draw: st.DrawFn, max_jobs: int = 3, max_nodes: int = 3) -> NodePlacement:
    """Draw a node placement.

    No jobs, no nodes or no resources, chunks that fit nowhere or need nothing, shares of devices
    and whole ones on nodes with and without, switches that belong to two blocks, exclusive jobs on
    busy nodes, kinds that no node has, licences, weights of 0, levels of groups with limits and
    segments, with and without labels.
    """
    jobs = draw(st.integers(1, max_jobs) | st.integers(0, max_jobs))
    nodes = draw(st.integers(1, max_nodes) | st.integers(0, max_nodes))
    resources, licences = draw(st.integers(0, 2)), draw(st.integers(0, 1))
    names = st.sampled_from(["a", "b"])
    kinds = draw(st.none() | _lists(names, nodes))
    switches, blocks = (draw(st.none() | _lists(names, nodes)) for _ in range(2))
    spans = ["anywhere", *["switch"] * (switches is not None), *["block"] * (blocks is not None)]
    limit = st.lists(st.sampled_from(kinds or [""]), unique=True, max_size=len(kinds or ()))
    has_devices = draw(st.booleans())
    measures = ["nodes", *["switches"] * (switches is not None), *["fragmentation"] * has_devices]
    share = st.sampled_from([0, 300, 500, 1000, 2000])
    devices = st.lists(st.sampled_from([1000, 1000, 600, 0]), max_size=2)
    chunks = draw(_lists(st.sampled_from([1, 1, 2, 3]), jobs))
    levels = draw(st.sampled_from([0, 0, 0, 1, 2]))
    segments = [
        draw(_lists(st.sampled_from([0, *(n for n in (1, 2, 3) if count % n == 0)]), levels))
        for count in chunks
    ]
    return NodePlacement(
        ["cores", "memory"][:resources],
        _table(draw, st.integers(0, 9) | st.integers(4, 9), nodes, resources),
        chunks,
        _table(draw, st.integers(0, 2), jobs, resources),
        weights=draw(st.none() | _lists(st.integers(0, 9), jobs)),
        then=draw(st.lists(st.sampled_from(measures), unique=True)),
        most_per_node=draw(st.none() | _lists(st.integers(0, 2), jobs)),
        devices=draw(_lists(devices, nodes)) if has_devices else None,
        share=draw(_lists(share if has_devices else st.sampled_from([0, 0, 0, 300]), jobs)),
        kinds=kinds,
        allowed=draw(st.none() | _lists(st.none() | limit, jobs)),
        switches=switches,
        blocks=blocks,
        span=draw(st.none() | _lists(st.sampled_from(spans), jobs)),
        exclusive=draw(st.lists(st.integers(0, jobs - 1), unique=True)) if jobs else (),
        busy=draw(st.lists(st.integers(0, nodes - 1), unique=True)) if nodes else (),
        licences=draw(_lists(st.integers(0, 3), licences)),
        licences_of=_table(draw, st.integers(0, 2), jobs, licences),
        levels=["racks", "rows"][:levels],
        groups=draw(_lists(_lists(names, nodes), levels)),
        most_groups=_table(draw, st.integers(0, 2), jobs, levels),
        segments=np.array(segments, dtype=np.int64).reshape(jobs, levels),
        nodes=draw(st.none() | _lists(LABELS, nodes)),
        jobs=draw(st.none() | _lists(LABELS, jobs)),
    )


@st.composite
def holds(
    draw: st.DrawFn, max_claims: int = 4, max_nodes: int = 3, *, drains: bool = True, moves: int = 2
) -> Hold:
    """Draw a hold, with drains or without, and at most so many claims that may be moved.

    No claims, no nodes or no resources, a job that fits at once or nowhere or needs nothing, claims
    that hold nothing or only licences, several on a node, kinds that the job may not use, spans,
    exclusive jobs on busy nodes, costs of 0, claims that are pending or fixed, moved ones of equal
    and of different chunks, with and without labels.
    """
    nodes, claims = draw(st.integers(0, max_nodes)), draw(st.integers(0, max_claims))
    resources, licences = draw(st.integers(0, 2)), draw(st.integers(0, 1))
    names = st.sampled_from(["a", "b"])
    kinds, switches, blocks = (draw(st.none() | _lists(names, nodes)) for _ in range(3))
    spans = ["anywhere", *["switch"] * (switches is not None), *["block"] * (blocks is not None)]
    kind = st.sampled_from(kinds) if kinds else st.nothing()
    amounts = _lists(st.integers(0, 4), resources)
    holding = st.lists(st.integers(0, nodes - 1), unique=True, max_size=2) if nodes else st.just([])
    numbers = st.lists(st.integers(0, claims - 1), unique=True) if claims else st.just([])
    pending = draw(numbers) if drains else []
    chunks = st.lists(
        st.tuples(st.integers(1, 2), amounts), max_size=2, unique_by=lambda row: tuple(row[1])
    )
    moved: list[list[list[int]]] = [[] for _ in range(claims)]
    for claim in [claim for claim in draw(numbers) if claim not in pending][:moves]:
        moved[claim] = [[count, *needs] for count, needs in draw(chunks)]
    kind_sets = st.none() | st.lists(kind, unique=True) if kinds else st.none()
    return Hold(
        ["cores", "memory"][:resources],
        _table(draw, st.integers(0, 4), nodes, resources),
        draw(st.integers(1, 3)),
        draw(_lists(st.integers(0, 4), resources)),
        draw(_lists(st.integers(0, 9), claims)),
        [[[node, *draw(amounts)] for node in draw(holding)] for _ in range(claims)],
        most_per_node=draw(st.integers(0, 2)),
        kinds=kinds,
        allowed=draw(st.none() | st.lists(kind, unique=True)) if kinds else None,
        switches=switches,
        blocks=blocks,
        span=draw(st.sampled_from(spans)),
        exclusive=draw(st.booleans()),
        busy=draw(st.lists(st.integers(0, nodes - 1), unique=True, max_size=1)) if nodes else (),
        licences=draw(_lists(st.integers(0, 2), licences)),
        licences_of=draw(_lists(st.integers(0, 3), licences)),
        held_licences=_table(draw, st.integers(0, 2), claims, licences),
        pending=pending,
        fixed=draw(st.just([]) | numbers),
        drain_costs=draw(_lists(st.integers(0, 9), nodes))
        if drains and draw(st.booleans())
        else None,
        moved=moved if any(moved) else None,
        move_costs=draw(st.none() | _lists(st.integers(0, 9), claims)),
        moved_to=draw(_lists(kind_sets, claims)) if any(moved) else None,
        free_before=_table(draw, st.integers(0, 4), nodes, resources)
        if any(moved) and draw(st.booleans())
        else None,
        nodes=draw(st.none() | _lists(LABELS, nodes)),
        claims=draw(st.none() | _lists(LABELS, claims)),
        job=draw(st.none() | LABELS),
    )


@st.composite
def partition_mkps(draw: st.DrawFn, max_jobs: int = 3, max_bins: int = 2) -> PartitionMKP:
    """Draw a partition knapsack.

    No jobs or no bins, bins that wrap around or are as long as a ring, bins of one layer or one
    router, holes, several nodes on a router, jobs larger than every bin, equal jobs and bins,
    profits of 0 or equal to the sizes, with and without labels.
    """
    grid = draw(_grids(5))
    bins = _disjoint(draw, grid, draw(st.just(max_bins) | st.integers(0, max_bins)))
    nodes = draw(st.sampled_from([1, 1, 2, 3]))
    size = st.integers(1, 4 * nodes) | st.integers(1, 20 * nodes)
    jobs = draw(st.just(max_jobs) | st.integers(0, max_jobs))
    return PartitionMKP(
        grid.shape,
        bins,
        waiting=draw(_lists(size, jobs)),
        profits=draw(st.none() | _lists(st.integers(0, 40), jobs)),
        waiting_jobs=draw(st.none() | _lists(LABELS, jobs)),
        wrap=grid.wrap,
        convex=grid.convex,
        nodes_per_router=nodes,
        holes=_disjoint(draw, grid, draw(st.integers(0, 2)), beside=bins),
        links=draw(st.sampled_from([(1, 1, 1), (2, 1, 2)])),
    )


@st.composite
def box_placements(
    draw: st.DrawFn, max_running: int = 3, max_waiting: int = 3, max_side: int = 4
) -> BoxPlacement:
    """Draw a box placement.

    Sides of one router, lines and rings, holes, no running or no waiting jobs, jobs larger than the
    torus, equal jobs, one shape or all, both rules for anchors, with and without labels.
    """
    grid = draw(_grids(max_side))
    holes = _disjoint(draw, grid, draw(st.integers(0, 1)))
    running = _disjoint(draw, grid, draw(st.integers(0, max_running)), beside=holes)
    nodes, jobs = draw(st.integers(1, 3)), draw(st.integers(0, max_waiting))
    size = st.integers(1, 6) | st.integers(1, nodes * grid.routers + 1)
    return BoxPlacement(
        grid.shape,
        running,
        waiting=draw(_lists(size, jobs)),
        profits=draw(st.none() | _lists(st.integers(0, 9), jobs)),
        shapes=draw(st.none() | st.integers(1, 3)),
        anchors=draw(st.sampled_from(["all", "corners"])),
        running_jobs=draw(st.none() | _lists(LABELS, len(running))),
        waiting_jobs=draw(st.none() | _lists(LABELS, jobs)),
        wrap=grid.wrap,
        convex=grid.convex,
        nodes_per_router=nodes,
        holes=holes,
        links=draw(_lists(st.integers(1, 3), 3)),
    )


@st.composite
def migrations(draw: st.DrawFn, max_running: int = 5, max_side: int = 4) -> Migration:
    """Draw a migration.

    Sides of 1, lines and rings, holes, full tori, jobs in boxes larger than needed, jobs that have
    just started, large jobs that fit at once or nowhere, jobs that may not be moved or that end
    before the large one starts, one shape or all, with and without labels.
    """
    grid = draw(_grids(max_side))
    nodes = draw(st.sampled_from([1, 1, 2, 3]))
    holes = _disjoint(draw, grid, draw(st.sampled_from([0, 0, 0, 1, 2])))
    tries = draw(st.integers(0, 2 * max_running))
    running = _disjoint(draw, grid, tries, beside=holes)[:max_running]
    jobs = len(running)
    movable = st.sets(st.integers(0, jobs - 1)).map(sorted) if jobs else st.none()
    return Migration(
        grid.shape,
        running,
        sizes=[draw(st.integers(1, box.volume * nodes)) for box in running],
        elapsed=draw(_lists(st.integers(0, 9), jobs)),
        incoming=draw(st.integers(1, max(1, nodes * grid.routers // 2))),
        wrap=grid.wrap,
        convex=grid.convex,
        nodes_per_router=nodes,
        holes=holes,
        links=draw(st.sampled_from([(1, 1, 1), (1, 2, 1)])),
        movable=draw(st.one_of(st.none(), st.none(), movable)),
        shapes=draw(st.sampled_from([None, None, 1, 2])),
        running_jobs=draw(st.none() | _lists(LABELS, jobs)),
        incoming_job=draw(st.none() | LABELS),
        ending=_disjoint(draw, grid, draw(st.sampled_from([0, 0, 1, 2])), [*holes, *running]),
    )


@st.composite
def reconfigurations(
    draw: st.DrawFn, max_running: int = 4, max_waiting: int = 3, max_side: int = 3
) -> Reconfiguration:
    """Draw a reconfiguration.

    The states of `migrations`, with no waiting jobs, equal ones, jobs that fit at once or nowhere,
    some or none of them required, profits that outweigh all migrations or none.
    """
    state = draw(migrations(max_running, max_side))
    given = {f.name: getattr(state, f.name) for f in state.schema.fields}
    del given["incoming"], given["incoming_job"]
    jobs = draw(st.integers(0, max_waiting))
    most = max(1, state.nodes_per_router * state.grid.routers // 2)
    numbers = st.sets(st.integers(0, jobs - 1)).map(sorted) if jobs else st.just([])
    return Reconfiguration(
        **given,
        waiting=draw(_lists(st.integers(1, 3) | st.integers(1, most), jobs)),
        profits=draw(st.none() | _lists(st.integers(0, 4), jobs)),
        required=draw(numbers | st.just([])),
        worth=draw(st.none() | st.integers(0, 20)),
        waiting_jobs=draw(st.none() | _lists(LABELS, jobs)),
    )


@st.composite
def data_placements(
    draw: st.DrawFn, max_jobs: int = 4, max_nodes: int = 3, max_cores: int = 3, longest: int = 6
) -> DataPlacement:
    """Draw a data placement whose times are at most `longest` seconds.

    No jobs, one node, one core, jobs without a file, files that load in no time or longer than
    their jobs run, resident files and files being loaded, files that stay until the next start,
    holes, jobs that may be left out.
    """
    nodes, cores = draw(st.integers(1, max_nodes)), draw(st.integers(1, max_cores))
    jobs = draw(st.integers(0, max_jobs))
    seconds = st.integers(0, longest)
    available = [draw(_lists(st.just(0) | seconds, cores)) for _ in range(nodes)]
    load_of = draw(_lists(seconds, 3))
    files = draw(_lists(st.integers(NO_FILE, 2), jobs))
    entry = st.tuples(st.integers(0, nodes - 1), st.integers(0, 2))
    resident = [
        [node, file, load_of[file], draw(st.integers(0, load_of[file])), draw(seconds)]
        for node, file in draw(st.lists(entry, unique=True, max_size=2))
    ]
    holes = [[draw(st.integers(0, free)) for free in row] for row in available]
    return DataPlacement(
        available,
        processors=draw(_lists(st.integers(1, cores), jobs)),
        walltimes=draw(_lists(st.integers(1, longest), jobs)),
        files=files,
        loads=[0 if file == NO_FILE else load_of[file] for file in files],
        resident=resident,
        reserved=draw(st.sampled_from([None, holes])),
        occupied=draw(st.sampled_from([None, [True] * nodes])),
        priorities=draw(st.none() | _lists(st.integers(1, 4), jobs)),
        load_weight=draw(st.integers(0, 3)),
        partial=draw(st.booleans()),
        kept=draw(st.sampled_from(["users", "next"])),
        started=draw(st.none() | _lists(st.booleans(), nodes)),
        jobs=draw(st.sampled_from([None, [f"job {job}" for job in range(jobs)]])),
    )


@st.composite
def threshold_allocations(
    draw: st.DrawFn,
    max_nodes: int = 3,
    max_processors: int = 3,
    max_resources: int = 2,
    max_held: int = 5,
    longest: int = 6,
) -> ThresholdAllocation:
    """Draw a threshold allocation, with at most `max_held` allocations that end by `longest`.

    Empty and full nodes, no resource, jobs that demand nothing or more than the capacity, adjacent
    reservations, thresholds that no place satisfies, no time to start but now.
    """
    nodes, processors = draw(st.integers(1, max_nodes)), draw(st.integers(1, max_processors))
    resources = draw(st.integers(0, max_resources))
    demands = _lists(st.integers(0, 4), resources)
    busy = {(node, second): 0 for node in range(nodes) for second in range(longest)}
    held = []
    for _ in range(draw(st.integers(0, max_held))):
        node = draw(st.integers(0, nodes - 1))
        start = draw(st.just(0) | st.integers(0, longest - 1))
        end = draw(st.integers(start + 1, longest))
        free = processors - max(busy[node, second] for second in range(start, end))
        if free:
            count = draw(st.integers(1, free))
            for second in range(start, end):
                busy[node, second] += count
            held.append([node, count, start, end, *draw(demands)])
    return ThresholdAllocation(
        nodes,
        processors,
        capacity=draw(_lists(st.integers(1, 6), resources)),
        held=held,
        asked=draw(st.integers(1, nodes * processors)),
        walltime=draw(st.integers(1, longest)),
        demand=draw(demands),
        threshold=draw(st.sampled_from([None, None, 1000, 1150, 1500, 3000])),
        goal=draw(st.sampled_from(GOALS)),
        latest=draw(st.sampled_from([None, None, 0, longest // 2])),
        resources=draw(st.sampled_from([None, [f"name {r}" for r in range(resources)]])),
        job=draw(st.sampled_from([None, 7, "job 7"])),
    )


def _lists(elements: st.SearchStrategy[T], count: int) -> st.SearchStrategy[list[T]]:
    return st.lists(elements, min_size=count, max_size=count)


def _table(
    draw: st.DrawFn, elements: st.SearchStrategy[int], rows: int, columns: int
) -> NDArray[np.int64]:
    drawn = draw(_lists(_lists(elements, columns), rows))
    return np.array(drawn, dtype=np.int64).reshape(rows, columns)


def _grids(max_side: int) -> st.SearchStrategy[Grid]:
    side, flag = st.integers(1, max_side), st.booleans()
    return st.builds(Grid, st.tuples(side, side, side), st.tuples(flag, flag, flag), flag)


def _disjoint(draw: st.DrawFn, grid: Grid, tries: int, beside: Sequence[Box] = ()) -> list[Box]:
    """Draw boxes, and return those that overlap neither an earlier one nor a box of `beside`."""
    found: list[Box] = []
    for _ in range(tries):
        extent = [draw(st.integers(1, side)) for side in grid.shape]
        anchor = [
            draw(st.integers(0, 0 if n == side else side - 1 if ring else side - n))
            for n, side, ring in zip(extent, grid.shape, grid.wrap)
        ]
        box = Box(*anchor, *extent)
        if not any(grid.overlap(box, other) for other in [*beside, *found]):
            found.append(box)
    return found
