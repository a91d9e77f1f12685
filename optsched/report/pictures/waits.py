"""Distribution of the waits, by size of the jobs."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.numbers import counted, spoken
from optsched.registry import pictures
from optsched.report import load, style
from optsched.report.load import extended, log_ticks, thinned
from optsched.report.run_picture import RunFacts, RunPicture
from optsched.schedule import State

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.simulator.run import Run

MOST_POINTS = 400
SHARES = (64, 8)
"""Parts of the machine: small jobs have at most a 64th, large ones more than an eighth."""


class SizeClass(NamedTuple):
    """Jobs of `low` to `high` processors, with a mask of the jobs."""

    low: int
    high: int
    jobs: NDArray[np.bool]


def size_classes(processors: NDArray[np.int64], machine_size: int) -> list[SizeClass]:
    """Return the jobs by size: one processor, up to a 64th, an eighth, all of the machine.

    Classes without a job are left out.
    """
    bounds = sorted({0, 1, *(machine_size // share for share in SHARES), machine_size})
    classes = []
    for below, high in pairwise(bounds):
        jobs = (processors > below) & (processors <= high)
        if jobs.any():
            classes.append(SizeClass(below + 1, high, jobs))
    return classes


def ecdf(waits: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each different finite wait, in order, and the share of jobs that waited no longer.

    The wait of a job that never started is infinite, and counts too.
    """
    values, counts = np.unique(waits, return_counts=True)
    finite = np.isfinite(values)
    shares = np.cumsum(counts) / max(1, len(waits))
    return values[finite], shares[finite]


@pictures.register("waits")
class Waits(RunPicture):
    """Distribution of the waits, by size of the jobs."""

    rank = 30

    @style.applied()
    def figure(self, run: Run, days: load.Days | None = None) -> Figure:
        """Draw the distribution of the waits, on an axis with 0 and logarithmic from 1 s.

        Parameters
        ----------
        days : (float, float), optional
            Period in which the jobs were submitted, in days since the first submission; by default
            all jobs.
        """
        begin, end = load.period(run, days)
        submit = np.asarray(run.trace.submit, dtype=np.float64)
        queued = load.accepted(run) & (submit >= begin) & (submit <= end)
        waits = np.where(np.isfinite(run.start), run.start - submit, np.inf)[queued]
        classes = size_classes(run.trace.processors[queued], run.machine.size)
        finite = waits[np.isfinite(waits)]
        right = 1.5 * max(60.0, float(np.max(finite, initial=0.0)))
        curves = [
            (
                _range(c)
                if style.is_narrow()
                else f"{_sizes(c)} ({counted(int(c.jobs.sum()), 'job')})",
                waits[c.jobs],
            )
            for c in classes
        ]
        if len(classes) > 1:
            everyone = "all" if style.is_narrow() else f"all {len(waits):,} jobs"
            curves.insert(0, (everyone, waits))
        drawing = style.new_figure(4.5, load.subject(run))
        axes = drawing.subplots()
        for number, (label, sample) in enumerate(curves):
            first = number == 0
            color = style.INK if first else style.LINES[number - 1]
            x, y = curve(sample, right)
            axes.step(x, y, where="post", color=color, linewidth=2.0 if first else 1.3, label=label)
        axes.set_xscale("symlog", linthresh=1.0, linscale=0.5)
        axes.set_xlim(0, right)
        log_ticks(axes.xaxis, 1.0, right, zero=True)
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter("{x:.0%}")
        narrow = style.is_narrow()
        axes.set_xlabel("wait" if narrow else "wait (linear up to 1 s, logarithmic beyond)")
        axes.set_ylabel("share of jobs" if narrow else "share of jobs that waited no longer")
        submitted = "" if days is None else f"submitted in {load.spoken_days(days)}: "
        style.subtitle(axes, submitted + in_words(waits))
        if curves:
            style.legend_beside(axes, title="processors" if narrow else None)
        return drawing

    def caption(self, facts: RunFacts) -> str:
        return "Waits of jobs by size: the share of the jobs that waited no longer than a time."

    def words(self, facts: RunFacts) -> str:
        state, waited = facts.jobs["final_state"], facts.jobs["waiting_time"]
        queued = (state != State.REJECTED) & (state != State.UNSUBMITTED)
        waits = np.nan_to_num(waited[queued], nan=np.inf)
        return f"Distribution of the waits: {in_words(waits)}."


def curve(waits: NDArray[np.float64], right: float) -> list[NDArray[np.float64]]:
    """Return the distribution from 0 to the right edge, thinned if it has very many steps."""
    values, shares = ecdf(waits)
    below, beyond = values < 1.0, values >= 1.0
    kept = np.concatenate(
        (np.flatnonzero(below), np.flatnonzero(beyond)[thinned(values[beyond], MOST_POINTS)])
    )
    return extended(values[kept], shares[kept], (0.0, 0.0), right)


def _sizes(jobs: SizeClass) -> str:
    if jobs.high == 1:
        return "1 processor"
    return f"{_range(jobs)} processors"


def _range(jobs: SizeClass) -> str:
    return f"{jobs.high:,}" if jobs.low == jobs.high else f"{jobs.low:,} to {jobs.high:,}"


def in_words(waits: NDArray[np.float64]) -> str:
    """Return quantiles of the waits in words; infinite waits are of jobs that never started."""
    if not len(waits):
        return "no job joined the queue"
    never = int(np.count_nonzero(np.isinf(waits)))
    words = [f"{np.count_nonzero(waits == 0) / len(waits):.1%} of the jobs started at once"]
    for share, name in ((0.5, "half"), (0.95, "95%"), (1.0, "all")):
        within = float(np.quantile(waits, share, method="inverted_cdf"))
        if np.isfinite(within) and within > 0:
            words.append(f"{name} within {spoken(within)}")
    if never:
        words.append(f"{never:,} never")
    return ", ".join(words)
