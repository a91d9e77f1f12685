"""Small panels side by side, one for each workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
"""Panels side by side."""


def rows_of(panels: int) -> int:
    """Return the number of rows that so many panels take."""
    return -(-panels // COLUMNS)


def panels_of(figure: Figure, names: Sequence[str]) -> list[Axes]:
    """Add a panel under each name, all with the same axes."""
    columns = min(COLUMNS, len(names))
    grid = figure.subplots(
        -(-len(names) // columns), columns, sharex=True, sharey=True, squeeze=False
    )
    panels = list(grid.flat)
    for panel, name in zip(panels, names):
        panel.set_title(name)
    for spare in panels[len(names) :]:
        spare.set_visible(False)
    for above, below in zip(panels, panels[columns:]):
        if not below.get_visible():
            above.tick_params(labelbottom=True)
    return panels[: len(names)]


def legend(figure: Figure, panel: Axes, place: str = "right", title: str = "") -> None:
    """Put the legend of a panel to the right of all panels, or below them."""
    handles, labels = panel.get_legend_handles_labels()
    if place == "below":
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    else:
        figure.legend(handles, labels, title=title or None, loc="outside right center")
