"""The next job of a tournament against a look at all kinds."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.policies.parts._tournament import BEHIND, enter, new_tournament, next_rank

KINDS = 13
changes = st.lists(st.tuples(st.integers(0, KINDS - 1), st.booleans()), max_size=60)
limits = st.tuples(st.integers(0, KINDS), st.integers(0, KINDS), st.integers(0, 6))


@given(
    st.permutations(range(KINDS)),
    st.lists(st.integers(1, 5), min_size=KINDS, max_size=KINDS),
    changes,
    st.lists(limits, min_size=1, max_size=5),
)
@settings(deadline=None)
def test_the_next_job_is_the_first_of_those_that_fit(scores, durations, entered, searched):
    tournament = new_tournament(KINDS, np.array(scores, dtype=np.float64))
    assert [scores[job] for job in tournament.jobs] == sorted(scores)
    waiting = set()
    for kind, comes in entered:
        if comes:
            waiting.add(kind)
            enter(tournament, kind, tournament.rank[kind], float(durations[kind]))
        else:
            waiting.discard(kind)
            enter(tournament, kind, BEHIND, np.inf)
    assert tournament.first[1] == min((scores[kind] for kind in waiting), default=BEHIND)
    for narrow, fitting, longest in searched:
        narrow, fitting = sorted((narrow, fitting))
        fits = (
            scores[kind]
            for kind in waiting
            if kind < narrow or (kind < fitting and durations[kind] <= longest)
        )
        found = next_rank(tournament, narrow, fitting, float(longest))
        assert found == min(fits, default=BEHIND)


def test_equal_scores_are_ordered_by_job():
    assert new_tournament(3, np.array([2.0, 1.0, 2.0])).jobs.tolist() == [1, 0, 2]
