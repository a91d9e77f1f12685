"""GREEDY, with and without exchanges: as stated, feasible, and as the paper's example says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import Budget, registry
from optsched.models import WindowMKP

from . import reference
from .conftest import windows


def answer(name, window, **kwargs):
    return registry.solvers[name]().solve(window, budget=Budget(), **kwargs)


@pytest.mark.parametrize("name", ["greedy", "greedy-exchange"])
def test_the_example_of_the_paper(name):
    """Section III.C of Yang et al. 2014."""
    window = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
    assert answer(name, window).solution == (1, 2, 0, -1, 2)


large = st.builds(
    WindowMKP, st.lists(st.integers(1, 40), max_size=40), st.lists(st.integers(0, 90), max_size=8)
)


def check(result, window, rule):
    arrays = window.weights, window.profits, window.capacities
    stated = rule(*(array.tolist() for array in arrays))
    assert list(result.solution) == stated
    assert window.violations(stated) == []
    assert (result.objective, result.bound) == (window.objective(stated), None)


@given(window=windows(jobs=30, slots=8) | large)
def test_greedy_is_as_stated(window):
    check(answer("greedy", window), window, reference.greedy)


@given(window=windows(jobs=30, slots=8) | large)
def test_greedy_exchange_is_as_stated(window):
    check(answer("greedy-exchange", window), window, reference.greedy_exchange)


def test_heuristics_keep_a_better_hint():
    window = WindowMKP(weights=[8, 9, 5, 2, 7], capacities=[9, 12])
    best = (-1, 0, 1, -1, 1)
    assert answer("greedy", window).objective < window.objective(best) == 21
    assert answer("greedy", window, hint=best).solution == best
