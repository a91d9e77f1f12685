"""Pictures of a comparison: quality against time, and performance profiles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.numbers import counted
from optsched.report import comparison_curves as curves
from optsched.report import style
from optsched.report.durations import log_ticks
from optsched.report.steps import thinned

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
    """Write the pictures of a comparison to `folder`, each as SVG and PNG.

    ``quality``: primal gap to the best known objective, against time. ``profile``: share of the
    snapshots solved within a factor of the time of the fastest solver. Each kind of problem has a
    panel; a solver has the same stroke in all panels.

    Returns
    -------
    list of pathlib.Path
        The files written.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """
    return [
        *style.save(quality(comparison), folder, "quality"),
        *style.save(profile(comparison), folder, "profile"),
    ]


def quality(comparison: Comparison) -> Figure:
    """Return the mean primal gap of each solver over time."""
    strokes = _strokes(comparison)
    kinds = list(comparison.results.groupby("kind", sort=False))
    with style.applied():
        figure = style.new_figure(0.5 + PANEL * len(kinds), "Quality against time")
        panels = figure.subplots(len(kinds), 1, squeeze=False)[:, 0]
        for axes, (kind, results) in zip(panels, kinds):
            incumbents = comparison.incumbents[comparison.incumbents["kind"] == kind]
            _draw_quality(axes, results, incumbents, strokes)
            solved = results.loc[results["best_objective"].notna(), "snapshot"].nunique()
            axes.set_title(
                f"{kind}: mean over {counted(solved, 'snapshot')}; 100% before the first solution"
            )
    return figure


def profile(comparison: Comparison) -> Figure:
    """Return the performance profiles of the solvers: of proofs, and of best objectives."""
    strokes = _strokes(comparison)
    kinds = list(comparison.results.groupby("kind", sort=False))
    with style.applied():
        figure = style.new_figure(0.5 + PANEL * len(kinds), "Performance profile")
        panels = figure.subplots(len(kinds), 2, squeeze=False)
        for row, (kind, results) in zip(panels, kinds):
            incumbents = comparison.incumbents[comparison.incumbents["kind"] == kind]
            number = counted(results["snapshot"].nunique(), "snapshot")
            for axes, seconds, what in (
                (row[0], curves.seconds_to_proof(results), "proof"),
                (row[1], curves.seconds_to_best(results, incumbents), "best objective reached"),
            ):
                _draw_profile(axes, seconds, strokes)
                axes.set_title(f"{kind}, {number}: {what}")
            row[0].set_ylabel("share of snapshots")
    return figure


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
    before, at_first = origin
    last = y[-1] if len(y) else at_first
    axes.step(
        np.concatenate(([before], x[kept], [right])),
        np.concatenate(([at_first], y[kept], [last])),
        where="post",
        color=stroke.colour,
        linestyle=stroke.dashes,
        solid_capstyle="butt",
    )


def _strokes(comparison: Comparison) -> dict[str, style.Stroke]:
    return style.strokes([solver["name"] for solver in comparison.config["solvers"]])
