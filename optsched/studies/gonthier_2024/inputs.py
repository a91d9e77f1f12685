"""The workloads that are run: the authors' day, and weeks of logs with inferred input files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from optsched.content import bundled
from optsched.machines.cluster import BANDWIDTH
from optsched.studies.gonthier_2024.plan import (
    DAY,
    DAY_FILE,
    DAYS,
    DAYS_AFTER,
    DAYS_BEFORE,
    LOGS,
    SAMPLE,
    SAMPLE_FILE,
    Log,
    log_file,
    workloads_at_hand,
)
from optsched.studies.gonthier_2024.published import CORES
from optsched.studies.study import find_log
from optsched.traces.evaluation_window import evaluate
from optsched.traces.input_files import infer_files
from optsched.traces.job_pieces import split_jobs
from optsched.traces.rackham import EVALUATED
from optsched.traces.reading import read_trace
from optsched.traces.trace import SECONDS_PER_DAY, Trace


def inputs(folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
    """Return all traces that are run, by the name of their file; logs that are not there are none.

    Raises
    ------
    InputError
        If a log is damaged, or none is there.
    """
    files = {workload.file for workload in workloads_at_hand(folders, quick=quick)}
    traces = {}
    if SAMPLE.file in files:
        traces[SAMPLE.file] = read_trace(bundled("traces") / SAMPLE_FILE, clean=False)
    if DAY.file in files:
        traces[DAY.file] = read_trace(find_log(DAY_FILE, folders), clean=False)
    for log in LOGS:
        if log_file(log) in files:
            traces[log_file(log)] = week_of(read_trace(find_log(log.file, folders)), log)
    return traces


def week_of(trace: Trace, log: Log) -> Trace:
    """Return a week of a log and the days around it, as jobs of one node each with input files."""
    first = int(trace.submit.min()) + log.week * DAYS * SECONDS_PER_DAY
    last = first + DAYS * SECONDS_PER_DAY
    around = (trace.submit >= first - DAYS_BEFORE * SECONDS_PER_DAY) & (
        trace.submit < last + DAYS_AFTER * SECONDS_PER_DAY
    )
    pieces = split_jobs(trace.select(np.flatnonzero(around)), CORES).trace
    return evaluate(infer_files(pieces), first, last)


def offered(trace: Trace, nodes: int) -> float:
    """Return what the evaluated jobs of a trace ask of a cluster if each of them loads its file.

    Parameters
    ----------
    trace : Trace
        A cleaned trace with files and categories.
    nodes : int
        Nodes of the cluster.

    Returns
    -------
    float
        Their core time over that of the cluster in whole days from the first of them to the last.
    """
    counts = trace.annotations["category"] == EVALUATED
    loads = trace.annotations["file_size"][counts] // BANDWIDTH
    held = np.minimum(trace.runtime[counts] + loads, trace.requested_time[counts])
    submit = trace.submit[counts]
    days = np.ceil((submit.max() - submit.min() + 1) / SECONDS_PER_DAY)
    work = float((held * trace.processors[counts]).sum())
    return work / float(nodes * CORES * days * SECONDS_PER_DAY)
