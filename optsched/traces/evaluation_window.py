"""Which jobs of a trace are evaluated: those amid a simulation, not at its ends.

References
----------
M. Gonthier et al., "Data-driven locality-aware batch scheduling", APDCM 2024, Figure 1.
"""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.traces.rackham import AFTER, BEFORE, EVALUATED
from optsched.traces.trace import Trace


def evaluate(trace: Trace, first: float, last: float) -> Trace:
    """Return the trace with the annotation ``category``, by submit time.

    A job is evaluated (1) if it is submitted from `first` up to, but not at, `last`; before that
    it is 0, after that 2. Jobs that were running or waiting at the start (-2 and -1) stay so.

    Parameters
    ----------
    trace : Trace
        The trace, raw or cleaned.
    first, last : float
        Submit times, in seconds.

    Raises
    ------
    InputError
        If no job is evaluated.
    """
    category = np.where(
        trace.submit < first, BEFORE, np.where(trace.submit < last, EVALUATED, AFTER)
    )
    if "category" in trace.annotations:
        known = trace.annotations["category"]
        category = np.where(known < BEFORE, known, category)
    if not (category == EVALUATED).any():
        expected = f"{trace.submit.min()} to {trace.submit.max()} s" if len(trace) else "no job"
        raise InputError(
            f"no job is submitted from {first} s to {last} s; submit times are {expected}",
            file=trace.path,
            field="evaluate",
        )
    return trace.annotated(category=category)
