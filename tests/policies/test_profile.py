"""The compiled profile against a plain statement of it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.policies.parts import _profile

SIZE = 10
HORIZON = 60


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, SIZE), st.integers(1, 15)), max_size=12),
    st.data(),
)
@settings(deadline=None)
def test_reservations_are_the_earliest_possible(jobs, data):
    times, free, count = _profile.new_profile(0.0, SIZE, capacity=64)
    level = [SIZE] * 1000  # processors free in each second
    placed = []
    for now, processors, duration in jobs:
        start = int(_profile.earliest(times, free, count, float(now), processors, float(duration)))
        wanted = now
        while any(level[s] < processors for s in range(wanted, wanted + duration)):
            wanted += 1
        assert start == wanted
        count = _profile.change(
            times, free, count, float(start), float(start + duration), -processors
        )
        for second in range(start, start + duration):
            level[second] -= processors
        placed.append((start, start + duration, processors))
        if data.draw(st.booleans()):
            start, end, processors = placed.pop(data.draw(st.integers(0, len(placed) - 1)))
            count = _profile.change(times, free, count, float(start), float(end), processors)
            for second in range(start, end):
                level[second] += processors
        stated = [free[_profile.position(times, count, float(second))] for second in range(200)]
        assert stated == level[:200]
        assert (np.diff(times[:count]) > 0).all()


def test_what_lies_before_now_is_forgotten():
    times, free, count = _profile.new_profile(0.0, SIZE, capacity=8)
    count = _profile.change(times, free, count, 5.0, 9.0, -3)
    count = _profile.forget(times, free, count, 7.0)
    assert times[:count].tolist() == [7.0, 9.0]
    assert free[:count].tolist() == [7, 10]


@given(
    st.lists(
        st.tuples(st.integers(1, SIZE), st.floats(0.1, 50, allow_subnormal=False)),
        min_size=1,
        max_size=20,
    ),
    st.floats(0, 100),
)
@settings(deadline=None, max_examples=300)
def test_what_is_placed_again_stays_whatever_the_rounding(jobs, now):
    """Nothing was freed since, so no reservation moves: its own hole fits a job again."""
    times, free, count = _profile.new_profile(now, SIZE, capacity=100)
    rows = np.arange(len(jobs))
    processors, durations = (np.array(column) for column in zip(*jobs))
    starts = np.full(len(jobs), np.inf)
    arguments = (rows, processors, durations, starts)
    count, _ = _profile.place(times, free, count, now, *arguments)
    before = starts.copy()
    count, moved = _profile.place(times, free, count, now, *arguments)
    assert starts.tolist() == before.tolist()
    assert not moved
