"""Hypothesis strategies for problems on a torus."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from optsched.models.box_placement import BoxPlacement
    from optsched.models.migration import Migration
    from optsched.models.partition_mkp import PartitionMKP


def partition_mkps(max_jobs: int = 3, max_bins: int = 2) -> SearchStrategy[PartitionMKP]:
    """Return a hypothesis strategy for partition knapsacks, including unusual ones.

    No jobs or no bins, bins that wrap around or are as long as a ring, bins of one layer or one
    router, holes, several nodes on a router, jobs larger than every bin, equal jobs and bins,
    profits of 0 or equal to the sizes, with and without labels.
    """
    from hypothesis import strategies as st

    from optsched.boxes.box import Box, Grid
    from optsched.models.partition_mkp import PartitionMKP

    labels = st.one_of(st.integers(0, 10**6), st.text(max_size=5))

    @st.composite
    def problems(draw: Callable[[SearchStrategy[Any]], Any]) -> PartitionMKP:
        sides = st.sampled_from([3, 4, 5, 2, 1])
        grid = Grid(draw(st.tuples(sides, sides, sides)), draw(st.tuples(*[st.booleans()] * 3)))

        def disjoint(boxes: list[Box], count: int) -> list[Box]:
            found: list[Box] = []
            for _ in range(draw(st.one_of(st.just(count), st.integers(0, count)))):
                extent = [draw(st.sampled_from(range(side, 0, -1))) for side in grid.shape]
                anchor = [
                    0 if n == side else draw(st.integers(0, side - 1 if ring else side - n))
                    for n, side, ring in zip(extent, *grid)
                ]
                box = Box(*anchor, *extent)
                if not any(grid.overlap(box, other) for other in [*boxes, *found]):
                    found.append(box)
            return found

        bins = disjoint([], max_bins)
        nodes = draw(st.sampled_from([1, 1, 2, 3]))
        size = st.one_of(st.integers(1, 4 * nodes), st.integers(1, 20 * nodes))
        count = draw(st.one_of(st.just(max_jobs), st.integers(0, max_jobs)))
        waiting = draw(st.lists(size, min_size=count, max_size=count))
        profits = st.lists(st.integers(0, 40), min_size=count, max_size=count)
        return PartitionMKP(
            grid.shape,
            bins,
            waiting,
            profits=draw(st.one_of(st.none(), profits)),
            waiting_jobs=draw(
                st.one_of(st.none(), st.lists(labels, min_size=count, max_size=count))
            ),
            wrap=grid.wrap,
            nodes_per_router=nodes,
            holes=disjoint(bins, 2),
            links=draw(st.sampled_from([(1, 1, 1), (2, 1, 2)])),
        )

    return problems()


def box_placements(
    max_running: int = 3, max_waiting: int = 3, max_side: int = 4
) -> SearchStrategy[BoxPlacement]:
    """Return a hypothesis strategy for box placements, including unusual ones.

    Sides of one router, lines and rings, holes, no running or no waiting jobs, jobs larger than the
    torus, equal jobs, one shape or all, both rules for anchors, with and without labels.
    """
    from hypothesis import strategies as st

    from optsched.boxes.box import Box, Grid
    from optsched.models.box_placement import BoxPlacement

    labels = st.one_of(st.integers(0, 10**6), st.text(max_size=5))

    @st.composite
    def problems(draw: Callable[[SearchStrategy[Any]], Any]) -> BoxPlacement:
        def listed(elements: SearchStrategy[Any], count: int) -> Any:
            return draw(st.lists(elements, min_size=count, max_size=count))

        grid = Grid(tuple(listed(st.integers(1, max_side), 3)), tuple(listed(st.booleans(), 3)))

        def box() -> Box:
            extent = [draw(st.integers(1, side)) for side in grid.shape]
            anchor = [
                draw(st.integers(0, 0 if n == side else side - 1 if wraps else side - n))
                for n, side, wraps in zip(extent, grid.shape, grid.wrap)
            ]
            return Box(*anchor, *extent)

        holes = [box() for _ in range(draw(st.integers(0, 1)))]
        running: list[Box] = []
        for _ in range(draw(st.integers(0, max_running))):
            drawn = box()
            if not any(grid.overlap(drawn, other) for other in (*holes, *running)):
                running.append(drawn)
        nodes = draw(st.integers(1, 3))
        jobs = draw(st.integers(0, max_waiting))
        size = st.one_of(st.integers(1, 6), st.integers(1, nodes * grid.routers + 1))
        return BoxPlacement(
            grid.shape,
            running,
            listed(size, jobs),
            profits=draw(st.none() | st.lists(st.integers(0, 9), min_size=jobs, max_size=jobs)),
            shapes=draw(st.none() | st.integers(1, 3)),
            anchors=draw(st.sampled_from(["all", "corners"])),
            running_jobs=listed(labels, len(running)) if draw(st.booleans()) else None,
            waiting_jobs=listed(labels, jobs) if draw(st.booleans()) else None,
            wrap=grid.wrap,
            nodes_per_router=nodes,
            holes=holes,
            links=listed(st.integers(1, 3), 3),
        )

    return problems()


def migrations(max_running: int = 5, max_side: int = 4) -> SearchStrategy[Migration]:
    """Return a hypothesis strategy for migrations, including unusual ones.

    Sides of 1, lines and rings, holes, full tori, jobs in boxes larger than needed, jobs that have
    just started, large jobs that fit at once or nowhere, jobs that may not be moved, one shape or
    all, with and without labels.
    """
    import numpy as np
    from hypothesis import strategies as st

    from optsched.boxes.box import Box, Grid
    from optsched.models.migration import Migration

    labels = st.one_of(st.integers(0, 10**6), st.text(max_size=5))

    @st.composite
    def problems(draw: Callable[[SearchStrategy[Any]], Any]) -> Migration:
        torus = tuple(draw(st.integers(1, max_side)) for _ in range(3))
        wrap = tuple(draw(st.booleans()) for _ in range(3))
        free = np.ones(torus, dtype=np.bool_)

        def boxes(count: int) -> list[Box]:
            found = []
            for _ in range(count):
                extent = [draw(st.integers(1, side)) for side in torus]
                anchor = [
                    0 if n == side else draw(st.integers(0, side - 1 if ring else side - n))
                    for n, side, ring in zip(extent, torus, wrap)
                ]
                box = Box(*anchor, *extent)
                routers = Grid(torus, wrap).routers_of(box)
                if free[routers].all():
                    free[routers] = False
                    found.append(box)
            return found

        nodes = draw(st.sampled_from([1, 1, 2, 3]))
        holes = boxes(draw(st.sampled_from([0, 0, 0, 1, 2])))
        running = boxes(draw(st.integers(0, 2 * max_running)))[:max_running]
        jobs = len(running)
        return Migration(
            torus,
            running,
            sizes=[draw(st.integers(1, box.volume * nodes)) for box in running],
            elapsed=draw(st.lists(st.integers(0, 9), min_size=jobs, max_size=jobs)),
            incoming=draw(st.integers(1, max(1, nodes * torus[0] * torus[1] * torus[2] // 2))),
            wrap=wrap,
            nodes_per_router=nodes,
            holes=holes,
            links=draw(st.sampled_from([(1, 1, 1), (1, 2, 1)])),
            movable=draw(
                st.one_of(st.none(), st.none(), st.sets(st.integers(0, jobs - 1)).map(sorted))
                if jobs
                else st.none()
            ),
            shapes=draw(st.sampled_from([None, None, 1, 2])),
            running_jobs=draw(st.one_of(st.none(), st.lists(labels, min_size=jobs, max_size=jobs))),
            incoming_job=draw(st.one_of(st.none(), labels)),
        )

    return problems()
