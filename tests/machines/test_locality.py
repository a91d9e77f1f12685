"""Hops and connection in a torus, against networkx on graphs from the definition."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.boxes.box import Box
from optsched.machines.machine import read_machine
from optsched.machines.nodes import Nodes
from optsched.machines.orderings import ORDERINGS
from optsched.machines.torus import Torus

shapes = st.tuples(*[st.integers(1, 5)] * 3)


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


@given(data=st.data(), shape=shapes, per_router=st.integers(1, 3))
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


@pytest.mark.parametrize("shape", [(4, 5, 6), (2, 3, 7), (1, 1, 9), (8, 8, 2)])
def test_hops_are_the_lengths_of_shortest_paths(shape):
    torus = Torus(shape)
    graph = nx.grid_graph(shape[::-1], periodic=True)  # networkx names the dimensions backwards
    assert set(graph) == {tuple(router[3 - len(shape) :]) for router in torus.coordinates.tolist()}
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    routers = [tuple(router) for router in torus.coordinates.tolist()]
    pairs = list(combinations(range(torus.size), 2))
    measured = torus.locality([f"{one} {other}" for one, other in pairs])
    expected = [lengths[routers[one]][routers[other]] for one, other in pairs]
    assert measured.max_hops.tolist() == expected
    assert measured.mean_hops.tolist() == expected
    whole = torus.locality([f"0-{torus.size - 1}"])
    assert whole.max_hops.tolist() == [nx.diameter(graph)] == [sum(side // 2 for side in shape)]
    assert whole.mean_hops[0] == pytest.approx(nx.average_shortest_path_length(graph))
    assert whole.dispersal.tolist() == [1.0]


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


@given(data=st.data(), shape=st.tuples(*[st.integers(1, 5)] * 3), per_router=st.integers(1, 3))
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
        ("torus:4x4x4:row-major", ((0, 1), (63, 64)), False, False),  # both ends of the line
        ("torus:4x4x4:row-major", ((3, 5),), True, False),  # the line steps to the next row
        ("torus:4x4x4x2:row-major", ((1, 2), (2, 3)), False, True),
        ("torus:4x4x4x3:row-major", ((0, 1), (2, 3)), False, True),  # of one router
    ],
)
def test_the_line_and_the_torus_differ(spec, runs, line, connected):
    torus = read_machine(spec)
    assert torus.is_contiguous(runs) is line
    assert torus.is_connected(runs) is connected


def test_every_run_of_a_curve_without_long_steps_and_every_box_is_connected():
    torus = Torus((3, 4, 5), 2, "snake")
    assert all(torus.is_connected(((a, b),)) for a in range(120) for b in range(a + 1, 121))
    assert Torus((4, 4, 4)).is_connected(Box(3, 0, 0, 2, 1, 1))
