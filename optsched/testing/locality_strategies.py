"""Hypothesis strategies for decisions on a cluster whose nodes keep files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from optsched.models.data_placement import DataPlacement

NO_FILE = -1


def data_placements(
    max_jobs: int = 4, max_nodes: int = 3, max_cores: int = 3, longest: int = 6
) -> SearchStrategy[DataPlacement]:
    """Return a hypothesis strategy for data placements, including unusual ones.

    No jobs, one node, one core, jobs without a file, files that load in no time or longer than
    their jobs run, resident files and files being loaded, files that stay until the next start,
    holes, jobs that may be left out.

    Parameters
    ----------
    max_jobs, max_nodes, max_cores : int
        Largest numbers of jobs, nodes and cores.
    longest : int
        Most seconds of a walltime, of a load, and until a core is free.
    """
    from hypothesis import strategies as st

    from optsched.models.data_placement import DataPlacement

    @st.composite
    def problems(draw: Callable[[SearchStrategy[Any]], Any]) -> DataPlacement:
        def listed(elements: SearchStrategy[Any], count: int) -> Any:
            return draw(st.lists(elements, min_size=count, max_size=count))

        nodes, cores = draw(st.integers(1, max_nodes)), draw(st.integers(1, max_cores))
        jobs = draw(st.integers(0, max_jobs))
        seconds = st.integers(0, longest)
        busy = st.one_of(st.just(0), seconds)
        available = [listed(busy, cores) for _ in range(nodes)]
        load_of = listed(seconds, 3)
        files = listed(st.integers(NO_FILE, 2), jobs)
        entries = draw(
            st.lists(
                st.tuples(st.integers(0, nodes - 1), st.integers(0, 2)), unique=True, max_size=2
            )
        )
        resident = [
            [node, file, load_of[file], draw(st.integers(0, load_of[file])), draw(seconds)]
            for node, file in entries
        ]
        holes = [[draw(st.integers(0, free)) for free in row] for row in available]
        return DataPlacement(
            available,
            processors=listed(st.integers(1, cores), jobs),
            walltimes=listed(st.integers(1, longest), jobs),
            files=files,
            loads=[0 if file == NO_FILE else load_of[file] for file in files],
            resident=resident,
            reserved=draw(st.sampled_from([None, holes])),
            occupied=draw(st.sampled_from([None, [True] * nodes])),
            priorities=draw(st.sampled_from([None, listed(st.integers(1, 4), jobs)])),
            load_weight=draw(st.integers(0, 3)),
            partial=draw(st.booleans()),
            kept=draw(st.sampled_from(["users", "next"])),
            started=draw(st.sampled_from([None, listed(st.booleans(), nodes)])),
            jobs=draw(st.sampled_from([None, [f"job {job}" for job in range(jobs)]])),
        )

    return problems()
