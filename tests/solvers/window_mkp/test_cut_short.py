"""The search with strong bounds, cut short at random points: no answer is wrong at any of them."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from unittest.mock import patch

import numpy as np
import pytest

from optsched.models import WindowMKP
from optsched.models.snapshot_file import load_snapshot
from optsched.solvers.window_mkp._lagrangian import strategy
from optsched.solvers.window_mkp._lagrangian.column_search import ColumnSearch
from optsched.solvers.window_mkp._lagrangian.knapsacks import propagate
from optsched.solvers.window_mkp._lagrangian.strategy import CardinalitySearch
from optsched.solvers.window_mkp._lagrangian.tree_search import initial_multipliers, relax
from optsched.solvers.window_mkp._reduction import reduce
from optsched.solvers.window_mkp.branch_and_bound import depth_first
from optsched.solvers.window_mkp.greedy import greedy

from .conftest import columns_of
from .test_literature import INSTANCES, known, unpacked  # noqa: F401

MANY = int(os.environ.get("OPTSCHED_ATTACKS", "1"))
"""Times the cases of each test; more for a long attack."""

ALLOWANCES = {
    "tiny": lambda rng: rng.choice([0.0, 0.1, 1.0, 5.0, 50.0, 500.0]),
    "mixed": lambda rng: rng.choice([0.0, 1.0, 100.0, 1e4, 1e5, math.inf]),
    "now and then none": lambda rng: 0.0 if rng.random() < 0.05 else 2e4,
}


def drawn(rng, jobs, slots):
    """Draw a window with profits of any kind."""
    weights = rng.integers(1, rng.choice([10, 200]), jobs)
    profits = (
        rng.integers(1, 200, jobs),
        weights + rng.integers(0, 20, jobs),
        weights + 50,
        weights,
        10**9 * weights + rng.integers(0, 3, jobs),
    )[rng.integers(5)]
    largest = max(2, int(weights.sum() * rng.uniform(0.3, 1.2) / slots) + 2)
    return WindowMKP(weights, rng.integers(1, largest, slots), profits)


def proven(window):
    """Return the optimum by the plain search; None if that takes too many nodes."""
    start = np.full(len(window.weights), -1)
    value, bound, _ = depth_first(
        window.weights, window.profits, window.capacities, start, 0, 300_000
    )
    return value if value == bound else None


def drawn_and_proven(rng, jobs, slots):
    """Draw windows until one has a placement, and an optimum that is soon proven."""
    while True:
        window = drawn(rng, rng.integers(*jobs), rng.integers(*slots))
        optimum = proven(window)
        if optimum:
            return window, optimum


def check(window, search, low, high):
    placement = search.placement.tolist()
    assert window.violations(placement) == []
    assert window.objective(placement) == search.best
    assert search.best <= high
    assert search.bound >= low


@pytest.mark.parametrize("seed", range(40 * MANY))
@pytest.mark.parametrize("kind", ALLOWANCES)
def test_small_windows_against_the_plain_search(kind, seed):
    rng = np.random.default_rng([seed, [*ALLOWANCES].index(kind)])
    window, optimum = drawn_and_proven(rng, (2, 15), (1, 6))
    search = CardinalitySearch(
        window.weights, window.profits, window.capacities, np.full(len(window.weights), -1), seed
    )
    with (
        patch.object(strategy, "LEAD_OF_MAIN", rng.choice([0, 100, 10**6])),
        patch.object(strategy, "HEAD_START", rng.choice([0, 1000, 1 << 25])),
        patch.object(strategy, "FEW_COLUMNS", int(rng.choice([1, 16, 512]))),
    ):
        search.allowance = ALLOWANCES[kind](rng)
        for _ in search.run():
            check(window, search, optimum, optimum)
            search.allowance = ALLOWANCES[kind](rng)
    assert search.best == search.bound == optimum


@pytest.mark.skipif(not INSTANCES.is_dir(), reason="needs ../shared/instances/mkp")
@pytest.mark.parametrize("seed", range(8 * MANY))
@pytest.mark.parametrize("kind", ALLOWANCES)
def test_instances_of_the_literature_against_their_known_values(kind, seed, unpacked):  # noqa: F811
    rng = np.random.default_rng([seed, [*ALLOWANCES].index(kind)])
    path = rng.choice(sorted(path for path in unpacked.glob("*/*.txt") if path.stem in known()))
    window, row = load_snapshot(path), known()[path.stem]
    low, high = float(row["lower_bound"] or 0), float(row["upper_bound"] or math.inf)
    start = greedy(window.weights, window.profits, window.capacities)
    search = CardinalitySearch(window.weights, window.profits, window.capacities, start, seed)
    search.allowance = ALLOWANCES[kind](rng)
    pieces = search.run()
    while search.work < 3e6 and next(pieces, "done") != "done":
        check(window, search, low, high)
        search.allowance = min(ALLOWANCES[kind](rng), 1e5)


@pytest.mark.parametrize("seed", range(60 * MANY))
def test_a_relaxation_that_is_cut_short_leaves_settled_choices(seed):
    rng = np.random.default_rng(seed)
    window, optimum = drawn_and_proven(rng, (6, 15), (2, 6))
    *_, weights, profits, capacities, unit = reduce(
        window.weights, window.profits, window.capacities
    )
    domain = np.ones((len(capacities) + 1, len(weights)), np.bool_)
    domain[:-1] = weights[None, :] <= capacities[:, None]
    cut = 1024 * (optimum // unit - rng.integers(1, 4))
    best, placement = np.array([-1]), np.full(len(weights), -1)
    bound, _ = relax(
        domain, initial_multipliers(weights, 1024 * profits, capacities), weights, 1024 * profits,
        capacities, True, 1024, cut, 60, int(rng.choice([0, 100, 10_000, 100_000])), np.ones(1),
        best, placement, np.empty(domain.shape, np.int64),
    )  # fmt: skip
    if bound <= max(cut, best[0]):
        return
    settled = domain.copy()
    residual, where = np.empty_like(capacities), np.empty_like(weights)
    assert propagate(settled, weights, 1024 * profits, capacities, True, residual, where)
    assert np.array_equal(settled, domain)


def priced(rng, jobs, slots, unit):
    """Draw the arguments of a search over columns, and the optimum in units."""
    weights = rng.integers(1, 30, jobs)
    profits = (
        rng.integers(1, 30, jobs) if rng.random() < 0.5 else weights + rng.integers(0, 3, jobs)
    )
    order = np.argsort(-profits / weights, kind="stable")
    weights, profits = weights[order], profits[order]
    largest = max(2, int(weights.sum() * rng.uniform(0.3, 1.1) / slots) + 1)
    residual = np.sort(rng.integers(1, largest, slots))
    shares = rng.uniform(0, 1, jobs if rng.random() < 0.7 else None)
    multipliers = (profits * unit * shares).astype(np.int64)
    return columns_of(weights, profits, residual, multipliers, unit)


def search_columns(arguments, unit, target, cells):
    """Search to the end in pieces of so many cells; return the profit, checked."""
    search = ColumnSearch(**arguments, target=target, unit=unit, most=1 << 12)
    while not search.done:
        search.run(target, cells)
        target = max(target, search.profit + 1)
    if search.profit >= 0:
        window = WindowMKP(arguments["weights"], arguments["residual"], arguments["profits"])
        assert window.violations(search.placement.tolist()) == []
        assert window.objective(search.placement.tolist()) == search.profit
    return search.profit


@pytest.mark.parametrize(
    ("weights", "profits", "residual", "multipliers", "unit", "optimum"),
    [
        ([8, 9, 23, 15, 12], [10, 11, 25, 15, 12], [2, 5, 10], [9, 10, 23, 13, 11], 1, 11),
        (
            [10, 11, 12, 19, 22, 23, 24, 12, 18],
            [12, 13, 14, 21, 24, 25, 25, 12, 18],
            [10, 25, 48],
            [6568, 10975, 6055, 1425, 1971, 17356, 10147, 12024, 157],
            1024,
            90,
        ),
    ],
)
def test_the_last_column_of_every_slot_is_a_placement(
    weights, profits, residual, multipliers, unit, optimum
):
    arguments = columns_of(*map(np.array, (weights, profits, residual, multipliers)), unit)
    assert search_columns(arguments, unit, unit * optimum, 0) == unit * optimum


@pytest.mark.parametrize("seed", range(MANY))
def test_searches_over_columns_in_pieces_against_the_plain_search(seed):
    rng = np.random.default_rng(seed)
    for _ in range(500):
        unit = int(rng.choice([1, 16, 1024]))
        arguments = priced(rng, rng.integers(2, 12), rng.integers(1, 5), unit)
        optimum = proven(
            WindowMKP(arguments["weights"], arguments["residual"], arguments["profits"] // unit)
        )
        below = int(rng.integers(-1, 4))
        target = max(0, unit * (optimum - below))
        found = search_columns(arguments, unit, target, int(rng.choice([0, 1, 10, 100, 10**9])))
        assert found == (-1 if below < 0 else unit * optimum)


UNFINISHED = """
import json, sys
import numpy as np
from optsched.solvers.window_mkp._lagrangian import knapsacks
from optsched.solvers.window_mkp._lagrangian.column_search import ColumnSearch

knapsacks.CORE = knapsacks.STATES = 1
for arguments, target, optimum in json.load(sys.stdin):
    arrays = {k: np.array(v) if isinstance(v, list) else v for k, v in arguments.items()}
    search = ColumnSearch(**arrays, target=target, unit=16, most=1 << 12)
    while not search.done:
        search.run(target, 0)
        target = max(target, search.profit + 1)
    held = int(arrays["profits"][search.placement >= 0].sum())
    assert (held, search.profit) == (optimum, optimum), (arguments, target)
"""


def test_knapsacks_left_before_their_optimum_leave_the_best_placement():
    rng = np.random.default_rng(1)
    cases = []
    while len(cases) < 150 * MANY:
        arguments = priced(rng, rng.integers(4, 9), rng.integers(2, 4), 16)
        optimum = proven(
            WindowMKP(arguments["weights"], arguments["residual"], arguments["profits"])
        )
        plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
        cases.append((plain, max(0, optimum - 16 * int(rng.integers(0, 6))), optimum))
    # constants are part of a compiled kernel, so the plain Python code runs
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "ignore", "-c", UNFINISHED]
    subprocess.run(command, input=json.dumps(cases), env=environment, text=True, check=True)
