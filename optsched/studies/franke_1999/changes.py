"""Changes of the modeled workload, one at a time, to see on what the results depend."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.traces.trace import Trace
from optsched.workloads.hyper_erlang import HyperErlang
from optsched.workloads.hyper_erlang_classes import HyperErlangClasses
from optsched.workloads.spec_file import read_workload


class Change(NamedTuple):
    """What is changed; by default nothing.

    Parameters
    ----------
    run_power : float
        Run times are raised to this power: above 1 they vary more, with 0 all are equal.
    size_factor : float
        Sizes are multiplied by this number, and are at least one node and at most the machine.
    power_of_two : bool
        Whether sizes are raised to the next power of two.
    shuffled : bool
        Whether sizes are dealt to the jobs at random, so that they say nothing of run times.
    poisson : bool
        Whether jobs arrive in a Poisson process.
    gap_power : float
        Times between submissions are raised to this power: above 1 jobs come in bursts.
    requests : float
        Requested times are drawn from one to this many times the run time; if infinite, all jobs
        request the longest run time.
    published_shares : bool
        Whether the classes have the shares of the paper's tables, rather than those that follow
        from their interarrival times, in the same number of jobs a day.
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
    def key(self) -> str:
        """The fields that change something, for the name of a file; empty if there are none."""
        fields = zip(self._fields, self, self._field_defaults.values())
        return "_".join(f"{name}{own:g}" for name, own, usual in fields if own != usual)

    @property
    def words(self) -> str:
        """The change in words; empty if there is none."""
        fields = zip(self._fields, self, self._field_defaults.values())
        said = [_words(name, own) for name, own, usual in fields if own != usual]
        return "; ".join(said)

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


UNCHANGED = Change()


def changed(trace: Trace, change: Change, nodes: int, seed: int) -> Trace:
    """Apply a change to the jobs of a model.

    The total work and the span of the submissions stay the same: run times and times between
    submissions are scaled to them.

    Parameters
    ----------
    nodes : int
        Nodes of the machine.
    seed : int
        Of what is drawn: the order of shuffled sizes, a Poisson process, requested times.
    """
    rng = np.random.default_rng(seed)
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


WORDS = {
    "run_power": "run times to the power of {:g}",
    "size_factor": "sizes times {:g}",
    "power_of_two": "sizes powers of two",
    "shuffled": "sizes independent of run times",
    "poisson": "Poisson arrivals",
    "gap_power": "times between arrivals to the power of {:g}",
    "requests": "requests of up to {:g} times the run time",
    "published_shares": "classes by the paper's column of shares",
}
"""Each field of a change in words."""


def _words(name: str, value: float) -> str:
    if name == "requests" and np.isinf(value):
        return "all request the longest run time"
    return WORDS[name].format(value)


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
    submitted: NDArray[np.int64] = np.rint(first + times * ((last - first) / times[-1])).astype(
        np.int64
    )
    return submitted


def _requested(run: NDArray[np.int64], most: float, rng: np.random.Generator) -> NDArray[np.int64]:
    if np.isinf(most):
        return np.full_like(run, run.max())
    return np.ceil(run * rng.uniform(1, most, len(run))).astype(np.int64)
