from __future__ import annotations

import numpy as np
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


def test_jobs_hold_contiguous_nodes_only(make_trace):
    generator = np.random.default_rng(5)
    rows = [
        (int(t), int(r), int(r), int(p))
        for t, r, p in zip(
            np.cumsum(generator.integers(0, 40, 200)),
            generator.integers(1, 500, 200),
            generator.integers(1, 16, 200),
        )
    ]
    run = simulate(make_trace(*rows), "nodes:16", "window", check=True)
    assert all(" " not in held for held in run.resources)
    assert run.summary["finished"] == 200


def test_the_next_window_is_decided_on_at_the_next_tick(make_trace):
    trace = make_trace(*[(0, 100, 100, 1)] * 5)
    run = simulate(trace, "nodes:8", "window", settings={"window": 2}, check=True)
    assert run.start.tolist() == [0, 0, 30, 30, 60]


def test_without_ticks_window_follows_window_at_once(make_trace):
    trace = make_trace(*[(0, 100, 100, 1)] * 5)
    settings = {"window": 2, "interval": 0}
    run = simulate(trace, "nodes:4", "window", settings=settings, check=True)
    assert run.start.tolist() == [0, 0, 0, 0, 100]


def test_a_job_that_no_slot_can_hold_is_kept_back(make_trace):
    trace = make_trace((0, 100, 100, 3), (0, 100, 100, 3), (0, 40, 40, 3), (60, 10, 10, 5))
    run = simulate(trace, "nodes:9", "window", check=True)
    # at 60 there are three nodes free at the end; the large job waits for the first six, at 120
    assert run.start.tolist() == [0, 0, 0, 120]
    assert run.resources[3] == "0-4"


@pytest.mark.parametrize("solver", ["greedy", "best-first", "cp-sat", "highs", "cbc"])
def test_any_solver_can_stand_behind_it(solver, make_trace):
    rows = [(30 * k, 100 + 7 * k, 100 + 7 * k, 1 + (5 * k) % 7) for k in range(20)]
    run = simulate(make_trace(*rows), "nodes:10", "window", solver=solver, check=True)
    assert run.summary["finished"] == 20
    assert run.summary["fallbacks"] == 0
    assert run.config["solver"] == solver


def test_settings_are_checked():
    for settings, message in (
        ({"window": 0}, "expected a whole number from 1"),
        ({"window": "five"}, "expected a whole number"),
        ({"interval": -1}, "expected seconds from 0"),
        ({"windw": 5}, "did you mean window"),
    ):
        with pytest.raises(InputError, match=message):
            simulate("unread.swf", "nodes:4", "window", settings=settings)
