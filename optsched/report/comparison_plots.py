"""Pictures of a comparison: quality against time, and performance profiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched.numbers import counted
from optsched.report import comparison_curves as curves
from optsched.report import style
from optsched.report.durations import log_ticks
from optsched.report.steps import extended, thinned

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optsched.solvers.comparison import Comparison

Floats = NDArray[np.float64]

MOST_POINTS = 300
PANEL = 3.4
"""Height of a panel, in inches."""

LINE = 0.16 / (PANEL - 1.0)
"""Height of a line of text, as a share of the height of the axes in a panel."""

SMALLEST_GAP = 1e-4
"""Gap below which the axis is linear, so that 0 is on the axis."""


PADDING = 0.04
"""Padding around the axes of a profile, as a share, so that no curve lies on the frame."""


def draw(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the pictures of a comparison to `folder`, each as SVG and PNG, and return the files.

    ``quality``: primal gap to the best known objective, against time. ``profile``: share of the
    snapshots solved within a factor of the time of the fastest solver. Each kind of problem has a
    panel; a solver has the same stroke in all panels.
    """
    return [
        *style.save(quality(comparison), folder, "quality"),
        *style.save(profile(comparison), folder, "profile"),
    ]


@style.applied()
def quality(comparison: Comparison) -> Figure:
    """Return the mean primal gap of each solver over time."""
    strokes = _strokes(comparison)
    figure, rows = _rows(comparison, "Quality against time", 1)
    for [axes], kind, results, incumbents in rows:
        _draw_quality(axes, results, incumbents, strokes)
        solved = results.loc[results["best_objective"].notna(), "snapshot"].nunique()
        number = counted(solved, "snapshot")
        axes.set_title(f"{kind}: mean over {number}; 100% before the first solution")
    return figure


@style.applied()
def profile(comparison: Comparison) -> Figure:
    """Return the performance profiles of the solvers: of proofs, and of best objectives."""
    strokes = _strokes(comparison)
    figure, rows = _rows(comparison, "Performance profile", 2)
    for panels, kind, results, incumbents in rows:
        number = counted(results["snapshot"].nunique(), "snapshot")
        profiles = {
            "proof": curves.seconds_to_proof(results),
            "best objective reached": curves.seconds_to_best(results, incumbents),
        }
        for axes, (what, seconds) in zip(panels, profiles.items()):
            _draw_profile(axes, seconds, strokes)
            axes.set_title(f"{kind}, {number}: {what}")
        panels[0].set_ylabel("share of snapshots")
    return figure


def _rows(
    comparison: Comparison, title: str, across: int
) -> tuple[Figure, list[tuple[Sequence[Axes], Any, pd.DataFrame, pd.DataFrame]]]:
    """Return a figure, and the panels of each kind of problem with its results and incumbents."""
    kinds = list(comparison.results.groupby("kind", sort=False))
    figure = style.new_figure(0.5 + PANEL * len(kinds), title)
    panels = figure.subplots(len(kinds), across, squeeze=False)
    found = comparison.incumbents
    return figure, [
        (row, kind, results, found[found["kind"] == kind])
        for row, (kind, results) in zip(panels, kinds)
    ]


def _draw_quality(
    axes: Axes, results: pd.DataFrame, incumbents: pd.DataFrame, strokes: dict[str, style.Stroke]
) -> None:
    times = np.concatenate((incumbents["seconds"].to_numpy(), results["seconds"].to_numpy()))
    times = np.maximum(times, curves.SHORTEST)
    left, right = 10.0 ** np.floor(np.log10(times.min())), 1.2 * float(times.max())
    ends = {}
    for solver, own in results.groupby("solver", sort=False):
        name = str(solver)
        known = own[own["best_objective"].notna()]
        best = dict(zip(known["snapshot"], known["best_objective"].astype(float)))
        x, y = curves.mean_primal_gap(incumbents[incumbents["solver"] == name], best)
        _step(axes, x, y, (left, 1.0), right, strokes[name])
        ends[name] = float(y[-1]) if len(y) else 1.0, strokes[name]
    axes.set_xscale("log")
    axes.set_xlim(left, right)
    log_ticks(axes.xaxis, left, right)
    axes.set_yscale("symlog", linthresh=SMALLEST_GAP, linscale=0.5)
    axes.set_ylim(-SMALLEST_GAP / 4, 1.5)
    gaps = [0.0, *(10.0**-power for power in range(4, -1, -1))]
    axes.set_yticks(gaps, [f"{gap:.4g}%" for gap in (100 * np.array(gaps)).tolist()])
    axes.set_xlabel("solving time")
    axes.set_ylabel(f"gap to the best known objective\n(linear below {SMALLEST_GAP:.2%})")
    style.label_ends(axes, ends, LINE)


def _draw_profile(axes: Axes, seconds: pd.DataFrame, strokes: dict[str, style.Stroke]) -> None:
    profiles = curves.performance_profile(seconds.to_numpy(np.float64))
    slowest = max((float(x[-1]) for x, _ in profiles if len(x)), default=1.0)
    right = max(10.0, slowest * 1.5)
    ends = {}
    for name, (x, y) in zip(seconds.columns, profiles):
        _step(axes, x, y, (1.0, 0.0), right, strokes[name])
        ends[name] = float(y[-1]) if len(y) else 0.0, strokes[name]
    axes.set_xscale("log")
    axes.set_xlim(right**-PADDING, right)
    powers = 10.0 ** np.arange(0, np.floor(np.log10(right)) + 1)
    ticks = powers[:: 1 + len(powers) // 5] if right > 200 else np.outer(powers, [1, 2, 5]).ravel()
    ticks = ticks[ticks <= right]
    axes.set_xticks(ticks, [f"{factor:,.0f}" for factor in ticks.tolist()])
    axes.minorticks_off()
    axes.set_ylim(-PADDING, 1 + PADDING)
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_xlabel("time relative to the fastest solver")
    style.label_ends(axes, ends, LINE)


def _step(
    axes: Axes,
    x: Floats,
    y: Floats,
    origin: tuple[float, float],
    right: float,
    stroke: style.Stroke,
) -> None:
    """Draw a step curve from `origin` to the right edge."""
    kept = thinned(x, MOST_POINTS)
    axes.step(
        *extended(x[kept], y[kept], origin, right),
        where="post",
        color=stroke.colour,
        linestyle=stroke.dashes,
        solid_capstyle="butt",
    )


def _strokes(comparison: Comparison) -> dict[str, style.Stroke]:
    return style.strokes([solver["name"] for solver in comparison.config["solvers"]])
