"""Hypothesis strategies for decisions on nodes whose processors share resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from optsched.models.threshold_allocation import ThresholdAllocation


def threshold_allocations(
    max_nodes: int = 3,
    max_processors: int = 3,
    max_resources: int = 2,
    max_held: int = 5,
    longest: int = 6,
) -> SearchStrategy[ThresholdAllocation]:
    """Return a hypothesis strategy for threshold allocations, including unusual ones.

    Empty and full nodes, no resource, jobs that demand nothing or more than the capacity, adjacent
    reservations, thresholds that no place satisfies, no time to start but now.

    Parameters
    ----------
    max_nodes, max_processors, max_resources, max_held : int
        Largest numbers of nodes, processors of a node, resources and allocations.
    longest : int
        Most seconds of the job, and until an allocation ends.
    """
    from hypothesis import strategies as st

    from optsched.models.threshold_allocation import ThresholdAllocation
    from optsched.models.threshold_allocation.problem import GOALS

    @st.composite
    def problems(draw: Callable[[SearchStrategy[Any]], Any]) -> ThresholdAllocation:
        nodes, processors = draw(st.integers(1, max_nodes)), draw(st.integers(1, max_processors))
        resources = draw(st.integers(0, max_resources))

        def listed(least: int, most: int) -> list[int]:
            numbers = st.lists(st.integers(least, most), min_size=resources, max_size=resources)
            return list(draw(numbers))

        busy = {(node, second): 0 for node in range(nodes) for second in range(longest)}
        held = []
        for _ in range(draw(st.integers(0, max_held))):
            node = draw(st.integers(0, nodes - 1))
            start = draw(st.one_of(st.just(0), st.integers(0, longest - 1)))
            end = draw(st.integers(start + 1, longest))
            free = processors - max(busy[node, second] for second in range(start, end))
            if free:
                count = draw(st.integers(1, free))
                for second in range(start, end):
                    busy[node, second] += count
                held.append([node, count, start, end, *listed(0, 4)])
        names = [f"name {r}" for r in range(resources)]
        return ThresholdAllocation(
            nodes,
            processors,
            capacity=listed(1, 6),
            held=held,
            asked=draw(st.integers(1, nodes * processors)),
            walltime=draw(st.integers(1, longest)),
            demand=listed(0, 4),
            threshold=draw(st.sampled_from([None, None, 1000, 1150, 1500, 3000])),
            goal=draw(st.sampled_from(GOALS)),
            latest=draw(st.sampled_from([None, None, 0, longest // 2])),
            resources=draw(st.sampled_from([None, names])),
            job=draw(st.sampled_from([None, 7, "job 7"])),
        )

    return problems()
