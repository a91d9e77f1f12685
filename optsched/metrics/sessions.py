"""Sessions of users: jobs that a user submits together and waits for.

References
----------
M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware batch
scheduling", APDCM 2024, section V.B.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.traces.trace import UNKNOWN

WINDOW = 300
"""Longest time in seconds from the first job of a session to the last, as in the paper."""


def consecutive_sessions(user: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the session of each job, from 0: consecutive jobs of one user.

    The authors' plots use this rule. A job without a known user is a session of its own. Jobs are
    in the order of submission.
    """
    same = (user[1:] == user[:-1]) & (user[1:] != UNKNOWN)
    return np.cumsum(np.concatenate(([True], ~same))[: len(user)]) - 1


def window_sessions(user: NDArray[np.int64], submit: NDArray[Any]) -> NDArray[np.int64]:
    """Return the session of each job, from 0: jobs that a user submits within `WINDOW`.

    The paper states this rule. The window opens with the first job of a session; the user's first
    job after the window opens the next session. Jobs of other users may come in between. A job
    without a known user is a session of its own. Jobs are in the order of submission; times are in
    seconds.
    """
    opened: dict[int, tuple[float, int]] = {}
    session = np.empty(len(user), dtype=np.int64)
    sessions = 0
    for job, (who, when) in enumerate(zip(user.tolist(), submit.tolist())):
        first, own = opened.get(who, (-np.inf, -1))
        if who == UNKNOWN or when - first > WINDOW:
            own = sessions
            opened[who] = when, own
            sessions += 1
        session[job] = own
    return session


def session_stretches(
    stretch: NDArray[np.float64], session: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the stretch of each session: the sum of its jobs' stretches, shape (sessions,)."""
    return np.bincount(session, stretch).astype(np.float64)
