"""Input files of jobs, inferred from users, sizes and submit times.

References
----------
M. Gonthier et al., "Data-driven locality-aware batch scheduling", APDCM 2024, section V.B.
"""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.numbers import LARGEST
from optsched.traces.cleaning import clean
from optsched.traces.trace import UNKNOWN, Trace

WINDOW = 800
"""Most seconds between two successive jobs of a file, as in the paper."""

PER_PROCESSOR = 6400
"""MB of a file for each processor of its jobs: 128 GB for the 20 cores of a node."""


def infer_files(trace: Trace, *, window: int = WINDOW, per_processor: int = PER_PROCESSOR) -> Trace:
    """Return the trace with the annotations ``file`` and ``file_size``.

    A job uses the file of the job submitted just before it if both have the same user and size and
    are submitted at most `window` seconds apart; otherwise a new file. So the jobs of a file are
    consecutive in the order of submission, and a job of another user or size ends the series.
    Files are numbered from 1. A job whose user is unknown shares no file.

    Parameters
    ----------
    trace : Trace
        The trace; a raw one is cleaned first. Split jobs larger than a node before, with
        `optsched.traces.job_pieces.split_jobs`.
    window : int
        Most seconds between two successive jobs of a file.
    per_processor : int
        Size of a file, in MB for each processor of its jobs.

    Raises
    ------
    InputError
        If a number is out of range, no user is known, or a file is larger than 2^53 MB.

    Notes
    -----
    The paper asks for the same user, the same cores and "an 800 seconds time frame", which leaves
    open whether jobs of other users may come between. In the authors' workload no job does.
    """
    trace = clean(trace)
    for name, value, lowest in (("window", window, 0), ("per processor", per_processor, 1)):
        if type(value) is not int or not lowest <= value <= LARGEST:
            raise InputError(f"{value!r}; expected a whole number from {lowest}", field=name)
    if (trace.user == UNKNOWN).all():
        raise InputError(
            "no job states its user, from which files are inferred", file=trace.path, field="user"
        )
    if int(trace.processors.max()) * per_processor > LARGEST:
        raise InputError("the largest job has a file of more than 2^53 MB", field="per processor")
    shared = (
        (trace.user[1:] != UNKNOWN)
        & (np.diff(trace.user) == 0)
        & (np.diff(trace.processors) == 0)
        & (np.diff(trace.submit) <= window)
    )
    file = np.cumsum(np.concatenate(([True], ~shared)))
    return trace.annotated(file=file, file_size=trace.processors * per_processor)
