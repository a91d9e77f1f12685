"""Two figures that every study can have: the panel of its claims, and a specification curve.

Each is drawn for a wide page and, `narrow`, for a phone of 390 pixels. Verdicts have colors and
shapes, so that the figures can be read without colors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.numbers import written
from optsched.report.style import GREY, INK
from optsched.studies.claims import FAILS, HOLDS, OPEN, Claim, Region, with_interval, without_noise
from optsched.studies.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAND = "#E4E4E4"
COLOURS = {HOLDS: "#0072B2", OPEN: "#666666", FAILS: "#D55E00"}
SHAPES = {HOLDS: "o", OPEN: "o", FAILS: "s"}  # an open circle is not decided
PAPER: dict[str, Any] = {"color": INK, "markerfacecolor": "#FFFFFF", "markersize": 5.0}
WIDE, NARROW = 9.17, 3.75  # inches of a figure: 880 and 360 pixels of a browser


class Column(NamedTuple):
    """The effect with a combination of choices, which are none in the main reading."""

    found: Interval
    choices: frozenset[str]


def claims_panel(
    claims: Mapping[str, Claim], *, narrow: bool = False, words: Mapping[str, str] | None = None
) -> Figure:
    """Draw a row for each claim: where it has to lie, the paper's number, and our interval.

    With `words` for the verdicts, the rows are no claims of a paper: only intervals are drawn.

    An axis is linear near 0 and logarithmic far from it, so that points and tens of percent show;
    it is linear where all numbers are of one size, or small.
    Ratios (the unit ``times``) are compared with 1. Groups that follow one another share an
    axis if their claims have the same unit; percent and points do. Claims that are not judged, or
    have no `panel`, are left out.
    """
    from matplotlib.figure import Figure

    judged = [one for one in claims.values() if one.found and one.panel]
    panel = _Panel(judged, words, narrow=narrow)
    same = ("", "%", "points")
    by_axis = groupby(judged, lambda one: "%" if one.unit in same else one.unit)
    parts = [(unit, [*own]) for unit, own in by_axis]
    heights = [
        panel.pitch * len(own) + panel.head * len({one.group for one in own}) for _, own in parts
    ]
    handles = panel.handles(judged)
    columns = 3 if narrow else len(handles)
    top, below = 0.05 + 0.17 * -(-len(handles) // columns), 0.52
    place, height = top, top + sum(heights) + below * len(parts)
    figure = Figure((panel.width, height))
    for (unit, own), inches in zip(parts, heights):
        bottom = 1 - (place + inches) / height
        box = (panel.left / panel.width, bottom, panel.axis / panel.width, inches / height)
        axes = figure.add_axes(box)
        names = sorted({"percent" if one.unit == "%" else one.unit for one in own})
        label = ", or ".join(names) + _scale(axes, own, unit, narrow=narrow)
        axes.set(ylim=(inches, 0), yticks=[], xlabel=label)
        axes.spines["left"].set_visible(False)
        axes.grid(not narrow, axis="x")
        panel.draw(axes, own, headed=place == top and not narrow)
        place += inches + below
    figure.legend(
        handles.values(), handles, loc="upper left", ncols=columns, frameon=False,
        bbox_to_anchor=(0.0, 1 - 0.02 / height), handlelength=1.5, columnspacing=0.9,
        handletextpad=0.5, borderaxespad=0.1, fontsize=8 if narrow else None,
    )  # fmt: skip
    return figure


def _origin(unit: str) -> float:
    return 1.0 if unit == "times" else 0.0


def _scale(axes: Axes, claims: Sequence[Claim], unit: str, *, narrow: bool) -> str:
    """Scale the axis for all means, and intervals that are not wide; return how it is formed."""
    means, times = [one.main.mean for one in claims], unit == "times"
    inner = means + [one.published for one in claims if one.published is not None]
    far = 3 * max(3.0, *map(abs, inner))
    ends = [end for one in claims for end in one.main[1:3] if not isnan(end)]
    shown = [*inner, *np.clip(ends, -far, far), _origin(unit)]
    low, high = 1.15 * min(shown), 1.15 * max(shown)
    limits = (-0.05, high) if times else (min(low, -1.0), max(high, 1.0))
    axes.set_xlim(*limits)
    most, least = max(map(abs, limits)), min(map(abs, means))
    if not times and (most < 10 or least > most / 10):  # small, or of one size
        axes.locator_params("x", nbins=4)
        return ""
    linear = 1.0 if times else min(3.0, most / 3)
    powers = range(int(np.floor(np.log10(linear))), int(np.log10(most)) + 1)
    steps, every = ((0.5, 1, 2), 1) if times else ((1, 3), 2 if narrow else 1)
    sizes = [step * 10.0**power for power in powers for step in steps]
    sizes = [size for size in sizes if size >= steps[0] * linear * 0.99][::every]
    ticks = [-size for size in reversed(sizes)] + [0.0, *sizes]
    ticks = [tick for tick in ticks if limits[0] <= tick <= limits[1]]
    axes.set_xscale("asinh", linear_width=linear)
    axes.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
    axes.set_xticks([], minor=True)
    return f" (axis {'compressed above 1' if times else 'stretched around 0'})"


class _Panel:
    """What the rows of a panel share: sizes in inches, and whether there are claims of a paper."""

    def __init__(
        self, claims: Sequence[Claim], words: Mapping[str, str] | None, *, narrow: bool
    ) -> None:
        self._words, self._narrow = words, narrow
        self._known = any(one.published is not None for one in claims)
        self._shapes = SHAPES if words is None else SHAPES | {FAILS: "X"}
        sizes = (0.215, 0.30, 2.95, 2.2, WIDE)
        if narrow:
            sizes = (0.37, 0.34, 0.06, 0.76 if self._known else 0.06, NARROW)
        self.pitch, self.head, self.left, self._right, self.width = sizes
        self.axis = self.width - self.left - self._right

    def draw(self, axes: Axes, claims: Sequence[Claim], *, headed: bool) -> None:
        """Draw the rows of an axis, with heads of their columns or without."""
        left, right = -self.left / self.axis, self._right / self.axis
        theirs, ours = 1 + 0.20 * right, 1 + 0.985 * right
        heads = [(theirs, "paper")] * self._known
        heads += [(ours, "here [95% interval]" if self._words is None else "change [interval]")]
        # x in shares of the axes, y in inches from above
        at: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center"}
        place, group = 0.0, ""
        for one in claims:
            if one.group != group:
                group = one.group
                place += self.head
                axes.text(left + 0.01, place - 0.09, group, weight="bold", **at)
                for x, text in heads if headed and place == self.head else ():
                    axes.text(x, place - 0.09, text, ha="right", color=GREY, **at)
            place += self.pitch
            row = place - (0.075 if self._narrow else self.pitch / 2)
            self._mark(axes, one, row)
            text = with_interval(one.main, one.unit, one.region[:2])
            look: dict[str, Any] = {"ha": "right", "color": COLOURS[one.verdict()], **at}
            grey = look | {"color": GREY}
            paper = without_noise(one.published, one.unit).rstrip("%")
            if self._narrow:
                axes.text(0.0, row - 0.16, one.text, **at)
                axes.text(ours, row - 0.16, text, **look)
                if one.published is not None:
                    axes.text(ours, row, f"paper {paper}", **grey)
            else:
                axes.text(left + 0.03, row, one.text, **at)
                if self._known:
                    axes.text(theirs, row, paper, **grey)
                axes.text(ours, row, text, **look)

    def _mark(self, axes: Axes, one: Claim, row: float) -> None:
        """Draw the band of a claim, where nothing differs, the paper's number, our interval."""
        from matplotlib.patches import Rectangle

        ends, half = axes.get_xlim(), 0.075 if self._narrow else 0.085
        if self._words is None:
            low, high = np.clip(one.region[:2], *ends)
            size = (high - low, 2 * half)
            axes.add_patch(Rectangle((low, row - half), *size, facecolor=BAND, zorder=0.5))
        same = [_origin(one.unit)] * 2
        axes.plot(same, [row - half, row + half], color=GREY, linewidth=1.0, zorder=1)
        if one.published is not None:
            axes.plot(np.clip(one.published, *ends), row, "D", zorder=4, **PAPER)
        verdict = one.verdict()
        _whisker(axes, one.main, row, verdict, shape=self._shapes[verdict], upright=False)

    def handles(self, claims: Sequence[Claim]) -> dict[str, Any]:
        """Return the entries of the legend: verdicts that occur, the paper, and the band."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        found, handles = {one.verdict() for one in claims}, dict[str, Any]()
        for verdict in [one for one in COLOURS if one in found]:
            look: dict[str, Any] = {"color": COLOURS[verdict], "marker": self._shapes[verdict]}
            line = Line2D([], [], linewidth=1.8, **look, **_face(verdict))
            handles[(self._words or {}).get(verdict, verdict)] = line
        if self._known:
            handles["the paper"] = Line2D([], [], marker="D", linewidth=0, **PAPER)
        if self._words is None:
            handles["where the claim is true"] = Patch(facecolor=BAND)
        return handles


def _whisker(
    axes: Axes, found: Interval, place: float, verdict: str, *, shape: str, upright: bool
) -> None:
    """Draw an interval with its mean, and an arrow head where it leaves the axes."""

    def plot(values: Any, *form: str, **look: Any) -> None:
        pair = (values, [place] * len(values))
        axes.plot(*(pair[::-1] if upright else pair), *form, color=COLOURS[verdict], **look)

    low, high = axes.get_ylim() if upright else axes.get_xlim()
    if not isnan(found.low):
        ends = np.clip([found.low, found.high], low, high)
        plot(ends, linewidth=1.8, solid_capstyle="butt", zorder=3)
    heads = ("v", "^") if upright else ("<", ">")
    beyond = (min(found.low, found.mean) < low, max(found.high, found.mean) > high)
    for end, head, out in zip((low, high), heads, beyond):
        if out:
            plot([end], head, markersize=5, clip_on=False, zorder=3)
    if low <= found.mean <= high:
        plot([found.mean], shape, zorder=5, **_face(verdict))


def _face(verdict: str) -> dict[str, Any]:
    face = "#FFFFFF" if verdict == OPEN else COLOURS[verdict]
    return {"markerfacecolor": face, "markeredgewidth": 1.4, "markersize": 5.5}


def specification_curve(
    columns: Iterable[Column],
    choices: Sequence[str],
    label: str,
    *,
    limits: tuple[float, float],
    claimed: Region = Region(0.0),  # noqa: B008
    unit: str = "%",
    narrow: bool = False,
) -> Figure:
    """Draw the sorted effects under combinations of choices, and below them which are made.

    `label` says what the effect is, `claimed` where it has to lie. `choices` has a row each, in
    this order. Effects outside the `limits` are arrows, with their least and largest number.
    """
    from matplotlib.figure import Figure

    ranked = sorted(columns, key=lambda one: one.found.mean)
    width = NARROW if narrow else WIDE
    pitch, upper, gap, bottom, left = 0.185, 2.3, 0.12, 0.10, (1.62 if narrow else 2.0)
    lower = pitch * (len(choices) + 0.3)
    height = 0.36 + upper + gap + lower + bottom
    figure = Figure((width, height))
    wide = (width - left - 0.08) / width
    effect = figure.add_axes((left / width, (bottom + lower + gap) / height, wide, upper / height))
    dots = figure.add_axes((left / width, bottom / height, wide, lower / height))
    effect.set(xlim=(-0.8, len(ranked) - 0.2), ylim=limits, xticks=[])
    effect.spines["bottom"].set_visible(False)
    effect.grid(axis="x", visible=False)
    effect.axhline(_origin(unit), color=GREY, linewidth=1.0)
    figure.text(0.008, 1 - 0.13 / height, label, weight="bold", va="center")
    for x, one in enumerate(ranked):
        mean = float(np.clip(one.found.mean, *limits))
        shown = one.found if mean == one.found.mean else one.found._replace(low=mean, high=mean)
        verdict = claimed.verdict(one.found)
        _whisker(effect, shown, x, verdict, shape=SHAPES[verdict], upright=True)
        if not one.choices:
            for axes in (effect, dots):
                axes.axvspan(x - 0.5, x + 0.5, color="#EEDD88", linewidth=0, zorder=0)
            side = ("left", "center", "center", "center", "right")[5 * x // len(ranked)]
            effect.text(x, limits[1], "main reading", ha=side, va="bottom", color=INK)
    means = [one.found.mean for one in ranked]
    low, high = ([m for m in means if m < limits[0]], [m for m in means if m > limits[1]])
    free = all(one.choices for one in ranked[len(ranked) // 2 :])
    right = len(ranked) - (0.2 if free else len(high) + 0.8)
    places = ((len(low) - 0.2, "left", "bottom"), (right, "right", "bottom" if free else "top"))
    for out, end, (at, side, va) in zip((low, high), limits, places):
        if out:
            ends = sorted((min(out), max(out)), key=abs)
            several = unit == "%" and ends[0] < -100  # no gain says well what takes so long
            texts = (
                [f"{1 - one / 100:.0f}" for one in ends] if several else map(written, sorted(ends))
            )
            text, by = " to ".join(dict.fromkeys(texts)), (0, 4 if va == "bottom" else -4)
            text += " times" * several
            look: dict[str, Any] = {"color": GREY, "ha": side, "va": va}
            effect.annotate(text, (at, end), by, textcoords="offset points", **look)
    dots.set(xlim=effect.get_xlim(), ylim=(len(choices) - 0.35, -0.65), xticks=[])
    dots.set_yticks(range(len(choices)), choices, fontsize=7.5 if narrow else None)
    dots.tick_params(length=0)
    dots.grid(visible=False)
    dots.spines[["left", "bottom"]].set_visible(False)
    for row, choice in enumerate(choices):
        if row % 2 == 0:
            dots.axhspan(row - 0.5, row + 0.5, color="#F2F2F2", linewidth=0, zorder=-1)
        made = [x for x, one in enumerate(ranked) if choice in one.choices]
        dots.plot(made, [row] * len(made), "o", color=INK, markersize=3 if narrow else 4.2)
    return figure
