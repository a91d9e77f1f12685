"""Gain of one joint decision over two in turn, on random states of small tori.

    python benchmarks/reconfiguration.py -o benchmarks/results

Protocol: jobs of log-uniform size, 1 to 32 routers of two nodes, come to random places of a torus
and leave it for long, until it is as busy as asked; they have run for 2 hours in the mean. Eight
jobs wait, seven of the same sizes and a required large one of an eighth of the torus, for which no
box is free; each may have its two best shapes. Each state is a problem `reconfiguration`, once with
a worth that puts profit first ("first"), and once with a node started worth `--worth` node-seconds
of migration. It is solved by two decisions in turn, by these with their exact solvers, by
Algorithm 3 over all jobs, and jointly by HiGHS, which starts from the best of these answers and has
a time limit.
"found" counts the states with a solution, "best" those where it is as good as the best one known,
"proven" the proven optima, and "profit proven" the states where no solution starts more nodes.
Means are over the states that all have a solution for: nodes started of those that wait, jobs
moved, cost of moves in node-hours, and "excess", the objective over that of the joint decision.
Seconds are medians.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from results import Times, circumstances, keep, shown

import optsched
from optsched.boxes.box import Box, Grid
from optsched.boxes.free_boxes import anchors, first_fit
from optsched.boxes.shapes import shapes
from optsched.models import Reconfiguration
from optsched.solvers.reconfiguration.migrate_then_place import MigrateThenPlace
from optsched.solvers.result import Budget, Result, Status

NODES = 2
"""Nodes on a router."""

SHAPES = 2
"""Shapes that a job may get."""

LARGEST = 32
"""Most routers of a job, but for the large one."""

WAITING = 7
"""Waiting jobs besides the large one."""

JOINT = "joint, highs"

IN_TURN = {
    "in turn": MigrateThenPlace(),
    "in turn, exact": MigrateThenPlace("exact"),
    "migration-based": "migration-based",
}


def state(seed: int, side: int, busy: float, worth: int | None) -> Reconfiguration | None:
    """Return a random state, or None if a box is free for the large job."""
    rng = random.Random(seed)
    grid = Grid((side,) * 3, (True,) * 3)
    free = np.ones(grid.shape, dtype=bool)
    running: list[tuple[Box, int, int]] = []

    def drawn() -> int:
        return int(2 ** rng.uniform(0, math.log2(LARGEST)))

    for _ in range(20 * side**2):
        routers = drawn()
        shape = rng.choice(shapes(routers, grid)[:4])
        there = anchors(free, grid, shape)
        if len(there):
            box = Box(*rng.choice(there.tolist()), *shape)
            free[grid.routers_of(box)] = False
            running.append((box, routers * NODES, int(rng.expovariate(1 / 7200))))
        while free.sum() < (1 - busy) * grid.routers:
            box, _, _ = running.pop(rng.randrange(len(running)))
            free[grid.routers_of(box)] = True
    large = grid.routers // 8
    if first_fit(free, grid, shapes(large, grid)[:SHAPES]) is not None:
        return None
    boxes, sizes, elapsed = zip(*running)
    waiting = [*(drawn() * NODES for _ in range(WAITING)), large * NODES]
    return Reconfiguration(
        grid.shape,
        boxes,
        sizes,
        elapsed,
        waiting,
        required=[WAITING],
        worth=worth,
        nodes_per_router=NODES,
        shapes=SHAPES,
    )


def states(number: int, side: int, busy: float, worth: int | None) -> list[Reconfiguration]:
    """Return the first states in which the large job is blocked."""
    found: list[Reconfiguration] = []
    seed = 0
    while len(found) < number:
        problem = state(seed, side, busy, worth)
        seed += 1
        if problem is not None:
            found.append(problem)
    return found


def answers(problem: Reconfiguration, seconds: float) -> dict[str, Result]:
    """Return the results of all solvers."""
    found = {name: optsched.solve(problem, solver) for name, solver in IN_TURN.items()}
    known = [one for one in found.values() if one.objective is not None]
    best = min(known, key=lambda one: one.objective or 0, default=None)
    found[JOINT] = optsched.solve(
        problem,
        "highs",
        budget=Budget(seconds=seconds),
        hint=None if best is None else best.solution,
    )
    return found


def rows_of(
    problems: list[Reconfiguration], results: list[dict[str, Result]]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each solver."""
    common = [
        (problem, own)
        for problem, own in zip(problems, results)
        if all(one.objective is not None for one in own.values())
    ]
    for name in [*IN_TURN, JOINT]:
        of_common = [(problem, own[name], own[JOINT]) for problem, own in common]
        yield {
            "solver": name,
            "found": sum(own[name].objective is not None for own in results),
            "best": sum(_is_best(own[name], own) for own in results),
            "proven": sum(own[name].status is Status.OPTIMAL for own in results),
            "profit_proven": sum(_proves(p, own[JOINT]) for p, own in zip(problems, results))
            if name == JOINT
            else None,
            "started": _mean([_started(problem, one) for problem, one, _ in of_common]),
            "moves": _mean([len(one.solution.destinations) for _, one, _ in of_common]),
            "node_hours": _mean([p.cost_of(one.solution.steps) / 3600 for p, one, _ in of_common]),
            "excess": _mean([_excess(one, joint) for _, one, joint in of_common]),
            "seconds": round(statistics.median(own[name].seconds for own in results), 3),
        }


def _is_best(one: Result, own: dict[str, Result]) -> bool:
    known = [result.objective for result in own.values() if result.objective is not None]
    return one.objective is not None and one.objective == min(known)


def _proves(problem: Reconfiguration, joint: Result) -> bool:
    """Return whether the bound of the joint decision excludes that more profit is made."""
    if joint.solution is None or joint.bound is None or not problem.worth:
        return False
    left_out = sum(problem.profits) - _started(problem, joint)
    # a solution with a unit less left out costs at most what all movable jobs cost
    dearest = sum(problem.costs[job] for job in problem.movers)
    return joint.bound > (left_out - 1) * problem.worth + dearest


def _excess(one: Result, joint: Result) -> float:
    return (one.objective or 0) / (joint.objective or 1) - 1


def _started(problem: Reconfiguration, result: Result) -> int:
    return sum(p for p, box in zip(problem.profits, result.solution.boxes) if box is not None)


def _mean(values: list[Any]) -> float | None:
    return round(statistics.fmean(values), 2) if values else None


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the rows as lines for people, a column for each figure."""
    widths = {name: max(len(name), *(len(_text(row[name])) for row in rows)) for name in rows[0]}
    lines = ["  ".join(f"{name:>{width}}" for name, width in widths.items())]
    lines += ["  ".join(f"{_text(row[name]):>{widths[name]}}" for name in widths) for row in rows]
    return [line.rstrip() for line in lines]


def _text(value: Any) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value}"


def _cases(options: argparse.Namespace) -> list[tuple[int, float, int | None]]:
    sides, busy = map(int, options.sides.split(",")), map(float, options.busy.split(","))
    shares = list(busy)
    return [(side, b, w) for side in sides for w in (None, options.worth) for b in shares]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sides", default="6,8", help="of the tori, in routers")
    parser.add_argument("--busy", default="0.6,0.7,0.8", help="shares of the routers in use")
    parser.add_argument("--states", type=int, default=4, help="of each kind")
    parser.add_argument("--worth", type=int, default=3600, help="node-seconds that a node is worth")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of HiGHS")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    measured_on = circumstances()
    rows, times = [], Times()
    cases = _cases(options)
    for side, busy, worth in shown(cases, len(cases)):
        problems = states(options.states, side, busy, worth)
        results = [answers(problem, options.seconds) for problem in problems]
        kind = {
            "side": side,
            "busy": busy,
            "worth": "first" if worth is None else worth,
            "states": len(problems),
            "waiting": _mean([sum(problem.waiting) for problem in problems]),
        }
        found = [kind | row for row in rows_of(problems, results)]
        of_case = f"{side}^3, {busy:.0%}, {kind['worth']}"
        times.add_all({f"{of_case}, {row['solver']}": row["seconds"] for row in found})
        rows += found
    lines = [f"jobs may have their {SHAPES} best shapes; HiGHS has {options.seconds:g} s", ""]
    keep(options.output, "reconfiguration", measured_on, lines + table(rows), rows, times)


if __name__ == "__main__":
    main()
