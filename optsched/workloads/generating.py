"""Generation of a trace from a workload model, its file or its name."""

from __future__ import annotations

from pathlib import Path

from optsched.errors import InputError
from optsched.traces.trace import Trace
from optsched.workloads.spec_file import read_workload
from optsched.workloads.trace_fit import WorkloadFit
from optsched.workloads.workload_model import WorkloadModel


def generate_workload(
    workload: WorkloadModel | WorkloadFit | str | Path,
    *,
    jobs: int,
    seed: int = 0,
    interarrival_factor: float = 1.0,
    service_factor: float = 1.0,
) -> Trace:
    """Generate a trace.

    Parameters
    ----------
    workload : WorkloadModel, WorkloadFit, path or str
        A workload model, a fit, the TOML file of a model, or the name of a bundled model.
    jobs : int
        Number of jobs, at least 1.
    seed : int
        Seed of all random choices, from 0.
    interarrival_factor, service_factor : float
        Factors of the interarrival times and of the run times, above 0. The random numbers do not
        depend on them.

    Returns
    -------
    Trace
        A raw trace in whole seconds. The requested time of a job is its run time if the model draws
        no requested times. Run times that round to 0 are raised to 1 s.

    Raises
    ------
    InputError
        If there is no such workload, its file has mistakes, or a number is out of range.
    """
    if isinstance(workload, WorkloadFit):
        model: WorkloadModel = workload.model
    elif isinstance(workload, WorkloadModel):
        model = workload
    elif isinstance(workload, str | Path):
        model = read_workload(workload)
    else:
        raise InputError(
            f"workload: {workload!r}; expected a workload model, a file or the name of one"
        )
    return model.generate(
        jobs,
        seed,
        interarrival_factor=interarrival_factor,
        service_factor=service_factor,
    )
