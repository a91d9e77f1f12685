import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optsched.metrics import stretch
from optsched.metrics.stretch import WINDOW, consecutive_sessions, window_sessions


def test_a_session_ends_where_another_user_submits_or_with_the_window_of_its_first_job():
    assert consecutive_sessions(np.array([1, 1, 2, 1, 1, -1, -1])).tolist() == [0, 0, 1, 2, 2, 3, 4]
    user = np.array([1, 2, 1, 1, 2, 1, -1, -1])
    submit = np.array([0, 10, 290, 301, 310, 601, 700, 700])
    # job 4 is 11 s after job 3, but 301 s after the job that opened the session
    assert window_sessions(user, submit).tolist() == [0, 1, 0, 2, 1, 2, 3, 4]


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 400)), max_size=30))
def test_sessions_are_of_one_user_and_within_the_window(rows):
    user = np.array([who for who, _ in rows], dtype=np.int64)
    submit = np.cumsum([0, *(gap for _, gap in rows)])[: len(rows)]
    for session in (consecutive_sessions(user), window_sessions(user, submit)):
        assert sorted(set(session.tolist())) == list(range(len(set(session.tolist()))))
        for own in range(len(set(session.tolist()))):
            assert len(set(user[session == own].tolist())) == 1
            assert (user[session == own] != -1).all() or (session == own).sum() == 1
    windows = window_sessions(user, submit)
    assert all(np.ptp(submit[windows == own]) <= WINDOW for own in set(windows.tolist()))


def test_the_stretch_of_a_session_is_the_sum_of_those_of_its_jobs():
    summed = stretch.session_stretches(np.array([1.0, 2.0, 1.5]), np.array([0, 1, 0]))
    assert summed.tolist() == [2.5, 2.0]
