"""Jobs in windows on contiguous nodes, and reservations of contiguous nodes."""

from __future__ import annotations

import pytest

from optsched import simulate
from optsched.errors import InputError


def test_the_papers_example_is_scheduled_as_the_paper_says(make_trace):
    # twenty nodes of which 4, 5 and 12 to 14 (from 1) are busy: three jobs hold them all day, and
    # two more hold the nodes between until they free the slots 3, 6 and 6 at one instant
    day = 86_400
    blockers = [(0, 50, 50, 3), (0, day, day, 2), (0, 50, 50, 6), (0, day, day, 3), (0, 50, 50, 6)]
    waiting = [(1, 10, 10, size) for size in (6, 4, 3, 1, 2)]
    run = simulate(make_trace(*blockers, *waiting), "nodes:20", "window", check=True)
    assert run.start[5:].tolist() == [60, 60, 60, 90, 60]
    assert run.resources[5:8] == ["5-10", "14-17", "0-2"]
    assert run.resources[9] == "18-19"
    posed = run.decisions.set_index("time").loc[60]
    assert (posed["size"], posed.objective, posed.status) == ("5x3", 15, "optimal")


@pytest.mark.parametrize("solver", ["greedy", "cp-sat", "highs"])
def test_any_solver_can_stand_behind_it(solver, make_trace):
    rows = [(30 * k, 100 + 7 * k, 100 + 7 * k, 1 + (5 * k) % 7) for k in range(20)]
    run = simulate(make_trace(*rows), "nodes:10", "window", solver=solver, check=True)
    assert run.summary["finished"] == 20
    assert run.summary["fallbacks"] == 0
    assert run.config["solver"] == solver


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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 0}, "expected a whole number from 1"),
        ({"window": "five"}, "expected a whole number"),
        ({"interval": -1}, "expected seconds from 0"),
        ({"windw": 5}, "did you mean window"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        simulate("unread.swf", "nodes:4", "window", settings=settings)
