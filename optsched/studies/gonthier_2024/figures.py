"""The pictures of the study: Figures 2 and 7, 8 to 11."""

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
    Improvement,
    improvement,
    of,
    ratios,
)
from optsched.studies.panels import legend, paneled, stacked_shares
from optsched.studies.results import by_workload

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
    return {
        "figure-2-7": _bars(frame),
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
    figure.supylabel("improvement")
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
            found = np.quantile(ratios(own, name), STEPS)
            panel.plot(found, STEPS, color=stroke.colour, ls=stroke.dashes, label=name)
        panel.axvline(1, linestyle=":", **style.RULE)
        panel.set_xscale("log", base=2)
        panel.set_xlim(0.25, 8)
        panel.xaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_major_formatter("{x:.0%}")
    figure.supxlabel("stretch of FCFS over that of the scheduler")
    figure.supylabel("share of the sessions")
    legend(figure, panels[0])
    return figure


STEPS = np.linspace(0, 1, 401)
"""Shares of the sessions at which a curve is drawn."""


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
