"""Pictures of which nodes jobs hold: layers of a torus, levels, slots, rows of a matrix."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgba
from report.looks import heading, legend, section, texts, unstarted

from optsched import save, simulate
from optsched.boxes.box import Box, Grid, shapes
from optsched.boxes.free_boxes import anchors
from optsched.report import run_page, style, torus_maps
from optsched.report.pictures import run_pictures
from optsched.report.pictures.gantt import Gantt
from optsched.report.pictures.nodes import Histogram, Layers, MatrixRows, Slots, Stay, stays
from optsched.report.torus_maps import EACH, Move, Panel, Part, Sheet, colors, figure_of
from optsched.simulator.policy import Start

RING = (True, True, True)
SMALL, LARGE = Grid((4, 3, 5), RING), Grid((24, 24, 24), RING)


def cells_of(sheet, box):
    """Return the routers below the pieces of a box, found by their places on paper."""
    (wide, layers, tall), found = sheet.grid.shape, []
    pieces = list(sheet.rectangles(box))
    for x, y, z in np.ndindex(wide, layers, tall):
        left, low = sheet.origin(y)
        at, up = left + (x + 0.5) * sheet.cell, low + (z + 0.5) * sheet.cell
        found += [(x, y, z) for a, b, c, d, _ in pieces if a < at < b and c < up < d]
    return found


@st.composite
def a_box(draw):
    extent = [draw(st.integers(1, side)) for side in SMALL.shape]
    free = [side - 1 if length < side else 0 for length, side in zip(extent, SMALL.shape)]
    return Box(*(draw(st.integers(0, most)) for most in free), *extent)


@given(a_box())
def test_pieces_cover_the_routers_of_a_box_once(box):
    inside = np.zeros(SMALL.shape, bool)
    inside[SMALL.routers_of(box)] = True
    assert sorted(cells_of(Sheet.of(SMALL), box)) == list(map(tuple, np.argwhere(inside).tolist()))


def test_a_box_that_wraps_around_is_open_where_it_goes_on():
    sheet = Sheet.of(SMALL)
    upper, lower = sheet.rectangles(Box(0, 1, 4, 2, 1, 2))
    assert (upper.cut, lower.cut) == ((False, False, False, True), (False, False, True, False))
    assert [len(list(piece.edges)) for piece in (upper, lower)] == [3, 3]
    (whole,) = sheet.rectangles(Box(0, 1, 0, 4, 1, 5))
    assert len(list(whole.edges)) == 4


@pytest.mark.parametrize("shape", [(24, 24, 24), (4, 4, 4), (1, 1, 1), (64, 64, 64), (2, 9, 60)])
def test_the_maps_fit_on_the_paper_and_lie_apart(shape):
    sheet = Sheet.of(Grid(shape, RING))
    wide, tall = sheet.extent
    assert 0 < wide < style.WIDTH
    assert 0 < tall <= 6.5 + 1e-9
    corners = [sheet.origin(layer) for layer in range(shape[1])]
    for (x, z), (u, v) in combinations(corners, 2):
        assert abs(x - u) > shape[0] * sheet.cell or abs(z - v) > shape[2] * sheet.cell
    assert corners[0][1] + shape[2] * sheet.cell == pytest.approx(tall)  # the first is on top


def packed(grid, sizes):
    """Return boxes, first fit, one for each size that has one."""
    free, boxes = grid.free_of(()), {}
    for job, size in enumerate(sizes):
        for shape in shapes(size, grid, (1, 1, 1)):
            found = anchors(free, grid, shape)
            if len(found):
                boxes[job] = Box(*found[0].tolist(), *shape)
                free[grid.routers_of(boxes[job])] = False
                break
    return boxes


def test_neighbors_differ_in_color_and_a_job_keeps_its_color():
    grid = Grid((6, 6, 6), RING)
    before = packed(grid, [20, 9, 12, 7, 18, 8, 5, 6])
    after = {job: box for job, box in before.items() if job != 0}
    moved = {**after, 6: before[0]}
    fills = colors(grid, before, moved)
    assert set(fills) == set(before)
    assert set(fills.values()) == set(style.FILLS)  # eight jobs, eight colors
    assert fills == colors(grid, before, moved)
    row = {job: Box(job, 0, 0, 1, 1, 1) for job in range(20)}
    line = colors(Grid((20, 1, 1), (False, True, True)), row)
    assert len(set(line.values())) == len(style.FILLS)
    assert all(line[job] != line[job + 1] for job in range(19))


def test_labels_stand_where_they_fit_and_what_has_none_is_counted():
    boxes = [Box(0, 0, 0, 8, 2, 8), Box(10, 0, 0, 2, 1, 9), Box(20, 5, 5, 1, 1, 1)]
    parts = [Part(*one) for one in zip(boxes, style.FILLS, ("1234", "567", "89"))]
    figure = figure_of("torus", LARGE, [Panel("now", parts)])
    found = texts(figure.axes[0].texts)
    assert [found.count(label) for label in ("1234", "567", "89")] == [2, 1, 0]
    assert "now; 1 too narrow for a label" in texts(figure.texts)
    assert figure.axes[0].texts[found.index("567")].get_rotation() == 90


def test_no_label_leaves_its_box(tmp_path):
    boxes = packed(LARGE, [5, 60, 200, 12, 700, 35, 90, 400, 18, 64, 1000, 27])
    named = {str(1000 + job): box for job, box in boxes.items()}
    parts = [Part(box, style.FILLS[0], label) for label, box in named.items()]
    figure = figure_of("torus", LARGE, [Panel("now", parts)])
    (axes,) = figure.axes
    figure.canvas.draw()
    labels = [text for text in axes.texts if text.get_text() in named]
    assert labels
    for text in labels:
        pieces = Sheet.of(LARGE).rectangles(named[text.get_text()])
        extent = text.get_window_extent().transformed(axes.transData.inverted())
        x, z = extent.x0 + extent.width / 2, extent.y0 + extent.height / 2
        [piece] = [p for p in pieces if p.left < x < p.right and p.low < z < p.high]
        assert extent.width <= piece.right - piece.left
        assert extent.x0 >= piece.left - 1e-6


def test_more_moves_than_colors_are_drawn_by_class_with_labels_for_the_largest():
    """Many jobs of growing size move, and one comes, on a torus of 24^3."""
    count = len(EACH) + 1
    before = {job: Box(0, job, 0, 6 + job, 1, 6 + job // 2) for job in range(count)}
    after = {job: box._replace(x=24 - box.nx, z=10) for job, box in before.items()}
    before[count] = after[count] = Box(0, 22, 0, 24, 1, 24)
    after[count + 1] = Box(0, 20, 0, 24, 2, 24)
    moves = {job: Move(f"{job}-", f"{job}+", f"{job} moves", job == 0) for job in range(count)}
    figure = torus_maps.relocation_figure(
        "plan", ("before", "after"), LARGE, (), before, after, moves, {count + 1: "L"}
    )
    assert legend(figure) == [
        *("moves away", "has moved here", "labels: the 10 largest", "incoming job"),
        *("stays", "lines: parked on the way"),
    ]
    for axes, fill, mark in zip(figure.axes, (torus_maps.LEAVING, torus_maps.ARRIVED), "-+"):
        shown = {tuple(patch.get_facecolor()) for patch in axes.patches}
        assert to_rgba(fill) in shown
        assert not shown & ({to_rgba(one) for one in EACH} - {to_rgba(fill)})
        labels = set(texts(axes.texts))
        assert {f"{job}{mark}" for job in range(count - 10, count)} <= labels
        assert not {f"{job}{mark}" for job in range(count - 10)} & labels


def test_the_torus_is_shown_before_and_after_the_migration_or_else_at_its_fullest_moment(boxes_run):
    figure = Layers().figure(boxes_run())
    assert texts(figure.texts[1:]) == [  # behind the title
        "40 seconds after the first submission, before 1 job moved",
        f"after; {27 / 63:.1%} of the nodes are held",
    ]
    assert legend(figure) == [
        *("job 2 to 2x2x2@2,1,2", "incoming job", "stays", "lines: parked on the way"),
        "no router for jobs",
    ]
    before, after = (texts(axes.texts) for axes in figure.axes)
    # in two layers each; the box of job 4 goes through the end of Y
    assert (before.count("2"), after.count("2"), after.count("4")) == (2, 2, 2)
    gray = [
        len(patch.get_path().vertices) // 5
        for axes in figure.axes
        for patch in axes.patches
        if patch.get_facecolor() == to_rgba(style.FAINT)
    ]
    # job 1 in its three layers, before and after; job 3 ends at that moment
    assert gray == [3, 3]
    figure = Layers().figure(boxes_run(migrate=False))
    [told] = texts(figure.texts[1:])
    assert told.startswith("0 seconds after the first submission: 3 jobs; 23.8% of the nodes")
    assert legend(figure) == ["no router for jobs"]
    plot = boxes_run(migrate=False).plot
    late = plot.layers(days=(100 / 86_400, 200 / 86_400), title=False)
    # the third job has ended, and the fourth has no room
    assert texts(late.texts)[0].startswith("1.67 minutes after the first submission: 2 jobs")


def test_a_picture_that_a_run_does_not_have_says_why(small_run, boxes_run, make_trace):
    boxed, trace = boxes_run(migrate=False), make_trace((0, 5, 5, 3))
    line = simulate(trace, "torus:2x2x2", "fcfs")
    slices = simulate(trace, "matrix:4", "gang")
    bare = replace(small_run)
    object.__setattr__(bare, "metrics", {})
    for picture, run, why in (
        (Layers, small_run, "no boxes"),
        (Layers, line, "no boxes"),
        (Layers, unstarted(boxed, 0, 1, 2, 3), "no job started"),
        (Gantt, line, ""),
        (Gantt, boxed, "see layers"),
        (Gantt, slices, "see matrix"),
        (Histogram, small_run, "no boxes"),
        (MatrixRows, slices, "journal"),
        (MatrixRows, simulate(trace, "nodes:4", "fcfs", journal=True), "no Ousterhout matrix"),
        (Slots, bare, "only a line of nodes has slots"),
    ):
        assert why in picture().why_not(run)
        assert why or not picture().why_not(run)


def test_the_pictures_of_a_run_of_boxes(boxes_run, tmp_path):
    names = ["utilization", "waits", "layers", "histogram"]
    parts = Histogram().figure(boxes_run())  # alone
    assert heading(parts) == "never 80% of the nodes held while jobs came"
    assert len(parts.axes[0].patches) == 7
    folders = [save(boxes_run(), tmp_path / name) for name in ("one", "two")]
    assert sorted(path.stem for path in folders[0].glob("*.svg")) == sorted(names)
    tables = [folders[0] / f"jobs.{suffix}" for suffix in ("csv", "parquet")]
    for file in (*tables, *folders[0].glob("*.svg"), *folders[0].glob("*.png")):
        assert file.read_bytes() == (folders[1] / file.name).read_bytes()
    pictures = section(run_page.page(folders[0]), "Pictures")
    assert "before and after the migration" in pictures[2].caption
    assert "running" in pictures[3].alt
    every = ["gantt", "matrix", *names[:2], "slots", *names[2:]]
    assert [picture.name for picture in run_pictures()] == every


def test_levels_and_parts_are_those_of_the_node_time(scripted):
    # 9 of 10 nodes held from 0 to 60, 7 run; then 5 held, 4 run, until the last submission at 100
    rows = [(0, 200, 200, 4), (0, 60, 60, 3), (100, 1, 1, 1)]
    boxes = [Box(0, 0, at, 1, 1, length) for at, length in ((0, 5), (5, 4), (5, 2))]
    starts = [Start(job, box) for job, box in enumerate(boxes)]
    run = scripted("torus:1x1x10", rows, {0: starts[:2], 100: starts[2:]})
    levels, parts = Histogram().figure(run).axes
    held, running = (patch.get_data().values for patch in levels.patches)
    assert held.tolist() == pytest.approx(run.metrics["node-time"].histogram(20)[0].tolist())
    assert np.flatnonzero(held).tolist() == [10, 18]
    assert held[18] == pytest.approx(0.6)
    assert np.flatnonzero(running).tolist() == [8, 14]
    assert texts(parts.get_yticklabels()) == ["the whole run", "recorded"]
    widths = np.array([bar.get_width() for bar in parts.patches]).reshape(-1, 2).T
    assert widths.sum(axis=1) == pytest.approx([1, 1])
    assert widths[0] == pytest.approx(list(run.metrics["node-time"].shares.values()))
    assert "from the first 80% of nodes held, after 0 seconds" in levels.get_title(loc="left")


def test_the_layers_of_slots_add_up_to_the_free_nodes(make_trace):
    trace = make_trace((0, 50, 50, 3), (0, 100, 100, 2), (10, 10, 10, 9))
    figure = Slots().figure(simulate(trace, "nodes:9", "fcfs"))
    top = max((patch.get_data().values for patch in figure.axes[0].patches), key=np.sum)
    # 4 nodes are free until 50, 7 until 100, then the third job has all of them to the end, at 110
    assert top.mean() == pytest.approx((50 * 4 + 50 * 7) / 110)
    assert legend(figure) == ["1 node", "2 to 3 nodes", "4 to 7 nodes", "8 to 9 nodes"]


def test_stays_in_a_matrix_are_those_of_the_journal_and_each_row_has_a_panel(make_trace):
    """Jobs 1 and 2 are in row 0; when job 1 ends, job 3 changes to its place."""
    trace = make_trace((0, 20, 20, 2), (0, 100, 100, 2), (1, 100, 100, 2), (2, 10, 10, 4))
    sliced = simulate(trace, "matrix:4", "gang", settings={"mpl": 2}, journal=True)
    found = list(stays(sliced))
    movers = set(sliced.journal.frame.query("event == 'move'").job)
    moved = [stay for stay in found if stay.job in movers]
    assert len(found) == 4 + len(moved) // 2
    first, second = sorted(moved, key=lambda stay: stay.begin)
    assert (first.row, first.end) == (1 - second.row, second.begin)
    assert first.columns == second.columns
    assert Stay(0, 0, "0-1", 0.0, 39.0) in found
    for one in found:
        for other in found:
            together = one.begin < other.end and other.begin < one.end
            if one is not other and together and one.row == other.row:
                assert one.columns != other.columns
    assert not MatrixRows().why_not(sliced)
    figure = MatrixRows().figure(sliced)
    assert [axes.get_ylabel() for axes in figure.axes] == ["row 0", "row 1"]
    assert figure.get_supylabel() == "processors"
    assert {"1", "2"} <= set(texts(figure.axes[0].texts))
