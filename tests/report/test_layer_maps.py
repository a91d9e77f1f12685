"""Maps of the layers of a torus: where boxes lie on paper, their colors and labels."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgba
from report.looks import legend, texts

from optsched.boxes.box import Box, Grid, shapes
from optsched.boxes.free_boxes import anchors
from optsched.report import style, torus_maps
from optsched.report.torus_maps import EACH, Entry, Move, Panel, Part, Sheet, colors, figure_of

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
    assert sheet.columns * sheet.rows >= shape[1]
    corners = [sheet.origin(layer) for layer in range(shape[1])]
    for (x, z), (u, v) in combinations(corners, 2):
        assert abs(x - u) > shape[0] * sheet.cell or abs(z - v) > shape[2] * sheet.cell
    x, z = corners[0]
    assert z + shape[2] * sheet.cell == pytest.approx(tall)  # the first layer is on top
    assert (sheet.columns, sheet.rows) == (6, 4) or shape != (24, 24, 24)


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
    figure = figure_of("torus", LARGE, [Panel("now", parts)], [Entry("a job", style.FILLS[0])])
    found = texts(figure.axes[0].texts)
    assert [found.count(label) for label in ("1234", "567", "89")] == [2, 1, 0]
    assert "now; 1 too narrow for a label" in texts(figure.texts)
    assert figure.axes[0].texts[found.index("567")].get_rotation() == 90
    assert legend(figure) == ["a job"]


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


def relocated(count):
    """Draw the move of many jobs of growing size, and one that comes, on a torus of 24^3."""
    before = {job: Box(0, job, 0, 6 + job, 1, 6 + job // 2) for job in range(count)}
    after = {job: box._replace(x=24 - box.nx, z=10) for job, box in before.items()}
    before[count] = after[count] = Box(0, 22, 0, 24, 1, 24)
    after[count + 1] = Box(0, 20, 0, 24, 2, 24)
    moves = {job: Move(f"{job}-", f"{job}+", f"{job} moves", job == 0) for job in range(count)}
    return torus_maps.relocation_figure(
        "plan", ("before", "after"), LARGE, (), before, after, moves, {count + 1: "L"}
    )


def fills_of(axes):
    return {tuple(patch.get_facecolor()) for patch in axes.patches}


def test_few_moves_have_a_color_each():
    figure = relocated(len(EACH))
    assert legend(figure)[: len(EACH)] == [f"{job} moves" for job in range(len(EACH))]
    for axes in figure.axes:
        assert {to_rgba(fill) for fill in EACH} <= fills_of(axes)


def test_more_moves_are_drawn_by_class_with_labels_for_the_largest():
    count = len(EACH) + 1
    figure = relocated(count)
    assert legend(figure) == [
        *("moves away", "has moved here", "labels: the 10 largest", "incoming job"),
        *("stays", "lines: parked on the way"),
    ]
    for axes, fill, mark in zip(figure.axes, (torus_maps.LEAVING, torus_maps.ARRIVED), "-+"):
        shown = fills_of(axes)
        assert to_rgba(fill) in shown
        assert not shown & ({to_rgba(one) for one in EACH} - {to_rgba(fill)})
        labels = set(texts(axes.texts))
        assert {f"{job}{mark}" for job in range(count - 10, count)} <= labels
        assert not {f"{job}{mark}" for job in range(count - 10)} & labels
