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
from optsched.errors import InputError
from optsched.registry import solvers
from optsched.report import style


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.01, 0.1))
def test_names_are_spread_within_the_axes_and_in_order(places, gap):
    moved = np.array(style.spread(places, gap))
    gap = min(gap, 1 / max(1, len(places) - 1))
    order = np.argsort(moved)
    assert (np.diff(moved[order]) >= gap - 1e-9).all()
    assert (np.diff(np.array(places)[order]) >= 0).all()
    assert moved.min() >= -1e-9
    assert moved.max() <= 1 + 1e-9


def test_names_with_room_stay_where_they_are():
    assert style.spread([0.9, 0.1, 0.5], 0.1) == pytest.approx([0.9, 0.1, 0.5])


def test_names_at_one_place_are_spread_around_it_the_first_on_top():
    assert style.spread([0.5, 0.5, 0.5], 0.1) == pytest.approx([0.6, 0.5, 0.4])


def solvers_of(model):
    return [name for name in solvers if solvers[name].supports(model)]


@pytest.mark.parametrize("model", list(registry.models))
def test_solvers_of_a_model_have_strokes_of_their_own(model):
    own = solvers_of(model)
    names = [*own, "one", "more"]
    strokes = style.strokes(names)
    assert strokes.keys() == set(names)
    assert len(set(strokes.values())) == len(names)


def test_there_are_strokes_for_any_number_of_names():
    names = [f"solver-{number}" for number in range(2 * len(style.STROKES))]
    assert style.strokes(names).keys() == set(names)


@pytest.mark.parametrize("model", list(registry.models))
def test_a_stroke_depends_neither_on_the_others_nor_on_the_order(model):
    names = [*solvers_of(model), "highs-quick", "mine"]
    together = style.strokes(names)
    assert together == style.strokes(names[::-1])
    for name in names:
        assert style.strokes([name]) == {name: together[name]}


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


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    figure = style.new_figure(2.0, "title")
    with pytest.raises(InputError, match="missing"):
        style.save(figure, tmp_path / "missing", "picture")


@pytest.mark.parametrize(
    ("name", "drawn"),
    [
        ("日本", "日本"),
        ("a\tb", r"a\tb"),
        ("a\x1b[1mb", r"a\x1b[1mb"),
        ("a\nb", r"a\nb"),
        ("a$b$", "a$b$"),
        (r"a$\foo$", r"a$\foo$"),
    ],
)
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
    for title in (
        "SDSC-BLUE-2000-4.2-cln, jobs 58,135 to 62,964: window with branch-and-bound on"
        " torus:8x12x12:hilbert",
        "a-file-name-without-spaces" * 8,
    ):
        drawing = style.new_figure(3, title)
        drawing.canvas.draw()
        assert drawing.get_suptitle().replace("\n", "").replace(" ", "") == title.replace(" ", "")
        assert drawing._suptitle.get_window_extent().x1 < drawing.bbox.x1


def test_names_of_lines_stay_below_the_title():
    axes = Figure().subplots()
    stroke = style.STROKES[0]
    style.label_ends(axes, {"one": (1.0, stroke), "other": (1.0, stroke)}, gap=0.1)
    assert [text.get_position()[1] for text in axes.texts] == pytest.approx([0.95, 0.85])
