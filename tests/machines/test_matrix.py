"""The Ousterhout matrix: rows, columns, and who holds them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.machines.matrix import Matrix, Slice


def test_a_place_is_a_row_and_columns():
    machine = Matrix(8)
    first = machine.claim(Slice(0, 0b11), 2)
    second = machine.claim(Slice(2, 0b110), 2)
    assert machine.free == 5
    assert machine.resources(second) == "1-2"
    assert machine.place_text(second) == "row 2: 1-2"
    assert machine.violations({1: first, 2: second}) == []
    machine.release(second)
    assert machine.rows == [0b11]  # rows behind the last job are gone


@pytest.mark.parametrize(
    ("place", "processors", "message"),
    [
        (Slice(0, 0b1), 1, "columns 0 of row 0 are not free"),
        (Slice(1, 0b11), 3, "a place of 2 columns for a job of 3"),
        (Slice(1, 0b10000), 1, "no place row 1: 4 in matrix:4"),
        (Slice(-1, 0b1), 1, "no place row -1"),
    ],
)
def test_a_place_that_is_none_is_refused(place, processors, message):
    machine = Matrix(4)
    machine.allocate(2)
    with pytest.raises(ValueError, match=message):
        machine.claim(place, processors)


def test_what_the_jobs_hold_is_compared_with_the_rows():
    machine = Matrix(4)
    held = {1: machine.allocate(3), 2: machine.allocate(2)}
    assert machine.violations({1: held[1]}) == ["columns 0-1 of row 1 are lost or invented"]
    assert machine.violations(held | {3: Slice(0, 0b100)}) == ["job 3 shares columns 2 of row 0"]
    machine.rows.append(0)
    assert machine.violations(held) == ["row 2 behind the last job is kept"]


@given(st.data())
def test_jobs_come_and_go_and_nothing_is_lost(data):
    machine, held = Matrix(7), {}
    for job in range(data.draw(st.integers(1, 25))):
        if held and data.draw(st.booleans()):
            machine.release(held.pop(data.draw(st.sampled_from(sorted(held)))))
        size = data.draw(st.integers(1, 7))
        held[job] = machine.allocate(size)
        assert held[job].columns.bit_count() == size
        assert machine.violations(held) == []
        assert machine.is_contiguous(held[job]) == (" " not in machine.resources(held[job]))
    for place in held.values():
        machine.release(place)
    assert (machine.rows, machine.free) == ([], 7)
