"""The pictures of the study: Figures 2 and 7, 8 to 11."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.report import style
from optsched.studies.gonthier_2024.evaluation import (
    ALL,
    PER_JOB,
    SESSION_JOBS,
    SESSIONS,
    Improvement,
    improvement,
    of,
    ratios,
    workloads,
)
from optsched.studies.panels import legend, panels_of, rows_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = ("EFT", "LEA", "LEO", "LEM")
STROKES = {
    name: style.Stroke(colour, dashes)
    for name, colour, dashes in zip(SHOWN, style.LINES, style.DASHES)
}
OUTCOMES = {
    "slower": style.FILLS[1],
    "equal (within 1 %)": style.FAINT,
    "faster": style.FILLS[0],
}
NARROW = 0.1
"""Share of a bar from which on the number has room in it."""


def figures(frame: pd.DataFrame) -> Mapping[str, Figure]:
    """Draw all pictures, by name."""
    return {
        "figure-2-7": _bars(frame),
        "figure-8": _boxes(frame, "", "Figure 8. Improvement of sessions over FCFS"),
        "figure-9": _curves(frame),
        "figure-10": _boxes(frame, "-BF", "Figure 10. Improvement of sessions over FCFS-BF"),
        "figure-11": _with_and_without(frame),
    }


def _parts(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the runs of each workload, after those of all if there are several."""
    names = workloads(frame)
    parts = {ALL: frame} if len(names) > 1 else {}
    return parts | {name: frame[frame["workload"] == name] for name in names}


def _bars(frame: pd.DataFrame) -> Figure:
    """Draw the shares of slower, equal and faster sessions, with the mean improvement of each."""
    from matplotlib.ticker import PercentFormatter

    parts = _parts(frame)
    places = np.arange(len(SHOWN))[::-1]
    title = "Figures 2 and 7. Sessions compared with FCFS, and mean improvement of the slower and "
    with style.applied():
        figure = style.new_figure(1.0 + 1.5 * rows_of(len(parts)), title + "faster ones")
        panels = panels_of(figure, list(parts))
        for panel, own in zip(panels, parts.values()):
            found = [improvement(own, name) for name in SHOWN]
            left = np.zeros(len(SHOWN))
            for (label, colour), shares, means in zip(
                OUTCOMES.items(),
                ([f.slower for f in found], [f.equal for f in found], [f.faster for f in found]),
                ([f.slowdown for f in found], None, [f.speedup for f in found]),
            ):
                panel.barh(places, shares, 0.75, left, color=colour, label=label)
                for place, share, mean, start in zip(places, shares, means or (), left):
                    if share >= NARROW:
                        middle = start + share / 2
                        panel.text(middle, place, f"{mean:.2f}", ha="center", va="center", size=7.5)
                left = left + np.array(shares)
            panel.set_xlim(0, 1)
            panel.set_yticks(places, SHOWN)
            panel.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            panel.grid(axis="y", visible=False)
        legend(figure, panels[0], "below")
    return figure


def _boxes(frame: pd.DataFrame, backfilled: str, title: str) -> Figure:
    """Draw boxes from a quarter to three quarters, whiskers from an eighth to seven."""
    boxes = {
        name: {s: improvement(own, s + backfilled) for s in SHOWN}
        for name, own in _parts(frame).items()
    }
    if len(boxes) > 1:
        boxes |= {
            f"published, week {week}": {s: found[s + backfilled] for s in SHOWN}
            for week, found in PER_JOB.items()
        }
    with style.applied():
        figure = style.new_figure(0.9 + 1.9 * rows_of(len(boxes)), title)
        panels = panels_of(figure, list(boxes))
        for panel, found in zip(panels, boxes.values()):
            for place, (name, one) in enumerate(found.items()):
                _box(panel, place, one, STROKES[name].colour)
            panel.axhline(1, color=style.GREY, linewidth=0.8, linestyle=":")
            panel.set_yscale("log", base=2)
            panel.yaxis.set_major_formatter("{x:g}")
            panel.set_xticks(range(len(SHOWN)), SHOWN)
            panel.grid(axis="x", visible=False)
        figure.supylabel("improvement", fontsize=9)
    return figure


def _box(panel: Axes, place: int, one: Improvement, colour: str) -> None:
    statistics = {
        "whislo": one.whisker_low,
        "q1": one.box_low,
        "med": one.median,
        "q3": one.box_high,
        "whishi": one.whisker_high,
        "mean": one.mean,
    }
    line = {"color": colour, "linewidth": 1.2}
    panel.bxp(
        [statistics],
        positions=[place],
        widths=0.6,
        showfliers=False,
        showmeans=True,
        boxprops=line,
        whiskerprops=line,
        capprops=line,
        medianprops=line | {"linewidth": 2.2},
        meanprops={"marker": "^", "markerfacecolor": colour, "markeredgecolor": "none"},
        manage_ticks=False,
    )


def _curves(frame: pd.DataFrame) -> Figure:
    """Draw the share of the sessions up to each improvement."""
    from matplotlib.ticker import PercentFormatter

    parts = _parts(frame)
    with style.applied():
        figure = style.new_figure(
            1.0 + 1.8 * rows_of(len(parts)), "Figure 9. Distribution of the improvement over FCFS"
        )
        panels = panels_of(figure, list(parts))
        for panel, own in zip(panels, parts.values()):
            for name, stroke in STROKES.items():
                found = np.quantile(ratios(own, name), STEPS)
                panel.plot(found, STEPS, color=stroke.colour, ls=stroke.dashes, label=name)
            panel.axvline(1, color=style.GREY, linewidth=0.8, linestyle=":")
            panel.set_xscale("log", base=2)
            panel.set_xlim(0.25, 8)
            panel.xaxis.set_major_formatter("{x:g}")
            panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        figure.supxlabel("stretch of FCFS over that of the scheduler", fontsize=9)
        figure.supylabel("share of the sessions", fontsize=9)
        legend(figure, panels[0])
    return figure


STEPS = np.linspace(0, 1, 401)
"""Shares of the sessions at which a curve is drawn."""


def _with_and_without(frame: pd.DataFrame) -> Figure:
    """Draw the mean stretch of the jobs of a session without and with backfilling."""
    parts = {name: frame[frame["workload"] == name] for name in workloads(frame)}
    every = ("FCFS", *SHOWN)
    places = np.arange(len(every))[::-1]
    title = "Figure 11. Mean stretch of the jobs of a session: median and mean over the sessions"
    with style.applied():
        figure = style.new_figure(1.0 + 1.6 * rows_of(len(parts)), title)
        panels = panels_of(figure, list(parts))
        for panel, own in zip(panels, parts.values()):
            for (label, centre), colour, lift in zip(CENTRES.items(), style.LINES, (0.12, -0.12)):
                heights = places + lift
                without, with_ = (
                    [centre(_session_means(own, name + ending)) for name in every]
                    for ending in ("", "-BF")
                )
                panel.hlines(heights, without, with_, color=colour, linewidth=0.8)
                panel.plot(without, heights, "x", color=colour, label=f"{label}, without")
                panel.plot(with_, heights, "o", color=colour, label=f"{label}, with backfilling")
            panel.set_xscale("log", base=2)
            panel.xaxis.set_major_formatter("{x:g}")
            panel.set_yticks(places, every)
        legend(figure, panels[0], "below")
    return figure


CENTRES: Mapping[str, Callable[[NDArray[np.float64]], float]] = {
    "median": lambda values: float(np.median(values)),
    "mean": lambda values: float(np.mean(values)),
}


def _session_means(own: pd.DataFrame, scheduler: str) -> NDArray[np.float64]:
    means: NDArray[np.float64]
    [means] = of(own, scheduler, SESSIONS) / of(own, scheduler, SESSION_JOBS)
    return means
