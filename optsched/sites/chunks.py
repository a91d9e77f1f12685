"""The division of a job into equal chunks, alike for jobs of traces and of the queue of Slurm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple


class Division(NamedTuple):
    """Equal chunks of a job."""

    chunks: int
    shares: tuple[int, ...]  # what a chunk has of each total of the job, rounded up
    most_per_node: int  # most chunks on a node, 0 for no limit
    on_nodes: bool  # whether each chunk is all that the job has on a node


def divided(
    # Number of tasks, then totals of what the job asks as a whole, such as GPUs
    totals: Sequence[int],
    # Least and most nodes of the job
    least: int,
    most: float,
    # Returns the number of nodes that can hold a chunk with some shares when they are idle
    able: Callable[[tuple[int, ...]], int],
    *,
    nodes: int,  # number of nodes that the job may use
    tasks_per_node: int,  # most tasks on a node, 0 for no limit
    # Whether the job asks amounts of its nodes, or as a whole, and not only of its tasks
    of_nodes: bool,
) -> Division:
    """Divide a job into a chunk for each task, or into one for each of as few nodes as possible."""
    tasks = totals[0]
    # a node must have room for as many tasks as are on a node, of which the last has fewer perhaps
    if not of_nodes and tasks_per_node < 2 and least <= tasks <= most:
        limit = tasks_per_node or spread(tasks, least)
        return Division(tasks, _shares(totals, tasks), limit, least == most == tasks)
    holding = cache(able)
    for count in range(least, int(min(most, tasks, nodes)) + 1):
        if holding(_shares(totals, count)) >= count:
            return one_on_each(totals, count)
    return one_on_each(totals, least)  # which never fits


def one_on_each(totals: Sequence[int], nodes: int) -> Division:
    """Divide a job into a chunk on each of some nodes."""
    return Division(nodes, _shares(totals, nodes), 1, True)


def spread(chunks: int, least: int) -> int:
    """Return the most chunks on a node with which they are on `least` nodes; 0 for any number."""
    return (chunks - 1) // (least - 1) if least > 1 else 0


def _shares(totals: Sequence[int], chunks: int) -> tuple[int, ...]:
    return tuple(-(-total // chunks) for total in totals)
