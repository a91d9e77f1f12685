"""Reservations of contiguous nodes, against a statement that looks at every node."""

from __future__ import annotations

import pytest

from optsched import simulate


def test_backfilling_goes_into_slots_and_does_not_delay_the_head(make_trace):
    trace = make_trace(
        (0, 100, 100, 4),
        (0, 300, 300, 3),
        (30, 100, 100, 8),  # the head: a slot of four at 100, the whole line at 300
        (30, 200, 200, 2),  # ends by 300
        (30, 400, 400, 1),  # does not, but keeps off
    )
    settings = {"window": 1, "backfill": "easy", "interval": 0}
    run = simulate(trace, "nodes:10", "window", settings=settings, check=True)
    assert run.start.tolist() == [0, 0, 300, 30, 30]
    without = simulate(trace, "nodes:10", "window", settings=settings | {"backfill": "none"})
    assert without.start.tolist() == [0, 0, 300, 300, 400]


@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_a_head_that_no_slot_holds_may_be_scattered(make_trace, backfill):
    trace = make_trace((0, 50, 50, 2), (0, 200, 200, 2), (0, 50, 50, 2), (60, 100, 100, 4))
    settings = {"backfill": backfill, "interval": 0}
    run = simulate(trace, "nodes:6", "window", settings=settings, check=True)
    assert run.start[3] == 200
    settings["scatter"] = "head"
    run = simulate(trace, "nodes:6", "window", settings=settings, check=True)
    assert run.start[3] == 60
    assert run.resources[3] == "0-1 4-5"


def test_a_head_that_may_be_scattered_waits_for_nodes_anywhere(make_trace):
    # 4 of 8 nodes are free at 100, not side by side; a slot of 4 comes about at 300 only
    trace = make_trace(
        (0, 100, 100, 2),
        (0, 300, 300, 2),
        (0, 100, 100, 2),
        (10, 50, 50, 5),  # the head: five nodes are free at 100, scattered
        (10, 290, 290, 2),  # would end by 300, the contiguous shadow time, but delay the head
        (10, 90, 90, 1),  # ends by 100
    )
    settings = {"backfill": "easy", "scatter": "head", "interval": 0, "window": 1}
    run = simulate(trace, "nodes:8", "window", settings=settings, check=True)
    assert run.start.tolist() == [0, 0, 0, 100, 150, 10]
    easy = simulate(trace, "nodes:8", "easy")
    assert run.start[3] == easy.start[3]
