"""The compiled profile against a plain statement of it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.policies import _profile

SIZE = 10
HORIZON = 60


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, SIZE), st.integers(1, 15)), max_size=12),
    st.data(),
)
@settings(deadline=None)
def test_reservations_are_the_earliest_possible(jobs, data):
    profile = _profile.new_profile(SIZE, jobs=len(jobs))
    level = [SIZE] * 1000  # processors free in each second
    placed = []
    for now, processors, duration in jobs:
        start, entry = _profile.first_window(profile, float(now), processors, float(duration))
        start = int(start)
        wanted = now
        while any(level[s] < processors for s in range(wanted, wanted + duration)):
            wanted += 1
        assert start == wanted
        _profile.change(profile, float(start), float(start + duration), -processors, entry)
        for second in range(start, start + duration):
            level[second] -= processors
        placed.append((start, start + duration, processors))
        if data.draw(st.booleans()):
            start, end, processors = placed.pop(data.draw(st.integers(0, len(placed) - 1)))
            entry = _profile.entry_at(profile, float(start))
            _profile.change(profile, float(start), float(end), processors, entry)
            for second in range(start, end):
                level[second] += processors
        stated = [profile.free[_profile.entry_at(profile, float(s))] for s in range(200)]
        assert stated == level[:200]
        assert (np.diff(profile.times[slice(*profile.ends)]) > 0).all()


def test_what_lies_before_now_is_forgotten():
    profile = _profile.new_profile(SIZE, jobs=1)
    _profile.change(profile, 5.0, 9.0, -3, _profile.entry_at(profile, 5.0))
    _profile.forget(profile, 7.0)
    here = slice(*profile.ends)
    assert profile.times[here].tolist() == [7.0, 9.0]
    assert profile.free[here].tolist() == [7, 10]


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
    profile = _profile.new_profile(SIZE, len(jobs))
    rows = np.arange(len(jobs))
    processors, durations = (np.array(column) for column in zip(*jobs))
    starts = np.full(len(jobs), np.inf)
    arguments = (rows, processors, durations, starts)
    _profile.place_again(profile, now, *arguments)
    before = starts.copy()
    assert not _profile.place_again(profile, now, *arguments)
    assert starts.tolist() == before.tolist()
