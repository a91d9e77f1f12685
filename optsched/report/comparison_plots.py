"""Pictures of a comparison: quality against time, and performance profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.arrays import Floats
from optsched.numbers import counted
from optsched.report import style
from optsched.report.load import extended, log_ticks, thinned
from optsched.solvers.comparison.tables import primal_gap
from optsched.solvers.result import Status

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optsched.solvers.comparison import Comparison


SHORTEST = 1e-7  # shortest time in seconds that clocks measure; shorter ones count as this


def mean_primal_gap(incumbents: pd.DataFrame, best: Mapping[str, float]) -> tuple[Floats, Floats]:
    """Return the mean primal gap of one solver over several problems, against time.

    `incumbents`: incumbents of the solver, with columns ``snapshot, seconds, objective``, in order
    of time for each snapshot. `best`: best known objective of each snapshot that the solver was
    given. The gap of a snapshot is 1 before its first solution. The result is times, and the gap
    from each time on; it is 1 before the first.
    """
    own = incumbents[incumbents["snapshot"].isin(list(best))]
    snapshot = own["snapshot"]
    gap = snapshot.map(best).astype(np.float64)
    gap[:] = primal_gap(own["objective"].to_numpy(np.float64), gap.to_numpy())
    change = gap.to_numpy() - gap.groupby(snapshot).shift(fill_value=1.0).to_numpy()
    when = np.maximum(own["seconds"].to_numpy(np.float64), SHORTEST)
    seconds, at = np.unique(when, return_inverse=True)
    total = np.bincount(at, change, len(seconds))
    return seconds, 1.0 + np.cumsum(total, dtype=np.float64) / max(1, len(best))


def seconds_to_proof(results: pd.DataFrame) -> pd.DataFrame:
    """Return the seconds until each solver had a proof: snapshots x solvers, infinite without."""
    proven = results["status"].isin([Status.OPTIMAL, Status.INFEASIBLE])
    return _by_solver(results, results["seconds"].where(proven))


def seconds_to_best(results: pd.DataFrame, incumbents: pd.DataFrame) -> pd.DataFrame:
    """Return the seconds until each solver had the best known objective: snapshots x solvers.

    The time is infinite if a solver did not reach the objective. On an infeasible problem a proof
    of infeasibility counts, as in the table of the comparison.
    """
    pair = ["snapshot", "solver"]
    best = results[[*pair, "best_objective"]]
    merged = incumbents.merge(best, on=pair)
    reached = merged[(merged["objective"] == merged["best_objective"]).fillna(value=False)]
    first = reached.groupby(pair, as_index=False)["seconds"].min()
    when = results[pair].merge(first, on=pair, how="left")["seconds"]
    when = when.set_axis(results.index)
    infeasible = results["status"] == Status.INFEASIBLE
    return _by_solver(results, when.where(~infeasible, results["seconds"]))


def performance_profile(seconds: Floats) -> list[tuple[Floats, Floats]]:
    """Return the performance profile of each solver.

    E. D. Dolan, J. J. More, "Benchmarking optimization software with performance profiles",
    Mathematical Programming 91, 201-213, 2002.

    `seconds`: time to solve, infinite where a problem was not solved, shape (problems, solvers);
    the curves are, for each solver, increasing ratios of its time to that of the fastest solver of
    a problem, and the share of all problems that it solved within each ratio.
    """
    times = np.maximum(seconds, SHORTEST)
    fastest = times.min(axis=1, keepdims=True, initial=np.inf)
    with np.errstate(invalid="ignore"):
        ratio = times / fastest
    curves = []
    for own in ratio.T:
        factors, counts = np.unique(own[np.isfinite(own)], return_counts=True)
        curves.append((factors, np.cumsum(counts) / max(1, len(own))))
    return curves


def _by_solver(results: pd.DataFrame, seconds: pd.Series[float]) -> pd.DataFrame:
    table = results.assign(seconds=seconds.fillna(np.inf)).pivot(
        index="snapshot", columns="solver", values="seconds"
    )
    return table.reindex(columns=list(dict.fromkeys(results["solver"])))


MOST_POINTS = 300
PANEL = 3.4  # height of a panel, in inches

LINE = 0.16 / (PANEL - 1.0)
"""Height of a line of text, as a share of the height of the axes in a panel."""

SMALLEST_GAP = 1e-4  # gap below which the axis is linear, so that 0 is on the axis


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
        times = np.concatenate((incumbents["seconds"].to_numpy(), results["seconds"].to_numpy()))
        times = np.maximum(times, SHORTEST)
        left, right = 10.0 ** np.floor(np.log10(times.min())), 1.2 * float(times.max())
        curves = {}
        for solver, own in results.groupby("solver", sort=False):
            known = own[own["best_objective"].notna()]
            best = dict(zip(known["snapshot"], known["best_objective"].astype(float)))
            found = incumbents[incumbents["solver"] == solver]
            curves[str(solver)] = mean_primal_gap(found, best)
        ends = _draw_curves(axes, curves, (left, 1.0), right, strokes)
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
            "proof": seconds_to_proof(results),
            "best objective reached": seconds_to_best(results, incumbents),
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


def _draw_profile(axes: Axes, seconds: pd.DataFrame, strokes: dict[str, style.Stroke]) -> None:
    curves = dict(zip(seconds.columns, performance_profile(seconds.to_numpy(np.float64))))
    slowest = max((float(x[-1]) for x, _ in curves.values() if len(x)), default=1.0)
    right = max(10.0, slowest * 1.5)
    ends = _draw_curves(axes, curves, (1.0, 0.0), right, strokes)
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


def _draw_curves(
    axes: Axes,
    curves: Mapping[str, tuple[Floats, Floats]],
    origin: tuple[float, float],
    right: float,
    strokes: dict[str, style.Stroke],
) -> dict[str, tuple[float, style.Stroke]]:
    """Draw step curves from `origin` to the right edge, and return the ends to label."""
    for name, (x, y) in curves.items():
        kept = thinned(x, MOST_POINTS)
        axes.step(
            *extended(x[kept], y[kept], origin, right),
            where="post",
            color=strokes[name].colour,
            linestyle=strokes[name].dashes,
            solid_capstyle="butt",
        )
    return {
        name: (float(y[-1]) if len(y) else origin[1], strokes[name])
        for name, (_, y) in curves.items()
    }


def _strokes(comparison: Comparison) -> dict[str, style.Stroke]:
    return style.strokes([solver["name"] for solver in comparison.config["solvers"]])
