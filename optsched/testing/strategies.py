"""Hypothesis strategies for problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from optsched.models.gang_packing import GangPacking
    from optsched.models.window_mkp import WindowMKP


def window_mkps(max_jobs: int = 6, max_slots: int = 4) -> SearchStrategy[WindowMKP]:
    """Return a hypothesis strategy for window knapsacks, including unusual ones.

    No jobs or no slots, slots of size 0, jobs larger than every slot, equal jobs and slots, profits
    of 0 or equal to the weights, with and without labels.
    """
    from hypothesis import strategies as st

    from optsched.models.window_mkp import WindowMKP

    size = st.one_of(st.integers(1, 8), st.integers(1, 128), st.sampled_from([1, 2, 4, 8, 16, 32]))
    labels = st.one_of(st.integers(0, 10**6), st.text(max_size=5))

    @st.composite
    def problems(draw: Callable[[SearchStrategy[Any]], Any]) -> WindowMKP:
        def listed(elements: SearchStrategy[Any], count: int) -> SearchStrategy[Any]:
            return st.lists(elements, min_size=count, max_size=count)

        jobs, slots = draw(st.integers(0, max_jobs)), draw(st.integers(0, max_slots))
        return WindowMKP(
            weights=draw(listed(size, jobs)),
            capacities=draw(listed(st.one_of(size, st.integers(0, 300)), slots)),
            profits=draw(st.one_of(st.none(), listed(st.integers(0, 400), jobs))),
            jobs=draw(st.one_of(st.none(), listed(labels, jobs))),
            slots=draw(st.one_of(st.none(), listed(labels, slots))),
        )

    return problems()


def gang_packings(
    max_running: int = 5, max_waiting: int = 4, max_rows: int = 3
) -> SearchStrategy[GangPacking]:
    """Return a hypothesis strategy for gang packings, including unusual ones.

    No running or no waiting jobs, one column, one row, empty rows between used ones, columns in
    many pieces, jobs as wide as the matrix, with and without labels.
    """
    from hypothesis import strategies as st

    from optsched.models.gang_packing import GangPacking

    labels = st.one_of(st.integers(0, 10**6), st.text(max_size=5))

    @st.composite
    def problems(draw: Callable[[SearchStrategy[Any]], Any]) -> GangPacking:
        def labeled(count: int) -> Any:
            return draw(st.one_of(st.none(), st.lists(labels, min_size=count, max_size=count)))

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
            running_jobs=labeled(len(running)),
            waiting_jobs=labeled(len(waiting)),
        )

    return problems()
