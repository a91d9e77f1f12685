from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.report import comparison_plots as curves
from optsched.solvers.comparison.tables import primal_gap

INF = np.inf


@pytest.mark.parametrize(
    ("objective", "best", "gap"),
    [(10, 10, 0), (5, 10, 0.5), (20, 10, 0.5), (0, 0, 0), (0, 7, 1), (-5, 5, 1), (-5, -10, 0.5)],
)
def test_primal_gaps_by_hand(objective, best, gap):
    assert primal_gap(objective, best) == gap


def incumbents(*rows):
    return pd.DataFrame(rows, columns=["snapshot", "seconds", "objective"]).astype(
        {"seconds": "float64", "objective": "Int64"}
    )


def test_the_mean_gap_by_hand():
    found = incumbents(
        ("a", 1.0, 5), ("a", 3.0, 10), ("b", 2.0, 4), ("b", 3.0, 8), ("other", 0.1, 1)
    )
    seconds, gap = curves.mean_primal_gap(found, {"a": 10, "b": 8, "unsolved": 3})
    assert seconds.tolist() == [1, 2, 3]
    assert gap.tolist() == pytest.approx([(0.5 + 1 + 1) / 3, (0.5 + 0.5 + 1) / 3, 1 / 3])


def test_a_solver_without_solutions_has_no_steps():
    seconds, gap = curves.mean_primal_gap(incumbents(), {"a": 10})
    assert (len(seconds), len(gap)) == (0, 0)


@given(
    st.lists(
        st.lists(st.tuples(st.floats(0, 100), st.integers(0, 50)), min_size=1, max_size=8),
        min_size=1,
        max_size=5,
    )
)
def test_the_mean_gap_falls_when_each_incumbent_improves(runs):
    rows, best = [], {}
    for number, run in enumerate(runs):
        values = sorted(value for _, value in run)
        times = sorted(time for time, _ in run)
        rows += [(str(number), time, value) for time, value in zip(times, values)]
        best[str(number)] = values[-1]
    _, gap = curves.mean_primal_gap(incumbents(*rows), best)
    assert (np.diff(np.concatenate(([1.0], gap))) <= 1e-9).all()
    assert gap[-1] == pytest.approx(0, abs=1e-9)


def test_the_performance_profile_by_hand():
    seconds = np.array([[1.0, 2.0], [4.0, 1.0], [3.0, INF], [INF, INF]])
    (factor_a, share_a), (factor_b, share_b) = curves.performance_profile(seconds)
    assert factor_a.tolist() == [1, 4]
    assert share_a.tolist() == [0.5, 0.75]
    assert factor_b.tolist() == [1, 2]
    assert share_b.tolist() == [0.25, 0.5]


@given(
    st.integers(1, 4).flatmap(
        lambda solvers: st.lists(
            st.lists(
                st.one_of(st.just(INF), st.floats(1e-9, 1e4)), min_size=solvers, max_size=solvers
            ),
            min_size=1,
            max_size=20,
        )
    )
)
def test_profiles_rise_from_the_share_of_wins_to_the_share_solved(table):
    seconds = np.array(table)
    solved = np.isfinite(seconds)
    times = np.maximum(seconds, curves.SHORTEST)
    wins = solved & (times == times.min(axis=1, keepdims=True))
    for number, (factor, share) in enumerate(curves.performance_profile(seconds)):
        assert (np.diff(factor) > 0).all()
        assert (np.diff(share) > 0).all()
        assert (factor >= 1).all()
        at_one = share[factor == 1]
        assert (at_one[0] if len(at_one) else 0) == wins[:, number].mean()
        assert (share[-1] if len(share) else 0) == solved[:, number].mean()


def test_times_to_proof_and_to_the_best_objective():
    results = pd.DataFrame(
        [
            ("p", "zeta", "optimal", 9.0, 10),
            ("p", "alpha", "feasible", 1.0, 10),
            ("q", "zeta", "infeasible", 2.0, None),
            ("q", "alpha", "no-solution", 5.0, None),
        ],
        columns=["snapshot", "solver", "status", "seconds", "best_objective"],
    ).astype({"best_objective": "Int64"})
    found = pd.DataFrame(
        [("p", "zeta", 2.0, 10), ("p", "zeta", 3.0, 10), ("p", "alpha", 1.0, 9)],
        columns=["snapshot", "solver", "seconds", "objective"],
    ).astype({"objective": "Int64"})
    proof = curves.seconds_to_proof(results)
    assert proof.columns.tolist() == ["zeta", "alpha"]
    assert proof.to_numpy().tolist() == [[9.0, INF], [2.0, INF]]
    assert curves.seconds_to_best(results, found).to_numpy().tolist() == [[2.0, INF], [2.0, INF]]
