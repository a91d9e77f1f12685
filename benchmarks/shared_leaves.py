"""Jobs that share nodes on the fewest leaf switches: Slurm's rule beside the exact solver.

    python benchmarks/shared_leaves.py --traces ../shared/traces -o benchmarks/results

Protocol: four families of random cases, three of each kind. `queue`: 100 jobs of 1 to 64 chunks of
cores, memory and GPUs on 1,500 nodes of a few kinds that are partly busy, more than fit, with many
different weights; `fits`: the first jobs of such a queue, as many as ask for 60 or 85 % of the free
cores. `cores`: 100 jobs of 1 to 64 chunks of cores and memory alone, and nodes of two kinds that
are partly busy, as many as the jobs need to use 85 or 95 % of the free cores. All these are in
leaves of 16 or 32 nodes. `clos`: the Lingjun cluster, whose 119 leaf switches are in the traces,
with nodes of 8 GPUs of which some are taken; chunks of 1, 2, 4 or 8 GPUs ask for 60, 85 or 120 % of
the free ones, and the weight of a job is its number of GPUs. "rule" is `tree-best-fit`, the
heaviest job first. "switches" are those of an answer; "least" is the least number of switches at
the proven weight, so it can be compared where the weight is the most. Seconds are those of one
solve, after compiling. With `--cp-sat SECONDS`, CP-SAT answers the model's program, too.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from node_placement import Case, queued, table
from results import Times, circumstances, keep, shown
from switch_groups import clos

import optsched
from optsched.models.node_placement import NodePlacement
from optsched.solvers.finding import find_solver
from optsched.solvers.node_placement.column_generation import ColumnGeneration
from optsched.solvers.result import Budget, Result, Status

RULE, EXACT, GENERIC = "tree-best-fit", "column-generation", "cp-sat"


def on_leaves(problem: NodePlacement, leaf: int, jobs: int | None = None) -> NodePlacement:
    """Return the problem of the first jobs, for the fewest leaves of so many nodes."""
    return NodePlacement(
        problem.resources,
        problem.free,
        problem.chunks[:jobs],
        problem.demand[:jobs],
        weights=problem.weights[:jobs],
        then=("switches",),
        switches=[str(node // leaf) for node in range(len(problem.free))],
    )


def fitting(problem: NodePlacement, load: float) -> int:
    """Return the number of first jobs that ask for at most a share of the free cores."""
    asked = np.cumsum(problem.chunks * problem.demand[:, 0])
    return int((asked <= load * problem.free[:, 0].sum()).sum())


def of_cores(seed: int, load: float, leaf: int) -> NodePlacement:
    """Return the problem of jobs of cores and memory, which all fit."""
    rng = random.Random(seed)
    chunks = [rng.choice((1, 1, 2, 4, 8, 8, 16, 32, 64)) for _ in range(100)]
    cores = [rng.choice((4, 8, 16, 32, 64)) for _ in chunks]
    demand = [[number, rng.choice((1, 2, 4)) * number] for number in cores]
    asked = sum(size * number for size, number in zip(chunks, cores))
    free: list[list[int]] = []
    while load * sum(node[0] for node in free) < asked:
        left = rng.choice((0.25, 0.5, 0.75, 1, 1))
        free.append([int(64 * left), int(rng.choice((256, 512)) * left)])
    return NodePlacement(
        ["cores", "memory"],
        free,
        chunks,
        demand,
        weights=[size * number for size, number in zip(chunks, cores)],
        then=("switches",),
        switches=[str(node // leaf) for node in range(len(free))],
    )


def on_clos(traces: Path, seed: int, load: float) -> NodePlacement:
    """Return the problem of jobs of GPUs on the Lingjun cluster, whose nodes are partly busy."""
    rng = random.Random(seed)
    switches = [str(leaf) for leaf, nodes in enumerate(clos(traces)) for _ in range(nodes)]
    free = []
    for _ in switches:
        gpus = rng.choice((0, 0, 2, 4, 4, 6, 8, 8))
        free.append([16 * gpus, 128 * gpus, gpus])
    chunks, demand, asked = [], [], 0
    while True:
        gpus = rng.choice((1, 1, 2, 2, 4, 8))
        size = rng.choice((1, 1, 2, 4, 4, 8, 16, 32))
        asked += gpus * size
        if asked > load * sum(node[2] for node in free):
            break
        chunks.append(size)
        demand.append([rng.choice((4, 8, 12, 16)) * gpus, rng.choice((32, 64, 120)) * gpus, gpus])
    return NodePlacement(
        ["cores", "memory", "gpu"],
        free,
        chunks,
        demand,
        weights=[size * gpus for size, (_, _, gpus) in zip(chunks, demand)],
        then=("switches",),
        switches=switches,
    )


def cases(traces: Path, families: list[str], seeds: int) -> Iterator[Case]:
    """Yield the cases of some families."""
    every = range(1, seeds + 1)
    for leaf in (16, 32):
        if "queue" in families:
            for seed in every:
                yield Case("queue", f"leaves of {leaf}, {seed}", on_leaves(queued(seed), leaf))
        for load in (0.6, 0.85) if "fits" in families else ():
            for seed in every:
                problem = queued(seed, 400)
                fits = on_leaves(problem, leaf, fitting(problem, load))
                yield Case("fits", f"leaves of {leaf}, {load:.0%}, {seed}", fits)
    if "cores" in families:
        for leaf in (16, 32):
            for load in (0.85, 0.95):
                for seed in every:
                    problem = of_cores(seed, load, leaf)
                    yield Case("cores", f"leaves of {leaf}, {load:.0%}, {seed}", problem)
    if "clos" in families:
        for load in (0.6, 0.85, 1.2):
            for seed in every:
                yield Case("clos", f"{load:.0%}, {seed}", on_clos(traces, seed, load))


def measured(case: Case, seconds: float, generic: float | None, times: Times) -> dict[str, Any]:
    """Return the row of a case, and add the times of the rule and of a proof."""
    problem = case.problem

    def answer(solver: str, limit: float, **options: Any) -> Result:
        chosen, _ = find_solver(solver, problem.name, options)
        return optsched.solve(problem, chosen, budget=Budget(seconds=limit))

    row: dict[str, Any] = {
        "family": case.family,
        "case": case.parameters,
        "jobs": len(problem.chunks),
        "nodes": len(problem.free),
    }
    exact = answer(EXACT, seconds)
    found = {"rule": answer(RULE, seconds, order="largest"), "own": exact}
    if generic is not None:
        found["cp-sat"] = answer(GENERIC, generic)
    for name, result in found.items():
        at = None if result.solution is None else problem.measures(result.solution)
        row |= {f"{name} weight": at and at["weight"], f"{name} switches": at and at["switches"]}
        if result.bound is not None:
            radix = problem.radices[0]
            weight = -(-int(result.bound) // radix)
            row |= {f"{name} most": weight, f"{name} least": weight * radix - int(result.bound)}
    cell = f"{case.family}, {case.parameters}"
    times.add(f"{cell}, {RULE}", found["rule"].seconds)
    if exact.status is Status.OPTIMAL:
        times.add(cell, exact.seconds)
    return row | {"status": exact.status.value, "seconds": round(exact.seconds, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--traces", type=Path, default=Path("../shared/traces"), metavar="DIR")
    parser.add_argument("--seeds", type=int, default=3, help="of each kind of case")
    parser.add_argument("--families", default="queue,fits,cores,clos", help="families of cases")
    parser.add_argument("--seconds", type=float, default=5.0, help="time limit of a solve")
    parser.add_argument("--cp-sat", type=float, metavar="SECONDS", help="time limit of CP-SAT")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    measured_on = circumstances()
    problems = list(cases(options.traces, options.families.split(","), options.seeds))
    ColumnGeneration().prepare()
    times = Times()
    rows = [
        measured(case, options.seconds, options.cp_sat, times)
        for case in shown(problems, len(problems))
    ]
    keep(options.output, "shared-leaves", measured_on, table(rows), rows, times)


if __name__ == "__main__":
    main()
