"""Distance of the rules of Gonthier et al. 2024 from the best plan, on queues met under load.

    python benchmarks/data_placement_decisions.py -o benchmarks/results

Protocol: the policy `locality` runs the generated sample of 521 jobs on as many nodes as are asked
for, fewer than it was made for, once with FCFS and once with LEA, and what it poses is captured. Of
the queues of `--fewest` to `--most` jobs, `--queues` are taken, evenly over the run; all of their
jobs are to be planned. Each queue is solved by the five rules, without backfilling and with full
profiles, and by `interval-search` with a time limit, after compiling. The objective is the seconds
in which jobs wait and load, and again with the weight that LEA gives to loads.
"optimal" counts the queues in which a rule has the cost of a proven optimum, "best" those in which
nobody is better; "excess" is by how much its total cost is above that of the best plans known, and
"median" and "worst" are the ratios of single queues.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from results import Times, circumstances, keep, shown

import optsched
from optsched.content import bundled
from optsched.models.data_placement import DataPlacement
from optsched.models.snapshot_file import read_snapshot
from optsched.registry import solvers
from optsched.solvers.result import Budget, Result, Status

SAMPLE = bundled("traces") / "samples" / "sample-8x20.rackham"
MET_BY = ("fcfs", "lea")
RULES = ("fcfs", "eft", "lea", "leo", "lem")
BACKFILLS = ("none", "conservative")
EXACT = "interval-search"
LOAD_WEIGHTS = (1, 500)
"""Of a second of loading against one of waiting: as users feel it, and as LEA weighs it."""


def captured(machine: str, folder: Path) -> dict[str, list[DataPlacement]]:
    """Return the problems that runs of the sample pose, by what places the jobs."""
    met: dict[str, list[DataPlacement]] = {}
    for solver in MET_BY:
        snapshots = folder / solver
        snapshots.mkdir()
        optsched.simulate(str(SAMPLE), machine, "locality", solver=solver, capture=snapshots)
        problems = [read_snapshot(file).problem for file in sorted(snapshots.iterdir())]
        met[solver] = [one for one in problems if isinstance(one, DataPlacement)]
    return met


def chosen(problems: list[DataPlacement], jobs: range, number: int) -> list[DataPlacement]:
    """Return a number of queues of these sizes, evenly over all, to be planned as a whole."""
    those = [one for one in problems if len(one.processors) in jobs]
    places = [place * len(those) // number for place in range(number)]
    return [replace(those[place], partial=False) for place in dict.fromkeys(places)]


def answers(problem: DataPlacement, seconds: float) -> dict[tuple[str, str], Result]:
    """Return the answer of each rule with each backfilling, and of the exact solver."""
    found = {
        (rule, backfill): optsched.solve(problem, solvers[rule](backfill=backfill))
        for rule in RULES
        for backfill in BACKFILLS
    }
    return found | {(EXACT, ""): optsched.solve(problem, EXACT, budget=Budget(seconds=seconds))}


def compare(
    queues: list[DataPlacement], load_weight: int, seconds: float
) -> Iterator[dict[str, Any]]:
    """Yield a row for each rule with each backfilling, and one for the exact solver."""
    weighed = [replace(queue, load_weight=load_weight) for queue in queues]
    answers(weighed[0], seconds)
    found = [answers(queue, seconds) for queue in weighed]
    best = [min(one.objective for one in own.values()) for own in found]
    proven = [own[EXACT, ""].status is Status.OPTIMAL for own in found]
    for name, backfill in found[0]:
        costs = [own[name, backfill].objective for own in found]
        ratios = [cost / least for cost, least in zip(costs, best) if least]
        yield {
            "load_weight": load_weight,
            "solver": name,
            "backfill": backfill,
            "queues": len(found),
            "proven": sum(proven),
            "optimal": sum(c == b and p for c, b, p in zip(costs, best, proven)),
            "best": sum(cost == least for cost, least in zip(costs, best)),
            "excess": round(sum(costs) / sum(best) - 1, 4),
            "median": round(statistics.median(ratios), 4),
            "worst": round(max(ratios), 4),
            "ms": round(1e3 * statistics.median(own[name, backfill].seconds for own in found), 2),
            "most_ms": round(1e3 * max(own[name, backfill].seconds for own in found), 1),
        }


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the measurements as lines for people."""
    widths = {name: 16 if name in ("solver", "backfill") else 12 for name in rows[0]}
    heads = [f"{name:>{width}}" for name, width in widths.items()]
    return ["".join(heads)] + [
        "".join(f"{_text(row[name]):>{width}}" for name, width in widths.items()) for row in rows
    ]


def _text(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=6, help="of the cluster")
    parser.add_argument("--fewest", type=int, default=5, help="jobs of a queue")
    parser.add_argument("--most", type=int, default=10, help="jobs of a queue")
    parser.add_argument("--queues", type=int, default=10, help="of each run")
    parser.add_argument("--seconds", type=float, default=2.0, help="time limit of the exact solver")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    measured_on = circumstances()
    machine = f"cluster:{options.nodes}x20"
    with tempfile.TemporaryDirectory() as folder:
        met = captured(machine, Path(folder))
    sizes = range(options.fewest, options.most + 1)
    queues = [one for own in met.values() for one in chosen(own, sizes, options.queues)]
    rows, times = [], Times()
    for weight in shown(LOAD_WEIGHTS, len(LOAD_WEIGHTS)):
        own = list(compare(queues, weight, options.seconds))
        named = {f"{row['solver']} {row['backfill']}, loads x {weight}": row for row in own}
        times.add_medians(named, options.seconds)
        rows += own
    posed = ", ".join(f"{len(own):,} with {name}" for name, own in met.items())
    lines = [
        f"{SAMPLE.name} on {machine}: {posed} posed",
        f"queues of {sizes[0]} to {sizes[-1]} jobs; {EXACT} has {options.seconds:g} s",
        "",
    ]
    keep(options.output, "data-placement-decisions", measured_on, lines + table(rows), rows, times)


if __name__ == "__main__":
    main()
