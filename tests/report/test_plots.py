"""Pictures of a run: files, periods and sizes; names, strokes, and colors in the dark."""

import inspect
import math
import re
import warnings
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.image import imread
from report.looks import heading

from optsched import InputError, registry, simulate, solve
from optsched.models import WindowMKP
from optsched.registry import pictures, solvers
from optsched.report import load, style
from optsched.report.pictures import draw
from optsched.report.style import FILLS, GREY, INK, LINES, dark, with_dark_variant

NAMES = ["gantt", "slots", "utilization", "waits"]


def test_each_picture_is_written_as_svg_and_png_the_same_each_time(small_run, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        paths = draw(small_run, folder)
        files = sorted(f"{name}.{kind}" for name in NAMES for kind in ("svg", "png"))
        assert sorted(path.name for path in paths) == files
        assert sorted(path.name for path in folder.iterdir()) == files
    for path in paths:
        data = path.read_bytes()
        assert data == (folders[0] / path.name).read_bytes(), path.name
        assert str(tmp_path).encode() not in data
        if path.suffix == ".png":
            assert imread(path).shape[1] == 1350
        else:
            text = "".join(ElementTree.parse(path).getroot().itertext())
            assert "small: easy on nodes:10" in text


@pytest.mark.usefixtures("without_png")
def test_long_runs_are_averaged_in_small_pictures_and_their_peak_is_written(random_run, tmp_path):
    run = random_run(20_000)
    for path in draw(run, tmp_path):
        assert path.stat().st_size < 500_000
    figure = run.plot.utilization()
    assert heading(figure).endswith("band: 10th to 90th percentile")
    highest = load.waiting_jobs(run).values.max()
    assert figure.axes[1].get_title(loc="left") == f"highest: {highest:,.0f}"


@pytest.fixture
def day_run(make_trace):
    """Return a run of two days on ten nodes, with a job of six hours every six hours."""
    rows = [(21_600 * n, 21_600, 21_600, 5) for n in range(8)]
    return simulate(make_trace(*rows), "nodes:10", "easy")


def test_the_pictures_that_a_run_has_are_listed_with_the_help_of_their_classes(
    small_run, boxes_run
):
    assert dir(small_run.plot) == NAMES
    assert {"layers", "histogram"} < set(dir(boxes_run().plot))
    assert "  waits(): Distribution of the waits, by size of the jobs." in repr(small_run.plot)
    assert "days : (float, float), optional" in small_run.plot.gantt.__doc__
    parameters = list(inspect.signature(small_run.plot.gantt).parameters)
    assert parameters == ["days", "most", "size", "title"]


@pytest.mark.parametrize("name", list(pictures))
def test_every_picture_is_drawn_or_says_why_not(name, small_run):
    picture = getattr(small_run.plot, name)
    if name in NAMES:
        assert isinstance(picture(), Figure)
        assert picture()._repr_png_().startswith(b"\x89PNG")
    else:
        with pytest.raises(InputError, match=f"no picture '{name}' of this run: "):
            picture()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("titled", [True, False])
def test_a_picture_fits_into_a_column_of_print(name, titled, random_run):
    figure = getattr(random_run(300).plot, name)(size=(3.5, 2.6), title=titled)
    assert figure.get_size_inches().tolist() == [3.5, 2.6]
    assert (figure.get_suptitle() != "") == titled
    figure.draw_without_rendering()
    drawn = figure.get_tightbbox()
    assert drawn.width <= 3.5
    assert drawn.height <= 2.6
    assert max(text.get_fontsize() for text in figure.findobj(mpl.text.Text)) <= 8.5
    lowest = min(axes.get_position().height for axes in figure.axes)
    left = 1.3 if name == "waits" else 0.3  # inches for the curves
    assert lowest * 2.6 > (0.15 if titled else left)


@pytest.mark.parametrize("size", ["x", (1,), (0.5, 3), (3, 101), (float("nan"), 3)])
def test_a_wrong_size_is_refused_and_any_for_maps_of_a_torus(size, small_run, boxes_run):
    with pytest.raises(InputError, match=r"^size: expected \(width, height\) in inches"):
        small_run.plot.waits(size=size)
    with pytest.raises(InputError, match="a size of their own"):
        boxes_run().plot.layers(size=(3.5, 3))


def test_a_solution_is_drawn_in_a_column_of_print():
    result = solve(WindowMKP([6, 4, 3, 1, 2], [3, 6, 6]))
    figure = result.plot(size=(3.5, 2), title=False)
    assert figure.get_size_inches().tolist() == [3.5, 2.0]
    assert (figure.get_suptitle(), heading(figure)) == ("", "")
    assert heading(result.plot()) == "4 of 5 jobs placed, on 15 nodes"


def test_a_misspelt_name_comes_with_the_one_that_is_meant(small_run):
    expected = "unknown argument 'titel' of run.plot.waits; did you mean title?"
    with pytest.raises(InputError, match=re.escape(expected)):
        small_run.plot.waits(titel=False)
    with pytest.raises(AttributeError, match="unknown picture 'gant'; did you mean gantt"):
        small_run.plot.gant()
    assert not hasattr(small_run.plot, "_repr_svg_")


def test_a_period_is_what_is_drawn(day_run):
    # in days 0.5 to 1 the third and the fourth job run; the two around them only touch the period
    drawn = {name: getattr(day_run.plot, name)(days=(0.5, 1)) for name in NAMES}
    for name in ("gantt", "utilization", "slots"):
        assert drawn[name].axes[0].get_xlim() == (12.0, 24.0)
    part = "days 0.5 to 1, 50% of processors in use: 2 of 8 jobs"
    assert heading(drawn["gantt"]) == part
    assert heading(drawn["utilization"]).startswith("days 0.5 to 1, 50.0% of 10")
    assert heading(drawn["waits"]).startswith("submitted in days 0.5 to 1: 100.0%")
    late = day_run.plot.gantt(days=(1, 100))  # a period ends with the run
    assert late.axes[0].get_xlim() == (24.0, 48.0)


@pytest.mark.parametrize("days", [(2, 1), (-1, 1), (1, 1), 5, ("a", 1), (1,), (3, 4), (0, np.nan)])
def test_a_period_that_there_is_not_is_refused(day_run, days):
    told = r"^days: .*; expected two ascending days from 0, of a run of 2 days"
    with pytest.raises(InputError, match=told):
        day_run.plot.utilization(days=days)


def test_the_slots_of_a_period_have_its_figures(make_trace):
    # ten of ten nodes are free but for the second half day, in which the job has eight
    half = 43_200
    trace = make_trace((half, half, half, 8), (2 * half, 9, 9, 1), (0, 1, 1, 1))
    found = simulate(trace, "nodes:10", "fcfs").metrics["fragmentation"].between(half, 2 * half)
    assert found.time.tolist() == [half, 2 * half]
    assert found.free.tolist()[:1] == [2]
    assert found.summary()["mean_largest_slot"] == 2.0


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
    with mpl.rc_context({"font.size": 30, "svg.hashsalt": "another", "savefig.dpi": 20}):
        assert written(tmp_path / "after") == before
        assert mpl.rcParams["font.size"] == 30


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
    # names of lines stay below it
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
    # a picture has a rule for each of its colors
    path = '<path style="fill: #d9d9d9; stroke: #000000"/>'
    svg = f'<?xml version="1.0"?>\n<svg viewBox="0 0 1 1">{path}</svg>'
    variant = with_dark_variant(svg)
    rules = re.findall(r'\[style\*="(\w+): (#\w+)"\]\{(\w+):(#\w+)!important\}', variant)
    assert rules == [
        ("fill", "#d9d9d9", "fill", dark("#d9d9d9")),
        ("stroke", "#000000", "stroke", "#ffffff"),
    ]
    assert re.sub("<style>.*</style>", "", variant) == svg  # as it was in the light
