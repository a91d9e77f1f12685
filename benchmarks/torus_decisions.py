"""Gains of exact solvers on the decisions of a torus, on decisions met under load.

    python benchmarks/torus_decisions.py -o benchmarks/results

Protocol: the policy `torus` runs a modeled workload like that of Blue Waters, more of it than the
machine can do, once placing jobs in bins and once in any free box, and what it poses is captured.
Of each model `--snapshots` are taken, evenly over those in which something is to be gained: the
heuristic leaves jobs out (placements), or the job needs room that others hold (migration). Each is
answered by the heuristic of the paper and by an exact solver with a time limit, after compiling.
"proven" counts the snapshots whose optimum is known, or that there is no solution; "found" those
that the heuristic has a solution for; "best" those where it is as good as the best answer known;
"ratio" is the heuristic's objective over the best one, mean and worst, where both have one: nodes
placed (at most 1), or node-seconds migrated (at least 1).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from results import Times, circumstances, keep, shown

import optsched
from optsched.models.problem import Problem
from optsched.models.snapshot_file import read_snapshot
from optsched.solvers.result import Budget, Result, Status
from optsched.traces.trace import Trace

MACHINE = "torus:24x24x24x2:hilbert:links=2,1,2"

PLACINGS = {"bins": {"detect": "exact"}, "boxes": {"place": "boxes"}}

PAIRS = {
    "partition-mkp": (("direct-placement", "migration-based"), "cp-sat"),
    "box-placement": (("direct-placement",), "box-search"),
    "migration": (("migration-based",), "position-search"),
}
"""The heuristics and the exact solver of each model."""


def captured(trace: Trace, folder: Path) -> dict[str, list[Problem[Any]]]:
    """Return the problems that runs of a trace pose, by model."""
    met: dict[str, list[Problem[Any]]] = {model: [] for model in PAIRS}
    for name, settings in PLACINGS.items():
        snapshots = folder / name
        snapshots.mkdir()
        optsched.simulate(trace, MACHINE, "torus", settings=settings, capture=snapshots)
        for file in sorted(snapshots.iterdir()):
            problem = read_snapshot(file).problem
            met[problem.name].append(problem)
    return met


def is_open(problem: Problem[Any]) -> bool:
    """Return whether something is to be gained: the heuristic leaves jobs out, or moves some."""
    heuristics, _ = PAIRS[problem.name]
    answer = optsched.solve(problem, heuristics[-1])
    if problem.name == "migration":
        return answer.objective != 0
    return answer.objective < sum(problem.profits)


def spread(problems: list[Problem[Any]], number: int) -> list[Problem[Any]]:
    """Return a number of the open problems, evenly over all."""
    those = [problem for problem in problems if is_open(problem)]
    if len(those) <= number:
        return those
    return [those[place * len(those) // number] for place in range(number)]


def compare(problems: list[Problem[Any]], seconds: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each heuristic of the model that the problems are of."""
    heuristics, exact = PAIRS[problems[0].name]
    for solver in (*heuristics, exact):
        optsched.solve(problems[0], solver, budget=Budget(seconds=seconds))
    answers = [
        {name: optsched.solve(problem, name) for name in heuristics}
        | {exact: optsched.solve(problem, exact, budget=Budget(seconds=seconds))}
        for problem in problems
    ]
    sense = problems[0].sense
    pick = max if sense == "max" else min
    for name in heuristics:
        ratios, best, exists = [], 0, 0
        for own in answers:
            values = [one.objective for one in own.values() if one.objective is not None]
            if not values:
                continue
            exists += 1
            value, known = own[name].objective, pick(values)
            best += value == known
            if value is not None and known:
                ratios.append(value / known)
        yield {
            "model": problems[0].name,
            "heuristic": name,
            "snapshots": len(answers),
            "exact": exact,
            "solvable": exists,
            "infeasible": sum(own[exact].status is Status.INFEASIBLE for own in answers),
            "proven": sum(_is_proven(own[exact]) for own in answers),
            "found": sum(own[name].objective is not None for own in answers),
            "best": best,
            "mean_ratio": round(statistics.fmean(ratios), 4) if ratios else None,
            "worst_ratio": (min if sense == "max" else max)(ratios, default=None),
            "heuristic_ms": _median_ms([own[name] for own in answers]),
            "exact_ms": _median_ms([own[exact] for own in answers]),
            "exact_most_ms": round(1e3 * max(own[exact].seconds for own in answers), 1),
        }


def _is_proven(result: Result) -> bool:
    return result.status in (Status.OPTIMAL, Status.INFEASIBLE)


def _median_ms(results: list[Result]) -> float:
    return round(1e3 * statistics.median(result.seconds for result in results), 2)


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the measurements as lines for people, a column for each heuristic."""
    return [f"{name:15}" + "".join(f"{_text(row[name]):>18}" for row in rows) for name in rows[0]]


def _text(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else f"{'-' if value is None else value}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=4000, help="of the workload")
    parser.add_argument("--load", type=float, default=1.2, help="what the arrivals are sped up by")
    parser.add_argument("--snapshots", type=int, default=10, help="of each model")
    parser.add_argument("--seconds", type=float, default=2.0, help="time limit of the exact ones")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    measured_on = circumstances()
    trace = optsched.generate_workload(
        "blue-waters-like", jobs=options.jobs, seed=1, interarrival_factor=1 / options.load
    )
    with tempfile.TemporaryDirectory() as folder:
        met = captured(trace, Path(folder))
    chosen = {model: spread(problems, options.snapshots) for model, problems in met.items()}
    rows, times = [], Times()
    for model, problems in shown(chosen.items(), len(chosen)):
        own = list(compare(problems, options.seconds)) if problems else []
        cells = {f"{model}, {row['heuristic']}": row["heuristic_ms"] / 1e3 for row in own}
        for row in own:
            if row["exact_most_ms"] < 1e3 * options.seconds:
                cells[f"{model}, {row['exact']}"] = row["exact_ms"] / 1e3
        times.add_all(cells)
        rows += own
    lines = [
        f"{options.jobs:,} jobs of blue-waters-like, {options.load} times as fast, on {MACHINE}",
        ", ".join(f"{len(problems):,} {model}" for model, problems in met.items()) + " posed",
        f"exact solvers have {options.seconds:g} s",
        "",
    ]
    keep(options.output, "torus-decisions", measured_on, lines + table(rows), rows, times)


if __name__ == "__main__":
    main()
