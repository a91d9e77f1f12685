"""Plans of a migration, and the order of their moves: who leaves first, and who is parked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from optsched.boxes.box import Box, Grid, box_of_text
from optsched.models.fields import FieldChecks

PARKED = "parked"
"""What a job is in a step of a plan on file that gives it no box."""


class Step(NamedTuple):
    """One step of a plan.

    Parameters
    ----------
    job : int
        The running job, from 0.
    box : Box or None
        Where it is restarted. None if it is parked: stopped, its routers given back, to be
        restarted by a later step.
    """

    job: int
    box: Box | None


class Plan(NamedTuple):
    """Steps in order, and where the large job starts after them.

    Parameters
    ----------
    steps : tuple of Step
        Moves and parkings, one after the other.
    place : Box or None
        The box of the large job; none in what is no solution.
    """

    steps: tuple[Step, ...]
    place: Box | None

    @property
    def destinations(self) -> dict[int, Box]:
        """The box of each job that is moved."""
        return {step.job: step.box for step in self.steps if step.box is not None}


def ordered(
    grid: Grid, running: Sequence[Box], costs: Sequence[int], destinations: Mapping[int, Box]
) -> tuple[Step, ...]:
    """Return the steps that bring jobs to their destinations, each when its box is free.

    A move waits for every job that is still in its way. Where moves wait for each other in a
    cycle, the cheapest job of the cycle is parked (of equally cheap ones that with the lowest
    number), and so on until no cycle is left. Of the steps that can be taken next, moves come
    before parkings and low numbers before high ones. No step waits for the large job, which starts
    last.

    Parameters
    ----------
    grid : Grid
        The routers.
    running : sequence of Box
        The present boxes of all running jobs.
    costs : sequence of int
        The cost of moving each of them.
    destinations : mapping
        The boxes of the jobs to move, by their numbers.

    Examples
    --------
    Two jobs that change places; the second costs less:

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
    # parking is a step of its own, which others wait for in place of the move
    steps = nx.DiGraph()
    steps.add_nodes_from((False, job) for job in jobs)
    for job in parked:
        steps.add_edge((True, job), (False, job))
    steps.add_edges_from(((leaving in parked, leaving), (False, job)) for leaving, job in waiting)
    in_order = nx.lexicographical_topological_sort(steps)
    return tuple(Step(job, None if parking else destinations[job]) for parking, job in in_order)


def _cycle(waits: Any) -> list[int]:
    """Return the jobs of a cycle in a graph of waiting; an empty list if there is no cycle."""
    import networkx as nx

    try:
        return [job for job, _ in nx.find_cycle(waits)]
    except nx.NetworkXNoCycle:
        return []


def plan_from_json(check: FieldChecks, fields: Any) -> Plan:
    """Return a plan as it is on file, jobs from 1; note what is wrong with it."""
    given = fields if isinstance(fields, Mapping) else {}
    steps = given.get("steps")
    read = [_step(step) for step in steps] if isinstance(steps, list) else [None]
    if None in read:
        expected = f"expected a list of steps such as [3, '2x4x4@3,0,22'] or [3, {PARKED!r}]"
        check.mistakes.append(f"steps: {expected}")
    text = given.get("place")
    place = box_of_text(text) if isinstance(text, str) else None
    if place is None and text is not None:
        check.mistakes.append(f"place: {text!r}; expected a box such as '2x4x4@3,0,22'")
    return Plan(tuple(step for step in read if step is not None), place)


def _step(written: Any) -> Step | None:
    if not isinstance(written, list) or len(written) != 2 or type(written[0]) is not int:
        return None
    if written[1] == PARKED:
        return Step(written[0] - 1, None)
    box = box_of_text(written[1]) if isinstance(written[1], str) else None
    return None if box is None else Step(written[0] - 1, box)
