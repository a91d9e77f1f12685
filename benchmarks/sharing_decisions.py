"""Decisions on nodes that share memory bandwidth: the rules of Guim et al. 2009 beside exact ones.

    python benchmarks/sharing_decisions.py -o benchmarks/results

Protocol: `sjbf` runs the first jobs of the generated sample with demands drawn in the mix HIGH, by
LessConsume and by LessConsume under a threshold of 1.15, on nodes of four processors, and what it
poses is captured. Of these, `--problems` are taken, evenly over both runs. Each is answered for
every goal by every solver that can, after compiling: for the earliest start within a threshold of
1.15, and without a threshold for the others. "answered" counts problems with a placement;
"optimal" those in which the cost is that of the proven optimum, or neither has a placement;
"excess" is by how much the total cost is above that of the optima, where both have a placement.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from results import Times, circumstances, keep, shown

import optsched
from optsched.content import bundled
from optsched.models.snapshot_file import read_snapshot
from optsched.models.threshold_allocation import ThresholdAllocation
from optsched.solvers.result import Budget, Result, Status
from optsched.traces.reading import read_trace
from optsched.traces.transformations import drawn

SAMPLE = bundled("traces") / "samples" / "sample-256.swf"
MET_BY = {"less-consume": 0.0, "less-consume-threshold": 1.15}
THRESHOLD = 1150
GOALS = {"start": THRESHOLD, "penalty": None, "response": None, "everybody": None}
EXACT = "bottleneck-search"
SOLVERS = ("first-fit", "less-consume", "less-consume-threshold", EXACT, "cp-sat", "highs")


def captured(machine: str, jobs: int, folder: Path) -> list[list[ThresholdAllocation]]:
    """Return the problems that each of the runs poses."""
    trace = drawn(read_trace(SAMPLE).jobs(1, jobs), "HIGH", seed=1)
    runs = []
    for solver, threshold in MET_BY.items():
        (folder / solver).mkdir()
        optsched.simulate(
            trace, machine, "sjbf", solver=solver, settings={"threshold": threshold},
            capture=folder / solver,
        )  # fmt: skip
        problems = (read_snapshot(file).problem for file in sorted((folder / solver).iterdir()))
        runs.append([one for one in problems if isinstance(one, ThresholdAllocation)])
    return runs


def evenly(found: Sequence[Any], number: int) -> list[Any]:
    """Return a number of items of a sequence, evenly over it."""
    places = (place * len(found) // number for place in range(number))
    return [found[place] for place in dict.fromkeys(places)]


def changed(problem: ThresholdAllocation, **values: Any) -> ThresholdAllocation:
    """Return the problem with other values of some fields."""
    kept = {field.name: getattr(problem, field.name) for field in fields(problem)}
    return ThresholdAllocation(**(kept | values))


def compare(
    goal: str, problems: Sequence[ThresholdAllocation], seconds: float
) -> Iterator[dict[str, Any]]:
    """Yield a row for each solver."""

    def answer(problem: ThresholdAllocation, solver: str) -> Result:
        return optsched.solve(problem, solver, budget=Budget(seconds=seconds))

    found: dict[str, list[Result]] = {}
    for solver in shown(SOLVERS, len(SOLVERS)):
        answer(problems[0], solver)
        found[solver] = [answer(problem, solver) for problem in problems]
    proven = (Status.OPTIMAL, Status.INFEASIBLE)
    for solver, results in found.items():
        pairs = [(one, best) for one, best in zip(results, found[EXACT]) if best.status in proven]
        both = [(a.objective, b.objective) for a, b in pairs if a.solution and b.solution]
        least = sum(best for _, best in both)
        yield {
            "goal": goal,
            "solver": solver,
            "problems": len(results),
            "answered": sum(one.solution is not None for one in results),
            "optimal": sum(one.objective == best.objective for one, best in pairs),
            "excess": round(sum(cost for cost, _ in both) / least - 1, 4) if least else None,
            "proven": sum(one.status in proven for one in results),
            "ms": round(1e3 * statistics.median(one.seconds for one in results), 3),
            "most_ms": round(1e3 * max(one.seconds for one in results), 2),
        }


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the measurements as lines for people."""
    widths = {name: 24 if name == "solver" else 12 for name in rows[0]}
    heads = [f"{name:>{width}}" for name, width in widths.items()]
    return ["".join(heads)] + [
        "".join(f"{_text(row[name]):>{width}}" for name, width in widths.items()) for row in rows
    ]


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=48, help="of four processors")
    parser.add_argument("--jobs", type=int, default=400, help="the first of the sample")
    parser.add_argument("--problems", type=int, default=20, help="of each goal")
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of a solver")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    measured_on = circumstances()
    machine = f"smp:{options.nodes}x4"
    with tempfile.TemporaryDirectory() as folder:
        runs = captured(machine, options.jobs, Path(folder))
    posed = [problem for run in runs for problem in run]
    rows: list[dict[str, Any]] = []
    times = Times()
    for goal, threshold in GOALS.items():
        latest = {} if goal in ("start", "response") else {"latest": 0}
        chosen = [
            changed(one, goal=goal, threshold=threshold, **({"latest": None} | latest))
            for one in evenly(posed, options.problems)
        ]
        own = list(compare(goal, chosen, options.seconds))
        times.add_medians({f"{row['solver']}, {goal}": row for row in own}, options.seconds)
        rows += own
    lines = [
        f"{SAMPLE.name}, jobs 1 to {options.jobs}, on {machine}: {len(posed):,} problems posed",
        "",
    ]
    keep(options.output, "sharing-decisions", measured_on, lines + table(rows), rows, times)


if __name__ == "__main__":
    main()
