"""A torus as maps of its layers: one small map for each Y, with X to the right and Z upwards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.boxes.box import Box, Grid
from optsched.report import style
from optsched.report.layer_sheet import LABEL, MARGIN, Corners, Rectangle, Sheet, label_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, PathPatch


BUSY = style.FAINT
"""Fill of jobs that a picture is not about."""

CLOSE, WIDELY, UPRIGHT = "//////", "\\\\\\", "||||"
"""Hatches: of holes, of jobs that come in, of jobs that are parked."""

THIN, THICK = 0.4, 1.4
"""Width of the outline of a job, and of what stands out, in points."""

SMALL = 6.5
"""Size of the labels of the maps, in points."""

HEADING, LINE = 0.26, 0.19
"""Height of a heading and of a line of the legend, in inches."""


class Part(NamedTuple):
    """A box as it is drawn.

    Parameters
    ----------
    box : Box
        Which routers.
    fill : str or None
        Its colour, if it has one.
    label : str
        Written into every piece of it that has room.
    hatch : str
        Drawn over the fill, in matplotlib's terms.
    outline : float
        Width of its outline in points; 0 for none.
    """

    box: Box
    fill: str | None
    label: str = ""
    hatch: str = ""
    outline: float = THIN


class Entry(NamedTuple):
    """An entry of the legend: how something is drawn, and what it is."""

    text: str
    fill: str | None
    hatch: str = ""
    outline: float = THIN


class Panel(NamedTuple):
    """All layers of a torus at one moment, under a heading."""

    heading: str
    parts: Sequence[Part]


def holes_of(holes: Sequence[Box]) -> list[Part]:
    """Return routers that no job can have as they are drawn."""
    return [Part(box, None, hatch=CLOSE, outline=0.0) for box in holes]


HOLES = Entry("no router for jobs", None, CLOSE, 0.0)
"""Their entry in the legend."""


def figure_of(
    title: str, grid: Grid, panels: Sequence[Panel], legend: Sequence[Entry] = ()
) -> Figure:
    """Return a picture of a torus at one or more moments, one above the other.

    Parameters
    ----------
    title : str
        Of the whole picture.
    grid : Grid
        The routers.
    panels : sequence of Panel
        What is on them at each moment.
    legend : sequence of Entry
        What the fills and hatches mean.
    """
    sheet = Sheet.of(grid)
    width, tall = sheet.extent
    wide = width + MARGIN
    beside = max(1, min(len(panels), int(style.WIDTH / wide)))
    panel_height = HEADING + LINE + tall + MARGIN
    longest = max((len(entry.text) for entry in legend), default=1)
    columns = max(1, min(len(legend), int((style.WIDTH - MARGIN) / (0.062 * longest + 0.55))))
    foot = math.ceil(len(legend) / columns) * LINE + 0.1 if legend else 0.0
    height = HEADING + math.ceil(len(panels) / beside) * panel_height + foot
    with style.applied():
        drawing = style.new_figure(height, title)
        drawing.set_layout_engine("none")
        drawing.suptitle(title, x=0.01, y=1 - 0.08 / height, ha="left", va="top")
        for place, panel in enumerate(panels):
            row, column = divmod(place, beside)
            left = column * wide + MARGIN
            bottom = height - HEADING - (row + 1) * panel_height + MARGIN
            axes = drawing.add_axes(
                (left / style.WIDTH, bottom / height, width / style.WIDTH, tall / height)
            )
            without = draw_layers(axes, sheet, panel.parts)
            told = f"; {without} too narrow for a label" if without else ""
            drawing.text(
                (left - MARGIN + 0.09) / style.WIDTH,
                (bottom + tall + LINE + 0.03) / height,
                panel.heading + told,
                color=style.GREY,
            )
        if legend:
            drawing.legend(
                handles=[_swatch(entry) for entry in legend],
                loc="lower left",
                bbox_to_anchor=(0.0, 0.03 / height),
                ncols=columns,
                fontsize=8,
                labelspacing=0.35,
                columnspacing=1.2,
                handlelength=1.8,
            )
    return drawing


def draw_layers(axes: Axes, sheet: Sheet, parts: Sequence[Part]) -> int:
    """Draw the maps of all layers, and return how many boxes have no room for their labels.

    The axes are in inches. What looks alike is drawn as one path: small in SVG, and sharp.

    Parameters
    ----------
    axes : Axes
        Of the size that `Sheet.extent` says.
    sheet : Sheet
        Where the maps lie.
    parts : sequence of Part
        What is on them; of those that overlap, a look that comes later lies over the others.
    """
    axes.set_axis_off()
    axes.set_xlim(0, sheet.extent[0])
    axes.set_ylim(0, sheet.extent[1])
    pieces = [(part, list(sheet.rectangles(part.box))) for part in parts]
    fills: dict[tuple[str | None, str], list[Corners]] = {}
    outlines: dict[float, list[Corners]] = {}
    for part, rectangles in pieces:
        if part.fill or part.hatch:
            look = fills.setdefault((part.fill, part.hatch), [])
            look += [rectangle.corners for rectangle in rectangles]
        if part.outline:
            lines = outlines.setdefault(part.outline, [])
            lines += [line for rectangle in rectangles for line in rectangle.edges]
    for (fill, hatch), corners in fills.items():
        axes.add_patch(_patch(corners, facecolor=fill or "none", linewidth=0, zorder=1))
        if hatch:
            axes.add_patch(_patch(corners, facecolor="none", hatch=hatch, linewidth=0, zorder=2))
    for frame in _frames(axes, sheet):
        axes.add_patch(frame)
    for outline in sorted(outlines):
        lines = outlines[outline]
        axes.add_patch(
            _patch(lines, facecolor="none", linewidth=outline, edgecolor=style.INK, zorder=4)
        )
    bold = [line for outline, lines in outlines.items() if outline > THIN for line in lines]
    without = 0
    for part, rectangles in pieces:
        turns = [(piece, piece.turn(part.label)) for piece in rectangles if part.label]
        without += bool(turns) and all(turn is None for _, turn in turns)
        for piece, turn in turns:
            if turn is not None:
                _write(axes, part, piece, turn, bold)
    return without


def _write(axes: Axes, part: Part, piece: Rectangle, turn: int, bold: Sequence[Corners]) -> None:
    """Write a label; on its fill where a hatch or a bold outline would run through it."""
    (x, z), (wide, tall) = piece.middle, label_size(part.label, turn)
    behind = Rectangle(x - wide / 2, x + wide / 2, z - tall / 2, z + tall / 2)
    if part.hatch or any(behind.is_crossed(line) for line in bold):
        axes.add_patch(_patch([behind.corners], facecolor=part.fill, linewidth=0, zorder=4.5))
    axes.text(
        x,
        z,
        part.label,
        fontsize=LABEL,
        ha="center",
        va="center" if turn else "center_baseline",
        rotation=turn,
        zorder=5,
    )


def _frames(axes: Axes, sheet: Sheet) -> Iterator[PathPatch]:
    """Yield the frame of all maps, and write their coordinates beside them."""
    wide, layers, tall = sheet.grid.shape
    small: dict[str, Any] = {"fontsize": SMALL, "color": style.GREY, "clip_on": False}
    corners = []
    for layer in range(layers):
        left, low = sheet.origin(layer)
        right, high = left + wide * sheet.cell, low + tall * sheet.cell
        corners.append(Rectangle(left, right, low, high).corners)
        axes.text(left, high + 0.03, f"Y {layer}", va="bottom", **small)
    left, low = sheet.origin((sheet.rows - 1) * sheet.columns)
    for side, name, upwards in ((wide, "X", False), (tall, "Z", True)):
        ends = [("0", 0.5), (str(side - 1), side - 0.5)] if side > 3 else []
        for text, at in [(name, side / 2), *ends]:
            axes.text(
                left - 0.05 if upwards else left + at * sheet.cell,
                low + at * sheet.cell if upwards else low - 0.04,
                text,
                ha="right" if upwards else "center",
                va="center_baseline" if upwards else "top",
                **small,
            )
    yield _patch(corners, facecolor="none", edgecolor=style.GREY, linewidth=0.6, zorder=3)


def _patch(lines: Sequence[Corners], *, linewidth: float, **look: Any) -> PathPatch:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    codes = [code for line in lines for code in (Path.MOVETO, *[Path.LINETO] * (len(line) - 1))]
    path = Path(np.concatenate([np.array(line) for line in lines]), codes)
    look = {"edgecolor": style.GREY, "clip_on": False, "joinstyle": "miter"} | look
    return PathPatch(path, linewidth=linewidth, capstyle="projecting", **look)


def _swatch(entry: Entry) -> Patch:
    from matplotlib.patches import Patch

    return Patch(
        facecolor=entry.fill or "white",
        edgecolor=style.GREY if entry.hatch and not entry.outline else style.INK,
        hatch=entry.hatch,
        linewidth=entry.outline,
        label=entry.text,
    )
