"""Actions that a policy can return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Start(NamedTuple):
    """Start a waiting job now.

    Parameters
    ----------
    job : int
        Row of the job in the trace.
    place : object, optional
        The allocation, in the machine's own terms; by default the machine chooses.
    limit : float, optional
        Walltime of the job in seconds, in place of its requested time.
    """

    job: int
    place: Any = None
    limit: float | None = None


class Move(NamedTuple):
    """Move running jobs to other places, in the machine's own terms, all at once.

    The jobs go on working.

    Parameters
    ----------
    places : mapping of int to object
        The new place of each job that moves, by its row in the trace.
    """

    places: Mapping[int, Any]


class Migrate(NamedTuple):
    """Stop running jobs and restart them in other places, all at once.

    A migrating job makes no progress for as long as the execution model says, and its time limit is
    extended by as much. A job that was started at this very time loses nothing: it begins in the
    other place.

    Parameters
    ----------
    places : mapping of int to object
        The new place of each job that moves, in the machine's own terms.
    parked : frozenset of int
        Migrating jobs that leave their place before the new one is free.
    """

    places: Mapping[int, Any]
    parked: frozenset[int] = frozenset()


class Share(NamedTuple):
    """Give a running job a share of its processors' time from now on.

    A job that has had no share since it got its processors starts with its first share above 0.

    Parameters
    ----------
    job : int
        Row of the job in the trace.
    share : float
        Share of the time, from 0 to 1.
    """

    job: int
    share: float


class Wake(NamedTuple):
    """Request a decision at a time, even if there is no event.

    Parameters
    ----------
    at : float
        Simulated time in seconds, later than now.
    """

    at: float


Action = Start | Move | Migrate | Share | Wake
