"""Gain of one joint decision over two in turn, on random states of small tori.

    python benchmarks/reconfiguration.py -o benchmarks/results

Protocol: jobs of log-uniform size, 1 to 32 routers of two nodes, come to random places of a torus
and leave it for long, until it is as busy as asked; they have run for 2 hours in the mean. Eight
jobs wait, seven of the same sizes and a required large one of an eighth of the torus, for which no
box is free; each may have its two best shapes. Each state is a problem `reconfiguration`, once with
a worth that puts profit first ("first"), and once with a node started worth `--worth` node-seconds
of migration.

The first table has two decisions in turn, these with their exact solvers, and Algorithm 3 over all
jobs: "found" counts the states with a solution, "best" those where it is the best of the three;
means are over the states that all three have a solution for, of nodes started, jobs moved and the
cost of moves in node-hours; "excess" is the mean objective over that of Algorithm 3.

The second table has the first states of each kind, solved jointly by HiGHS from the best of these
answers, with a time limit: objectives, the bound, the gap of the two decisions in turn to the
objective and to the bound, and processor seconds. "profit" says that no solution starts more nodes.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from results import Times, circumstances, keep, shown

import optsched
from optsched.boxes.box import Box, Grid, shapes
from optsched.boxes.free_boxes import anchors, first_fit
from optsched.models import Reconfiguration
from optsched.solvers.reconfiguration import MigrateThenPlace
from optsched.solvers.result import Budget, Result

NODES = 2
"""Nodes on a router."""

SHAPES = 2
"""Shapes that a job may get."""

LARGEST = 32
"""Most routers of a job, but for the large one."""

WAITING = 7
"""Waiting jobs besides the large one."""

LAST = "migration-based"

HEURISTICS = {
    "in turn": MigrateThenPlace(),
    "in turn, exact": MigrateThenPlace("exact"),
    LAST: "migration-based",
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


def answers(problem: Reconfiguration) -> dict[str, Result]:
    """Return the results of the heuristics."""
    return {name: optsched.solve(problem, solver) for name, solver in HEURISTICS.items()}


def best_of(own: dict[str, Result]) -> Result | None:
    """Return the best result with a solution."""
    known = [one for one in own.values() if one.objective is not None]
    return min(known, key=lambda one: one.objective or 0, default=None)


def heuristic_rows(
    problems: list[Reconfiguration], results: list[dict[str, Result]]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each heuristic."""
    common = [
        (problem, own)
        for problem, own in zip(problems, results)
        if all(one.objective is not None for one in own.values())
    ]
    best = [found and found.objective for found in map(best_of, results)]
    for name in HEURISTICS:
        answered = [(problem, own[name], own[LAST]) for problem, own in common]
        yield {
            "solver": name,
            "found": sum(own[name].objective is not None for own in results),
            "best": sum(
                own[name].objective == value
                for own, value in zip(results, best)
                if value is not None
            ),
            "common": len(common),
            "started": _mean([_started(problem, one) for problem, one, _ in answered]),
            "moves": _mean([len(one.solution.destinations) for _, one, _ in answered]),
            "node_hours": _mean([p.cost_of(one.solution.steps) / 3600 for p, one, _ in answered]),
            "excess": _mean([_excess(one, last.objective or 1) for _, one, last in answered]),
            "ms": round(1e3 * statistics.median(own[name].seconds for own in results), 1),
        }


def joint_row(problem: Reconfiguration, own: dict[str, Result], seconds: float) -> dict[str, Any]:
    """Return the row of a joint decision by HiGHS."""
    best = best_of(own)
    hint = None if best is None else best.solution
    began = time.process_time()
    joint = optsched.solve(problem, "highs", budget=Budget(seconds=seconds), hint=hint)
    spent = time.process_time() - began
    in_turn = own["in turn"].objective
    bound = joint.bound
    return {
        "variables": problem.program_size()[0],
        "in_turn": in_turn,
        LAST: own[LAST].objective,
        "joint": joint.objective,
        "bound": bound,
        "status": f"{joint.status}{', profit' if _proves_profit(problem, joint) else ''}",
        "gap": None if in_turn is None else round(1 - (joint.objective or 0) / in_turn, 3),
        "gap_to_bound": None if None in (in_turn, bound) else round(1 - bound / in_turn, 3),
        "seconds": round(spent, 1),
    }


def _proves_profit(problem: Reconfiguration, joint: Result) -> bool:
    """Return whether the bound excludes that more profit is made, if profit comes first."""
    if joint.solution is None or joint.bound is None:
        return False
    left_out = sum(problem.profits) - _started(problem, joint)
    # a solution with a unit less left out costs at most what all movable jobs cost
    dearest = sum(problem.costs[job] for job in problem.movers)
    return problem.worth > dearest and joint.bound > (left_out - 1) * problem.worth + dearest


def _excess(one: Result, other: int) -> float:
    return (one.objective or 0) / other - 1


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sides", default="6,8", help="of the tori, in routers")
    parser.add_argument("--busy", default="0.6,0.7,0.8", help="shares of the routers in use")
    parser.add_argument("--states", type=int, default=20, help="of each kind")
    parser.add_argument("--joint", default="2,1", help="states solved jointly, for each side")
    parser.add_argument("--worth", type=int, default=3600, help="node-seconds that a node is worth")
    parser.add_argument("--seconds", type=float, default=120.0, help="time limit of HiGHS")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    measured_on = circumstances()
    sides, busy, jointly = (
        [kind(one) for one in text.split(",")]
        for kind, text in ((int, options.sides), (float, options.busy), (int, options.joint))
    )
    cases = list(product(zip(sides, jointly), (None, options.worth), busy))
    rows, solved, times, joint_times = [], [], Times(), Times()
    for (side, few), worth, share in shown(cases, len(cases)):
        problems = states(options.states, side, share, worth)
        results = [answers(problem) for problem in problems]
        kind = {"side": side, "busy": share, "worth": "first" if worth is None else worth}
        rows += [kind | row for row in heuristic_rows(problems, results)]
        for problem, own in list(zip(problems, results))[:few]:
            solved.append(kind | joint_row(problem, own, options.seconds))
            joint_times.add(f"{side}^3, {share}, {kind['worth']}", solved[-1]["seconds"])
        of_case = f"{side}^3, {share}, {kind['worth']}"
        times.add_all({f"{of_case}, {row['solver']}": row["ms"] / 1e3 for row in rows[-3:]})
    keep(options.output, "reconfiguration", measured_on, table(rows), rows, times)
    lines = [f"HiGHS has {options.seconds:g} s", "", *table(solved)]
    keep(options.output, "reconfiguration-joint", measured_on, lines, solved, joint_times)


if __name__ == "__main__":
    main()
