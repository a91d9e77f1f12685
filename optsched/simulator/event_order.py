"""The order of the events of an instant."""

from __future__ import annotations

from enum import StrEnum


class EventOrder(StrEnum):
    """The order of the events of an instant.

    ``batched``: all ends, then all submissions, then one decision. ``one-by-one``: each event
    alone, submissions before ends, a decision after each.
    """

    BATCHED = "batched"
    ONE_BY_ONE = "one-by-one"
