"""The curves of a comparison of solvers, and their pictures."""

from __future__ import annotations

from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.looks import texts

from optsched.registry import solvers
from optsched.report import comparison_plots as plots
from optsched.report import style
from optsched.solvers.comparison.tables import INCUMBENT_COLUMNS, RESULT_COLUMNS, primal_gap

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
    rows = [("a", 1.0, 5), ("a", 3.0, 10), ("b", 2.0, 4), ("b", 3.0, 8), ("other", 0.1, 1)]
    found = plots.mean_primal_gap(incumbents(*rows), {"a": 10, "b": 8, "unsolved": 3})
    assert found[0].tolist() == [1, 2, 3]
    assert found[1].tolist() == pytest.approx([(0.5 + 1 + 1) / 3, (0.5 + 0.5 + 1) / 3, 1 / 3])
    seconds, gap = plots.mean_primal_gap(incumbents(), {"a": 10})
    assert (len(seconds), len(gap)) == (0, 0)


def test_the_performance_profile_by_hand():
    seconds = np.array([[1.0, 2.0], [4.0, 1.0], [3.0, INF], [INF, INF]])
    one, other = plots.performance_profile(seconds)
    assert [curve.tolist() for curve in one] == [[1, 4], [0.5, 0.75]]
    assert [curve.tolist() for curve in other] == [[1, 2], [0.25, 0.5]]


TIME = st.one_of(st.just(INF), st.floats(1e-9, 1e4))


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(TIME, min_size=n, max_size=n), min_size=1, max_size=20)
    )
)
def test_profiles_rise_from_the_share_of_wins_to_the_share_solved(table):
    seconds = np.array(table)
    solved = np.isfinite(seconds)
    times = np.maximum(seconds, plots.SHORTEST)
    wins = solved & (times == times.min(axis=1, keepdims=True))
    for number, (factor, share) in enumerate(plots.performance_profile(seconds)):
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
    found = incumbents(("p", 2.0, 10), ("p", 3.0, 10), ("p", 1.0, 9))
    found["solver"] = ["zeta", "zeta", "alpha"]
    proof = plots.seconds_to_proof(results)
    assert proof.columns.tolist() == ["zeta", "alpha"]
    assert proof.to_numpy().tolist() == [[9.0, INF], [2.0, INF]]
    assert plots.seconds_to_best(results, found).to_numpy().tolist() == [[2.0, INF], [2.0, INF]]


def compared(solvers, snapshots=6, kinds=("window-mkp",)):
    """Return a comparison with made-up answers: what the pictures need of one."""
    draw = np.random.default_rng(0)
    results, incumbents = [], []
    for kind in kinds:
        for name in (f"{kind}-{number}" for number in range(snapshots)):
            for rank, solver in enumerate(solvers):
                seconds = float(10.0 ** draw.uniform(-5, 1))
                objective = 100 - int(draw.integers(0, 2 + rank))
                status = "optimal" if objective == 100 and rank % 2 else "feasible"
                row = {"snapshot": name, "kind": kind, "solver": solver, "status": status}
                row |= {"objective": objective, "best_objective": 100, "verified": True}
                results.append(row | {"seconds": seconds})
                for share, value in ((0.2, objective // 2), (0.9, objective)):
                    incumbents.append((name, kind, solver, share * seconds, value, None))
    frame = pd.DataFrame(results).reindex(columns=list(RESULT_COLUMNS))
    return SimpleNamespace(
        results=frame.astype({"objective": "Int64", "best_objective": "Int64"}),
        incumbents=pd.DataFrame(incumbents, columns=list(INCUMBENT_COLUMNS)),
        config={"solvers": [{"name": solver} for solver in solvers]},
    )


TWELVE = [f"solver-{number:02d}" for number in range(12)]


def test_both_pictures_are_the_same_to_the_byte_and_name_every_solver(tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        paths = plots.draw(compared(TWELVE), folder)
        names = [f"{name}.{kind}" for name in ("quality", "profile") for kind in ("svg", "png")]
        assert [path.name for path in paths] == names
    for path in paths:
        assert path.read_bytes() == (folders[0] / path.name).read_bytes()
    for path in (paths[0], paths[2]):
        text = "".join(ElementTree.parse(path).getroot().itertext())
        assert all(solver in text for solver in TWELVE)
        assert path.stat().st_size < 500_000


def test_a_solver_keeps_its_stroke_in_all_panels():
    strokes = style.strokes(list(solvers)).items()
    solid = [name for name, stroke in strokes if stroke.dashes == style.DASHES[0]]
    comparison = compared(solid[:5], kinds=("window-mkp", "box-placement"))
    drawn = [
        [(line.get_color(), line.get_linestyle()) for line in axes.lines]
        for figure in (plots.quality(comparison), plots.profile(comparison))
        for axes in figure.axes
    ]
    assert len(drawn) == 2 + 4
    assert all(lines == drawn[0] for lines in drawn)
    assert len(set(drawn[0])) == 5


def test_axes_show_gaps_of_nothing_and_curves_along_100_percent():
    """A solver that is the fastest everywhere goes up at 1."""
    single = compared(TWELVE[:1])
    [quality], profiles = plots.quality(single).axes, plots.profile(single).axes
    assert quality.get_ylabel().endswith("(linear below 0.01%)")
    assert texts(quality.get_yticklabels())[:2] == ["0%", "0.01%"]
    for axes in profiles:
        assert axes.get_xlim()[0] < 1
        assert axes.get_ylim()[0] < 0 < 1 < axes.get_ylim()[1]


def test_curves_end_where_the_answers_do():
    comparison = compared(TWELVE[:2], snapshots=20)
    [quality] = plots.quality(comparison).axes
    proof, best = plots.profile(comparison).axes
    for solver, *lines in zip(TWELVE[:2], quality.lines, proof.lines, best.lines):
        own = comparison.results[comparison.results["solver"] == solver]
        gaps, proven, reached = (line.get_ydata() for line in lines)
        assert gaps[0] == 1
        assert gaps[-1] == pytest.approx(float((1 - own["objective"] / 100).mean()))
        assert (np.diff(gaps) <= 1e-12).all()
        assert proven[-1] == pytest.approx((own["status"] == "optimal").mean())
        assert reached[-1] == pytest.approx((own["objective"] == 100).mean())


def test_solvers_that_found_nothing_are_drawn_too(tmp_path):
    comparison = compared(TWELVE[:2])
    comparison.results[["objective", "best_objective"]] = pd.NA
    comparison.results["status"] = "no-solution"
    comparison.incumbents = comparison.incumbents.iloc[:0]
    assert len(plots.draw(comparison, tmp_path)) == 4
