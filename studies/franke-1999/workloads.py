"""The workloads: of the paper's model, changed to see what matters, and parts of SDSC-BLUE."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.traces.catalogue import find_log
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace
from optsched.workloads.hyper_erlang import HyperErlang, HyperErlangClasses, fit_workload
from optsched.workloads.spec_file import read_workload

Own = Mapping[str, Any]
Workload = dict[str, str]
"""The labels of a workload: of the model, or of a part of SDSC-BLUE and what stands in for it."""


def file_of(workload: Workload) -> str:
    """Return the name of the file of a workload."""
    words = re.sub(r"[^\w.]+", "-", " ".join(filter(None, workload.values())))
    return f"{words}.swf.gz"


def workloads(own: Own, sets: Sequence[str]) -> Iterator[Workload]:
    """Yield the workloads of some sets, each once; `own` is that table of the plan."""
    seen = dict[str, Workload]()
    for name in sets:
        seen |= {file_of(one): one for one in _workloads_of(own, name)}
    yield from seen.values()


def _workloads_of(own: Own, name: str) -> Iterator[Workload]:
    if name == "blue":
        for first, stand_in in product(own["blue"]["first"], own["blue"]["stand_ins"]):
            part = {"kind": "blue", "part": str(first), "stand_in": stand_in}
            drawn = own["blue"]["draws"] if stand_in != "trace" else [""]
            yield from (part | {"draw": str(draw)} for draw in drawn)
    else:
        stated = own["sets"][name]
        changes = stated.get("changes", [""])
        changes = [*own["changes"]] if changes == "all" else changes
        for change, interarrival, service, draw in product(
            changes, stated["interarrival"], stated["service"], stated["draws"]
        ):
            factors = {"interarrival": f"{interarrival:g}", "service": f"{service:g}"}
            yield {"kind": "model"} | factors | {"draw": str(draw), "change": change}


def traces(own: Own, sets: Sequence[str], folders: Sequence[Path]) -> dict[str, Trace]:
    """Make the traces of the workloads of some sets, by file."""
    every = [*workloads(own, sets)]
    blue = read_trace(find_log(own["blue"]["file"], folders))
    return {file_of(one): _made(one, own, blue) for one in every}


def _made(one: Workload, own: Own, blue: Trace) -> Trace:
    if one["kind"] == "model":
        change = Change(**own["changes"][one["change"]] if one["change"] else {})
        factors = float(one["interarrival"]), float(one["service"])
        return modeled(*factors, int(one["draw"]), change, own["jobs"], own["nodes"])
    first = int(one["part"])
    part = blue.jobs(first, first + own["jobs"] - 1)
    if one["stand_in"] == "trace":
        perfect = replace(part, requested_time=part.runtime, stated_time=part.runtime, label=None)
        return replace(perfect, submit=part.submit - part.submit.min())
    fitted = fit_workload(part, sizes=one["stand_in"], processors=own["blue"]["processors"])
    return fitted.model.generate(len(part), int(one["draw"]))


class Change(NamedTuple):
    """What is changed of the paper's workload; by default nothing.

    Run times are raised to `run_power`: above 1 they vary more, with 0 all are equal. Sizes are
    multiplied by `size_factor`, within the machine, raised to the next power of two, or dealt to
    the jobs at random (`shuffled`), so that they say nothing of run times. Jobs arrive in a Poisson
    process, or times between submissions are raised to `gap_power`: above 1 jobs come in bursts.
    Times requested are up to `requests` times the run time; if infinite, all the longest run time.
    Classes may have the shares of the paper's tables, not those of their arrivals.
    """

    run_power: float = 1.0
    size_factor: float = 1.0
    power_of_two: bool = False
    shuffled: bool = False
    poisson: bool = False
    gap_power: float = 1.0
    requests: float = 1.0
    published_shares: bool = False

    @property
    def model(self) -> HyperErlangClasses:
        """The model of the paper, which only `published_shares` changes."""
        model = read_workload("franke-1999")
        assert isinstance(model, HyperErlangClasses)
        if not self.published_shares:
            return model
        rate = sum(1 / one.interarrival.mean for one in model.classes)
        total = sum(one.share or 0 for one in model.classes)
        wanted = [rate * (one.share or 0) / total for one in model.classes]
        classes = [
            replace(one, interarrival=_faster(one.interarrival, own * one.interarrival.mean))
            for one, own in zip(model.classes, wanted)
        ]
        return replace(model, classes=tuple(classes))


def modeled(
    interarrival: float, service: float, draw: int, change: Change, jobs: int, nodes: int
) -> Trace:
    """Draw a workload of the paper's model, and change it."""
    factors = {"interarrival_factor": interarrival, "service_factor": service}
    trace = change.model.generate(jobs, draw, **factors)
    return trace if change == Change() else changed(trace, change, nodes, draw)


def changed(trace: Trace, change: Change, nodes: int, draw: int) -> Trace:
    """Apply a change to the jobs of a model.

    The total work and the span of the submissions stay the same: run times and times between
    submissions are scaled to them. `draw` seeds the order of shuffled sizes, a Poisson process, and
    requested times.
    """
    rng = np.random.default_rng(draw)
    wanted = trace.processors * change.size_factor
    if change.power_of_two:
        wanted = 2 ** np.ceil(np.log2(wanted))
    if change.shuffled:
        wanted = rng.permutation(wanted)
    sizes = np.clip(np.rint(wanted), 1, nodes).astype(np.int64)
    run = trace.runtime**change.run_power
    run = run * ((trace.processors * trace.runtime).sum() / (sizes * run).sum())
    run = np.maximum(np.rint(run), 1).astype(np.int64)
    requested = _requested(run, change.requests, rng)
    return replace(
        trace,
        submit=_submissions(trace, change, rng),
        runtime=run,
        processors=sizes,
        requested_time=requested,
        stated_time=requested,
    )


def _faster(times: HyperErlang, factor: float) -> HyperErlang:
    """Return the distribution of times that are shorter by a factor."""
    first, second = times.rates
    return replace(times, rates=(first * factor, second * factor))


def _submissions(trace: Trace, change: Change, rng: np.random.Generator) -> NDArray[np.int64]:
    gaps = np.diff(trace.submit) ** change.gap_power
    if change.poisson:
        gaps = rng.exponential(size=len(gaps))
    first, last = trace.submit[0], trace.submit[-1]
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    submitted = first + times * ((last - first) / times[-1])
    return np.rint(submitted).astype(np.int64)


def _requested(run: NDArray[np.int64], most: float, rng: np.random.Generator) -> NDArray[np.int64]:
    if np.isinf(most):
        return np.full_like(run, run.max())
    return np.ceil(run * rng.uniform(1, most, len(run))).astype(np.int64)
