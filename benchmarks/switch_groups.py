"""Whole nodes on the fewest leaf switches: a greedy rule beside column generation over groups.

    python benchmarks/switch_groups.py --traces ../shared/traces -o benchmarks/results

Protocol: three families of random cases, three of each kind. `clos`: jobs that all fit on the free
nodes of the Lingjun cluster, whose 119 leaf switches are in the traces, when some of its nodes are
busy. `blocks`: the same, but each job must be in one of 3 or 12 blocks of leaves; the weight of a
job is its number of nodes. `queue`: 100 or 200 jobs, more than fit, on 1,500 nodes in leaves of 8,
16 or 32; the weight of a job is one to three times its number of nodes. "weight" and "switches" are
those of an answer, "bound" is the least number of switches at the proven weight. Seconds are those
of one solve, after compiling. With `--cp-sat SECONDS`, CP-SAT answers the model's program, too.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from results import Times, circumstances, keep, shown

import optsched
from optsched.models.node_placement import NodePlacement
from optsched.solvers.result import Budget, Result

TOPOLOGY = Path("clusters", "lingjun_topo.csv.gz")
FEW_SIZES = (2, 2, 4, 4, 8, 8, 16, 32)
MANY_SIZES = (2, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16)
QUEUE_SIZES = (1, 2, 2, 3, 4, 4, 6, 8, 8, 12, 16, 24, 32)
RULE, EXACT, GENERIC = "leaf-best-fit", "switch-groups", "cp-sat"


class Case(NamedTuple):
    """A problem, with its family and its parameters as text."""

    family: str
    parameters: str
    problem: NodePlacement


def clos(traces: Path) -> list[int]:
    """Return the number of nodes of each leaf switch of the Lingjun cluster."""
    with gzip.open(traces / TOPOLOGY, "rt", encoding="utf-8", newline="") as stream:
        leaves = Counter((row["DSW"], row["PSW"], row["ASW"]) for row in csv.DictReader(stream))
    return [leaves[leaf] for leaf in sorted(leaves)]


def whole_nodes(
    room: list[int], jobs: list[int], weights: list[int] | None, blocks: list[int] | None = None
) -> NodePlacement:
    """Return the problem of jobs on leaves with so many free nodes, which may be in blocks."""
    leaves = [leaf for leaf, nodes in enumerate(room) for _ in range(nodes)]
    return NodePlacement(
        ["nodes"],
        [[1]] * len(leaves),
        jobs,
        [[1]] * len(jobs),
        weights=weights,
        then=("switches",),
        switches=[str(leaf) for leaf in leaves],
        blocks=None if blocks is None else [str(blocks[leaf]) for leaf in leaves],
        span=["anywhere" if blocks is None else "block"] * len(jobs),
    )


def fitting(
    seed: int, capacities: list[int], busy: float, most: int, sizes: tuple[int, ...], fill: float
) -> tuple[list[int], list[int]]:
    """Return the free nodes of each leaf, and jobs that fill at most a share of them."""
    rng = random.Random(seed)
    room = [sum(rng.random() > busy for _ in range(nodes)) for nodes in capacities]
    jobs: list[int] = []
    while len(jobs) < most:
        size = rng.choice(sizes)
        if sum(jobs) + size > fill * sum(room):
            break
        jobs.append(size)
    return room, jobs


def queued(seed: int, leaf: int, busy: float, number: int) -> NodePlacement:
    """Return a queue of jobs for 1,500 nodes, some of which are busy."""
    rng = random.Random(seed)
    room = [sum(rng.random() > busy for _ in range(leaf)) for _ in range(1500 // leaf)]
    jobs, weights = [], []
    for _ in range(number):
        jobs.append(rng.choice(QUEUE_SIZES))
        weights.append(rng.choice((1, 2, 3)) * jobs[-1])
    return whole_nodes(room, jobs, weights)


def cases(traces: Path, seeds: int) -> Iterator[Case]:
    """Yield all cases."""
    capacities = clos(traces)
    for busy, most in ((0.6, 10), (0.6, 30), (0.8, 20), (0.9, 15), (0.3, 60), (0.2, 100)):
        for seed in range(1, seeds + 1):
            sizes = FEW_SIZES if most < 60 else MANY_SIZES
            room, jobs = fitting(seed, capacities, busy, most, sizes, 0.95)
            yield Case("clos", f"{busy:.0%} busy, {seed}", whole_nodes(room, jobs, None))
    for number in (3, 12):
        blocks = [leaf * number // len(capacities) for leaf in range(len(capacities))]
        for busy, most in ((0.6, 30), (0.2, 100)):
            for seed in range(1, seeds + 1):
                room, jobs = fitting(seed, capacities, busy, most, FEW_SIZES, 0.85)
                problem = whole_nodes(room, jobs, jobs, blocks)
                yield Case("blocks", f"{number} blocks, {busy:.0%} busy, {seed}", problem)
    for leaf, busy, most in (
        (8, 0.5, 100),
        (8, 0.7, 100),
        (16, 0.6, 100),
        (32, 0.6, 100),
        (16, 0.3, 200),
    ):
        for seed in range(1, seeds + 1):
            problem = queued(seed, leaf, busy, most)
            yield Case("queue", f"leaves of {leaf}, {busy:.0%} busy, {seed}", problem)


def measured(case: Case, seconds: float, generic: float | None) -> dict[str, Any]:
    """Return the row of a case."""
    problem = case.problem

    def answer(solver: str, limit: float) -> Result:
        return optsched.solve(problem, solver, budget=Budget(seconds=limit))

    rule, exact = answer(RULE, seconds), answer(EXACT, seconds)
    row: dict[str, Any] = {
        "family": case.family,
        "case": case.parameters,
        "jobs": len(problem.chunks),
        "nodes": len(problem.free),
    }
    found = {"rule": rule, "own": exact}
    if generic is not None:
        found["cp_sat"] = answer(GENERIC, generic)
    for name, result in found.items():
        at = None if result.solution is None else problem.measures(result.solution)
        row |= {f"{name}_weight": at and at["weight"], f"{name}_switches": at and at["switches"]}
        if name != "rule":
            row |= {f"{name}_{key}": value for key, value in _bound(problem, result).items()}
    return row | {"status": exact.status.value, "seconds": round(exact.seconds, 4)}


def _bound(problem: NodePlacement, result: Result) -> dict[str, int | None]:
    """Return the bound of an objective as a weight, and as switches at that weight."""
    if result.bound is None:
        return {"most_weight": None, "least_switches": None}
    radix = problem.radices[0]
    weight = -(-int(result.bound) // radix)
    return {"most_weight": weight, "least_switches": weight * radix - int(result.bound)}


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the measurements as lines for people."""
    wide = {"case": 30}
    widths = {name: wide.get(name, max(10, len(name) + 2)) for name in rows[0]}
    heads = "".join(f"{name:>{width}}" for name, width in widths.items())
    return [heads] + [
        "".join(
            f"{'-' if row[name] is None else row[name]:>{width}}" for name, width in widths.items()
        )
        for row in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--traces", type=Path, default=Path("../shared/traces"), metavar="DIR")
    parser.add_argument("--seeds", type=int, default=3, help="of each kind of case")
    parser.add_argument("--families", default="clos,blocks,queue", help="families of cases")
    parser.add_argument("--seconds", type=float, default=5.0, help="time limit of a solve")
    parser.add_argument("--cp-sat", type=float, metavar="SECONDS", help="time limit of CP-SAT")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    measured_on = circumstances()
    chosen = options.families.split(",")
    problems = [one for one in cases(options.traces, options.seeds) if one.family in chosen]
    times = Times()
    rows = []
    for case in shown(problems, len(problems)):
        rows.append(measured(case, options.seconds, options.cp_sat))
        if rows[-1]["status"] == "optimal":
            times.add(f"{case.family}, {case.parameters}", rows[-1]["seconds"])
    keep(options.output, "switch-groups", measured_on, table(rows), rows, times)


if __name__ == "__main__":
    main()
