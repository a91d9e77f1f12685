"""The pictures of the study: Figures 2 to 11."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.report import style
from optsched.studies.gonthier_2024.evaluation import (
    PER_JOB,
    SESSION_JOBS,
    SESSIONS,
    TIME,
    Improvement,
    arrays_of,
    improvement,
    of,
    ratios,
    read_as,
)
from optsched.studies.gonthier_2024.plan import OVER_TIME
from optsched.studies.gonthier_2024.usage import MARGIN
from optsched.studies.panels import legend, paneled, stacked_shares
from optsched.studies.results import by_workload
from optsched.traces.trace import SECONDS_PER_DAY

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
    "equal (within 1%)": style.FAINT,
    "faster": style.FILLS[0],
}


@style.applied()
def figures(frame: pd.DataFrame) -> Mapping[str, Figure]:
    """Draw all pictures, by name."""
    frame = read_as(frame)
    there = set(frame["workload"])
    over_time = {
        one.name: arrays_of(frame, one.name, TIME) for one in OVER_TIME if one.name in there
    }
    return {
        "figure-2-7": _bars(frame),
        "figure-3-6": _usage(over_time),
        "figure-4-5": _in_time(frame, over_time),
        "figure-8": _boxes(frame, "", "Figure 8. Improvement of sessions over FCFS"),
        "figure-9": _curves(frame),
        "figure-10": _boxes(frame, "-BF", "Figure 10. Improvement of sessions over FCFS-BF"),
        "figure-11": _with_and_without(frame),
    }


def _bars(frame: pd.DataFrame) -> Figure:
    """Draw the shares of slower, equal and faster sessions, with the mean improvement of each."""
    parts = by_workload(frame, together=True)
    title = "Figures 2 and 7. Sessions compared with FCFS, and mean improvement of the slower and "
    figure, panels = paneled(title + "faster ones", list(parts), 1.5)
    slower, equal, faster = OUTCOMES
    for panel, own in zip(panels, parts.values()):
        found = [improvement(own, name) for name in SHOWN]
        stacked_shares(
            panel,
            SHOWN,
            {
                slower: [one.slower for one in found],
                equal: [one.equal for one in found],
                faster: [one.faster for one in found],
            },
            OUTCOMES.values(),
            {slower: [one.slowdown for one in found], faster: [one.speedup for one in found]},
        )
    legend(figure, panels[0], "below")
    return figure


def _boxes(frame: pd.DataFrame, backfilled: str, title: str) -> Figure:
    """Draw boxes from a quarter to three quarters, whiskers from an eighth to seven."""
    boxes = {
        name: {s: improvement(own, s + backfilled) for s in SHOWN}
        for name, own in by_workload(frame, together=True).items()
    }
    if len(boxes) > 1:
        boxes |= {
            f"published, week {week}": {s: found[s + backfilled] for s in SHOWN}
            for week, found in PER_JOB.items()
        }
    figure, panels = paneled(title, list(boxes), 1.9, 0.9)
    for panel, found in zip(panels, boxes.values()):
        for place, (name, one) in enumerate(found.items()):
            _box(panel, place, one, STROKES[name].colour)
        panel.axhline(1, linestyle=":", **style.RULE)
        panel.set_yscale("log", base=2)
        panel.yaxis.set_major_formatter("{x:g}")
        panel.set_xticks(range(len(SHOWN)), SHOWN)
        panel.grid(axis="x", visible=False)
    figure.supylabel("improvement: times as fast (log scale)")
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
    parts = by_workload(frame, together=True)
    title = "Figure 9. Distribution of the improvement over FCFS"
    figure, panels = paneled(title, list(parts), 1.8)
    for panel, own in zip(panels, parts.values()):
        for name, stroke in STROKES.items():
            found = np.sort(ratios(own, name))
            shares = np.searchsorted(found, STEPS, side="right") / len(found)
            line = panel.step(STEPS, shares, where="post", label=name)[0]
            line.set(color=stroke.colour, linestyle=stroke.dashes)
        panel.axvline(1, linestyle=":", **style.RULE)
        panel.set_xscale("log", base=2)
        panel.set_xlim(STEPS[0], STEPS[-1])
        panel.set_ylim(0, 1)
        panel.xaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_major_formatter("{x:.0%}")
    figure.supxlabel("improvement: stretch with FCFS over that with the scheduler (log scale)")
    figure.supylabel("share of the sessions")
    legend(figure, panels[0])
    return figure


STEPS = 2.0 ** (np.arange(-160, 241) / 80)
"""Improvements, from 1/4 to 8, at which the shares of Figure 9 are taken; 1 is one of them."""


def _usage(over_time: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> Figure:
    """Draw the cores that wait, run and load over time."""
    title = (
        "Figures 3 and 6. Requested cores in the queue, and running and loading cores, with FCFS"
    )
    figure = style.new_figure(4.2, title)
    rows = figure.subplots(2, len(over_time), sharex="col", squeeze=False)
    for column, (name, found) in enumerate(over_time.items()):
        above, below = rows[:, column]
        above.set_title(name)
        days, (first, last) = found["days"], (0.0, found["days"][-1] - MARGIN / SECONDS_PER_DAY)
        for panel, what in ((above, "queued"), (below, "running")):
            for begin, label, colour in (
                ("", "all jobs", style.LINES[0]),
                ("evaluated_", "evaluated jobs", style.LINES[1]),
            ):
                values = found[begin + what]
                panel.stairs(values, days, baseline=None, color=colour, label=label)
            for edge, label in ((first, "evaluated window"), (last, "")):
                panel.axvline(edge, color=style.INK, linestyle="--", linewidth=1.0, label=label)
            panel.set_ylim(bottom=0)
            panel.yaxis.set_major_formatter("{x:,.0f}")
        loading = {"color": style.GREY, "alpha": 0.6, "fill": True}
        below.stairs(found["loading"], days, label="loading a file", **loading)
        below.set_xlim(days[0], days[-1])
        below.set_xlabel(DAYS)
    rows[0, 0].set_ylabel("cores in the queue")
    rows[1, 0].set_ylabel("running cores")
    legend(figure, rows[1, 0], "below")
    return figure


def _in_time(
    frame: pd.DataFrame, over_time: Mapping[str, Mapping[str, NDArray[np.float64]]]
) -> Figure:
    """Draw the improvement of each session at the time of its submission."""
    title = "Figures 4 and 5. Improvement of each session over FCFS, by the time of its submission"
    figure = style.new_figure(4.6, title)
    shown = ("LEA", "LEM")
    rows = figure.subplots(len(shown), len(over_time), sharex="col", sharey=True, squeeze=False)
    for column, (name, found) in enumerate(over_time.items()):
        own = frame[frame["workload"] == name]
        area = LARGEST * found["session_hours"] / found["session_hours"].max()
        for panel, scheduler in zip(rows[:, column], shown):
            panel.axhline(1, linestyle=":", **style.RULE)
            panel.scatter(
                found["session_day"],
                np.clip(ratios(own, scheduler), *CROPPED),
                np.maximum(area, 1.0),
                color=STROKES[scheduler].colour,
                alpha=0.35,
                linewidth=0,
                rasterized=True,
            )
            panel.set_yscale("log", base=2)
            panel.set_ylim(CROPPED[0] / 1.1, CROPPED[1] * 1.1)
            panel.yaxis.set_major_formatter("{x:g}")
        rows[0, column].set_title(name)
        rows[1, column].set_xlabel(DAYS)
    for panel, scheduler in zip(rows[:, 0], shown):
        panel.set_ylabel(scheduler)
    figure.supylabel("improvement: times as fast (log scale)")
    return figure


DAYS = "days since the first evaluated job"

CROPPED = (0.3, 5.0)
"""The improvements between which Figures 4 and 5 are drawn, as in the paper."""

LARGEST = 300.0
"""Area of the circle of the longest session, in square points."""


def _with_and_without(frame: pd.DataFrame) -> Figure:
    """Draw the mean stretch of the jobs of a session without and with backfilling."""
    parts = by_workload(frame)
    every = ("FCFS", *SHOWN)
    places = np.arange(len(every))[::-1]
    title = "Figure 11. Mean stretch of the jobs of a session: median and mean over the sessions"
    figure, panels = paneled(title, list(parts), 1.6)
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
    figure.supxlabel("mean stretch of the jobs of a session (log scale)")
    legend(figure, panels[0])
    return figure


CENTRES: Mapping[str, Callable[[NDArray[np.float64]], float]] = {
    "median": lambda values: float(np.median(values)),
    "mean": lambda values: float(np.mean(values)),
}


def _session_means(own: pd.DataFrame, scheduler: str) -> NDArray[np.float64]:
    means: NDArray[np.float64]
    [means] = of(own, scheduler, SESSIONS) / of(own, scheduler, SESSION_JOBS)
    return means
