"""The workloads that are run: modelled ones, and parts of logs scaled to the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from optsched.studies.li_2015.plan import (
    FULL,
    JOBS,
    LOAD,
    MODEL,
    QUICK_FROM,
    QUICK_JOBS,
    SMALL,
    log_file,
    logs_at_hand,
    modelled,
)
from optsched.studies.offered import offered_by
from optsched.studies.study import find_log
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.scaling import scale_trace
from optsched.traces.trace import Trace
from optsched.workloads.capability_mix import CapabilityMix
from optsched.workloads.spec_file import read_workload


def inputs(folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
    """Return all traces that are run, by the name of their file; logs that are not there are none.

    Raises
    ------
    InputError
        If a log is damaged.
    """
    nodes = (SMALL if quick else FULL).nodes
    model, jobs = _model(quick=quick), QUICK_JOBS if quick else JOBS
    traces = {
        one.file: _at_load(model.generate(jobs, one.seed), nodes, one.load)
        for one in modelled(quick=quick)
    }
    for log in logs_at_hand(folders, quick=quick):
        whole = clean(read_trace(find_log(log.file, folders)))
        last = log.first + QUICK_JOBS - 1 if quick else log.last
        traces[log_file(log)] = _at_load(whole.jobs(log.first, last), nodes, LOAD)
    return traces


def _model(*, quick: bool) -> CapabilityMix:
    """Return the model, or for a quick look its classes of many nodes."""
    model = read_workload(MODEL)
    assert isinstance(model, CapabilityMix)
    if not quick:
        return model
    classes = [one for one in model.classes if one.smallest >= QUICK_FROM]
    total = sum(one.share for one in classes)
    return replace(
        model, classes=tuple(replace(one, share=100 * one.share / total) for one in classes)
    )


def _at_load(trace: Trace, nodes: int, load: float) -> Trace:
    """Return a trace scaled to so many nodes, with times between arrivals that offer this load."""
    sized = scale_trace(trace, nodes).trace
    factor = load / offered_by(sized, nodes).load
    return scale_trace(sized, nodes, load=factor).trace
