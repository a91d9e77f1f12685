"""What a policy can ask for."""

from __future__ import annotations

from typing import Any, NamedTuple


class Start(NamedTuple):
    """Start a waiting job now.

    Parameters
    ----------
    job : int
        Row of the job in the trace.
    place : object, optional
        Where, in the machine's own terms; the machine chooses when it is left out.
    """

    job: int
    place: Any = None


class Wake(NamedTuple):
    """Decide again at a time at which nothing else may happen.

    Parameters
    ----------
    at : float
        Simulated time in seconds, later than now.
    """

    at: float


Action = Start | Wake
