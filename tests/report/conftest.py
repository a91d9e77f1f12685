"""Runs to draw: simulated, or put together by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optsched import simulate


@pytest.fixture
def small_run(make_trace):
    """Return three jobs on ten nodes under EASY: 1 and 3 run side by side, 2 after them."""
    trace = make_trace((0, 60, 60, 4), (5, 20, 20, 8), (9, 30, 30, 3), name="small")
    return simulate(trace, "nodes:10", "easy")


@pytest.fixture
def random_run(make_trace):
    """Return the function that simulates a seeded random trace on 64 nodes under EASY."""

    def build(jobs, seed=0, spacing=40.0):
        draw = np.random.default_rng(seed)
        submit = np.cumsum(draw.exponential(spacing, jobs)).round()
        runtime = np.ceil(draw.exponential(600, jobs))
        size = draw.integers(1, 33, jobs)
        rows = zip(submit.tolist(), runtime.tolist(), (2 * runtime).tolist(), size.tolist())
        return simulate(make_trace(*rows, name="random"), "nodes:64", "easy")

    return build


@pytest.fixture
def interrupted_run(make_trace):
    """Return a run with a rejected job, one that waits for ever and one that never ends."""
    trace = make_trace(
        (0, 100, 100, 4), (10, 50, 50, 20), (20, 50, 50, 4), (30, 50, 50, 8), name="interrupted"
    )
    run = simulate(trace, "nodes:10", "fcfs")
    assert run.state.tolist()[1] == "REJECTED"
    start, end, state = run.start.copy(), run.end.copy(), run.state.astype("<U30")
    end[2], state[2] = np.nan, "RUNNING"
    start[3], end[3], state[3] = np.nan, np.nan, "WAITING"
    resources = [text if state[row] != "WAITING" else "" for row, text in enumerate(run.resources)]
    schedule = run.schedule._replace(start=start, end=end, state=state, resources=resources)
    return replace(run, schedule=schedule)
