"""The workloads that are run: the paper's model, and SDSC-BLUE with what stands in for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from optsched.studies.franke_1999.plan import (
    BLUE_FILE,
    BLUE_JOBS,
    BLUE_PROCESSORS,
    LEVEL,
    REQUESTS,
    SEEDS,
    STANDING_IN,
    Workload,
    blue_files,
    few,
    grid,
    instances_file,
    other_seeds,
)
from optsched.studies.franke_1999.published import JOBS
from optsched.studies.study import find_log
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace
from optsched.workloads.spec_file import read_workload
from optsched.workloads.trace_fit import Sizes, fit_workload

QUICK_JOBS = 500
LU_SECONDS = 100
"""Run time of an instance of Figure 9; the figure compares, so any will do."""


def inputs(folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
    """Return all traces that are run, by the name of their file.

    Raises
    ------
    InputError
        If SDSC-BLUE is not there.
    """
    blue = read_trace(find_log(BLUE_FILE, folders))
    jobs = QUICK_JOBS if quick else JOBS
    imperfect = few(SEEDS[0], quick=quick, requests=REQUESTS)
    workloads = [
        *grid(quick=quick),
        *few(SEEDS[0], quick=quick),
        *other_seeds(quick=quick),
        *imperfect,
    ]
    traces = {workload.file: _modelled(workload, jobs) for workload in dict.fromkeys(workloads)}
    traces |= {instances_file(number): _instances(number) for number in range(1, LEVEL + 1)}
    for file, first, stand_in, seed in blue_files(quick=quick):
        part = blue.jobs(first, first + (QUICK_JOBS if quick else BLUE_JOBS) - 1)
        traces[file] = _stand_in(part, stand_in, seed)
    return traces


def _modelled(workload: Workload, jobs: int) -> Trace:
    """Return a workload of the paper's model."""
    trace = read_workload("franke-1999").generate(
        jobs,
        workload.seed,
        interarrival_factor=workload.interarrival,
        service_factor=workload.service,
    )
    if workload.requests == 1:
        return trace
    factor = np.random.default_rng(workload.seed).uniform(1, workload.requests, jobs)
    requested = np.ceil(trace.runtime * factor).astype(np.int64)
    return replace(trace, requested_time=requested, stated_time=requested)


def _instances(number: int) -> Trace:
    """Return so many sequential jobs that are submitted together, as in Figure 9."""
    run = np.full(number, LU_SECONDS)
    return Trace(
        job_id=np.arange(1, number + 1),
        submit=np.zeros(number, dtype=np.int64),
        runtime=run,
        requested_time=run,
        processors=np.ones(number, dtype=np.int64),
        name="instances",
    )


def _stand_in(part: Trace, stand_in: str, seed: int) -> Trace:
    """Return a part of a log with perfect estimates, or what a model fitted to it generates."""
    if stand_in == STANDING_IN[0]:
        perfect = replace(part, requested_time=part.runtime, stated_time=part.runtime, label=None)
        return replace(perfect, submit=part.submit - part.submit.min())
    sizes: Sizes = "uniform" if stand_in == "uniform" else "observed"
    fitted = fit_workload(part, sizes=sizes, processors=BLUE_PROCESSORS)
    return fitted.model.generate(len(part), seed)
