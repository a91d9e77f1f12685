"""The sets of jobs that slots may hold, and the search over them, against brute force."""

import json
import os
import subprocess
import sys
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from optsched import solve
from optsched.models import WindowMKP
from optsched.solvers.window_mkp._lagrangian import column_search
from optsched.solvers.window_mkp._lagrangian.column_node import TOO_MANY, Columns, list_columns
from optsched.solvers.window_mkp._lagrangian.column_search import MOST_JOBS, ColumnSearch

from .conftest import columns_of, optimum_of, windows

UNIT = 16
MOST = 1 << 14


@st.composite
def priced(draw):
    """Draw a window of some jobs and slots, and the arguments of a search with multipliers."""
    window = draw(windows(jobs=6))
    jobs = len(window.weights)
    assume(jobs and len(window.capacities))
    multipliers = UNIT * np.array(draw(st.lists(st.integers(0, 20), min_size=jobs, max_size=jobs)))
    arrays = (window.weights.copy(), window.profits, window.capacities.copy())
    return window, columns_of(*arrays, multipliers, UNIT)


def finish(search, target, cells):
    """Search on until all is decided, always for more than was found."""
    while not search.done:
        search.run(target if search.profit < 0 else search.profit + UNIT, cells)


def check(window, search, optimum):
    placement = search.placement.tolist()
    assert window.violations(placement) == []
    assert UNIT * window.objective(placement) == search.profit == UNIT * optimum


def test_too_many_sets_are_not_listed():
    ones = np.ones(MOST.bit_length() + 1, np.int64)
    window = columns_of(ones, ones, np.array([len(ones)]), 0 * ones, UNIT)
    columns = Columns(*(np.empty(size, np.int64) for size in (100, 101, 100)))
    assert list_columns(**window, target=0, scale=1, columns=columns)[0] == TOO_MANY
    assert not ColumnSearch(**window, target=0, unit=UNIT, most=MOST).listed


@pytest.mark.parametrize("head_start", [column_search.HEAD_START, 0, -1])
@settings(max_examples=40)
@given(priced(), st.integers(0, 3), st.booleans())
def test_the_search_finds_the_optimum_or_shows_that_there_is_none(
    head_start, case, below, in_pieces
):
    window, arguments = case
    optimum = optimum_of(window)
    for aim in (optimum - below, optimum + 1):
        target = UNIT * max(0, aim)
        with patch.object(column_search, "HEAD_START", head_start):
            search = ColumnSearch(**arguments, target=target, unit=UNIT, most=MOST)
        assert search.listed
        finish(search, target, 1 if in_pieces else 10**9)
        search.run(target, 1)  # of no effect when all is done, from the start perhaps
        if aim > optimum:
            assert search.profit == -1
        else:
            check(window, search, optimum)


@settings(max_examples=40)
@given(priced())
def test_a_search_slot_by_slot_alone_finds_the_optimum(case):
    window, arguments = case
    by_slot = ColumnSearch(**arguments, target=0, unit=UNIT, most=MOST).by_slot()
    finish(by_slot, 0, 1)
    check(window, by_slot, optimum_of(window))


@pytest.mark.parametrize("jobs", [MOST_JOBS, MOST_JOBS + 1])
def test_sets_of_few_jobs_are_searched_slot_by_slot(jobs):
    weights = np.full(jobs, 2)
    window = columns_of(
        weights, weights + np.arange(jobs) % 2, np.array([3, 2]), UNIT * weights, UNIT
    )
    by_slot = ColumnSearch(**window, target=0, unit=UNIT, most=MOST).by_slot()
    assert by_slot.possible == (jobs == MOST_JOBS)
    if by_slot.possible:
        finish(by_slot, 0, 10**6)
        assert by_slot.profit == 6 * UNIT


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
    rng, cases = np.random.default_rng(1), []
    for _ in range(150):
        weights, profits = rng.integers(1, 30, (2, rng.integers(4, 9)))
        capacities = rng.integers(1, max(2, weights.sum() // 2), rng.integers(2, 4))
        multipliers = (UNIT * profits * rng.uniform(0, 1, len(weights))).astype(np.int64)
        arguments = columns_of(weights, profits, capacities, multipliers, UNIT)
        optimum = UNIT * solve(WindowMKP(weights, capacities, profits), "depth-first").objective
        plain = {name: array.tolist() for name, array in arguments.items()}
        cases.append((plain, max(0, optimum - UNIT * int(rng.integers(0, 6))), optimum))
    # constants are part of a compiled kernel, so the plain Python code runs
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "ignore", "-c", UNFINISHED]
    subprocess.run(command, input=json.dumps(cases), env=environment, text=True, check=True)
