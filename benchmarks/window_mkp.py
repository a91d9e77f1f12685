"""Speed of the solvers of the window knapsack, and the problems that they leave open.

Two measurements, each written to the folder ``-o`` and printed as a table::

    python benchmarks/window_mkp.py windows -o out
    python benchmarks/window_mkp.py instances ../shared/instances/mkp -o out --limit 10

Protocol of ``windows``: random snapshots of each size (jobs x slots). Job sizes are powers of
two from 1 to 256 or odd numbers from 1 to 399, half each. The slots are what ``slots - 1`` cuts,
drawn uniformly, leave of a line of nodes whose length is 40 to 90 % of all job sizes; slots of no
nodes are drawn again. Profit is weight, or weight times a number drawn uniformly from 1 to 3,
rounded. The generator is numpy's PCG64, seeded with ``--seed``, the size and the kind of profit, so
each table row can be repeated by itself. Every solver that is installed answers every snapshot
once, one after the other in this process, after ``prepare``; within ``--limit`` seconds. The time
is that of ``Solver.solve`` with all it needs, formulation included. A solver that has reached the
limit on three of the first four snapshots of a size is given no more of them: both shares are of
those it was given. The first share is that of snapshots
where its value is the best that any solver found, the second where it is proven optimal.

Protocol of ``instances``: SMALL (Kataoka and Yamada), FK_1 and FK_3 (Fukunaga) from the archives of
the given folder, one solver, one after the other, within ``--limit`` seconds each; of a set each
fourth, with ``--every 1`` all. *Proven* is the share proven optimal, *proven in 1 s* that within a
second, *reached* the share where the value is at least the best lower bound known, *ahead* the
number where it is more. A value above the known upper bound, or a bound below the known lower one,
ends the run. With ``--mtm``, Martello and Toth's MTM solves the instances that it accepts, those of
up to 10 slots that keep its assumptions, right after ours. *MTM of* is their number, *MTM* the
share that it solves within the limit.

State the machine and its load with the numbers; single runs on a shared machine vary by some ten
per cent.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from results import Times, circumstances, keep, shown

from optsched.errors import MissingDependencyError
from optsched.models import WindowMKP
from optsched.models.snapshot_file import load_snapshot
from optsched.registry import solvers
from optsched.solvers.finding import find_solver
from optsched.solvers.result import Budget, Status
from optsched.solvers.solver import Solver
from optsched.solvers.solving import solve

SIZES = ((5, 3), (5, 10), (5, 30), (10, 5), (20, 8), (50, 10), (100, 20), (200, 30))
KINDS = ("weight", "weight x U[1,3]")
GIVEN_UP_AFTER = 4

MTM = Path(__file__).with_name("mtm.py")
MTM_SLOTS = 10
START = 2.0
"""Seconds that a process may take to start."""


def random_window(jobs: int, slots: int, kind: str, rng: np.random.Generator) -> WindowMKP:
    """Draw one snapshot; see the protocol."""
    powers, odd = 2 ** rng.integers(0, 9, jobs), 2 * rng.integers(0, 200, jobs) + 1
    weights = np.where(rng.random(jobs) < 0.5, powers, odd)
    line = max(slots, int(weights.sum() * rng.uniform(0.4, 0.9)))
    cuts = np.sort(rng.choice(line - 1, slots - 1, replace=False)) + 1
    capacities = np.diff(np.concatenate(([0], cuts, [line])))
    profits = weights
    if kind != KINDS[0]:
        profits = np.maximum(1, np.rint(weights * rng.uniform(1, 3, jobs)).astype(np.int64))
    return WindowMKP(weights=weights, capacities=capacities, profits=profits)


def available(names: str | None) -> dict[str, Solver]:
    """Return the named solvers, or all that answer windows and are installed."""
    example = WindowMKP(weights=[1], capacities=[1])
    found = {}
    for name in names.split(",") if names else solvers:
        try:
            solver, _ = find_solver(name)
        except MissingDependencyError as error:
            print(f"left out: {error}")
            continue
        if solver.supports(example.name):
            solver.prepare()
            solve(example, solver)
            found[name] = solver
    return found


def measure_windows(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield one row for each solve."""
    chosen = available(arguments.solvers)
    for kind in KINDS:
        for jobs, slots in SIZES:
            if jobs > arguments.largest:
                continue
            rng = np.random.default_rng([arguments.seed, jobs, slots, KINDS.index(kind)])
            windows = [random_window(jobs, slots, kind, rng) for _ in range(arguments.snapshots)]
            for name, solver in chosen.items():
                stopped = 0
                for number, window in enumerate(windows):
                    if number == GIVEN_UP_AFTER and stopped >= GIVEN_UP_AFTER - 1:
                        break
                    result = solve(window, solver, budget=Budget(seconds=arguments.limit))
                    stopped += result.limit is not None
                    yield {
                        "profit": kind,
                        "jobs": jobs,
                        "slots": slots,
                        "snapshot": number,
                        "solver": name,
                        "status": result.status.value,
                        "objective": result.objective,
                        "bound": result.bound,
                        "seconds": result.seconds,
                    }


def table_of_windows(rows: list[dict[str, Any]]) -> list[str]:
    """Return a table for each kind of profit: a line for each solver, a column for each size."""
    best: dict[tuple[Any, ...], int] = {}
    cells: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        snapshot = (row["profit"], row["jobs"], row["slots"], row["snapshot"])
        best[snapshot] = max(best.get(snapshot, 0), row["objective"] or 0)
        line = cells.setdefault((row["profit"], row["solver"]), {})
        line.setdefault(f"{row['jobs']}x{row['slots']}", []).append(row)
    lines = ["median milliseconds, share of the best value, share proven optimal"]
    title = None
    for (kind, solver), line in cells.items():
        if kind != title:
            title = kind
            lines += ["", f"{'profit = ' + kind:26}" + "".join(f"{size:>22}" for size in line)]
        texts = (_cell(group, best) for group in line.values())
        lines.append(f"{solver:26}" + "".join(f"{text:>22}" for text in texts))
    return lines


def cell_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return the values that name the cell of a row."""
    names = (
        ("set", "slots", "jobs", "kind") if "set" in row else ("profit", "jobs", "slots", "solver")
    )
    return tuple(row[name] for name in names)


def _cell(group: list[dict[str, Any]], best: dict[tuple[Any, ...], int]) -> str:
    milliseconds = 1000 * statistics.median(row["seconds"] for row in group)
    reached = sum(
        row["objective"] == best[row["profit"], row["jobs"], row["slots"], row["snapshot"]]
        for row in group
    )
    proven = sum(row["status"] == Status.OPTIMAL.value for row in group)
    time = f"{milliseconds:.3f}" if milliseconds < 10 else f"{milliseconds:,.0f}"
    return f"{time} {reached / len(group):.0%} {proven / len(group):.0%}"


def measure_instances(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield one row for each instance."""
    solver = available(arguments.solver)[arguments.solver]
    with (arguments.folder / "known_values.csv").open(encoding="utf-8", newline="") as stream:
        known = {row["instance"]: row for row in csv.DictReader(stream)}
    with tempfile.TemporaryDirectory() as unpacked:
        for name in arguments.sets.split(","):
            with tarfile.open(arguments.folder / f"{name}.tar.gz") as archive:
                archive.extractall(unpacked, filter="data")
            paths = sorted((Path(unpacked) / name).glob("*.txt"))
            for path in paths[:: arguments.every]:
                window = load_snapshot(path)
                result = solve(window, solver, budget=Budget(seconds=arguments.limit))
                lower, upper = (
                    int(float(known[path.stem][side])) if known[path.stem][side] else None
                    for side in ("lower_bound", "upper_bound")
                )
                if result.objective is None or result.bound is None:
                    raise SystemExit(f"{path.stem}: {arguments.solver} gives no value or no bound")
                if upper is not None and result.objective > upper:
                    raise SystemExit(f"{path.stem}: {result.objective} is above {upper}")
                if lower is not None and result.bound < lower:
                    raise SystemExit(f"{path.stem}: the bound {result.bound} is below {lower}")
                mtm = answer_of_mtm(window, arguments.mtm, arguments.limit)
                if mtm is not None and mtm["value"] not in (None, lower, upper):
                    raise SystemExit(f"{path.stem}: MTM's optimum {mtm['value']} is not {lower}")
                parts = path.stem.split("_")
                kind = parts[1] if name == "SMALL" else f"class {parts[2]}"
                yield {
                    "set": name,
                    "slots": len(window.capacities),
                    "jobs": len(window.weights),
                    "kind": kind,
                    "instance": path.stem,
                    "status": result.status.value,
                    "objective": result.objective,
                    "bound": result.bound,
                    "known_lower": lower,
                    "known_upper": upper,
                    "seconds": result.seconds,
                    "work": result.work,
                    "mtm_value": mtm and mtm["value"],
                    "mtm_seconds": mtm and mtm["seconds"],
                }


def answer_of_mtm(window: WindowMKP, python: Path | None, limit: float) -> dict[str, Any] | None:
    """Return the optimum of MTM and its seconds, without a value at the limit; None if refused."""
    if python is None or len(window.capacities) > MTM_SLOTS:
        return None
    data = {name: getattr(window, name).tolist() for name in ("weights", "profits", "capacities")}
    try:
        done = subprocess.run(
            [python, MTM], input=json.dumps(data), capture_output=True, text=True, check=True,
            timeout=limit + START,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"value": None, "seconds": limit}
    answer = json.loads(done.stdout)
    if "refused" in answer:
        return None
    placement = tuple(answer["placement"])
    if window.violations(placement):
        raise SystemExit(f"MTM: {window.violations(placement)[0]}")
    in_time = answer["seconds"] <= limit
    return {
        "value": window.objective(placement) if in_time else None,
        "seconds": min(limit, answer["seconds"]),
    }


def table_of_instances(rows: list[dict[str, Any]]) -> list[str]:
    """Return one line for each group of instances, and one for each set."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        size = f"{row['slots']}x{row['jobs']}"
        groups.setdefault((row["set"], size, row["kind"]), []).append(row)
        groups.setdefault((row["set"], "all", ""), []).append(row)
    lines = [
        f"{'set':6} {'slots x jobs':12} {'kind':8} {'of':>4} {'proven':>7} {'in 1 s':>7} "
        f"{'reached':>8} {'ahead':>6} {'median s':>9} {'MTM of':>7} {'MTM':>5}"
    ]
    for (name, size, kind), group in sorted(groups.items()):
        proven = [row for row in group if row["status"] == Status.OPTIMAL.value]
        quick = [row for row in proven if row["seconds"] <= 1]
        reached = [row for row in group if row["objective"] >= (row["known_lower"] or 0)]
        ahead = [row for row in reached if row["objective"] > (row["known_lower"] or 0)]
        median = statistics.median(row["seconds"] for row in group)
        by_mtm = [row for row in group if row["mtm_seconds"] is not None]
        mtm = sum(row["mtm_value"] is not None for row in by_mtm)
        share = f"{mtm / len(by_mtm):5.0%}" if by_mtm else f"{'-':>5}"
        lines.append(
            f"{name:6} {size:12} {kind:8} {len(group):4} {len(proven) / len(group):7.0%} "
            f"{len(quick) / len(group):7.0%} {len(reached) / len(group):8.0%} {len(ahead):6} "
            f"{median:9.3f} {len(by_mtm):7} {share}"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    windows = commands.add_parser("windows", help="random snapshots, every solver")
    windows.add_argument("--solvers", help="names, with commas between; all if left out")
    windows.add_argument("--snapshots", type=int, default=10, help="of each size")
    windows.add_argument("--largest", type=int, default=200, help="jobs in a snapshot")
    windows.add_argument("--seed", type=int, default=1)
    instances = commands.add_parser("instances", help="instances of the literature, one solver")
    instances.add_argument("folder", type=Path, help="holds the archives and known_values.csv")
    instances.add_argument("--solver", default="branch-and-bound")
    instances.add_argument("--sets", default="SMALL,FK_1,FK_3")
    instances.add_argument("--mtm", type=Path, help="Python of an environment with mknapsack")
    instances.add_argument("--every", type=int, default=4, help="take each n-th instance of a set")
    for command in (windows, instances):
        command.add_argument("-o", dest="output", type=Path, required=True, help="folder")
        command.add_argument("--limit", type=float, default=1.0, help="seconds for each solve")
    arguments = parser.parse_args()
    measured_on = circumstances()
    if arguments.command == "windows":
        measure, table = measure_windows, table_of_windows
    else:
        measure, table = measure_instances, table_of_instances
        measured_on.append(f"{arguments.solver}, {arguments.limit:g} s for each instance")
    rows, times = [], Times()
    for _, own in groupby(shown(measure(arguments)), cell_of):
        rows += (group := list(own))
        seconds = statistics.median(row["seconds"] for row in group)
        if seconds < arguments.limit:
            times.add(", ".join(map(str, cell_of(group[0]))), seconds)
    keep(arguments.output, arguments.command, measured_on, table(rows), rows, times)


if __name__ == "__main__":
    main()
