"""The queues of the day, and how far the plans of the rules are from the best ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from optsched.models.data_placement import DataPlacement
from optsched.models.snapshot_file import read_snapshot
from optsched.registry import solvers
from optsched.simulator.simulate import simulate
from optsched.solvers.result import Budget
from optsched.solvers.solving import solve

if TYPE_CHECKING:
    import pandas as pd

    from optsched.solvers.result import Result

MET_BY = ("fcfs", "lea")
"""The rules that place the jobs while the queues are met."""

EVERY = 200
"""Every 200th problem of a run is solved again."""

RULES = ("fcfs", "eft", "lea", "leo", "lem")
EXACT = "interval-search"

BUDGET = Budget(work=1.0)
"""Of the exact solver for each queue, in its deterministic seconds."""

LOAD_WEIGHTS = (1, 500)
"""Of a second of loading against one of waiting: as users feel it, and as LEA weighs it."""


def solve_queues(trace: Path, machine: str) -> pd.DataFrame:
    """Solve queues that are met when a trace is run, without backfilling.

    All jobs of a queue are to be planned. There is a row for each queue and weight of loading:
    ``met_by``, ``jobs``, ``load_weight``, the costs with each rule, the ``best`` cost known and the
    ``bound``, and the nominal seconds of the exact solver.
    """
    import pandas as pd

    return pd.DataFrame(
        {"met_by": rule} | row
        for rule in MET_BY
        for problem in _met(trace, machine, rule)
        for row in _solved(problem)
    )


def _met(trace: Path, machine: str, rule: str) -> Iterator[DataPlacement]:
    """Yield the queues that are met when a rule places the jobs."""
    with TemporaryDirectory() as folder:
        simulate(
            str(trace),
            machine,
            "locality",
            solver=rule,
            capture=Path(folder),
            capture_every=EVERY,
        )
        for file in sorted(Path(folder).glob("decision-*.json")):
            problem = read_snapshot(file).problem
            assert isinstance(problem, DataPlacement)
            yield replace(problem, partial=False)


def _solved(problem: DataPlacement) -> Iterator[dict[str, Any]]:
    """Yield the costs of a queue for each weight of loading."""
    for weight in LOAD_WEIGHTS:
        weighed = replace(problem, load_weight=weight)
        costs = {rule: _cost(solve(weighed, rule, interruptible=False)) for rule in RULES}
        exact = solve(weighed, EXACT, budget=BUDGET, interruptible=False)
        solver = solvers[EXACT]
        yield {
            "jobs": len(problem.processors),
            "load_weight": weight,
            **costs,
            "best": min(_cost(exact), *costs.values()),
            "bound": exact.bound,
            "seconds": solver.seconds_per_solve + exact.work * solver.seconds_per_work,
        }


def _cost(result: Result) -> int:
    assert result.objective is not None
    return int(result.objective)
