"""Sessions of users: jobs that somebody submits at once, and waits for until all are done.

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
"""Seconds from the first job of a session to the last, at most, as in the paper."""


def consecutive_sessions(user: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the session of each job, from 0: jobs of one user that follow each other.

    That is the rule of the authors' plots. A job whose user is not known is a session of its own.

    Parameters
    ----------
    user : int64 array, shape (jobs,)
        Who submitted each job, in the order of submission.
    """
    same = (user[1:] == user[:-1]) & (user[1:] != UNKNOWN)
    return np.cumsum(np.concatenate(([True], ~same))[: len(user)]) - 1


def window_sessions(
    user: NDArray[np.int64], submit: NDArray[Any], window: float = WINDOW
) -> NDArray[np.int64]:
    """Return the session of each job, from 0: jobs that a user submits within a window.

    That is the rule of the paper. The window opens with the first job of a session; the user's
    first job after it opens the next one. Jobs of others may come between. A job whose user is not
    known is a session of its own.

    Parameters
    ----------
    user : int64 array, shape (jobs,)
        Who submitted each job, in the order of submission.
    submit : array, shape (jobs,)
        When, in seconds.
    window : float
        The longest time from the first job of a session to the last.
    """
    opened: dict[int, tuple[float, int]] = {}
    session = np.empty(len(user), dtype=np.int64)
    sessions = 0
    for job, (who, when) in enumerate(zip(user.tolist(), submit.tolist())):
        first, own = opened.get(who, (-np.inf, -1))
        if who == UNKNOWN or when - first > window:
            own = sessions
            opened[who] = when, own
            sessions += 1
        session[job] = own
    return session


def session_stretches(
    stretch: NDArray[np.float64], session: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the stretch of each session: the sum of those of its jobs, shape (sessions,)."""
    return np.bincount(session, stretch).astype(np.float64)
