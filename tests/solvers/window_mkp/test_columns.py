"""The sets of jobs that slots may hold, and the search over them, against brute force."""

from __future__ import annotations

import itertools
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from optsched.solvers.window_mkp._lagrangian import column_search
from optsched.solvers.window_mkp._lagrangian.column_node import TOO_MANY, Columns, list_columns
from optsched.solvers.window_mkp._lagrangian.column_search import MOST_JOBS, ColumnSearch

from .conftest import optimum_of, windows

UNIT = 16
MOST = 1 << 14


def space(columns):
    return Columns(
        np.empty(columns, np.int64), np.empty(columns + 1, np.int64), np.empty(columns, np.int64)
    )


@st.composite
def priced(draw):
    """Draw a window of some jobs and slots, and a multiplier for each job."""
    window = draw(windows(jobs=6))
    jobs = len(window.weights)
    assume(jobs and len(window.capacities))
    multipliers = draw(st.lists(st.integers(0, 20), min_size=jobs, max_size=jobs))
    return window, UNIT * np.array(multipliers)


def arguments(window, multipliers):
    return {
        "weights": window.weights.copy(),
        "profits": UNIT * window.profits,
        "residual": window.capacities.copy(),
        "allowed": window.weights[None, :] <= window.capacities[:, None],
        "must": np.zeros(len(window.weights), np.bool_),
        "multipliers": multipliers,
    }


@given(priced(), st.integers(1, 3))
def test_no_set_of_a_good_placement_is_missing(case, scale):
    window, multipliers = case
    optimum = optimum_of(window)
    columns = space(4096)
    count, _ = list_columns(
        **arguments(window, multipliers), target=UNIT * optimum, scale=scale, columns=columns
    )
    listed = {
        (int(columns.slot[k]), tuple(columns.jobs[columns.first[k] : columns.first[k + 1]]))
        for k in range(count)
    }
    assert len(listed) == count
    slots = range(len(window.capacities))
    for placement in itertools.product((-1, *slots), repeat=len(window.weights)):
        if not window.violations(placement) and window.objective(placement) == optimum:
            held = {s: tuple(j for j, at in enumerate(placement) if at == s) for s in slots}
            assert listed >= set(held.items())
    for slot, jobs in listed:
        assert window.weights[list(jobs)].sum() <= window.capacities[slot]


def finish(search, target, cells):
    """Search on until all is decided, always for more than was found."""
    while not search.done:
        search.run(target if search.profit < 0 else search.profit + UNIT, cells)


def test_too_many_sets_are_not_listed():
    window = arguments_of_many()
    assert list_columns(**window, target=0, scale=1, columns=space(100))[0] == TOO_MANY
    assert not ColumnSearch(**window, target=0, unit=UNIT, most=MOST).listed


def arguments_of_many():
    jobs = MOST.bit_length() + 1
    weights = np.ones(jobs, np.int64)
    return {
        "weights": weights,
        "profits": UNIT * weights,
        "residual": np.array([jobs]),
        "allowed": np.ones((1, jobs), np.bool_),
        "must": np.zeros(jobs, np.bool_),
        "multipliers": np.zeros(jobs, np.int64),
    }


@pytest.mark.parametrize("head_start", [column_search.HEAD_START, 0, -1])
@settings(max_examples=40)
@given(priced(), st.integers(0, 3), st.booleans())
def test_the_search_finds_the_optimum_or_shows_that_there_is_none(
    head_start, case, below, in_pieces
):
    window, multipliers = case
    optimum = optimum_of(window)
    for aim in (optimum - below, optimum + 1):
        target = UNIT * max(0, aim)
        with patch.object(column_search, "HEAD_START", head_start):
            search = ColumnSearch(
                **arguments(window, multipliers), target=target, unit=UNIT, most=MOST
            )
        assert search.listed
        finish(search, target, 1 if in_pieces else 10**9)
        search.run(target, 1)  # of no effect when all is done, from the start perhaps
        if aim > optimum:
            assert search.profit == -1
        else:
            assert search.profit == UNIT * optimum
            assert window.violations(search.placement.tolist()) == []
            assert UNIT * window.objective(search.placement.tolist()) == search.profit


@pytest.mark.parametrize("head_start", [column_search.HEAD_START, -1])
@given(priced(), st.data())
def test_jobs_that_must_be_placed_are(head_start, case, data):
    window, multipliers = case
    jobs = len(window.weights)
    must = np.array(data.draw(st.lists(st.booleans(), min_size=jobs, max_size=jobs)))
    best = max(
        (
            window.objective(placement)
            for placement in itertools.product(
                range(-1, len(window.capacities)), repeat=len(window.weights)
            )
            if not window.violations(placement) and (np.array(placement)[must] >= 0).all()
        ),
        default=None,
    )
    given_window = arguments(window, multipliers) | {"must": must}
    with patch.object(column_search, "HEAD_START", head_start):
        search = ColumnSearch(**given_window, target=0, unit=UNIT, most=MOST)
    finish(search, 0, 10**9)
    assert search.profit == (-1 if best is None else UNIT * best)


@settings(max_examples=40)
@given(priced())
def test_a_search_slot_by_slot_alone_finds_the_optimum(case):
    window, multipliers = case
    search = ColumnSearch(**arguments(window, multipliers), target=0, unit=UNIT, most=MOST)
    by_slot = search.by_slot()
    while not by_slot.done:
        by_slot.run(by_slot.profit + UNIT if by_slot.profit >= 0 else 0, 1)
    assert by_slot.profit == UNIT * optimum_of(window)
    assert window.violations(by_slot.placement.tolist()) == []
    assert UNIT * window.objective(by_slot.placement.tolist()) == by_slot.profit


@pytest.mark.parametrize("jobs", [MOST_JOBS, MOST_JOBS + 1])
def test_sets_of_few_jobs_are_searched_slot_by_slot(jobs):
    weights = np.full(jobs, 2)
    window = {
        "weights": weights,
        "profits": UNIT * (weights + np.arange(jobs) % 2),
        "residual": np.array([3, 2]),
        "allowed": np.ones((2, jobs), np.bool_),
        "must": np.zeros(jobs, np.bool_),
        "multipliers": UNIT * weights,
    }
    by_slot = ColumnSearch(**window, target=0, unit=UNIT, most=MOST).by_slot()
    assert by_slot.possible == (jobs == MOST_JOBS)
    if by_slot.possible:
        while not by_slot.done:
            by_slot.run(by_slot.profit + UNIT, 10**6)
        assert by_slot.profit == 6 * UNIT
