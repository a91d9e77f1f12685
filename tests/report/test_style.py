"""The look of pictures: names, strokes, colors in the dark, and files that stay the same."""

from __future__ import annotations

import math
import re
import warnings
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from optsched import registry
from optsched.registry import solvers
from optsched.report import style
from optsched.report.style import FILLS, GREY, INK, LINES, dark, with_dark_variant


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.01, 0.1))
def test_names_are_spread_within_the_axes_and_in_order_if_they_have_no_room(places, gap):
    assert style.spread([0.9, 0.1, 0.5], 0.1) == pytest.approx([0.9, 0.1, 0.5])
    assert style.spread([0.5, 0.5, 0.5], 0.1) == pytest.approx([0.6, 0.5, 0.4])  # first on top
    moved = np.array(style.spread(places, gap))
    gap = min(gap, 1 / max(1, len(places) - 1))
    order = np.argsort(moved)
    assert (np.diff(moved[order]) >= gap - 1e-9).all()
    assert (np.diff(np.array(places)[order]) >= 0).all()
    assert moved.min() >= -1e-9
    assert moved.max() <= 1 + 1e-9


@pytest.mark.parametrize("model", list(registry.models))
def test_a_solver_of_a_model_has_a_stroke_of_its_own_whatever_the_others_are(model):
    own = [name for name in solvers if solvers[name].supports(model)]
    names = [*own, "one", "more"]
    together = style.strokes(names)
    assert len(set(together.values())) == len(together) == len(names)
    assert together == style.strokes(names[::-1])
    for name in names:
        assert style.strokes([name]) == {name: together[name]}
    many = [f"solver-{number}" for number in range(2 * len(style.STROKES))]
    assert style.strokes(many).keys() == set(many)
    assert style.strokes(many) == style.strokes(many[::-1])


def test_the_users_settings_neither_matter_nor_change(tmp_path):
    def written(folder):
        folder.mkdir()
        with style.applied():
            figure = style.new_figure(2.0, "title")
            figure.subplots().plot([1, 2], [3, 4])
        return [path.read_bytes() for path in style.save(figure, folder, "picture")]

    before = written(tmp_path / "before")
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": "another", "savefig.dpi": 20}):
        assert written(tmp_path / "after") == before
        assert matplotlib.rcParams["font.size"] == 30


def test_the_last_digits_of_a_place_do_not_matter(tmp_path):
    """They depend on the processor, and are in the coordinates that matplotlib hashes for ids."""

    def written(name, left):
        figure = style.new_figure(2.0, "title")
        figure.set_layout_engine(None)
        figure.add_axes((left, 0.2, 0.6, 0.6)).plot([1, 2], [3, 4], marker="o")
        path = tmp_path / f"{name}.svg"
        style.save_as(figure, path)
        return path.read_text()

    svg = written("picture", 0.1)
    assert svg == written("moved", math.nextafter(0.1, 1))
    ids = re.findall(r' id="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:url\(|href=")#([^")]+)', svg)
    assert used
    assert set(used) <= set(ids)


@pytest.mark.parametrize(
    ("name", "drawn"),
    [
        ("日本", "日本"), ("a\tb", r"a\tb"), ("a\x1b[1mb", r"a\x1b[1mb"), ("a\nb", r"a\nb"),
        ("a$b$", "a$b$"), (r"a$\foo$", r"a$\foo$"),
    ],
)  # fmt: skip
def test_every_name_is_drawn_as_it_is_and_without_a_warning(tmp_path, name, drawn):
    line = name.replace("\n", "")  # elsewhere than in titles line breaks are ours
    with style.applied(), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = style.new_figure(2.0, name)
        axes = figure.subplots()
        axes.plot([1, 2], [1, 100], label=line)
        axes.set_yscale("log")
        axes.set_xticks([1, 2], [line, "two\nlines"])
        axes.set_title(line)
        axes.text(1, 3, line)
        axes.legend()
        [svg, _] = style.save(figure, tmp_path, "picture")
    text = "".join(ElementTree.parse(svg).getroot().itertext())
    assert drawn in text
    assert text.count(style.one_line(line)) >= 4
    assert "mathdefault" not in text  # the formulas of matplotlib's own ticks are drawn


@style.applied()
def test_a_long_title_is_broken_into_lines_within_the_picture():
    for title in ("SDSC-BLUE, jobs 58,135 to 62,964: " * 4, "a-file-name-without-spaces" * 8):
        drawing = style.new_figure(3, title)
        drawing.canvas.draw()
        assert drawing.get_suptitle().replace("\n", "").replace(" ", "") == title.replace(" ", "")
        assert drawing._suptitle.get_window_extent().x1 < drawing.bbox.x1


def test_names_of_lines_stay_below_the_title():
    axes = Figure().subplots()
    stroke = style.STROKES[0]
    style.label_ends(axes, {"one": (1.0, stroke), "other": (1.0, stroke)}, gap=0.1)
    assert [text.get_position()[1] for text in axes.texts] == pytest.approx([0.95, 0.85])


def luminance(color):
    parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return np.dot((0.2126, 0.7152, 0.0722), linear)


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_in_the_dark_texts_can_be_read_and_lines_and_fills_be_told_apart():
    paper = dark("#ffffff")
    assert (paper, dark("#000000")) == ("#171717", "#ffffff")  # that of the page
    assert min(contrast(dark(text), paper) for text in (INK, GREY)) >= 4.5
    assert min(contrast(dark(line), paper) for line in LINES) >= 3
    assert min(contrast(dark(INK), dark(fill)) for fill in FILLS) >= 4.5
    for colors in (LINES, FILLS):
        assert len({dark(color) for color in colors}) == len(colors)


def test_a_picture_has_a_rule_for_each_of_its_colors_in_the_dark():
    path = '<path style="fill: #d9d9d9; stroke: #000000"/>'
    svg = f'<?xml version="1.0"?>\n<svg viewBox="0 0 1 1">{path}</svg>'
    variant = with_dark_variant(svg)
    rules = re.findall(r'\[style\*="(\w+): (#\w+)"\]\{(\w+):(#\w+)!important\}', variant)
    assert rules == [
        ("fill", "#d9d9d9", "fill", dark("#d9d9d9")),
        ("stroke", "#000000", "stroke", "#ffffff"),
    ]
    assert re.sub("<style>.*</style>", "", variant) == svg  # as it was in the light
