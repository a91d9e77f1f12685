"""Common style of all pictures, their dark variants, and their reproducible writing."""

from __future__ import annotations

import re
import textwrap
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optsched.errors import InputError, one_line
from optsched.files import written
from optsched.registry import solvers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


INK = "#222222"
GREY = "#666666"
FAINT = "#D9D9D9"

LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7A7A7A")
"""Line colors for color-blind readers, after Okabe and Ito, without their yellow."""

DASHES: tuple[tuple[float, tuple[float, ...]], ...] = (
    (0, ()),
    (0, (4, 1.5)),
    (0, (1, 1.2)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (6, 1.5, 1, 1.5, 1, 1.5)),
)
"""Line styles; each is used with all of `LINES` before the next."""

FILLS = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00")
"""Fill colors for black labels and color-blind readers, after Tol."""

RULE: dict[str, Any] = {"color": GREY, "linewidth": 0.8}  # style of lines to compare with
WIDTH = 9.0  # width of a picture, in inches
TITLE = 90  # most characters in a line of a title; more may not fit into the width

SMALL: dict[str, Any] = {
    **dict.fromkeys(("axes.titlesize", "figure.labelsize", "font.size", "legend.fontsize"), 7),
    "figure.titlesize": 8.5,
    "lines.linewidth": 1.1,
}
"""What is smaller in a picture narrower than `NARROW` inches, which is a column of print."""

NARROW = 6.0

PER_INCH = 15  # characters of small letters in an inch
SHORTEST = 12  # least characters of a line of a label
LARGEST = 100.0  # largest width or height of a picture, in inches

DOTS_PER_INCH, DOTS_PER_INCH_OF_NOTEBOOKS = 150, 100

_REFERENCE = re.compile(r'(?:(?<=id=")|(?<=href="#)|(?<=url\(#))[A-Za-z][0-9a-f]{10}(?=["\)])')
"""An id that is a hash, where it is defined or used."""

METADATA: dict[str, dict[str, str | None]] = {
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
}
"""Metadata to leave out of each format of pictures, by suffix, so that files are reproducible."""

_RC: dict[str, Any] = {
    **dict.fromkeys(("axes.axisbelow", "axes.grid"), True),
    **dict.fromkeys(("axes.spines.right", "axes.spines.top", "legend.frameon"), False),
    **dict.fromkeys(("axes.labelcolor", "text.color", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "axes.titlecolor", "xtick.color", "ytick.color"), GREY),
    "grid.color": FAINT,
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # matplotlib looks for a place above all ticks otherwise, in every drawing
    "figure.titleweight": "bold",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
    **dict.fromkeys(("axes.titlesize", "figure.labelsize", "font.size"), 9),
    "figure.titlesize": 11,
    "legend.fontsize": 8.5,
    "axes.linewidth": 0.8,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "optsched",
}


class Stroke(NamedTuple):
    """Stroke of a line: color and dashes."""

    colour: str
    dashes: tuple[float, tuple[float, ...]]


STROKES = [Stroke(color, dashes) for dashes in DASHES for color in LINES]


@cache
def _of_own_solvers() -> dict[str, Stroke]:
    """Return the strokes of the solvers of this package, with solid lines for generic solvers."""
    # without a common model two may have one, so that a new solver changes few pictures
    own = [name for name in solvers if solvers[name].__module__.startswith("optsched.")]
    ranked = sorted(own, key=lambda name: (solvers[name].models is not None, name))
    chosen: dict[str, Stroke] = {}
    for name in ranked:
        models = solvers[name].models
        taken = {
            stroke
            for other, stroke in chosen.items()
            for theirs in [solvers[other].models]
            if models is None or theirs is None or not models.isdisjoint(theirs)
        }
        chosen[name] = next(stroke for stroke in STROKES if stroke not in taken)
    return chosen


def strokes(names: Sequence[str]) -> dict[str, Stroke]:
    """Return a different stroke for each name, mostly independent of the other names.

    Solvers of this package have fixed strokes, the same in all pictures of a model. Other names get
    one of the remaining strokes by checksum; if two names collide, the later one in the alphabet
    gets the next free stroke.
    """
    own = _of_own_solvers()
    others = [stroke for stroke in STROKES if stroke not in own.values()]
    chosen: dict[str, Stroke] = {}
    for name in names:
        if name in own and own[name] not in chosen.values():
            chosen[name] = own[name]
    free = list(range(len(others)))
    for name in sorted(set(names) - chosen.keys()):
        free = free or list(range(len(others)))
        wanted = zlib.crc32(name.encode()) % len(others)
        place = next((place for place in free if place >= wanted), free[0])
        free.remove(place)
        chosen[name] = others[place]
    return chosen


class _Asked(NamedTuple):
    """Size in inches that a user asks for, None for that of the picture, and whether of titles."""

    size: tuple[float, float] | None = None
    titled: bool = True


what_is_asked: ContextVar[_Asked] = ContextVar("asked", default=_Asked())  # noqa: B039 (a tuple)


@contextmanager
def asked(size: Any, title: Any) -> Iterator[None]:
    """Let new figures have a size, if it is not None, and no title if `title` is False."""
    if size is not None:
        try:
            size = tuple(map(float, size))
        except (TypeError, ValueError):
            size = ()
        if len(size) != 2 or not all(1 <= length <= LARGEST for length in size):
            expected = f"expected (width, height) in inches, each from 1 to {LARGEST:g}"
            raise InputError(expected, field="size")
    before = what_is_asked.set(_Asked(size, bool(title)))
    try:
        yield
    finally:
        what_is_asked.reset(before)


def is_narrow() -> bool:
    """Return whether new figures are narrower than `NARROW`."""
    size = what_is_asked.get().size
    return size is not None and size[0] < NARROW


@contextmanager
def applied() -> Iterator[None]:
    """Apply the common style, independent of the user's matplotlib settings."""
    import matplotlib.style

    with matplotlib.style.context(["default", _RC, *([SMALL] if is_narrow() else [])]):
        yield


def new_figure(height: float, title: str) -> Figure:
    """Return an empty figure of the common width and of `height` inches, under a title.

    If a user asks for another size or no title, it is as asked. A notebook shows it without pyplot.
    """
    from matplotlib.figure import Figure

    size, titled = what_is_asked.get()
    figure = Figure(figsize=size or (WIDTH, height), layout="constrained")
    figure._repr_png_ = partial(png, figure)  # type: ignore[attr-defined]
    if titled:
        most = TITLE if size is None else max(1, int(TITLE * size[0] / WIDTH))
        lines = textwrap.fill(one_line(title), most, break_on_hyphens=False)
        figure.suptitle(lines, x=0.01, ha="left")
    return figure


def png(figure: Figure) -> bytes:
    """Return a figure as PNG for a notebook."""
    data = BytesIO()
    figure.savefig(data, format="png", dpi=DOTS_PER_INCH_OF_NOTEBOOKS)
    return data.getvalue()


def subtitle(axes: Axes, sentence: str) -> None:
    """Write a sentence on the picture below its title, unless a user asks for no title."""
    if what_is_asked.get().titled:
        axes.set_title(sentence)


def legend_beside(axes: Axes, **look: Any) -> None:
    """Put the legend to the right of the axes; below, in a narrow figure."""
    size = what_is_asked.get().size
    if size is None or not is_narrow():
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), **look)
        return
    handles, labels = axes.get_legend_handles_labels()
    columns = int(size[0] * PER_INCH / (5 + max(map(len, labels), default=0)))
    close = {"handlelength": 1.2, "handletextpad": 0.5, "columnspacing": 1.0, "labelspacing": 0.2}
    look = {"ncols": max(1, columns), "borderaxespad": 0.1, **close, **look}
    axes.figure.legend(handles, labels, loc="outside lower left", **look)


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``name.svg`` and ``name.png`` to `folder`, without dates and random ids."""
    paths = [folder / f"{name}{suffix}" for suffix in METADATA]
    _write(figure, paths)
    return paths


def save_as(figure: Figure, path: Path) -> None:
    """Write a picture in the format that its suffix names, one of `METADATA`."""
    check_suffix(path)
    _write(figure, [path])


def _write(figure: Figure, paths: Sequence[Path]) -> None:
    with applied(), warnings.catch_warnings():
        # no font has all scripts; a browser substitutes its own fonts
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        _take_literally(figure)
        engine = figure.get_layout_engine()
        if engine is not None and figure.axes:  # once: it would draw twice for each format
            engine.execute(figure)
            figure.set_layout_engine(None)
        for path in paths:
            kind = path.suffix
            drawn = BytesIO()
            figure.savefig(drawn, format=kind[1:], dpi=DOTS_PER_INCH, metadata=METADATA[kind])
            content = drawn.getvalue()
            if kind == ".svg":
                content = _with_numbered_ids(content.decode()).encode()
            with written(path) as stream:
                stream.write(content)


def _with_numbered_ids(svg: str) -> str:
    """Return the SVG with the ids of matplotlib's hashes numbered in order of appearance."""
    # that of a clip path depends on the last digits, and so on the linear algebra of the machine
    hashes = dict.fromkeys(_REFERENCE.findall(svg))
    ids = {text: f"{text[0]}{number}" for number, text in enumerate(hashes, start=1)}
    return _REFERENCE.sub(lambda found: ids[found[0]], svg)


def finished(figure: Figure) -> Figure:
    """Return a figure with the common style and its texts taken literally, whoever saves it."""
    with applied():
        _take_literally(figure)
        if what_is_asked.get().size is not None:
            _wrap(figure)
    return figure


def _wrap(figure: Figure) -> None:
    """Break titles and labels that are longer than their axes."""
    engine = figure.get_layout_engine()
    if engine is None:
        return
    for _ in range(2):  # a line more leaves less to the axes
        engine.execute(figure)
        for axes in figure.axes:
            inches = axes.get_position().size * figure.get_size_inches()
            wide, tall = (max(SHORTEST, int(PER_INCH * length)) for length in inches)
            axes.set_title(_filled(axes.get_title(loc="left"), wide), loc="left")
            axes.set_xlabel(_filled(axes.get_xlabel(), wide))
            axes.set_ylabel(_filled(axes.get_ylabel(), tall))


def _filled(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def _take_literally(figure: Figure) -> None:
    """Escape unprintable characters in the texts of a figure, and the $ of formulas."""
    from matplotlib.text import Text
    from matplotlib.ticker import FixedLocator

    axes = [axis for panel in figure.axes for axis in (panel.xaxis, panel.yaxis)]
    numbers: set[Text] = set()
    for axis in axes:
        if isinstance(axis.get_major_locator(), FixedLocator):
            labels = [label.get_text() for label in axis.get_ticklabels()]
            if labels != [*map(_literal, labels)]:
                axis.set_ticklabels([*map(_literal, labels)])
        else:  # written as formulas; not asked for their labels, which it would take long to find
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                numbers.update((tick.label1, tick.label2))
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if text not in numbers:
            text.set_parse_math(False)
            text.set_text(_literal(text.get_text()))


def _literal(text: str) -> str:
    return "\n".join(map(one_line, text.split("\n")))  # line breaks are intended


def check_suffix(path: Path) -> None:
    """Check that the suffix of a path is that of a picture format."""
    if path.suffix not in METADATA:
        expected = f"expected the suffix {' or '.join(METADATA)}"
        raise InputError(f"not the name of a picture; {expected}", file=path)


def draw_steps(axes: Axes, values: ArrayLike, edges: ArrayLike, **look: Any) -> None:
    """Draw a step curve, `values` between `edges`, on axes whose limits are set by the caller.

    The `look` is that of a matplotlib patch, and may have a ``baseline`` to fill from. To find the
    limits, matplotlib would walk each curve.
    """
    from matplotlib.patches import StepPatch

    axes.add_artist(StepPatch(values, edges, **look))


def count_ticks(axis: Axis) -> None:
    """Put ticks at whole numbers, with thousands separators."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    axis.set_major_formatter("{x:,.0f}")


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return `places`, in ``[0, 1]``, spread to distances of at least `gap`, in the same order.

    The first of equal places becomes the highest. Places that are too close together are spread
    around their mean. If that is impossible, all are evenly spread over ``[0, 1]``.
    """
    gap = min(gap, 1 / max(1, len(places) - 1))
    order = sorted(range(len(places)), key=lambda i: (places[i], -i))
    groups: list[list[int]] = []
    bases: list[float] = []
    for rank, i in enumerate(order):
        groups.append([i])
        bases.append(places[i] - rank * gap)
        while len(groups) > 1 and bases[-2] > bases[-1]:
            last, base = groups.pop(), bases.pop()
            share = len(last) / (len(groups[-1]) + len(last))
            bases[-1] += share * (base - bases[-1])
            groups[-1] += last
    highest = 1 - gap * (len(places) - 1)
    bases = [min(max(base, 0.0), highest) for base in bases]
    base_of = {i: base for group, base in zip(groups, bases) for i in group}
    ranks = {i: rank for rank, i in enumerate(order)}
    return [base_of[i] + ranks[i] * gap for i in range(len(places))]


def label_ends(axes: Axes, ends: dict[str, tuple[float, Stroke]], gap: float) -> None:
    """Write the names of lines to the right of the axes, at the heights of their ends.

    The limits of the axes are set. `ends` has for each name the y value at the right edge, and the
    stroke of the line; `gap` is the least distance of two names, as a share of the height.
    """
    from matplotlib.lines import Line2D

    to_share = axes.transScale + axes.transLimits
    right = axes.get_xlim()[1]
    heights = [float(to_share.transform((right, y))[1]) for y, _ in ends.values()]
    top = 1 - gap / 2  # a name above it would touch the title
    places = [top * place for place in spread([height / top for height in heights], gap / top)]
    for (name, (_, stroke)), height, place in zip(ends.items(), heights, places):
        leader = Line2D(
            [1.0, 1.03, 1.09],
            [height, place, place],
            transform=axes.transAxes,
            color=stroke.colour,
            linestyle=stroke.dashes,
            linewidth=1.2,
            clip_on=False,
        )
        axes.add_artist(leader)
        axes.text(1.1, place, name, transform=axes.transAxes, va="center", fontsize=8.5, color=INK)


INVERTED = np.array(
    [[0, 0.25, 0.51, 0.60, 0.72, 0.88, 1], [1.0, 0.90, 0.68, 0.62, 0.42, 0.33, 0.205]]
)
"""Lightness in Oklab of grays and of fills for labels, and of their dark variants: black ink
becomes white, and light fills dark."""

VIVID = np.array([[0, 0.64, 0.86, 0.90, 1], [0.64, 0.64, 0.82, 0.35, 0.205]])
"""The same of other colors, which stay apart from the dark paper, unless they are nearly white."""

GRAY = 0.03  # chroma in Oklab below which a color counts as gray

_COLORED = re.compile(r"(fill|stroke|stop-color): ?(#[0-9a-fA-F]{6})\b")

_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
"""Matrices of Oklab, by B. Ottosson (2020)."""


def with_dark_variant(svg: str) -> str:
    """Return an SVG document that has dark colors where the reader prefers them.

    The colors that stand as ``#rrggbb`` in style attributes are replaced by rules of a style
    element; raster images are inverted. In light surroundings nothing changes.
    """
    pairs = sorted({(name, color) for name, color in _COLORED.findall(svg)})
    rules = [":root{fill:#fff}image{filter:invert(1) hue-rotate(180deg)}"]
    rules += [
        f'[style*="{name}: {color}"]{{{name}:{dark(color)}!important}}' for name, color in pairs
    ]
    added = f"<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>"
    return re.sub(r"(<svg\b[^>]*>)", lambda found: found[1] + added, svg, count=1)


def dark(color: str) -> str:
    """Return the dark variant of a color, both as ``#rrggbb``: of the same hue."""
    red_green_blue = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(
        red_green_blue <= 0.04045, red_green_blue / 12.92, ((red_green_blue + 0.055) / 1.055) ** 2.4
    )
    lab = _TO_LAB @ np.cbrt(_TO_LMS @ linear)
    inverted = color.upper() in FILLS or np.hypot(lab[1], lab[2]) < GRAY
    lab[0] = np.interp(lab[0], *(INVERTED if inverted else VIVID))
    linear = np.linalg.inv(_TO_LMS) @ (np.linalg.inv(_TO_LAB) @ lab) ** 3
    linear = np.clip(linear, 0, 1)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{part:02x}" for part in np.rint(255 * encoded).astype(int).tolist())
