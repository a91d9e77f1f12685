"""GREEDY, with and without exchanges: as stated, feasible, and as the paper's example says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import Budget, registry
from optsched.models import WindowMKP

from . import reference
from .conftest import windows

NAMES = ("greedy", "greedy-exchange")


def answer(name, window, **kwargs):
    return registry.solvers[name]().solve(window, budget=Budget(), **kwargs)


def lists(window):
    return window.weights.tolist(), window.profits.tolist(), window.capacities.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_the_paper(example, name):
    assert answer(name, example).solution == (1, 2, 0, -1, 2)


large = st.builds(
    WindowMKP, st.lists(st.integers(1, 40), max_size=40), st.lists(st.integers(0, 90), max_size=8)
)


def check_stated(name, window):
    result = answer(name, window)
    stated = getattr(reference, name.replace("-", "_"))(*lists(window))
    assert list(result.solution) == stated
    assert window.violations(stated) == []
    assert (result.objective, result.bound) == (window.objective(stated), None)


@given(window=windows(jobs=30, slots=8) | large)
def test_greedy_is_as_stated(window):
    check_stated("greedy", window)


@given(window=windows(jobs=30, slots=8) | large)
def test_greedy_exchange_is_as_stated(window):
    check_stated("greedy-exchange", window)


@pytest.mark.parametrize("name", NAMES)
def test_a_better_hint_is_kept(name):
    window = WindowMKP(weights=[8, 9, 5, 2, 7], capacities=[9, 12])
    best = (-1, 0, 1, -1, 1)
    assert window.objective(best) == 21
    assert answer(name, window).objective < 21
    assert answer(name, window, hint=best).solution == best
