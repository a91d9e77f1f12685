"""Window of submit times whose jobs are evaluated, away from the ends of a simulation.

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

    The category of a job is 0 if it is submitted before `first`, 1 (evaluated) from `first` until
    before `last`, and 2 from `last` on. Jobs that were running or waiting at the start keep their
    categories -2 and -1.

    `trace`: the trace, raw or cleaned; `first` and `last`: submit times, in seconds.
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
