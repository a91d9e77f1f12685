"""Free nodes of a line by size of slot, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.metrics.fragmentation import Fragmentation
from optsched.numbers import counted
from optsched.registry import pictures
from optsched.report import load, style
from optsched.report.run_picture import RunFacts, RunPicture
from optsched.report.steps import time_axis, unit_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.simulator.run import Run

GROUPS = 5
"""Number of groups of slot sizes; each spans as many powers of two."""


@pictures.register("slots")
class Slots(RunPicture):
    """Free nodes of a line by the size of their slot, over time."""

    rank = 40

    def why_not(self, run: Run) -> str:
        """Return why there are no slots over time."""
        found = run.metrics.get("fragmentation")
        if not isinstance(found, Fragmentation):
            return "only a line of nodes has slots"
        return "" if len(found.time) > 1 else "no time passes in it"

    @style.applied()
    def figure(self, run: Run, days: load.Days | None = None) -> Figure:
        """Draw the free nodes by the size of their slot, as means over a 200th of the run.

        Parameters
        ----------
        days : (float, float), optional
            Period to show, in days since the first submission; by default the whole run.
        """
        found = run.metrics["fragmentation"]
        assert isinstance(found, Fragmentation)
        begin, end = float(found.time[0]), float(found.time[-1])
        unit = unit_for(end - begin)
        edges = np.linspace(begin, end, len(found.classes) + 1)
        times = (edges - begin) / unit[0]
        shown = (begin, end) if days is None else load.period(run, days)
        nodes = found.classes / np.diff(edges)[:, None]
        parts = np.array_split(np.arange(nodes.shape[1]), min(GROUPS, nodes.shape[1]))
        heights = [nodes[:, part].sum(axis=1) for part in parts]
        labels = [
            _sizes(1 << int(part[0]), min((2 << int(part[-1])) - 1, found.nodes)) for part in parts
        ]
        figures = found.between(*shown).summary()
        drawing = style.new_figure(3.6, load.subject(run))
        axes = drawing.subplots()
        low = np.zeros(len(nodes))
        for height, label, color in zip(heights, labels, style.FILLS):
            look = {"facecolor": color, "linewidth": 0, "label": label}
            style.draw_steps(axes, low + height, times, baseline=low, **look)
            low = low + height
        when = "" if days is None else f"{load.spoken_days(days)}: "
        style.subtitle(
            axes,
            f"{when}loss of capacity {figures['loss_of_capacity']:.1%}, external "
            f"fragmentation {figures['external_fragmentation']:.1%}; "
            f"{figures['mean_slots']:.1f} slots on average",
        )
        axes.set_ylabel("free nodes, by the size\nof their slot")
        axes.set_ylim(0, 1.05 * max(1.0, float(low.max())))
        time_axis(axes, shown[0] - begin, shown[1] - begin, unit)
        below = {"loc": "outside lower left", "ncols": 3}
        beside = {"loc": "outside right center"}
        drawing.legend(title="slots of", **(below if style.is_narrow() else beside))
        return drawing

    def caption(self, facts: RunFacts) -> str:
        """Return the caption."""
        return (
            "Free nodes over time, by the size of the slot (maximal free run) that they are in."
            " Loss of capacity: the share of all node time that was free while a job waited that"
            " needed no more nodes; external fragmentation: the part of it in slots too small for"
            " every waiting job."
        )

    def words(self, facts: RunFacts) -> str:
        """Return the numbers of the picture in words."""
        summary = facts.summary
        texts = {
            "mean_slots": "{:.1f} slots on average",
            "loss_of_capacity": "loss of capacity {:.1%}",
            "external_fragmentation": "external fragmentation {:.1%}",
        }
        words = [text.format(summary[name]) for name, text in texts.items() if name in summary]
        return f"Free slots over time: {', '.join(words)}." if words else "Free slots over time."


def _sizes(least: int, most: int) -> str:
    if least == most:
        return counted(least, "node")
    return f"{least:,} to {most:,} nodes"
