"""GREEDY, with and without exchanges: as stated, feasible, and as the paper's example says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import Budget, registry
from optsched.models import WindowMKP

from . import reference
from .conftest import optimum_of, windows

NAMES = ("greedy", "greedy-exchange")


def answer(name, window, **kwargs):
    return registry.solvers[name]().solve(window, budget=Budget(), **kwargs)


def lists(window):
    return window.weights.tolist(), window.profits.tolist(), window.capacities.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_the_paper(example, name):
    assert answer(name, example).solution == (1, 2, 0, -1, 2)


@pytest.mark.parametrize("name", NAMES)
@given(window=windows())
def test_answers_are_feasible_and_no_better_than_the_optimum(name, window):
    result = answer(name, window)
    assert window.violations(result.solution) == []
    assert result.objective == window.objective(result.solution) <= optimum_of(window)
    assert result.bound is None


large = st.builds(
    WindowMKP, st.lists(st.integers(1, 40), max_size=40), st.lists(st.integers(0, 90), max_size=8)
)


@given(window=windows(jobs=30, slots=8) | large)
def test_greedy_is_as_stated(window):
    assert list(answer("greedy", window).solution) == reference.greedy(*lists(window))


@given(window=windows(jobs=30, slots=8) | large)
def test_greedy_exchange_is_as_stated(window):
    stated = reference.greedy_exchange(*lists(window))
    assert list(answer("greedy-exchange", window).solution) == stated


@given(window=windows(jobs=30, slots=8) | large)
def test_exchanges_never_lose(window):
    assert answer("greedy-exchange", window).objective >= answer("greedy", window).objective


def test_two_jobs_change_places_so_that_a_third_fits():
    # greedy puts 5 into 7 and 4, 3 into 8; 4 beside the 3 that waits fills the first slot
    window = WindowMKP(weights=[5, 4, 3, 3], capacities=[7, 8])
    assert answer("greedy", window).objective == 12
    assert answer("greedy-exchange", window).objective == 15


def test_a_job_makes_way_for_more_profit():
    window = WindowMKP(weights=[3, 4], capacities=[4], profits=[4, 5])
    assert answer("greedy", window).objective == 4
    assert answer("greedy-exchange", window).objective == 5


@pytest.mark.parametrize("name", NAMES)
def test_a_better_hint_is_kept(name):
    window = WindowMKP(weights=[8, 9, 5, 2, 7], capacities=[9, 12])
    best = (-1, 0, 1, -1, 1)
    assert window.objective(best) == 21
    assert answer(name, window).objective < 21
    assert answer(name, window, hint=best).solution == best
