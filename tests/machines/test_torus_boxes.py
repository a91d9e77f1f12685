"""A torus whose jobs hold boxes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import simulate
from optsched.boxes.box import Box, Grid
from optsched.boxes.free_boxes import anchors
from optsched.errors import InputError
from optsched.machines.torus import Torus


def cells(text):
    found = set()
    for part in text.split():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def test_a_job_holds_all_nodes_of_its_routers():
    machine = Torus((4, 4, 4), 2, "row-major")
    held = machine.claim(Box(0, 0, 3, 1, 2, 2), processors=5)
    assert machine.free == 128 - 8
    assert machine.resources(held) == "0-1 6-9 14-15"
    assert machine.place_text(held) == "1x2x2@0,0,3"
    assert machine.is_contiguous(held)
    assert machine.violations({3: held}) == []
    machine.release(held)
    assert (machine.free, machine.violations({})) == (128, [])


@pytest.mark.parametrize(
    ("box", "processors", "message"),
    [
        (Box(0, 0, 0, 1, 1, 2), 5, "a box of 4 nodes for a job of 5"),
        (Box(0, 0, 0, 1, 1, 5), 5, "5 routers along z"),
        (Box(3, 1, 1, 2, 1, 1), 2, "2x1x1@3,1,1 is not free"),
        (Box(2, 2, 2, 1, 1, 1), 2, "1x1x1@2,2,2 is not free"),
    ],
)
def test_what_cannot_be_claimed_is_refused(box, processors, message):
    machine = Torus((4, 4, 4), 2, holes=["1x1x1@2,2,2"])
    machine.claim(Box(0, 1, 1, 1, 1, 1), processors=2)
    with pytest.raises(ValueError, match=message):
        machine.claim(box, processors)
    assert machine.free == 124


def test_a_torus_is_a_line_or_holds_boxes_or_has_holes(make_trace):
    line, boxes = Torus((4, 4, 4)), Torus((4, 4, 4))
    line.allocate(3)
    with pytest.raises(ValueError, match="used as a line"):
        line.claim(Box(2, 2, 2, 1, 1, 1), processors=1)
    boxes.claim(Box(2, 2, 2, 1, 1, 1), processors=1)
    with pytest.raises(ValueError, match="3 positions"):
        boxes.allocate(3)
    trace = make_trace((0, 10, 10, 1))
    with pytest.raises(InputError, match="runs on nodes, site, not on torus:2x2x2:hil"):
        simulate(trace, "torus:2x2x2:holes=1x1x1@0,0,0", "easy")


def test_wrong_states_are_told():
    machine = Torus((4, 4, 4), 2)
    held = {1: machine.claim(Box(0, 0, 0, 2, 2, 2), 16), 2: machine.claim(Box(2, 0, 0, 1, 1, 1), 2)}
    assert machine.violations(held) == []
    shared = held | {3: Box(1, 1, 1, 1, 1, 1)}
    assert any("jobs 1 and 3 share routers" in line for line in machine.violations(shared))
    assert machine.violations({1: held[1]}) == ["1 routers are lost, (2, 0, 0) first"]
    free = held | {3: Box(3, 3, 3, 1, 1, 1)}
    assert machine.violations(free) == ["1 routers are free and held, (3, 3, 3) first"]
    machine.free += 1
    assert machine.violations(held) == ["111 nodes counted free, 110 are"]


@given(st.data())
def test_a_box_is_known_by_its_nodes(data):
    shape = data.draw(st.tuples(*[st.integers(1, 6)] * 3))
    ordering = data.draw(st.sampled_from(["hilbert", "row-major", "snake"]))
    machine = Torus(shape, data.draw(st.integers(1, 3)), ordering)
    grid = Grid(shape, (True, True, True))
    free = np.ones(shape, np.bool_)
    boxes = []
    for _ in range(data.draw(st.integers(1, 3))):
        extent = data.draw(st.tuples(*(st.integers(1, side) for side in shape)))
        at = anchors(free, grid, extent)
        boxes.append(Box(*at[data.draw(st.integers(0, len(at) - 1))].tolist(), *extent))
    texts = [machine.nodes_text(box) for box in boxes]
    for box, text in zip(boxes, texts):
        position = machine.position_of[grid.routers_of(box)].ravel().tolist()
        per_router = machine.nodes_per_router
        assert cells(text) == {p * per_router + k for p in position for k in range(per_router)}
    assert [Box(*row) for row in machine.boxes_of(texts).tolist()] == boxes


def test_boxes_are_measured():
    machine = Torus((4, 4, 4), 2, links=(2, 1, 2))
    held = machine.claim(Box(3, 0, 1, 2, 4, 2), processors=30)
    measures = machine.job_measures([machine.resources(held)])
    assert {name: values.tolist() for name, values in measures.items()} == {
        "box": ["2x4x2@3,0,1"],
        "held_nodes": [32],
        "half_perimeter": [8],
        "bisection": [8.0],  # 4 routers cut twice along y; along x and z 8 links of speed 2
    }


def test_a_convex_torus_gives_no_job_a_box_around_most_of_a_ring():
    torus = Torus((6, 5, 4), wrap=(True, True, False), convex=True)
    for extent in ((3, 3, 3), (6, 5, 4), (6, 1, 1)):
        box = Box(0, 0, 0, *extent)
        torus.claim(box, 1)
        torus.release(box)
    for extent in ((4, 1, 1), (5, 5, 4), (1, 4, 1)):
        with pytest.raises(ValueError, match=r"@0,0,0 is not convex"):
            torus.claim(Box(0, 0, 0, *extent), 1)
    assert torus.free == torus.size
