"""Every search of our own, cut short at every point it can be: what it says must still be true.

The searches are those of the registry, so a new one is attacked as well. For a longer attack, set
`OPTSCHED_ATTACKS` to the number of problems for each search.
"""

from __future__ import annotations

import math
import os
import random
import threading
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from optsched import Budget, registry, solve, testing
from optsched.models import IntegerProgram, NodePlacement, WindowMKP
from optsched.models.integer_program.problem import BinPacking
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
        span=rng.choices(["anywhere", "anywhere", "block", "switch"], k=len(jobs)),
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
    "box-placement": testing.box_placements(max_running=6, max_waiting=8),
    "data-placement": testing.data_placements(max_jobs=6, max_cores=4, longest=12),
    "gang-packing": testing.gang_packings(max_running=12, max_waiting=10, max_rows=4),
    "migration": testing.migrations(max_running=12),
    "node-placement": testing.node_placements(max_jobs=8, max_nodes=5),
    "threshold-allocation": testing.threshold_allocations(5, 4, max_held=16, longest=30),
    "window-mkp": drawn_by(hard_window),
}
"""Problems that take a search: those of `optsched.testing` are odd, but mostly soon solved."""


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
