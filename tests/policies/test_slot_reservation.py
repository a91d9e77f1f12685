"""Reservations of contiguous nodes, against a statement that looks at every node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import simulate
from optsched.machines._ascending import enter
from optsched.machines._line_nodes import take
from optsched.policies._window import ASK, Rule, backfill, new_state, reserve_slot
from optsched.simulator._core import N_ACTIONS, new_news

NODES = 14


@st.composite
def lines(draw):
    """A line partly held by jobs that end at a few instants, and waiting jobs; now is 0."""
    holder = draw(st.lists(st.integers(-1, 4), min_size=NODES, max_size=NODES))
    ends = draw(st.lists(st.integers(0, 4), min_size=5, max_size=5))
    sizes = draw(st.lists(st.integers(1, NODES), min_size=1, max_size=5))
    requests = draw(st.lists(st.integers(1, 6), min_size=len(sizes), max_size=len(sizes)))
    processors = np.array([holder.count(job) for job in range(5)] + sizes)
    requested, rule = np.array([1.0] * 5 + requests), Rule(1, False, True, False, ASK)
    most_nodes = np.ones(2, dtype=np.int64)
    # with room for the runs of jobs that are scattered
    state = new_state(processors, requested, NODES, rule._replace(scatters=True), most_nodes)
    held, counts = state.held, state.counts[0]
    state.estimated_end[:5] = ends
    for job in set(holder) - {-1}:
        held.first[job] = held.counts[0].runs
        for start, stop in runs_of(np.array(holder) == job):
            take(held, job, start, stop)
        enter(state.running, counts.running, state.estimated_end, job)
        counts.running += 1
    waiting = list(range(5, 5 + len(sizes)))
    state.queue[: len(waiting)], counts.waiting = waiting, len(waiting)
    counts.free = holder.count(-1)
    return state, rule, np.array(holder), ends, waiting


def runs_of(free):
    """Maximal runs of free nodes, node by node."""
    runs = []
    for node in range(NODES):
        if free[node] and (node == 0 or not free[node - 1]):
            runs.append([node, node])
        if free[node]:
            runs[-1][1] = node + 1
    return [tuple(run) for run in runs]


def longest(runs):
    return max((stop - start for start, stop in runs), default=0)


@given(lines())
def test_the_reservation_is_the_earliest_there_is(case):
    state, _, holder, ends, (job, *_) = case
    size = state.processors[job]
    if longest(runs_of(holder < 0)) >= size:
        return
    reserve_slot(state, 0.0, job)
    reservation = state.counts[0]
    for instant in range(5):
        free = np.array([h < 0 or ends[h] <= instant for h in holder])
        if longest(runs_of(free)) >= size:
            break
    assert reservation.shadow == instant
    assert reservation.stop - reservation.first == size
    assert free[reservation.first : reservation.stop].all()


@given(lines())
def test_what_is_backfilled_leaves_the_reservation_alone(case):
    state, rule, holder, _, (job, *others) = case
    if longest(runs_of(holder < 0)) >= state.processors[job]:
        return
    reserve_slot(state, 0.0, job)
    shadow, first, stop = (state.counts[0][name] for name in ("shadow", "first", "stop"))
    free, news = holder < 0, new_news(len(state.processors))
    backfill(state, rule, news)
    started = news.job[: news.counts[N_ACTIONS]].tolist()
    for other in started:
        (run,) = state.held.runs[state.held.first[other] : state.held.last[other]]
        assert run[1] - run[0] == state.processors[other]
        assert free[slice(*run)].all()
        free[slice(*run)] = False
        if state.requested[other] > shadow:
            assert run[1] <= first or run[0] >= stop
    assert started == [other for other in others if other in started]
    # and nothing more could have been started behind those
    apart = free.copy()
    apart[first:stop] = False
    for other in set(others) - set(started):
        usable = free if state.requested[other] <= shadow else apart
        assert longest(runs_of(usable)) < state.processors[other]


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
