"""Histogram of the utilization of a torus, and the breakdown of its node time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.durations import spoken
from optsched.metrics.node_time import OCCUPIED, PARTS, NodeTime
from optsched.registry import pictures
from optsched.report import load, style
from optsched.report.run_picture import RunFacts, RunPicture

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optsched.simulator.run import Run

Shares = NDArray[np.float64]

LEVELS = 20
"""Bars of the histogram."""

FILLS = (*style.FILLS[:6], style.FAINT)
"""Fill of each of `PARTS`; unwanted node time is gray."""

LEAST = 0.03
"""Least share of a bar that is written into the bar."""


@pictures.register("histogram")
class Histogram(RunPicture):
    """Shares of the time by utilization of a torus, and the breakdown of the node time."""

    rank = 60

    def why_not(self, run: Run) -> str:
        """Return why there is no node time to break down."""
        found = run.metrics.get("node-time")
        if not isinstance(found, NodeTime):
            return "its jobs hold no boxes of a torus"
        return "" if found.shares else "no job ended"

    @style.applied()
    def figure(self, run: Run) -> Figure:
        """Draw the histogram of the recorded time, above the breakdown of the node time."""
        found = run.metrics["node-time"]
        assert isinstance(found, NodeTime)
        bars = {"the whole run": found.shares}
        if found.recorded is not None:
            bars |= {"recorded": found.recorded_shares}
        rows = (2.4, 0.5 * len(bars)) if found.recorded is not None else (0.5,)
        drawing = style.new_figure(sum(rows) + 1.3, load.subject(run))
        panels = drawing.subplots(len(rows), 1, height_ratios=rows, squeeze=False)[:, 0]
        _draw_parts(panels[-1], bars)
        if found.recorded is None:
            style.subtitle(panels[-1], f"never {OCCUPIED}% of the nodes held while jobs came")
        else:
            held, running = found.histogram(LEVELS)
            _draw_levels(panels[0], held, running)
            begin, end = (time - load.span(run)[0] for time in found.recorded)
            style.subtitle(
                panels[0],
                f"recorded: from the first {OCCUPIED}% of nodes held, after {spoken(begin)}, "
                f"to the last submission, after {spoken(end)}",
            )
        drawing.legend(
            *panels[-1].get_legend_handles_labels(),
            loc="outside lower left",
            ncols=3 if style.is_narrow() else len(PARTS),
            handlelength=1.2,
            columnspacing=1.2,
        )
        return drawing

    def caption(self, facts: RunFacts) -> str:
        """Return the caption."""
        return (
            "Share of the time by number of nodes in use, and the breakdown of the node time. Held"
            " by jobs: running, migrating, internal fragmentation. Free: fragmented (no box holds"
            " the queue head), drained (too few routers for the queue head), undecided (a box holds"
            " the queue head), unwanted (no job waits)."
        )

    def words(self, facts: RunFacts) -> str:
        """Return the numbers of the picture in words."""
        summary = facts.summary
        parts = summary.get("node_time")
        if not isinstance(parts, dict):
            return "Breakdown of the node time."
        words = ", ".join(f"{name} {part:.1%}" for name, part in parts.items())
        recorded = ""
        if summary.get("occupied") is not None and summary.get("useful") is not None:
            recorded = f" While recorded, {summary['occupied']:.1%} of the nodes were held and"
            recorded += f" {summary['useful']:.1%} running, on average."
        return f"Breakdown of the node time: {words}.{recorded}"


def _draw_levels(axes: Axes, held: Shares, running: Shares) -> None:
    edges = np.linspace(0, 1, LEVELS + 1)
    axes.stairs(held, edges, fill=True, color=style.FAINT, label="nodes in boxes of jobs")
    axes.stairs(
        running, edges, color=style.LINES[0], linewidth=1.5, label="nodes that jobs requested"
    )
    axes.set_ylabel("share of the\nrecorded time")
    axes.set_xlabel("share of the nodes")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.4 * max(*held, *running))  # the legend is above the levels
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_xticks(np.linspace(0, 1, 6 if style.is_narrow() else 11))
    axes.legend(loc="upper left")


def _draw_parts(axes: Axes, bars: Mapping[str, Mapping[str, float]]) -> None:
    left = np.zeros(len(bars))
    for name, fill in zip(PARTS, FILLS):
        shares = np.array([shares[name] for shares in bars.values()])
        axes.barh(
            list(bars), shares, left=left, color=fill, edgecolor="white", height=0.7, label=name
        )
        for row, (begin, part) in enumerate(zip(left, shares)):
            if part >= LEAST:
                axes.text(begin + part / 2, row, f"{part:.0%}", ha="center", va="center")
        left += shares
    axes.grid(visible=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the node time")
    axes.xaxis.set_major_formatter("{x:.0%}")
