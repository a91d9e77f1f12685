"""Figures of a comparison that depend on time, by hand."""

from __future__ import annotations

import math

import pytest

import optsched
from optsched.models import WindowMKP
from optsched.solvers.comparison.tables import primal_integral
from optsched.solvers.result import Incumbent, Result, Status


def result(*found, **fields):
    incumbents = tuple(Incumbent(at, objective, None) for at, objective in found)
    return Result("mine", Status.FEASIBLE, incumbents=incumbents, verified=True, **fields)


@pytest.mark.parametrize(
    ("found", "best", "until", "integral"),
    [
        ([(2.0, 5), (4.0, 10)], 10, 8.0, 2 + 2 * 0.5),
        ([(0.0, 10)], 10, 8.0, 0.0),
        ([(2.0, 5)], 10, 8.0, 2 + 6 * 0.5),
        ([(9.0, 5)], 10, 8.0, 8.0),  # too late
        ([], 10, 3.0, 3.0),
        ([(1.0, -5)], 10, 2.0, 2.0),
    ],
)
def test_the_primal_integral(found, best, until, integral):
    assert primal_integral(result(*found), best, until) == pytest.approx(integral)


def test_without_an_objective_there_is_no_primal_integral():
    assert math.isnan(primal_integral(result(), None, 3.0))


def test_solutions_that_are_refused_do_not_count():
    wrong = Result("mine", Status.ERROR, incumbents=(Incumbent(0.0, 10, None),))
    assert primal_integral(wrong, 10, 3.0) == 3.0


def test_the_table_has_the_shifted_geometric_mean():
    problems = [WindowMKP(weights=[n, 4, 3], capacities=[6, 5]) for n in (2, 3, 5)]
    comparison = optsched.compare(problems, ["greedy", "branch-and-bound"])
    for name, own in comparison.results.groupby("solver"):
        row = comparison.table.set_index("solver").loc[name]
        product = math.prod(1 + seconds for seconds in own["seconds"])
        assert row["mean_seconds"] == pytest.approx(product ** (1 / 3) - 1)
        assert 0 <= row["primal_integral"] <= own["seconds"].max() * 3
