from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import load_snapshot
from optsched.errors import InputError
from optsched.models import WindowMKP, window_mkp
from optsched.testing import brute_force, window_mkps

EXAMPLE = load_snapshot("window-mkp/yang-2014-example")
"""Section III.C of Yang et al. 2014."""


def test_the_worked_example_of_the_paper():
    placed = (1, 2, 0, -1, 2)
    assert EXAMPLE.objective(placed) == 15
    assert EXAMPLE.violations(placed) == []
    assert EXAMPLE.describe(placed) == [
        ("slot 1-3 (3)", "C (3)"),
        ("slot 6-11 (6)", "A (6)"),
        ("slot 15-20 (6)", "B (4) E (2)"),
        ("not placed", "D (1)"),
    ]


def test_what_a_window_leaves_to_choose():
    assert WindowMKP([3], [5]).choice(3) == WindowMKP([3], [5]).choice(0) == "one job"
    assert WindowMKP([3, 2], [5]).choice(5) == "all placed"
    assert WindowMKP([3, 4], [5]).choice(4) == "contested"


@settings(max_examples=60, deadline=None)
@given(window_mkps(max_jobs=4, max_slots=2))
def test_the_optimum_by_the_equations_of_the_paper(problem):
    """Equations (1) to (4), summed over every 0-1 matrix x_ij."""
    weights, profits, capacities = (
        array.tolist() for array in (problem.weights, problem.profits, problem.capacities)
    )
    n, m = len(weights), len(capacities)
    best = 0
    for bits in product((0, 1), repeat=n * m):
        x = [bits[i * n : (i + 1) * n] for i in range(m)]
        within = all(sum(w * a for w, a in zip(weights, x[i])) <= capacities[i] for i in range(m))
        once = all(sum(x[i][j] for i in range(m)) <= 1 for j in range(n))
        if within and once:
            best = max(best, sum(profits[j] * x[i][j] for i in range(m) for j in range(n)))
    assert brute_force(problem) == best


@pytest.mark.parametrize(
    ("solution", "expected"),
    [
        ((1, 1, 0, -1, 2), ["capacity: slot 2 of size 6 holds jobs of size 10"]),
        ((-1,) * 4, ["once: 4 entries for 5 jobs"]),
        ((-1, -1, -1, -1, 9), ["slot: job 5 is put into slot 10"]),
        ((-7, -1, -1, -1, -1), ["slot: job 1 is put into slot -6"]),
    ],
)
def test_violations_are_named(solution, expected):
    assert [*map(str, EXAMPLE.violations(solution))] == expected


def test_arrays_and_sequences_are_taken_and_kept_apart_from_the_callers():
    weights = np.array([3, 2], dtype=np.int32)
    slots = ("a", "b", "c", np.int64(1))
    problem = WindowMKP(weights, range(4), jobs=np.array([7, 8]), slots=slots)
    weights[0] = 99
    assert problem.weights.tolist() == [3, 2]
    assert problem.to_json()["slots"] == ["a", "b", "c", 1]
    with pytest.raises(ValueError, match="read-only"):
        problem.weights[0] = 1


@given(window=window_mkps(), objective=st.integers(0, 30))
def test_equally_good_solutions_are_those_of_brute_force(window, objective):
    choices = [*range(len(window.capacities)), -1]
    alike = [
        solution
        for solution in product(choices, repeat=len(window.weights))
        if not window.violations(solution) and window.objective(solution) == objective
    ]
    assert window.equally_good(objective) == alike


def test_a_list_of_too_many_equally_good_solutions_is_refused(monkeypatch):
    monkeypatch.setattr(window_mkp, "MOST_STEPS", 1000)
    window = WindowMKP(weights=[1] * 40, capacities=[9] * 9)
    with pytest.raises(InputError, match="a window of 40x9 has too many equally good solutions"):
        window.equally_good(40)
