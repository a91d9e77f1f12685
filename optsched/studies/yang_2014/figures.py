"""The pictures of the study: the tables as curves, windows and solvers, sizes of jobs and slots."""

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
    SIZES,
    SLOTS,
    by_size,
    cells,
    compared,
    gain,
    grid,
    published,
    varied,
)
from optsched.studies.yang_2014.plan import (
    BLUE,
    EXACT,
    INTERVAL,
    LOGS,
    SHOWN,
    SOLVERS,
    UNITS,
    VARIANTS,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@style.applied()
def figures(frame: pd.DataFrame) -> Mapping[str, Figure]:
    """Draw all pictures, by name."""
    usual = grid(frame)
    drawn = {f"table-{number.lower()}": _table(usual, number) for number in PUBLISHED}
    return drawn | {
        "windows": _windows(frame),
        "job-sizes": _job_sizes(frame),
        "slot-sizes": _slot_sizes(frame),
    }


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
        panel.set_title(f"measured: {variant}".replace(", ", ",\n"))
        if variant != next(iter(VARIANTS)):
            panel.sharey(panels[0])
    for panel in panels:
        panel.set_xlabel("alpha in %")
        panel.set_xticks([100 * alpha for alpha in SHARES])
        style.count_ticks(panel.yaxis)
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
    colours = dict(zip(SOLVERS, style.LINES))
    for number, ((solver, charged), own) in enumerate(grouped(pairs, ["solver", "charged"])):
        points = [(window, gain(part, "mean_wait")) for (window,), part in grouped(own, ["window"])]
        panel.errorbar(
            [window + 0.35 * (number - 1.5) for window, _ in points],
            [100 * found.mean for _, found in points],
            yerr=[
                [max(0.0, 100 * (found.mean - found.low)) for _, found in points],
                [max(0.0, 100 * (found.high - found.mean)) for _, found in points],
            ],
            color=colours[solver],
            linestyle="--" if charged else "-",
            marker="s" if charged else "o",
            markersize=3,
            capsize=2,
            label=f"{solver}{', time charged' if charged else ''}",
        )
    panel.axhline(0, **style.RULE)
    panel.set_xticks(sorted({int(window) for window in pairs["window"]}))
    panel.set_xlabel("window, in jobs (curves are set apart a little)")
    panel.set_ylabel("improvement of the mean wait in %")
    panel.legend(loc="best")
    return figure


def _job_sizes(frame: pd.DataFrame) -> Figure:
    """Draw Figure 5 of the paper: the sizes of the jobs of each log."""
    logs = [log for log in LOGS if log in set(frame["log"])]
    parts = frame.drop_duplicates(["log", "part"])
    shares = {log: by_size(parts[parts["log"] == log], SIZES) for log in logs}
    figure = style.new_figure(3.0, "Figure 5. Sizes of jobs")
    _bars(figure.subplots(), shares)
    [panel] = figure.axes
    panel.set_xlabel("nodes of a job, from (processors on SDSC-BLUE)")
    panel.set_ylabel("share of the jobs")
    panel.legend(loc="best")
    return figure


def _slot_sizes(frame: pd.DataFrame) -> Figure:
    """Draw the sizes of free slots over time, under Default and under the window."""
    share = varied(frame)[0]
    own = grid(frame)
    own = own[(own["alpha"] == share) & (own["beta"] == share)]
    logs = [log for log in LOGS if log in set(frame["log"])]
    title = f"Free node time by size of slot, at alpha = beta = {100 * share:.0f}%"
    figure = style.new_figure(3.0, title)
    panels = figure.subplots(1, len(logs), sharey=True, squeeze=False)[0]
    for panel, log in zip(panels, logs):
        pairs = compared(own, log=log, solver=EXACT, variant=SHOWN)
        default = pairs.filter(like="_default").rename(
            columns=lambda name: name[: -len("_default")]
        )
        _bars(
            panel,
            {"Default": by_size(default, SLOTS), "window": by_size(pairs[[*own.columns]], SLOTS)},
        )
        panel.set_title(log)
        panel.set_xlabel(f"{UNITS[log]} of a slot, from")
    panels[0].set_ylabel("share of the free node time")
    legend(figure, panels[0])
    return figure


def _bars(panel: Axes, shares: Mapping[str, Mapping[int, float]]) -> None:
    """Draw shares by size as bars beside each other, each name in a color."""
    sizes = sorted({size for own in shares.values() for size in own})
    width = 0.8 / len(shares)
    for number, ((name, own), colour) in enumerate(zip(shares.items(), style.LINES)):
        places = [place + (number - (len(shares) - 1) / 2) * width for place in range(len(sizes))]
        panel.bar(places, [own.get(size, 0.0) for size in sizes], width, color=colour, label=name)
    panel.set_xticks(range(0, len(sizes), 2), [_thousands(size) for size in sizes[::2]])
    panel.yaxis.set_major_formatter("{x:.0%}")
    panel.grid(axis="x", visible=False)


def _thousands(size: int) -> str:
    """Write a power of two in multiples of 1,024 where it is one, as the paper does."""
    return f"{size // 1024}K" if size >= 1024 else str(size)
