"""The order of moves: who has to leave before whom, and who has to be parked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from optsched.boxes.box import Box
from optsched.models.migration.problem import Plan, Step

if TYPE_CHECKING:
    from optsched.models.migration.problem import Migration


def ordered(problem: Migration, destinations: Mapping[int, Box], place: Box | None) -> Plan:
    """Return a plan that brings jobs to their destinations, each when its box is free.

    A move waits for every job that is still in its way. Where moves wait for each other in a
    circle, the cheapest job of the circle is parked (of equally cheap ones that with the lowest
    number), and so on until no circle is left. Of the steps that can be taken next, moves come
    before parkings and low numbers before high ones. No step waits for the large job, which starts
    last.

    Parameters
    ----------
    problem : Migration
        The running jobs, their boxes and their costs.
    destinations : mapping
        The boxes of the jobs to move, by their numbers.
    place : Box or None
        The box of the large job.

    Examples
    --------
    Two jobs that change places; the second costs less:

    >>> from optsched.models.migration.problem import Migration
    >>> boxes = (Box(0, 0, 0, 1, 1, 1), Box(1, 0, 0, 1, 1, 1))
    >>> problem = Migration((3, 1, 1), boxes, [1, 1], [7, 5], 1, wrap=(False,) * 3)
    >>> plan = ordered(problem, dict(enumerate(boxes[::-1])), Box(2, 0, 0, 1, 1, 1))
    >>> [(step.job, str(step.box)) for step in plan.steps]
    [(1, 'None'), (0, '1x1x1@1,0,0'), (1, '1x1x1@0,0,0')]
    """
    jobs = sorted(destinations)
    waiting = [
        (leaving, job)
        for job in jobs
        for leaving in jobs
        if leaving != job and problem.grid.overlap(destinations[job], problem.running[leaving])
    ]
    if not waiting:
        return Plan(tuple(Step(job, destinations[job]) for job in jobs), place)

    import networkx as nx

    parked = []
    released = nx.DiGraph(waiting)
    while circle := _circle(released):
        job = min(circle, key=lambda number: (problem.costs[number], number))
        parked.append(job)
        released.remove_edges_from(list(released.out_edges(job)))
    # parking is a step of its own, which others wait for in place of the move
    steps = nx.DiGraph()
    steps.add_nodes_from((False, job) for job in jobs)
    for job in parked:
        steps.add_edge((True, job), (False, job))
    steps.add_edges_from(((leaving in parked, leaving), (False, job)) for leaving, job in waiting)
    in_order = nx.lexicographical_topological_sort(steps)
    return Plan(
        tuple(Step(job, None if parking else destinations[job]) for parking, job in in_order),
        place,
    )


def _circle(waits: Any) -> list[int]:
    """Return the jobs of a circle in a graph of waiting; none if there is none."""
    import networkx as nx

    try:
        return [job for job, _ in nx.find_cycle(waits)]
    except nx.NetworkXNoCycle:
        return []
