"""Other submissions of the same jobs: at another load, or moved at random.

References
----------
D. Tsafrir, K. Ouaknine, D. Feitelson, "Reducing performance evaluation sensitivity and variability
by input shaking", MASCOTS 2007.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.numbers import LARGEST, LONGEST
from optsched.traces.trace import UNKNOWN, Trace

LARGEST_LOAD = 1e6
"""Largest load factor; a larger one is taken for a mistake."""

INSTANTS = ("begin", "eligible")
"""Annotations that are instants."""


def stretched(trace: Trace, load: float) -> NDArray[Any]:
    """Return the submit times, stretched from the first one by ``1 / load``, in whole seconds."""
    check_load(load)
    known = trace.submit >= 0
    if load == 1 or not known.any():
        return trace.submit
    first = trace.submit[known].min()
    submit = np.rint(first + (trace.submit - first) / load)
    if submit.max() > LARGEST:
        raise InputError(f"{load!r}; submit times would be above 2^53 s", field="load")
    return np.where(known, submit, trace.submit).astype(np.int64)


def check_load(load: Any) -> None:
    """Refuse a factor of the load that is no number, or out of range."""
    if type(load) not in (int, float) or not 1 / LARGEST_LOAD <= load <= LARGEST_LOAD:
        expected = f"expected a factor from {1 / LARGEST_LOAD:g} to {LARGEST_LOAD:g}"
        raise InputError(f"{load!r}; {expected}", field="load")


def check_shake(seconds: Any) -> None:
    """Refuse a number of seconds to shake by that is not whole, or out of range."""
    if type(seconds) is not int or not 0 <= seconds <= LONGEST:
        expected = f"expected a whole number of seconds from 0 to {LONGEST:,}"
        raise InputError(f"{seconds!r}; {expected}", field="shake")


def shaken(trace: Trace, seconds: int, seed: int) -> NDArray[Any]:
    """Return the submit times, each put off by whole seconds from 0 to `seconds`, all as likely."""
    return trace.submit + np.random.default_rng(seed).integers(0, seconds + 1, len(trace))


def submitted(trace: Trace, submit: NDArray[Any]) -> tuple[Trace, NDArray[np.int64]]:
    """Return the trace with other submit times, and the former row of each job.

    The jobs are in order of their submissions, those of an instant as they were. Recorded waits are
    left out, since they belong to the recorded submissions.
    """
    wait = np.full(len(trace), UNKNOWN)
    moved = trace.changed(submit=submit, wait=wait, annotations=held_as_long(trace, submit))
    order = np.argsort(submit, kind="stable")
    return moved.select(order), order


def held_as_long(trace: Trace, submit: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the annotations, with begin times at their distance from other submit times."""
    moved = {
        name: np.where(stated > UNKNOWN, stated + (submit - trace.submit), UNKNOWN)
        for name, stated in trace.annotations.items()
        if name in INSTANTS
    }
    return {**trace.annotations, **moved}
