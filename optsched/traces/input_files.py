"""Input files of jobs, inferred from users, sizes and submit times.

References
----------
M. Gonthier et al., "Data-driven locality-aware batch scheduling", APDCM 2024, section V.B.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from optsched.errors import InputError
from optsched.numbers import LARGEST
from optsched.traces.cleaning import clean
from optsched.traces.trace import UNKNOWN, Trace

WINDOW = 800
"""Most seconds between two successive jobs of a file, as in the paper."""

PER_PROCESSOR = 6400
"""MB of a file for each processor of its jobs: 128 GB for the 20 cores of a node."""


Sharing = Literal["consecutive", "interleaved"]


def infer_files(
    # The trace; a raw one is cleaned first. Split jobs larger than a node before, with
    # `optsched.traces.job_pieces.split_jobs`.
    trace: Trace,
    *,
    window: int = WINDOW,  # most seconds between two successive jobs of a file
    per_processor: int = PER_PROCESSOR,  # size of a file, in MB for each processor of its jobs
    # Earlier job: ``consecutive``, the one submitted just before, so that a job of another
    # user or size ends a series, as in the authors' workload; ``interleaved``, the last one
    # of the same user and size, whatever comes between, as section V.B is written
    sharing: Sharing = "consecutive",
) -> Trace:
    """Return the trace with the annotations ``file`` and ``file_size``.

    A job uses the file of an earlier one if both have the same user and size and are submitted at
    most `window` seconds apart; otherwise a new file. Files are numbered from 1, in the order of
    their first jobs. A job whose user is unknown shares no file.

    The paper asks for the same user, the same cores and "an 800 seconds time frame" of two jobs. It
    does not exclude jobs of other users in between; in the authors' workload no job comes between.
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
    if sharing not in get_args(Sharing):
        raise InputError(
            f"{sharing!r}; expected one of {', '.join(get_args(Sharing))}", field="sharing"
        )
    order = np.arange(len(trace))
    if sharing == "interleaved":
        order = np.lexsort((trace.processors, trace.user))  # then in the order of submission
    user, processors, submit = trace.user[order], trace.processors[order], trace.submit[order]
    shared = (
        (user[1:] != UNKNOWN)
        & (np.diff(user) == 0)
        & (np.diff(processors) == 0)
        & (np.diff(submit) <= window)
    )
    series = np.empty(len(trace), dtype=np.int64)
    series[order] = np.cumsum(np.concatenate(([True], ~shared)))
    _, first, series = np.unique(series, return_index=True, return_inverse=True)
    file = 1 + first.argsort().argsort()[series]
    return trace.annotated(file=file, file_size=trace.processors * per_processor)
