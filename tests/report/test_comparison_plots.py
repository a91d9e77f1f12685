from __future__ import annotations

from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from optsched.registry import solvers
from optsched.report import comparison_plots, style
from optsched.solvers.comparison.tables import INCUMBENT_COLUMNS, RESULT_COLUMNS


def compared(solvers, snapshots=6, kinds=("window-mkp",), seed=0):
    """Return a comparison with made-up answers: what the pictures need of one."""
    draw = np.random.default_rng(seed)
    results, incumbents = [], []
    for kind in kinds:
        for number in range(snapshots):
            name = f"{kind}-{number}"
            for rank, solver in enumerate(solvers):
                seconds = float(10.0 ** draw.uniform(-5, 1))
                objective = 100 - int(draw.integers(0, 2 + rank))
                status = "optimal" if objective == 100 and rank % 2 else "feasible"
                row = {
                    "snapshot": name,
                    "kind": kind,
                    "solver": solver,
                    "status": status,
                    "objective": objective,
                    "best_objective": 100,
                    "seconds": seconds,
                    "verified": True,
                }
                results.append(row)
                for share, value in ((0.2, objective // 2), (0.9, objective)):
                    incumbents.append((name, kind, solver, share * seconds, value, None))
    frame = pd.DataFrame(results).reindex(columns=list(RESULT_COLUMNS))
    return SimpleNamespace(
        results=frame.astype({"objective": "Int64", "best_objective": "Int64"}),
        incumbents=pd.DataFrame(incumbents, columns=list(INCUMBENT_COLUMNS)),
        config={"solvers": [{"name": solver} for solver in solvers]},
    )


TWELVE = [f"solver-{number:02d}" for number in range(12)]


@pytest.mark.parametrize("solvers", [TWELVE[:1], TWELVE])
def test_both_pictures_are_written_and_name_every_solver(solvers, tmp_path):
    paths = comparison_plots.draw(compared(solvers), tmp_path)
    assert [path.name for path in paths] == [
        "quality.svg",
        "quality.png",
        "profile.svg",
        "profile.png",
    ]
    for path in (paths[0], paths[2]):
        text = "".join(ElementTree.parse(path).getroot().itertext())
        assert all(solver in text for solver in solvers)
        assert path.stat().st_size < 500_000


def test_the_same_comparison_gives_the_same_bytes(tmp_path):
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        paths = comparison_plots.draw(compared(TWELVE[:4]), tmp_path / name)
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]


def test_a_solver_keeps_its_stroke_in_all_panels():
    solid = [
        name
        for name, stroke in style.strokes(list(solvers)).items()
        if stroke.dashes == style.DASHES[0]
    ]
    comparison = compared(solid[:5], kinds=("window-mkp", "box-placement"))
    drawn = [
        [(line.get_color(), line.get_linestyle()) for line in axes.lines]
        for figure in (comparison_plots.quality(comparison), comparison_plots.profile(comparison))
        for axes in figure.axes
    ]
    assert len(drawn) == 2 + 4
    assert all(lines == drawn[0] for lines in drawn)
    assert len(set(drawn[0])) == 5


def test_quality_starts_at_a_gap_of_one_and_ends_at_that_of_the_answers():
    comparison = compared(TWELVE[:2])
    axes = comparison_plots.quality(comparison).axes[0]
    for solver, line in zip(TWELVE[:2], axes.lines):
        own = comparison.results[comparison.results["solver"] == solver]
        y = line.get_ydata()
        assert y[0] == 1
        assert y[-1] == pytest.approx(float((1 - own["objective"] / 100).mean()))
        assert (np.diff(y) <= 1e-12).all()


def test_profiles_end_at_the_share_solved():
    comparison = compared(TWELVE[:2], snapshots=20)
    proof, best = comparison_plots.profile(comparison).axes
    for solver, proven, reached in zip(TWELVE[:2], proof.lines, best.lines):
        own = comparison.results[comparison.results["solver"] == solver]
        assert proven.get_ydata()[-1] == pytest.approx((own["status"] == "optimal").mean())
        assert reached.get_ydata()[-1] == pytest.approx((own["objective"] == 100).mean())


def test_no_profile_lies_on_the_frame():
    """Of a solver that is the fastest everywhere the curve goes up at 1 and along 100 %."""
    for axes in comparison_plots.profile(compared(TWELVE[:1])).axes:
        assert axes.get_xlim()[0] < 1
        assert axes.get_ylim()[0] < 0
        assert axes.get_ylim()[1] > 1


def test_the_axis_of_gaps_says_where_it_is_linear():
    (axes,) = comparison_plots.quality(compared(TWELVE[:1])).axes
    assert axes.get_ylabel().endswith("(linear below 0.01%)")
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == ["0%", "0.01%"]


def test_solvers_that_found_nothing_are_drawn_too(tmp_path):
    comparison = compared(TWELVE[:2])
    comparison.results[["objective", "best_objective"]] = pd.NA
    comparison.results["status"] = "no-solution"
    comparison.incumbents = comparison.incumbents.iloc[:0]
    assert len(comparison_plots.draw(comparison, tmp_path)) == 4
