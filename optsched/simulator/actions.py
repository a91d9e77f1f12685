"""What a policy can ask for."""

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
        Where, in the machine's own terms; the machine chooses when it is left out.
    limit : float, optional
        Seconds that it may run and is expected to run at most; its requested time if left out.
    """

    job: int
    place: Any = None
    limit: float | None = None


class Move(NamedTuple):
    """Give running jobs other places, all at once; they go on working.

    Parameters
    ----------
    places : mapping of int to object
        The new place of each job that moves, in the machine's own terms.
    """

    places: Mapping[int, Any]


class Migrate(NamedTuple):
    """Stop running jobs, and restart them in other places, all at once.

    They make no progress for as long as the execution model says, and their limits are put off by
    that. Jobs that were started at this very time lose nothing: they begin in the other place.

    Parameters
    ----------
    places : mapping of int to object
        The new place of each job that moves, in the machine's own terms.
    parked : frozenset of int
        The jobs among them that leave their place before they can have the other.
    """

    places: Mapping[int, Any]
    parked: frozenset[int] = frozenset()


class Share(NamedTuple):
    """Let a running job have its processors for a part of the time, from now on.

    Parameters
    ----------
    job : int
        Row of the job in the trace.
    share : float
        Of the time, above 0 and up to 1.
    """

    job: int
    share: float


class Wake(NamedTuple):
    """Decide again at a time at which nothing else may happen.

    Parameters
    ----------
    at : float
        Simulated time in seconds, later than now.
    """

    at: float


Action = Start | Move | Migrate | Share | Wake
