"""Maps of a torus: one small map for each layer Y, with X to the right and Z upwards.

The parts, in order: the layout of the maps on a sheet, the fills of jobs so that neighbors differ,
the maps with their legend, and a torus before and after migrations.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from optsched.boxes.box import Box, Grid
from optsched.errors import InputError
from optsched.models.torus import Step, destinations_of
from optsched.report import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import PathPatch

Corners = list[tuple[float, float]]

ACROSS = 6  # least number of maps beside each other; with more rows than this, a torus has more

LARGEST_CELL, HIGHEST = 0.24, 6.5
"""Largest side of a router on paper, and largest height of all maps together, in inches."""

GAPS = (0.1, 0.2)  # inches between maps beside each other, and above each other
MARGIN = 0.3  # inches to the left of the maps and below them, for the coordinates of their corners
LABEL = 7.0  # size of the labels in boxes, in points

WIDE, TALL = 0.64 * LABEL / 72, 0.95 * LABEL / 72
"""Width of a character of a label and height of a label, in inches."""


class Sheet(NamedTuple):
    """Layout of the maps of a grid on paper; Y grows to the right, then downwards.

    `columns` and `rows` are maps beside and above each other, `cell` the side of a router in
    inches.
    """

    grid: Grid
    columns: int
    rows: int
    cell: float

    @classmethod
    def of(cls, grid: Grid) -> Sheet:
        """Return the sheet with the largest possible maps."""
        wide, layers, tall = grid.shape
        rows = math.ceil(layers / max(ACROSS, math.isqrt(layers)))
        columns = math.ceil(layers / rows)
        width = style.WIDTH - 2 * MARGIN - (columns - 1) * GAPS[0]
        height = HIGHEST - (rows - 1) * GAPS[1]
        cell = min(LARGEST_CELL, width / (columns * wide), height / (rows * tall))
        return cls(grid, columns, rows, cell)

    @property
    def extent(self) -> tuple[float, float]:
        """Width and height of all maps together, in inches."""
        (wide, _, tall), (gap, line) = self.grid.shape, GAPS
        across, up = wide * self.cell + gap, tall * self.cell + line
        return self.columns * across - gap, self.rows * up - line

    def origin(self, layer: int) -> tuple[float, float]:
        """Return the lower left corner of the map of a layer, in inches."""
        (wide, _, tall), (gap, line) = self.grid.shape, GAPS
        row, column = divmod(layer, self.columns)
        across, up = wide * self.cell + gap, tall * self.cell + line
        return column * across, (self.rows - 1 - row) * up

    def rectangles(self, box: Box) -> Iterator[Rectangle]:
        """Yield the pieces of a box in its layers, cut at the wrap-around."""
        x, y, z, nx, ny, nz = box
        wide, layers, tall = self.grid.shape
        for layer in range(y, y + ny):
            left, below = self.origin(layer % layers)
            for x0, x1, *cut_x in _spans(x, nx, wide):
                for z0, z1, *cut_z in _spans(z, nz, tall):
                    across = left + x0 * self.cell, left + x1 * self.cell
                    up = below + z0 * self.cell, below + z1 * self.cell
                    yield Rectangle(*across, *up, (cut_x[0], cut_x[1], cut_z[0], cut_z[1]))


class Rectangle(NamedTuple):
    """Piece of a box on paper, in inches, and the edges at which the box continues."""

    left: float
    right: float
    low: float
    high: float
    cut: tuple[bool, bool, bool, bool] = (False, False, False, False)

    @property
    def corners(self) -> Corners:
        """Corners in order; the last one repeats the first."""
        a, b, c, d, _ = self
        return [(a, c), (b, c), (b, d), (a, d), (a, c)]

    @property
    def middle(self) -> tuple[float, float]:
        """Center of the rectangle."""
        return (self.left + self.right) / 2, (self.low + self.high) / 2

    def is_crossed(self, line: Corners) -> bool:
        """Return whether a vertical or horizontal line crosses the rectangle."""
        (a, c), (b, d) = line
        across = min(a, b) < self.right and max(a, b) > self.left
        return across and min(c, d) < self.high and max(c, d) > self.low

    def turn(self, label: str) -> int | None:
        """Return the degrees by which to turn a label that fits; None if the label does not fit."""
        for turn in (0, 90):
            wide, tall = label_size(label, turn)
            if self.right - self.left >= wide and self.high - self.low >= tall:
                return turn
        return None

    @property
    def edges(self) -> Iterator[Corners]:
        """Edges at which the box ends."""
        a, b, c, d, cut = self
        lines = ([(a, c), (a, d)], [(b, c), (b, d)], [(a, c), (b, c)], [(a, d), (b, d)])
        return (line for line, goes_on in zip(lines, cut) if not goes_on)


def label_size(label: str, turn: int) -> tuple[float, float]:
    """Return width and height of a label that is turned by 0 or 90 degrees, in inches."""
    long = WIDE * len(label)
    return (TALL, long) if turn else (long, TALL)


def _spans(at: int, length: int, side: int) -> list[tuple[int, int, bool, bool]]:
    """Return begin, end, and whether the stretch continues there, for each piece on a ring."""
    if at + length <= side:
        return [(at, at + length, False, False)]
    return [(at, side, False, True), (0, at + length - side, True, False)]


Label = TypeVar("Label", bound=Hashable)


def colors(grid: Grid, *arrangements: Mapping[Label, Box]) -> dict[Label, str]:
    """Return a fill for each job, the same in all arrangements.

    Jobs are colored in order of appearance. Each gets the fill of `style.FILLS` with the fewest
    links to the job so far, the least recently used one on ties. An arrangement has the boxes of
    the jobs at one time, which do not overlap.
    """
    jobs = list(dict.fromkeys(job for boxes in arrangements for job in boxes))
    number = {job: place for place, job in enumerate(jobs)}
    links: list[dict[int, int]] = [{} for _ in jobs]
    for boxes in arrangements:
        holder = np.full(grid.shape, -1)
        for job, box in boxes.items():
            holder[grid.routers_of(box)] = number[job]
        for axis, wraps in enumerate(grid.wrap):
            pairs = np.stack((holder, np.roll(holder, -1, axis)), axis=-1)
            if not wraps:
                pairs = np.delete(pairs, -1, axis)
            pairs = pairs.reshape(-1, 2)
            apart = (pairs.min(axis=1) >= 0) & (pairs[:, 0] != pairs[:, 1])
            adjacent, counts = np.unique(pairs[apart], axis=0, return_counts=True)
            for (a, b), count in zip(adjacent.tolist(), counts.tolist()):
                links[a][b] = links[a].get(b, 0) + count
                links[b][a] = links[b].get(a, 0) + count
    chosen: list[int] = []
    given = list(range(len(style.FILLS)))
    for near in links:
        border = [0] * len(style.FILLS)
        for other, count in near.items():
            if other < len(chosen):
                border[chosen[other]] += count
        fill = min(given, key=border.__getitem__)
        given.remove(fill)
        given.append(fill)
        chosen.append(fill)
    return {job: style.FILLS[fill] for job, fill in zip(jobs, chosen)}


BUSY = style.FAINT  # fill of jobs in the background

CLOSE, WIDELY, UPRIGHT = "//////", "\\\\\\", "||||"
"""Hatches of holes, of incoming jobs, and of parked jobs."""

THIN, THICK = 0.4, 1.4  # widths of thin outlines of jobs, and of thick ones, in points
SMALL = 6.5  # size of the labels of the maps, in points
HEADING, LINE = 0.26, 0.19  # height of a heading and of a line of the legend, in inches


class Part(NamedTuple):
    """Box with its style: a color, if any, and a hatch over it in matplotlib's notation.

    The label is written into every piece of the box that is large enough. The outline has a width
    in points; 0 for no outline.
    """

    box: Box
    fill: str | None
    label: str = ""
    hatch: str = ""
    outline: float = THIN


class Entry(NamedTuple):
    """Entry of the legend: a text and the style that it explains."""

    text: str
    fill: str | None
    hatch: str = ""
    outline: float = THIN


class Panel(NamedTuple):
    """All layers of a torus at one time, under a heading."""

    heading: str
    parts: Sequence[Part]


def parts_of(grid: Grid, boxes: Mapping[int, Box], names: Any) -> list[Part]:
    """Return the boxes of jobs as parts to draw in color, each with the name of its job."""
    fills = colors(grid, boxes)
    return [Part(box, fills[job], str(names[job])) for job, box in boxes.items()]


def holes_of(holes: Sequence[Box]) -> list[Part]:
    """Return unavailable routers as parts to draw."""
    return [Part(box, None, hatch=CLOSE, outline=0.0) for box in holes]


HOLES = Entry("no router for jobs", None, CLOSE, 0.0)  # entry of unavailable routers in the legend


@style.applied()
def figure_of(
    title: str, grid: Grid, panels: Sequence[Panel], legend: Sequence[Entry] = ()
) -> Figure:
    """Return a picture of a torus at one or more times, one above the other."""
    from matplotlib.patches import Patch

    size, titled = style.what_is_asked.get()
    if size is not None:
        raise InputError("maps of a torus have a size of their own; expected none", field="size")
    sheet = Sheet.of(grid)
    width, tall = sheet.extent
    wide = width + MARGIN
    beside = max(1, min(len(panels), int(style.WIDTH / wide)))
    panel_height = HEADING + LINE + tall + MARGIN
    longest = max((len(entry.text) for entry in legend), default=1)
    columns = max(1, min(len(legend), int((style.WIDTH - MARGIN) / (0.062 * longest + 0.55))))
    foot = math.ceil(len(legend) / columns) * LINE + 0.1 if legend else 0.0
    height = HEADING + math.ceil(len(panels) / beside) * panel_height + foot
    drawing = style.new_figure(height, title)
    drawing.set_layout_engine("none")
    if titled:
        drawing.suptitle(title, x=0.01, y=1 - 0.08 / height, ha="left", va="top")
    for place, panel in enumerate(panels):
        row, column = divmod(place, beside)
        left = column * wide + MARGIN
        bottom = height - HEADING - (row + 1) * panel_height + MARGIN
        axes = drawing.add_axes(
            (left / style.WIDTH, bottom / height, width / style.WIDTH, tall / height)
        )
        without = draw_layers(axes, sheet, panel.parts)
        narrow = f"; {without} too narrow for a label" if without else ""
        drawing.text(
            (left - MARGIN + 0.09) / style.WIDTH,
            (bottom + tall + LINE + 0.03) / height,
            panel.heading + narrow,
            color=style.GREY,
        )
    if legend:
        drawing.legend(
            handles=[
                Patch(
                    facecolor=entry.fill or "white",
                    edgecolor=style.GREY if entry.hatch and not entry.outline else style.INK,
                    hatch=entry.hatch,
                    linewidth=entry.outline,
                    label=entry.text,
                )
                for entry in legend
            ],
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
    """Draw the maps of all layers, and return the number of boxes too narrow for their labels.

    The axes are in inches, of the size `Sheet.extent`. Parts of the same style are drawn as one
    path: small in SVG, and sharp. Of overlapping parts, a later style covers the others.
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
    _draw_frames(axes, sheet)
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
    """Write a label, with a background where a hatch or a bold outline would cross the text."""
    (x, z), (wide, tall) = piece.middle, label_size(part.label, turn)
    behind = Rectangle(x - wide / 2, x + wide / 2, z - tall / 2, z + tall / 2)
    if part.hatch or any(behind.is_crossed(line) for line in bold):
        axes.add_patch(_patch([behind.corners], facecolor=part.fill, linewidth=0, zorder=4.5))
    va = "center" if turn else "center_baseline"
    axes.text(x, z, part.label, fontsize=LABEL, ha="center", va=va, rotation=turn, zorder=5)


def _draw_frames(axes: Axes, sheet: Sheet) -> None:
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
    frames = _patch(corners, facecolor="none", edgecolor=style.GREY, linewidth=0.6, zorder=3)
    axes.add_patch(frames)


def _patch(lines: Sequence[Corners], *, linewidth: float, **look: Any) -> PathPatch:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    codes = [code for line in lines for code in (Path.MOVETO, *[Path.LINETO] * (len(line) - 1))]
    path = Path(np.concatenate([np.array(line) for line in lines]), codes)
    look = {"edgecolor": style.GREY, "clip_on": False, "joinstyle": "miter"} | look
    return PathPatch(path, linewidth=linewidth, capstyle="projecting", **look)


PALE = ("#C6DBF1", "#F8CDBF", "#F8F1CD", "#FFDBE2", "#D4F1FF", "#B0E2D4", "#E2EAA9", "#DCDC8F")
"""Pale versions of `style.FILLS`, in the same order."""

EACH = (*style.FILLS, *PALE)
"""Fills of single moves; with more moves than these, all have the same two."""

LEAVING, ARRIVED = style.FILLS[1], style.FILLS[0]
"""Fills of many moving jobs: in their boxes before, and in their new boxes."""

LABELED = 10  # number of labels of many moving jobs, and of incoming ones beside them: the largest

COMING = "#FFFFFF"
"""Fill of incoming jobs."""


class Move(NamedTuple):
    """Move of a job, perhaps parked on the way: labels before and after, text of the legend."""

    before: str
    after: str
    text: str
    parked: bool


def moves_of(steps: Sequence[Step], names: Sequence[str | int]) -> dict[int, Move]:
    """Return the moves of jobs by steps, numbered from 1; `names` are those of the running jobs."""
    numbers: dict[int, list[str]] = {}
    for number, (job, _) in enumerate(steps, start=1):
        numbers.setdefault(job, []).append(str(number))
    boxes = destinations_of(steps)
    return {
        job: Move(
            before=of_job[0],
            after=of_job[-1],
            text=f"{' and '.join(of_job)}: job {names[job]} to {boxes[job]}",
            parked=len(of_job) > 1,
        )
        for job, of_job in numbers.items()
    }


def relocation_figure(
    title: str,
    headings: tuple[str, str],
    grid: Grid,
    holes: Sequence[Box],
    before: Mapping[Label, Box],
    after: Mapping[Label, Box],
    moves: Mapping[Label, Move],
    coming: Mapping[Label, str],
) -> Figure:
    """Return the torus before and after migrations.

    A job that moves has a color of its own, the same in both maps. More jobs than there are colors
    have one color before and another one after, with labels for the largest. Jobs that are parked
    on the way have upright lines. The boxes of incoming jobs are outlined before, and hatched
    after. All other jobs are gray. `moves` are in the order of the legend, and `coming` has the
    labels of the incoming jobs.
    """
    own = dict(zip(moves, EACH)) if len(moves) <= len(EACH) else {}
    labeled = {*moves, *coming}
    if not own:
        labeled = {*_largest(before, moves), *_largest(after, coming)}
    places = [Part(after[job], None, outline=THICK) for job in coming]
    panels = []
    for heading, boxes, is_before in zip(headings, (before, after), (True, False)):
        shared = LEAVING if is_before else ARRIVED
        parts = holes_of(holes)
        for job, box in boxes.items():
            if job in moves:
                move = moves[job]
                label = (move.before if is_before else move.after) if job in labeled else ""
                hatch = UPRIGHT if move.parked else ""
                parts.append(Part(box, own.get(job, shared), label, hatch))
            elif job in coming:
                label = coming[job] if job in labeled else ""
                parts.append(Part(box, COMING, label, WIDELY, THICK))
            else:
                parts.append(Part(box, BUSY))
        panels.append(Panel(heading, parts + (places if is_before else [])))
    legend = [
        Entry(moves[job].text, fill, UPRIGHT if moves[job].parked else "")
        for job, fill in own.items()
    ]
    if moves and not own:
        legend = [
            Entry("moves away", LEAVING),
            Entry("has moved here", ARRIVED),
            Entry(f"labels: the {LABELED} largest", None, outline=0.0),
        ]
    if coming:
        noun = "incoming job" if len(coming) == 1 else "incoming jobs"
        legend.append(Entry(noun, COMING, WIDELY, THICK))
    if set(before) - set(moves):
        legend.append(Entry("stays", BUSY, outline=THIN))
    if any(move.parked for move in moves.values()):
        legend.append(Entry("lines: parked on the way", None, UPRIGHT))
    return figure_of(title, grid, panels, [*legend, *([HOLES] if holes else [])])


def _largest(boxes: Mapping[Label, Box], jobs: Iterable[Label]) -> list[Label]:
    return sorted(jobs, key=lambda job: -boxes[job].volume)[:LABELED]
