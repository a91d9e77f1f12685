"""The pictures of the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from optsched.report import style
from optsched.studies.openb_2023.evaluation import of_part
from optsched.studies.openb_2023.page import batch_sizes
from optsched.studies.openb_2023.plan import ARRIVALS, BATCHES, EXACT, FGD, FORECAST, PUBLISHED
from optsched.studies.panels import legend, paneled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@style.applied()
def figures(frame: pd.DataFrame) -> Mapping[str, Figure]:
    """Draw all pictures, by name."""
    return {
        "unallocated": unallocated(of_part(frame, ARRIVALS)),
        "batches": batches(of_part(frame, BATCHES)),
    }


def unallocated(rows: pd.DataFrame) -> Figure:
    """Draw the GPUs that each way leaves unallocated, beside those of the artifact."""
    parts = {str(name): own for name, own in rows.groupby("list", sort=False)}
    figure, panels = paneled("GPUs left unallocated", list(parts), 2.4)
    for panel, (name, own) in zip(panels, parts.items()):
        left = (1 - own["placed"] / own["gpus"]).groupby(own["way"], sort=False)
        means, least, most = left.mean(), left.min(), left.max()
        ways, places = list(map(str, means.index)), np.arange(len(means))
        panel.barh(places, means, 0.7, color=style.FILLS[0])
        panel.hlines(places, least, most, color=style.INK, linewidth=1, label="range of the draws")
        published = PUBLISHED["allocated"].get(name, {})
        known = [place for place, way in enumerate(ways) if way in published]
        panel.plot(
            [1 - published[ways[place]] / 100 for place in known],
            known,
            "D",
            color=style.LINES[1],
            markersize=5,
            label="artifact of the paper",
        )
        panel.set_yticks(places, ways)
        panel.xaxis.set_major_formatter("{x:.0%}")
        panel.set_xlabel("share of all GPUs")
        panel.grid(axis="y", visible=False)
    panels[0].invert_yaxis()
    legend(figure, panels[0], "below")
    return figure


def batches(rows: pd.DataFrame) -> Figure:
    """Draw the GPUs placed by the size of a batch, as shares of what is placed all at once."""
    found = batch_sizes(rows)
    parts = {f"{nodes} nodes": own for nodes, own in found.groupby("nodes")}
    figure, panels = paneled("What looking ahead is worth", list(parts), 2.6)
    for panel, own in zip(panels, parts.values()):
        for name, colour in ((EXACT.name, style.LINES[0]), (FORECAST.name, style.LINES[2])):
            line = own[(own["way"] == name) & (own["size"] > 0)].groupby("size")["of_best"].mean()
            panel.plot(line.index, line, "o-", color=colour, label=name, markersize=4)
        level = own.loc[own["way"] == FGD.name, "of_best"].mean()
        panel.axhline(level, color=style.LINES[1], linestyle="--", label=FGD.name)
        panel.set_xscale("log", base=2)
        sizes = sorted(set(own["size"]) - {0})
        panel.set_xticks(sizes, list(map(str, sizes)))
        panel.yaxis.set_major_formatter("{x:.0%}")
        panel.set_xlabel("pods in a batch")
    legend(figure, panels[0], "below")
    return figure
