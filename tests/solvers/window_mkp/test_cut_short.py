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
from optsched.solvers.window_mkp._lagrangian import strategy
from optsched.solvers.window_mkp._lagrangian.strategy import CardinalitySearch
from optsched.solvers.window_mkp.branch_and_bound import depth_first

from .conftest import columns_of

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


UNFINISHED = """
import json, sys
import numpy as np
from optsched.solvers.window_mkp._lagrangian import knapsacks
from optsched.solvers.window_mkp._lagrangian.column_search import ColumnSearch

knapsacks.CORE = knapsacks.STATES = 1
for arguments, target, optimum in json.load(sys.stdin):
    arrays = {name: np.array(array) for name, array in arguments.items()}
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
        window = drawn(rng, rng.integers(4, 9), rng.integers(2, 4))
        arrays = (window.weights, window.profits, window.capacities)
        multipliers = (16 * window.profits * rng.uniform(0, 1, len(window.weights))).astype(int)
        arguments = columns_of(*arrays, multipliers, 16)
        optimum = 16 * proven(window)
        plain = {name: array.tolist() for name, array in arguments.items()}
        cases.append((plain, max(0, optimum - 16 * int(rng.integers(0, 6))), optimum))
    # constants are part of a compiled kernel, so the plain Python code runs
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "ignore", "-c", UNFINISHED]
    subprocess.run(command, input=json.dumps(cases), env=environment, text=True, check=True)
