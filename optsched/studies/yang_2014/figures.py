"""The pictures of the study: the six tables as curves, and windows and solvers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from optsched.report import style
from optsched.studies.panels import legend
from optsched.studies.results import grouped
from optsched.studies.yang_2014.evaluation import (
    METRICS,
    PUBLISHED,
    SHARES,
    cells,
    compared,
    gain,
    grid,
    published,
    varied,
)
from optsched.studies.yang_2014.plan import BLUE, EXACT, INTERVAL, SOLVERS, VARIANTS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@style.applied()
def figures(frame: pd.DataFrame) -> Mapping[str, Figure]:
    """Draw all pictures, by name."""
    usual = grid(frame)
    drawn = {f"table-{number.lower()}": _table(usual, number) for number in PUBLISHED}
    return drawn | {"windows": _windows(frame)}


def _table(frame: pd.DataFrame, number: str) -> Figure:
    """Draw a table as curves: published, and ours by variant.

    All panels have one scale, but that of the strict variant, whose losses would hide the others.
    """
    log, metric = PUBLISHED[number]["log"], PUBLISHED[number]["metric"]
    title = f"Table {number}. {log}: improvement of {METRICS[metric]} over Default"
    figure = style.new_figure(3.4, title)
    panels = figure.subplots(1, 1 + len(VARIANTS), sharex=True)
    _curves(panels[0], published(number))
    panels[0].set_title("published")
    panels[0].set_ylabel("improvement in %")
    for panel, variant in zip(panels[1:], VARIANTS):
        found = cells(frame, metric, log=log, solver=EXACT, variant=variant)
        _curves(panel, {key: 100 * cell.mean for key, cell in found.items()})
        panel.set_title(f"measured: {variant}")
        if variant != next(iter(VARIANTS)):
            panel.sharey(panels[0])
    for panel in panels:
        panel.set_xlabel("alpha in %")
        panel.axhline(0, **style.RULE)
    legend(figure, panels[0], title="beta")
    return figure


def _curves(panel: Axes, values: Mapping[tuple[float, float], float]) -> None:
    """Draw a curve for each beta; a beta has the same color in all panels."""
    for colour, beta in zip(style.LINES, SHARES):
        points = sorted((alpha, value) for (b, alpha), value in values.items() if b == beta)
        if not points:
            continue
        panel.plot(
            [100 * alpha for alpha, _ in points],
            [value for _, value in points],
            color=colour,
            marker="o",
            markersize=3,
            label=f"{100 * beta:.0f}%",
        )


def _windows(frame: pd.DataFrame) -> Figure:
    """Draw the improvement of the wait by window for the paper's algorithms, charged and free."""
    share, runs = varied(frame)
    usual = runs["solver"].isin(SOLVERS) & (runs["interval"] == INTERVAL)
    pairs = compared(runs[usual | (runs["variant"] == "default")])
    title = f"{BLUE}: window and solver, at alpha = beta = {100 * share:.0f}%"
    figure = style.new_figure(3.4, title)
    panel = figure.subplots()
    for number, ((solver, charged), own) in enumerate(grouped(pairs, ["solver", "charged"])):
        points = [(window, gain(part, "mean_wait")) for (window,), part in grouped(own, ["window"])]
        panel.errorbar(
            [window + 0.35 * (number - 1.5) for window, _ in points],
            [100 * found.mean for _, found in points],
            yerr=[
                [max(0.0, 100 * (found.mean - found.low)) for _, found in points],
                [max(0.0, 100 * (found.high - found.mean)) for _, found in points],
            ],
            color=style.strokes([solver])[solver].colour,
            linestyle="--" if charged else "-",
            marker="s" if charged else "o",
            markersize=3,
            capsize=2,
            label=f"{solver}{', time charged' if charged else ''}",
        )
    panel.axhline(0, **style.RULE)
    panel.set_xlabel("window, in jobs (curves are set apart a little)")
    panel.set_ylabel("improvement of the mean wait in %")
    panel.legend(loc="best")
    return figure
