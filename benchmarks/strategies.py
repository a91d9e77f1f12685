"""What each strategy of a search earns: answers with all of them, and without one.

    python benchmarks/strategies.py column-generation -o benchmarks/results
    python benchmarks/strategies.py branch-and-bound --work 60 --seeds 1 -o benchmarks/results

Protocol: the cases of column generation are those of the benchmarks ``node_placement``,
``shared_leaves`` and ``switch_groups`` that are searched for long, and jobs with limits on groups
of nodes, at random: of each kind two seeds, the solver's too. Those of branch and bound are each
24th instance of SMALL, FK_1 and FK_3, see ``window_mkp``. Each is solved with all strategies, then
once without each strategy that the first search came to; where it never came to one, leaving that
out changes nothing. The budget is one of work, so that a busy machine changes no answer. A row of
the table is a strategy: the cases that came to it, and of these the ones whose answer, bound and
proof are worse or better without it, and the most weight or profit that one case loses, in per
cent. Strategies replace one another: the loss without two is not the sum.
"""

from __future__ import annotations

import argparse
import math
import random
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import node_placement
import shared_leaves
import switch_groups
from node_placement import Case
from results import Times, circumstances, keep, shown

from optsched.models.node_placement import NodePlacement
from optsched.models.snapshot_file import load_snapshot
from optsched.solvers.anytime import StoppedError
from optsched.solvers.node_placement import _relaxation, column_generation
from optsched.solvers.node_placement._groups import GroupSearch
from optsched.solvers.node_placement._leaf_bound import LeafBound
from optsched.solvers.node_placement._leaf_search import LeafSearch
from optsched.solvers.node_placement._packing import Packing
from optsched.solvers.node_placement._plan import PartialPlacement
from optsched.solvers.result import Budget, Limit, Status
from optsched.solvers.window_mkp._lagrangian import strategy
from optsched.solvers.window_mkp._lagrangian.column_search import ColumnSearch
from optsched.solvers.window_mkp.branch_and_bound import BranchAndBound

LONGER = 12.0
"""Time limit of a solve in its nominal seconds, against a budget of work that is not kept."""

EVERY = 24
"""Of the instances of a set, the cases are each so many."""


def nothing(*_: Any) -> None:
    """Do nothing."""


def no_steps(*_: Any) -> Iterator[None]:
    """Take no step."""
    return iter(())


def empty(_: NodePlacement, instance: Any) -> Any:
    """Return a placement of no job."""
    return PartialPlacement(instance).placements()


def unlisted(*_: Any) -> Any:
    """Stop as if there were too many groups to list."""
    raise StoppedError(Limit.MEMORY)


def impossible(_: ColumnSearch) -> Any:
    """Return a search slot by slot that cannot run."""
    return SimpleNamespace(possible=False)


def no_multiplier(*_: Any) -> int:
    """Return the multiplier with which no job less pays."""
    return 0


Strategies = dict[str, tuple[object, str, Any]]
"""Where each strategy is called, and what is called without it."""

OF_COLUMN_GENERATION: Strategies = {
    "first placement": (column_generation, "_first", empty),
    "descent of prices": (_relaxation.Relaxation, "_descend", nothing),
    "smoothing of prices": (_relaxation, "SMOOTHING", 0.0),
    "dive": (Packing, "round", no_steps),
    "choice of jobs": (Packing, "choose", no_steps),
    "program of contents": (Packing, "combine", no_steps),
    "repacking": (Packing, "repack", no_steps),
    "search of leaves": (LeafSearch, "run", nothing),
    "bound of leaves": (LeafBound, "raise_to", nothing),
    "fragmentation": (column_generation._Search, "_reduce_fragmentation", nothing),
    "alike nodes": (column_generation, "alike_nodes", nothing),
    "limited jobs first": (column_generation._Search, "_pack_around", nothing),
    "CP-SAT": (column_generation._Search, "_search_program", nothing),
    "groups of jobs": (GroupSearch, "run", no_steps),
    "listed groups": (GroupSearch, "_listed", unlisted),
}

OF_BRANCH_AND_BOUND: Strategies = {
    "surrogate relaxation": (strategy.DestructiveSearch, "surrogate", nothing),
    "refilled slots": (strategy.DestructiveSearch, "refill", no_steps),
    "narrow bands": (strategy, "FIRST_BAND", 1e-9),
    "direct search": (strategy, "HEAD_START", -math.inf),
    "neighborhoods": (strategy.DestructiveSearch, "search_neighborhood", no_steps),
    "slot by slot": (ColumnSearch, "by_slot", impossible),
    "number of jobs": (strategy.CardinalitySearch, "_multiplier", no_multiplier),
}

CONSTANTS = {
    "smoothing of prices": "descent of prices",
    "narrow bands": "surrogate relaxation",
    "direct search": "surrogate relaxation",
}
"""Strategies that are constants, each with the one that comes before it."""


def limited(kind: str, seed: int, jobs: int = 100, nodes: int = 60) -> NodePlacement:
    """Return the problem of a queue of which some jobs are limited to a switch, or to racks."""
    rng = random.Random(f"{kind} {seed}")
    whole = kind == "whole nodes, racks"
    chunks = [rng.choice((1, 1, 1, 2, 3, 4, 6, 8)) for _ in range(jobs)]
    cores = [1 if whole else rng.choice((2, 4, 8, 12, 16, 24, 32, 48)) for _ in chunks]
    free = [[1 if whole else int(64 * rng.choice((1, 1, 0.75, 0.5, 0.25)))] for _ in range(nodes)]
    racks = {
        "levels": ["racks"],
        "groups": [[str(node // 4) for node in range(nodes)]],
        "most_groups": [[rng.choice((0, 0, 1, 2))] for _ in chunks],
    }
    switches = {
        "switches": [str(node // 10) for node in range(nodes)],
        "span": [rng.choice(("anywhere", "anywhere", "switch")) for _ in chunks],
    }
    return NodePlacement(
        ["cores"],
        free,
        chunks,
        [[each] for each in cores],
        weights=[n * each * rng.randint(1, 20) for n, each in zip(chunks, cores)],
        **(switches if kind == "switch" else racks),
    )


def placements(shared: Path, seeds: int) -> Iterator[Case]:
    """Yield the cases of column generation."""
    traces = shared / "traces"
    for case in node_placement.cases(traces, ["busy", "queue", "gangs"], [40, 150, 600], seeds):
        yield case._replace(family=f"{case.family} {len(case.problem.free)}")
        if case.family == "busy":
            least = node_placement.asking_least_fragmentation(case.problem)
            yield Case(f"fragmentation {len(least.free)}", case.parameters, least)
    for case in shared_leaves.cases(traces, ["queue", "fits", "cores", "clos"], seeds):
        if not any(other in case.parameters for other in ("leaves of 32", "95%", "120%")):
            yield case._replace(family=f"{case.family} on leaves")
    for case in switch_groups.cases(traces, seeds):
        yield case._replace(family=f"{case.family} of whole nodes")
    for kind in ("switch", "racks", "whole nodes, racks"):
        for seed in range(1, seeds + 1):
            yield Case("limited", f"{kind}, {seed}", limited(kind, seed))


def windows(shared: Path, seeds: int) -> Iterator[Case]:
    """Yield the cases of branch and bound."""
    with tempfile.TemporaryDirectory() as unpacked:
        for name in ("SMALL", "FK_1", "FK_3"):
            with tarfile.open(shared / "instances" / "mkp" / f"{name}.tar.gz") as archive:
                archive.extractall(unpacked, filter="data")
            for path in sorted((Path(unpacked) / name).glob("*.txt"))[::EVERY]:
                for seed in range(1, seeds + 1):
                    yield Case(name, f"{path.stem}, {seed}", load_snapshot(path))


class Search(NamedTuple):
    """A solver, its strategies, and the cases that it is measured with."""

    solver: Any
    strategies: Strategies
    cases: Callable[[Path, int], Iterator[Case]]


SEARCHES = {
    "column-generation": Search(
        column_generation.ColumnGeneration(), OF_COLUMN_GENERATION, placements
    ),
    "branch-and-bound": Search(BranchAndBound(), OF_BRANCH_AND_BOUND, windows),
}


def answered(
    name: str, case: Case, work: float, without: str = ""
) -> tuple[dict[str, Any], set[str]]:
    """Return the answer as a row, and the strategies that the search came to."""
    solver, strategies, _ = SEARCHES[name]
    came: set[str] = set()

    def noted(strategy: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any) -> Any:
            came.add(strategy)
            return call(*given)

        return wrapped

    problem, seed = case.problem, int(case.parameters.split()[-1])
    with ExitStack() as stack:
        for each, (owner, attribute, instead) in strategies.items():
            if each == without:
                stack.enter_context(patch.object(owner, attribute, instead))
            elif each not in CONSTANTS:
                call = noted(each, getattr(owner, attribute))
                stack.enter_context(patch.object(owner, attribute, call))
        seconds = LONGER * work * solver.seconds_per_work
        result = solver.solve(problem, budget=Budget(seconds=seconds, work=work), seed=seed)
    assert not problem.violations(result.solution), (case.parameters, without)
    weight = result.objective
    if isinstance(problem, NodePlacement):
        weight = problem.measures(result.solution)["weight"]  # with least fragmentation, too
    came |= {each for each, other in CONSTANTS.items() if other in came and each in strategies}
    return {
        "family": case.family,
        "case": case.parameters,
        "jobs": len(problem.weights),
        "without": without,
        "status": result.status.value,
        "objective": result.objective,
        "bound": result.bound,
        "weight": weight,
        "work": f"{result.work:.4f}",
        "seconds": f"{result.seconds:.2f}",
    }, came


def measured(case: Case, name: str, work: float) -> list[dict[str, Any]]:
    """Return the rows of a case: with all strategies, then without one."""
    solver, strategies, _ = SEARCHES[name]
    solver.prepare(case.problem)
    first, came = answered(name, case, work)
    return [first, *(answered(name, case, work, each)[0] for each in strategies if each in came)]


def table(rows: list[dict[str, Any]], strategies: Strategies) -> list[str]:
    """Return the measurements as lines for people."""
    key = ("family", "case", "jobs")
    every = {tuple(row[name] for name in key): row for row in rows if not row["without"]}
    proofs = sum(row["status"] == Status.OPTIMAL.value for row in every.values())
    heads = ("cases", "answers", "", "bounds", "", "proofs", "", "weight")
    lines = [
        f"{len(every)} cases, {proofs} proven with all strategies",
        "",
        f"{'without':<20}" + "".join(f"{head:>9}" for head in heads),
        f"{'':<20}{'':>9}{'worse':>9}{'better':>9}{'worse':>9}{'better':>9}{'lost':>9}{'won':>9}"
        f"{'lost %':>9}",
    ]
    for name in strategies:
        pairs = [
            (every[tuple(row[each] for each in key)], row) for row in rows if row["without"] == name
        ]
        if not pairs:
            continue
        proven = [
            (a["status"] == Status.OPTIMAL.value, b["status"] == Status.OPTIMAL.value)
            for a, b in pairs
        ]
        counts = (
            len(pairs),
            sum(b["objective"] < a["objective"] for a, b in pairs),
            sum(b["objective"] > a["objective"] for a, b in pairs),
            sum(b["bound"] > a["bound"] for a, b in pairs),
            sum(b["bound"] < a["bound"] for a, b in pairs),
            proven.count((True, False)),
            proven.count((False, True)),
        )
        lost = max(100 * (1 - b["weight"] / max(1, a["weight"])) for a, b in pairs)
        lines.append(
            f"{name:<20}" + "".join(f"{count:>9}" for count in counts) + f"{max(0.0, lost):>9.2f}"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("solver", choices=SEARCHES)
    parser.add_argument("--shared", type=Path, default=Path("../shared"), metavar="DIR")
    parser.add_argument("--families", help="families of cases, with commas; all by default")
    parser.add_argument("--seeds", type=int, default=2, help="of each kind of case")
    parser.add_argument("--work", type=float, default=5.0, help="nominal seconds of a solve")
    parser.add_argument("--at-once", type=int, default=2, help="cases that are solved side by side")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    measured_on = circumstances()
    name: str = options.solver
    solver, strategies, cases = SEARCHES[name]
    problems = [*cases(options.shared, options.seeds)]
    if options.families:
        problems = [case for case in problems if case.family in options.families.split(",")]
    work = options.work / solver.seconds_per_work
    with ProcessPoolExecutor(options.at_once) as pool:
        found = pool.map(partial(measured, name=name, work=work), problems)
        rows = [row for rows in shown(found, len(problems)) for row in rows]
    keep(options.output, f"strategies-{name}", measured_on, table(rows, strategies), rows, Times())


if __name__ == "__main__":
    main()
