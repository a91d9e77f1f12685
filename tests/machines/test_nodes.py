"""A line of nodes, and its free runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.machines.nodes import FreeRuns, Nodes


def test_every_broken_state_is_told():
    machine = Nodes(8)
    held = {1: machine.allocate(3), 2: machine.allocate(2)}
    assert machine.violations(held) == []
    assert machine.violations({1: held[1]}) == ["nodes 3-4 are lost"]
    both = machine.violations({**held, 3: ((2, 4),)})
    assert both == [
        "nodes 2-2 are held by job 1 and by job 3",
        "nodes 3-3 are held by job 3 and by job 2",
    ]
    nobody = machine.violations({**held, 3: ((7, 8),)})
    assert nobody == ["nodes 7-7 are held by nobody and by job 3"]
    outside = machine.violations({**held, 3: ((8, 9),)})
    assert outside == ["nodes from 8 are held by job 3; there are none"]
    machine.free = 4
    assert machine.violations(held) == ["4 nodes counted free, 3 are"]
    machine.free = 3
    machine.slots.starts, machine.slots.stops = [5, 6], [6, 8]
    assert machine.violations(held) == ["free runs touch at node 6"]


SIZE = 24


def runs_of(free):
    """Return the maximal runs of a set of positions."""
    runs = []
    for position in sorted(free):
        if runs and runs[-1][1] == position:
            runs[-1] = (runs[-1][0], position + 1)
        else:
            runs.append((position, position + 1))
    return runs


@given(st.data())
def test_runs_are_those_of_a_set_of_positions(data):
    runs, free, held = FreeRuns(SIZE), set(range(SIZE)), []
    for _ in range(data.draw(st.integers(1, 25))):
        kind = data.draw(st.sampled_from(["first", "run", "give"]))
        if kind == "first" and free:
            size = data.draw(st.integers(1, len(free)))
            taken = runs.take_first(size)
            positions = {p for start, stop in taken for p in range(start, stop)}
            assert sorted(positions) == sorted(free)[:size]
            free -= positions
            held += taken
        elif kind == "run" and free:
            start, stop = data.draw(st.sampled_from(runs_of(free)))
            start = data.draw(st.integers(start, stop - 1))
            stop = data.draw(st.integers(start + 1, stop))
            runs.take(start, stop)
            free -= set(range(start, stop))
            held.append((start, stop))
        elif kind == "give" and held:
            start, stop = held.pop(data.draw(st.integers(0, len(held) - 1)))
            runs.give(start, stop)
            free |= set(range(start, stop))
        assert list(zip(runs.starts, runs.stops)) == runs_of(free)


def test_what_is_not_free_cannot_be_taken_and_what_is_free_cannot_be_given_back():
    runs = FreeRuns(10)
    runs.take(3, 6)
    for start, stop in ((2, 4), (3, 4), (4, 7), (8, 11), (7, 7)):
        with pytest.raises(ValueError, match="not all free"):
            runs.take(start, stop)
    with pytest.raises(ValueError, match="more than are free"):
        runs.take_first(8)
    for start, stop in ((2, 4), (5, 7), (0, 1), (3, 10)):
        with pytest.raises(ValueError, match="free already"):
            runs.give(start, stop)
    assert (runs.starts, runs.stops) == ([0, 6], [3, 10])
