"""Connection of allocations in a torus, against networkx on graphs from the definition."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.boxes.box import Box
from optsched.machines.machine import read_machine
from optsched.machines.orderings import ORDERINGS
from optsched.machines.torus import Torus


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


def test_every_run_of_a_curve_without_long_steps_is_connected():
    torus = Torus((3, 4, 5), 2, "snake")
    assert all(torus.is_connected(((a, b),)) for a in range(120) for b in range(a + 1, 121))


def test_a_box_is_connected():
    torus = Torus((4, 4, 4))
    assert torus.is_connected(torus.claim(Box(3, 0, 0, 2, 1, 1), 2))
