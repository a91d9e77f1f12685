"""Plans of a migration problem, and the order of their moves and parkings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from optsched.boxes.box import Box, Grid


class Step(NamedTuple):
    """A step of a plan.

    Parameters
    ----------
    job : int
        The running job, from 0.
    box : Box or None
        The new box of the job. None if the job is parked: stopped, with its routers released, until
        a later step restarts it.
    """

    job: int
    box: Box | None


class Plan(NamedTuple):
    """The steps of a migration in order, and the box of the large job.

    Parameters
    ----------
    steps : tuple of Step
        Moves and parkings in order.
    place : Box or None
        The box of the large job, which starts after all steps; None in an infeasible plan.
    """

    steps: tuple[Step, ...]
    place: Box | None

    @property
    def destinations(self) -> dict[int, Box]:
        """The new box of each moved job."""
        return {step.job: step.box for step in self.steps if step.box is not None}


def ordered(
    grid: Grid, running: Sequence[Box], costs: Sequence[int], destinations: Mapping[int, Box]
) -> tuple[Step, ...]:
    """Return the steps that move jobs to their destinations, in a feasible order.

    A move waits for every job that still holds a part of the destination. If moves wait for each
    other in a cycle, the cheapest job of the cycle is parked (of equally cheap jobs the one with
    the lowest number), until no cycle remains. Of the steps that are possible next, moves precede
    parkings, and low numbers precede high ones. No step waits for the large job, which starts last.
    Running boxes and costs are those of all running jobs, destinations of those to move.

    Examples
    --------
    Two jobs that exchange their boxes; the second costs less:

    >>> boxes = (Box(0, 0, 0, 1, 1, 1), Box(1, 0, 0, 1, 1, 1))
    >>> line = Grid((3, 1, 1), (False,) * 3)
    >>> steps = ordered(line, boxes, [7, 5], dict(enumerate(boxes[::-1])))
    >>> [(step.job, str(step.box)) for step in steps]
    [(1, 'None'), (0, '1x1x1@1,0,0'), (1, '1x1x1@0,0,0')]
    """
    jobs = sorted(destinations)
    waiting = [
        (leaving, job)
        for job in jobs
        for leaving in jobs
        if leaving != job and grid.overlap(destinations[job], running[leaving])
    ]
    if not waiting:
        return tuple(Step(job, destinations[job]) for job in jobs)

    import networkx as nx

    parked = []
    released = nx.DiGraph(waiting)
    while cycle := _cycle(released):
        job = min(cycle, key=lambda number: (costs[number], number))
        parked.append(job)
        released.remove_edges_from(list(released.out_edges(job)))
    # parking is a separate step, which other jobs wait for in place of the move
    steps = nx.DiGraph()
    steps.add_nodes_from((False, job) for job in jobs)
    for job in parked:
        steps.add_edge((True, job), (False, job))
    steps.add_edges_from(((leaving in parked, leaving), (False, job)) for leaving, job in waiting)
    in_order = nx.lexicographical_topological_sort(steps)
    return tuple(Step(job, None if parking else destinations[job]) for parking, job in in_order)


def _cycle(waits: Any) -> list[int]:
    """Return the jobs of a cycle in a wait-for graph, an empty list if there is no cycle."""
    import networkx as nx

    try:
        return [job for job, _ in nx.find_cycle(waits)]
    except nx.NetworkXNoCycle:
        return []
