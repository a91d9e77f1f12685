"""Every search of our own, cut short at every point it can be: what it says must still be true.

The searches are those of the registry, so a new one is attacked as well. For a longer attack, set
`OPTSCHED_ATTACKS` to the number of problems for each search.
"""

import math
import os
import random
import threading
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from optsched import Budget, registry, solve, testing
from optsched.boxes.box import Box, Grid
from optsched.models import (
    BoxPlacement,
    DataPlacement,
    GangPacking,
    IntegerProgram,
    Migration,
    NodePlacement,
    ThresholdAllocation,
    WindowMKP,
)
from optsched.models.integer_program.problem import BinPacking
from optsched.models.threshold_allocation.problem import GOALS
from optsched.solvers.result import Limit, Status
from optsched.testing import check_answer

OWN = [
    name
    for name in registry.solvers
    if registry.solvers[name].exact and registry.solvers[name].models is not None
]

ATTACKS = int(os.environ.get("OPTSCHED_ATTACKS", "4"))

CUTS = 40
"""A search of at most so much work is cut after each unit of it."""

FEW = 4
"""How often another one is cut."""

SMALL_PIECES = {
    "best-first": {
        "window_mkp.best_first.PIECE": (1, 9),
        "window_mkp.best_first.LARGEST_TREE": (1,),
    },
    "bin-search": {"integer_program.FEW": (1, 5)},
    "bottleneck-search": {"threshold_allocation.BATCH": (1, 2, 5)},
    "column-generation": {
        "node_placement._relaxation.FIRST_STEPS": (0, 3),
        "node_placement._relaxation.QUICK_SEARCH": (1,),
        "node_placement._relaxation.SEARCH": (1, 9),
        "node_placement._relaxation.LONGEST_SEARCH": (1, 50),
        "node_placement._relaxation.MOST_NODES": (1,),
        "node_placement._packing.MOST_NODES": (1,),
        "node_placement._packing.FEW_KINDS": (0,),
        "node_placement._pricing.FEW_KINDS": (0,),
        "node_placement.column_generation.MOST_PAIRS": (0,),
    },
    "interval-search": {"data_placement.interval_search.MOST_CELLS": (0, 30)},
    "position-search": {
        "migration.position_search.PATIENCE": (1, 2, 5),
        "migration.position_search.FIRST_ROUND": (0, 1, 5),
        "migration.position_search.DIVING": (0, 10**6),
        "migration.position_search.GROWTH": (2,),
        "migration.subproblems.Family.cheapest.__defaults__": ((1,), (3,)),
    },
    "row-search": {
        "gang_packing.row_search.TURN": (1, 3),
        "gang_packing._row_tree.MOST_KNOWN": (0, 2),
    },
    "switch-groups": {
        "node_placement._groups.PER_ROUND": (1, 2),
        "node_placement._groups.MOST_LISTED": (0, 5),
        "node_placement._groups.MOST_SLACK": (0, 3),
    },
}
"""What a search does between two looks at its budget, and what it may remember: little of both."""


def hard_window(rng):
    """Slots for half of the jobs, which are worth about what they weigh."""
    weights = [rng.randint(5, 60) for _ in range(rng.randint(6, 14))]
    slots = rng.randint(2, 4)
    room = [max(0, sum(weights) // (2 * slots) + rng.randint(-8, 8)) for _ in range(slots)]
    return WindowMKP(weights, room, [weight + rng.randint(0, 9) for weight in weights])


def hard_boxes(rng):
    """Too many jobs for a torus whose routers are in use here and there."""
    torus = (rng.randint(3, 5), rng.randint(2, 4), rng.randint(1, 3))
    routers = [Box(*at, 1, 1, 1) for at in np.ndindex(*torus)]
    running = rng.sample(routers, round(rng.uniform(0.1, 0.35) * len(routers)))
    return BoxPlacement(torus, running, [rng.randint(2, 8) for _ in range(rng.randint(4, 9))])


def hard_migration(rng):
    """A large job that needs most of what small ones leave of a torus, if not all."""
    torus = (rng.randint(3, 4), rng.randint(3, 4), 2)
    grid, running = Grid(torus, (True,) * 3), []
    free, left = set(range(grid.routers)), int(grid.routers * rng.uniform(0.25, 0.45))
    for _ in range(80):
        extent = rng.choice([(1, 1, 1), (1, 2, 1), (2, 1, 1), (1, 1, 2), (2, 2, 1), (1, 2, 2)])
        anchor = (rng.randrange(side) if n < side else 0 for n, side in zip(extent, torus))
        routers = set(grid.cells(box := Box(*anchor, *extent)).tolist())
        if routers <= free and len(free) - len(routers) >= left:
            free -= routers
            running.append(box)
    sizes, elapsed = [box.volume for box in running], [rng.randint(0, 30) for _ in running]
    return Migration(torus, running, sizes, elapsed, rng.randint(7 * left // 10, left))


def hard_rows(rng):
    """Running jobs whose columns are anywhere, and too many waiting ones."""
    columns, rows = rng.choice([8, 12, 16]), rng.randint(2, 4)
    held, running, in_rows = [0] * rows, [], []
    for _ in range(rng.randint(6, 14)):
        row, some = rng.randrange(rows), rng.sample(range(columns), rng.randint(1, columns // 3))
        if mask := sum(1 << column for column in some) & ~held[row]:
            held[row] |= mask
            running.append(mask)
            in_rows.append(row)
    waiting = [rng.randint(2, columns // 2 + 1) for _ in range(rng.randint(6, 12))]
    options = {"admission": rng.choice(["fcfs", "skip"]), "rerow": rng.random() < 0.7}
    return GangPacking(columns, rows, running, in_rows, waiting, **options)


def hard_times(rng):
    """Processors that are held again and again for a minute."""
    nodes, processors, held = rng.randint(2, 6), rng.randint(2, 4), []
    for node in [*range(nodes)] * processors:
        start = rng.choice([0, 0, rng.randint(0, 20)])
        while start < 60:
            end = start + rng.randint(1, 25)
            held.append([node, 1, start, end, rng.randint(0, 4)])
            start = end + rng.choice([0, 0, rng.randint(1, 20)])
    job = (rng.randint(1, nodes * processors), rng.randint(1, 30), [rng.randint(0, 4)])
    threshold, goal = rng.choice([None, 1000, 1100, 1500]), rng.choice(GOALS)
    capacity = [rng.randint(3, 8)]
    return ThresholdAllocation(
        nodes, processors, capacity, held, *job, threshold=threshold, goal=goal
    )


def hard_nodes(rng):
    """Gangs and shares of devices for partly busy nodes of two kinds, and too many of them."""
    nodes, jobs = rng.randint(3, 6), rng.randint(5, 10)
    demand = [[rng.randint(1, 4), rng.randint(0, 4)] for _ in range(jobs)]
    devices = [rng.choices([0, 400, 650, 1000, 1000], k=rng.randint(1, 2)) for _ in range(nodes)]
    return NodePlacement(
        ["cores", "memory"],
        [[rng.randint(3, 12), rng.randint(3, 12)] for _ in range(nodes)],
        rng.choices([1, 1, 1, 2, 3], k=jobs),
        demand,
        weights=[rng.randint(1, 3) * rng.choice([1, 10 + cores]) for cores, _ in demand],
        most_per_node=rng.choices([0, 0, 1], k=jobs),
        devices=devices,
        share=rng.choices([0, 250, 300, 500, 700, 1000, 2000], k=jobs),
        kinds=["a", "b", *rng.choices("ab", k=nodes - 2)],
        allowed=rng.choices([None, None, ["a"]], k=jobs),
        exclusive=rng.sample(range(jobs), rng.randint(0, 1)),
        licences=[4],
        licences_of=[[rng.choice([0, 0, 1, 2])] for _ in range(jobs)],
    )


def hard_files(rng):
    """Jobs that share three files on nodes of which cores become free one by one."""
    nodes, cores, jobs = rng.randint(1, 3), rng.randint(1, 4), rng.randint(4, 6)

    def drawn(most, least=1):
        return [rng.randint(least, most) for _ in range(jobs)]

    load_of, files = drawn(12), drawn(2, -1)
    free = [[rng.choice([0, rng.randint(0, 9)]) for _ in range(cores)] for _ in range(nodes)]
    loads = [0 if file < 0 else load_of[file] for file in files]
    kept = {"kept": rng.choice(["users", "next"]), "load_weight": rng.randint(0, 3)}
    options = {"priorities": drawn(4), "partial": rng.random() < 0.3}
    return DataPlacement(free, drawn(cores), drawn(12), files, loads, **kept, **options)


def hard_leaves(rng):
    """Jobs of whole nodes that fill most of some leaves, and too many of them."""
    room = [rng.randint(1, 6) for _ in range(rng.randint(3, 8))]
    leaves = [leaf for leaf, nodes in enumerate(room) for _ in range(nodes)]
    jobs = [rng.randint(1, 9) for _ in range(rng.randint(4, 12))]
    return NodePlacement(
        ["cores"],
        [[1]] * len(leaves),
        jobs,
        [[1]] * len(jobs),
        weights=[rng.randint(1, 3) * rng.choice([1, size]) for size in jobs],
        then=("switches",),
        switches=[str(leaf) for leaf in leaves],
        blocks=[str(leaf % 2) for leaf in leaves],
        span=[rng.choice(["anywhere", "anywhere", "block", "switch"])] * len(jobs),
    )


def hard_bins(rng):
    """Return items whose sizes sum up to little less than some bins hold."""
    capacity = rng.choice([20, 100, 1000])
    sizes = [rng.randint(capacity // 5, capacity // 2) for _ in range(rng.randint(6, 12))]
    return IntegerProgram(**BinPacking(sizes, capacity, len(sizes) // 2).fields())


def drawn_by(make):
    return st.integers(0, 2**32).map(lambda seed: make(random.Random(seed)))


OF_SOLVER = {"switch-groups": drawn_by(hard_leaves), "bin-search": drawn_by(hard_bins)}
"""Problems of the solvers that refuse most problems of their model."""

HARD = {
    "box-placement": drawn_by(hard_boxes),
    "data-placement": drawn_by(hard_files),
    "gang-packing": drawn_by(hard_rows),
    "migration": drawn_by(hard_migration),
    "node-placement": drawn_by(hard_nodes),
    "threshold-allocation": drawn_by(hard_times),
    "window-mkp": drawn_by(hard_window),
}
"""Small problems that take a search: those of `optsched.testing` are odd, but soon solved."""


def problems(name, model):
    """Return a strategy for the odd problems of a model and, if there are some, the hard ones."""
    if name in OF_SOLVER:
        return OF_SOLVER[name]
    odd = getattr(testing, model.replace("-", "_") + "s")()
    return st.one_of(HARD.get(model, odd), HARD.get(model, odd), odd)


attacks = settings(
    max_examples=ATTACKS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # no shrinking: it would take hours
)


def optimum_of(solver, problem):
    """Return the optimum that a search proves without a limit, once CP-SAT does not object."""
    whole = check_answer(solver, problem, None, Budget())
    assert whole.limit is None
    other = solve(problem, "cp-sat", budget=Budget(work=0.2))
    if other.objective is not None:
        check_answer(solver, problem, None, Budget(), hint=other.solution)
    if whole.status is Status.INFEASIBLE:
        assert other.status in (Status.INFEASIBLE, Status.NO_SOLUTION)
    elif other.bound is not None:
        sign = 1 if problem.sense == "max" else -1
        assert sign * whole.objective <= sign * other.bound
    return whole


def works(rng, solver, whole):
    """Return limits of work that cut a search at all points, or at some."""
    work = whole.work
    if 0 < work <= CUTS and work == int(work):
        return [1e-3, *range(1, int(work) + 1)]
    return [rng.uniform(0, work or solver.default_work) for _ in range(FEW)]


class Clock:
    """Stands still until it is looked at once too often; then all time is over, or it raises."""

    def __init__(self, looks=math.inf, error=None):
        self.looks = 0
        self._last = looks
        self._error = error

    def __call__(self):
        # an interrupt comes to the main thread
        if threading.current_thread() is threading.main_thread():
            self.looks += 1
            if self.looks > self._last and self._error is not None:
                self._last = math.inf
                raise self._error
        return 0.0 if self.looks <= self._last else 1e9


@contextmanager
def small_pieces(rng, name):
    """Let a search do little at once, and remember little."""
    with ExitStack() as stack:
        for constant, values in SMALL_PIECES.get(name, {}).items():
            if rng.random() < 0.5:
                stack.enter_context(patch(f"optsched.solvers.{constant}", rng.choice(values)))
        yield


@pytest.mark.parametrize("name", OWN)
@attacks
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_what_a_search_that_is_cut_short_says_is_true_and_the_same_again(
    solver_named, name, data, seed
):
    rng, solver = random.Random(seed), solver_named(name)
    problem = data.draw(problems(name, *solver.models))
    whole = optimum_of(solver, problem)
    hints = [None, None, whole.solution]

    def cut(budget):
        answer = check_answer(solver, problem, whole.objective, budget, hint=rng.choice(hints))
        if whole.status is Status.INFEASIBLE:
            assert answer.status in (Status.INFEASIBLE, Status.NO_SOLUTION)
        hints.append(answer.solution)
        return answer

    for work in works(rng, solver, whole):
        cut(Budget(work=work))
        with small_pieces(rng, name):
            cut(Budget(work=work))
    with small_pieces(rng, name):
        answer = cut(Budget())
        assert answer.limit in (None, Limit.MEMORY)
    with patch("time.perf_counter", Clock()) as clock:
        cut(Budget(seconds=1e3))
    for looks in {*range(3), *(rng.randint(0, clock.looks) for _ in range(FEW))}:
        with patch("time.perf_counter", Clock(looks)), small_pieces(rng, name):
            cut(Budget(seconds=1e3))
    one, other = (solve(problem, solver, budget=Budget(work=work)) for _ in range(2))
    for field in ("status", "objective", "bound", "limit", "work"):
        assert getattr(one, field) == getattr(other, field)
    if one.solution is not None:
        assert problem.solution_to_json(one.solution) == problem.solution_to_json(other.solution)
    ample = [cut(Budget(work=2 * whole.work + solver.default_work)) for _ in range(2)]
    for answer in ample:
        assert (answer.status, answer.objective) == (whole.status, whole.objective)


class EnoughError(Exception):
    """What a caller raises who has seen enough."""


@pytest.mark.parametrize("name", OWN)
@attacks
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_what_stops_a_search_from_outside_gets_through(solver_named, name, data, seed):
    rng, solver = random.Random(seed), solver_named(name)
    problem = data.draw(problems(name, *solver.models))
    with patch("time.perf_counter", Clock()) as clock:
        whole = solve(problem, solver)
    interrupting = Clock(rng.randrange(clock.looks), KeyboardInterrupt())
    with patch("time.perf_counter", interrupting), pytest.raises(KeyboardInterrupt):
        solve(problem, solver)
    if whole.incumbents:
        last = rng.randint(1, len(whole.incumbents))
        seen = []

        def see(incumbent):
            seen.append(incumbent)
            if len(seen) == last:
                raise EnoughError

        with pytest.raises(EnoughError):
            solve(problem, solver, on_incumbent=see)
    again = solve(problem, solver)
    assert (again.status, again.objective) == (whole.status, whole.objective)
