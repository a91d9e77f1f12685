"""A torus: its orderings, the line of nodes that policies see, boxes, hops and connection."""

from dataclasses import replace
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import registry, simulate
from optsched.boxes.box import Box, Grid
from optsched.boxes.free_boxes import anchors
from optsched.content import bundled
from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.machines.nodes import Nodes
from optsched.machines.orderings import ORDERINGS, hilbert_numbers, ordering
from optsched.machines.torus import Torus
from optsched.traces.reading import read_trace

shapes = st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple)
sides = st.tuples(*[st.integers(1, 5)] * 3)


def steps(name, shape):
    """Return the hops of each step on the grid, without its wrap-around links."""
    return np.abs(np.diff(ordering(name, shape), axis=0)).sum(axis=1)


@pytest.mark.parametrize("name", ORDERINGS)
@given(shape=shapes)
def test_every_router_has_one_position(name, shape):
    coordinates = ordering(name, shape)
    assert coordinates.shape == (np.prod(shape), len(shape))
    assert {tuple(router) for router in coordinates.tolist()} == set(np.ndindex(shape))


@given(shape=shapes)
def test_row_major_is_the_order_of_nested_loops(shape):
    assert [tuple(router) for router in ordering("row-major", shape)] == list(np.ndindex(shape))


@given(shape=shapes)
def test_a_snake_goes_from_neighbour_to_neighbour(shape):
    assert (steps("snake", shape) == 1).all()
    assert ordering("snake", shape)[0].tolist() == [0] * len(shape)


def test_a_snake_turns_round_at_the_end_of_a_row():
    assert ordering("snake", (2, 2, 2)).tolist() == [
        *([0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 1, 0]),
        *([1, 1, 0], [1, 1, 1], [1, 0, 1], [1, 0, 0]),
    ]


def test_the_hilbert_curve_of_the_plane_is_the_known_one():
    x, y = ordering("hilbert", (4, 4)).T
    place = np.empty((4, 4), dtype=int)
    place[x, y] = np.arange(16)
    assert place.tolist() == [[0, 3, 4, 5], [1, 2, 7, 6], [14, 13, 8, 9], [15, 12, 11, 10]]
    last = np.array([[2**20 - 1, 0, 0], [0, 0, 0]])  # as far as the largest machine needs
    assert hilbert_numbers(last, 20).tolist() == [2**60 - 1, 0]


@pytest.mark.parametrize("dimensions", [2, 3, 4])
@pytest.mark.parametrize("bits", [1, 2, 3])
def test_the_hilbert_curve_fills_cube_after_cube_from_neighbour_to_neighbour(dimensions, bits):
    """At every scale: this, with the two ends of the curve on one edge, is what defines it."""
    curve = ordering("hilbert", (2**bits,) * dimensions)
    assert (steps("hilbert", (2**bits,) * dimensions) == 1).all()
    assert curve[0].tolist() == [0] * dimensions
    assert sorted(curve[-1]) == [0] * (dimensions - 1) + [2**bits - 1]
    for level in range(1, bits):
        for cube in np.split(curve >> level, 2 ** (dimensions * (bits - level))):
            assert (cube == cube[0]).all()


@given(shape=shapes)
def test_on_other_grids_the_hilbert_curve_of_the_cube_around_is_followed(shape):
    side = 1 << (max(shape) - 1).bit_length()
    around = ordering("hilbert", (side,) * len(shape))
    inside = around[(around < np.array(shape)).all(axis=1)]
    assert ordering("hilbert", shape).tolist() == inside.tolist()


def test_an_ordering_is_computed_once_and_cannot_be_written():
    coordinates = ordering("hilbert", (4, 4, 4))
    assert ordering("hilbert", (4, 4, 4)) is coordinates
    with pytest.raises(ValueError, match="read-only"):
        coordinates[0] = 1


@pytest.fixture(scope="module")
def sample():
    return read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 600)


@pytest.mark.parametrize(
    "policy", [n for n in registry.policies if "nodes" in registry.policies[n].machines]
)
def test_policies_for_a_line_of_nodes_run_on_a_torus(policy, sample):
    """Kernels on a torus decide as Python on a line of as many nodes, whatever the ordering."""
    numbers = np.arange(len(sample))
    logged = replace(sample, wait=numbers % 600)  # as-logged needs waits, priority priorities
    logged = logged.annotated(priority=numbers % 7)
    line = simulate(logged, "nodes:256", policy, check=True, compiled_from=10**6)
    for spec in ("torus:4x4x8x2", "torus:8x8x4:snake"):
        run = simulate(logged, spec, policy, check=True, compiled_from=0)
        assert np.array_equal(run.start, line.start, equal_nan=True)
        assert np.array_equal(run.end, line.end, equal_nan=True)
        assert run.state.tolist() == line.state.tolist()
        assert run.resources == line.resources


def test_runs_of_a_claim_that_touch_are_merged():
    machine = Torus((2, 2, 2))
    place = ((4, 6), (2, 4), (0, 1))
    assert machine.claim(place, 5) == ((0, 1), (2, 6))
    assert machine.resources(((0, 1), (2, 6))) == "0 2-5"
    assert machine.violations({1: ((0, 1), (2, 6))}) == []


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


def interval_set(positions):
    """Return positions as the machine writes them."""
    runs = Nodes(1 + max(positions))
    return runs.resources(runs.claim(tuple((p, p + 1) for p in positions), len(positions)))


def hops_of_pairs(torus, positions):
    """Return the hops of all pairs of nodes, from the definition."""
    routers = torus.coordinates[np.array(positions) // torus.nodes_per_router]
    one, other = np.triu_indices(len(routers), 1)
    apart = np.abs(routers[one] - routers[other])
    return np.minimum(apart, torus.shape - apart).sum(axis=1).tolist()


@given(data=st.data(), shape=sides, per_router=st.integers(1, 3))
def test_measures_are_those_of_all_pairs(data, shape, per_router):
    torus = Torus(shape, per_router, data.draw(st.sampled_from(list(ORDERINGS))))
    nodes = st.sets(st.integers(0, torus.size - 1), min_size=1)
    allocations = data.draw(st.lists(nodes, min_size=1, max_size=4))
    measured = torus.locality([interval_set(sorted(positions)) for positions in allocations])
    of_machine = np.mean(hops_of_pairs(torus, range(torus.size)) or [0])
    for place, positions in enumerate(allocations):
        hops = hops_of_pairs(torus, sorted(positions))
        mean = np.mean(hops or [0])
        assert measured.mean_hops[place] == pytest.approx(mean)
        assert measured.max_hops[place] == max(hops, default=0)
        assert measured.dispersal[place] == pytest.approx(mean / of_machine if of_machine else 0)
        gaps = np.diff(sorted(positions)) > 1
        assert measured.runs[place] == 1 + gaps.sum()


@pytest.mark.parametrize("ordering", ORDERINGS)
@pytest.mark.parametrize("shape", [(11, 11, 9), (8, 12, 12), (40, 3, 3)])
def test_the_farthest_pair_of_many_routers_is_found(ordering, shape):
    """Large enough that the routers fall into many pieces."""
    torus = Torus(shape, ordering=ordering)
    chance = np.random.default_rng(5)
    allocations = []
    for size in (40, 150, 300):
        start = int(chance.integers(torus.size - size))
        allocations.append(range(start, start + size))
        pieces = {
            int(p) + i for p in chance.integers(torus.size - 9, size=size // 9) for i in range(9)
        }
        allocations.append(sorted(pieces))
    measured = torus.locality([interval_set(list(positions)) for positions in allocations])
    for place, positions in enumerate(allocations):
        assert measured.max_hops[place] == max(hops_of_pairs(torus, positions))


def is_connected(torus, positions):
    """Return whether nodes are connected, from coordinates: a link is one step in one dimension."""
    routers = {tuple(torus.coordinates[p // torus.nodes_per_router].tolist()) for p in positions}
    graph = nx.Graph()
    graph.add_nodes_from(routers)
    for one, other in combinations(sorted(routers), 2):
        apart = [abs(a - b) for a, b in zip(one, other)]
        axis = apart.index(max(apart))
        around = torus.grid.wrap[axis] and apart[axis] == torus.shape[axis] - 1
        if sum(map(bool, apart)) == 1 and (apart[axis] == 1 or around):
            graph.add_edge(one, other)
    return nx.is_connected(graph)


@given(data=st.data(), shape=sides, per_router=st.integers(1, 3))
def test_an_allocation_is_connected_as_its_graph_is(data, shape, per_router):
    ordering = data.draw(st.sampled_from(list(ORDERINGS)))
    torus = Torus(shape, per_router, ordering, wrap=data.draw(st.tuples(*[st.booleans()] * 3)))
    blocks = st.tuples(st.integers(0, torus.size - 1), st.integers(1, 12))  # first node, length
    chosen = data.draw(st.lists(blocks, min_size=1, max_size=6))
    positions = {p for first, length in chosen for p in range(first, first + length)}
    positions &= set(range(torus.size))
    allocation = torus.claim(tuple((p, p + 1) for p in sorted(positions)), len(positions))
    assert torus.is_connected(allocation) is is_connected(torus, positions)


@pytest.mark.parametrize(
    ("spec", "runs", "line", "connected"),
    [
        ("torus:4x4x4:row-major", ((0, 1), (4, 5)), False, True),  # one hop along y
        ("torus:4x4x4:row-major", ((0, 1), (3, 4)), False, True),  # around the ring of z
        ("torus:4x4x4:row-major:wrap=xy", ((0, 1), (3, 4)), False, False),
        ("torus:4x4x4:row-major", ((3, 5),), True, False),  # the line steps to the next row
    ],
)
def test_the_line_and_the_torus_differ(spec, runs, line, connected):
    torus = read_machine(spec)
    assert torus.is_contiguous(runs) is line
    assert torus.is_connected(runs) is connected


def test_every_box_is_connected():
    assert Torus((4, 4, 4)).is_connected(Box(3, 0, 0, 2, 1, 1))
