"""When the pending jobs of Slurm start: by the time limits, and by how long jobs have run."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optsched.errors import NoJobsError
from optsched.numbers import counted, short
from optsched.sites.slurm_files import captured_file
from optsched.slurm.future import Future
from optsched.slurm.order import Floats, Order
from optsched.slurm.queue import QueuedJob
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

LEAST = 10  # least number of jobs of a group that counts
LAST = 200  # most jobs of a group that count, the last ones

GROUPS = {
    "jobs of its user in its partition with its limit": ("user", "partition", "limit"),
    "jobs of its user in its partition": ("user", "partition"),
    "jobs of its user": ("user",),
    "jobs of its account in its partition": ("account", "partition"),
    "jobs of its partition": ("partition",),
    "all jobs": (),
}
"""The groups, in order, and what their jobs have in common."""


@dataclass(frozen=True, eq=False)
class RunTimes:
    """Shares of their limits for which jobs have run.

    The estimate for a job is a share, drawn at random from the last ones of the first of `GROUPS`
    that has `LEAST`. For a job that runs, only shares beyond what it has run count; if there are
    none, it runs to its limit.
    """

    shares: Floats  # in the order of the ends, shape (jobs,)
    jobs: Mapping[str, Sequence[str]]  # texts of each job, by the names in `GROUPS`

    @cached_property
    def _by_key(self) -> dict[tuple[str, ...], Floats]:
        """The last shares of each group, ascending."""
        found: dict[tuple[str, ...], list[float]] = {}
        for kind, names in GROUPS.items():
            for share, *texts in zip(self.shares.tolist(), *(self.jobs[name] for name in names)):
                found.setdefault((kind, *texts), []).append(share)
        return {key: np.sort(shares[-LAST:]) for key, shares in found.items()}

    def of(self, job: QueuedJob, limit: float) -> tuple[Floats, str]:
        """Return the shares of the first group of a job that has enough, and which one it is.

        None, and an empty text, if there is no such group.
        """
        own = {"user": job.user, "account": job.account, "limit": f"{limit:.0f}"}
        own["partition"] = ",".join(job.partitions)
        for kind, names in GROUPS.items():
            shares = self._by_key.get((kind, *(own[name] for name in names)), np.empty(0))
            if len(shares) >= LEAST:
                return shares, kind
        return np.empty(0), ""

    def draw(
        self, job: QueuedJob, limit: float, ran: float, rng: np.random.Generator, number: int
    ) -> Floats:
        """Return how long a job may run from now on, in seconds, shape (number,).

        `limit` is its whole time limit, and `ran` for how long it has run; both in seconds.
        """
        shares, _ = self.of(job, limit)
        beyond = shares[np.searchsorted(shares, ran / limit, side="right") :]
        if not len(beyond) or math.isinf(limit):
            return np.full(number, limit - ran)
        return rng.choice(beyond, number) * limit - ran


def run_times(trace: Trace) -> RunTimes:
    """Return the shares of the jobs of a trace that have a time limit, in the order of its ends."""
    limit = np.where(trace.stated_time > 0, trace.stated_time, trace.requested_time)
    known = np.flatnonzero((limit > 0) & (trace.runtime > 0))
    ends = trace.submit + np.maximum(trace.wait, 0) + trace.runtime
    rows = known[np.argsort(ends[known], kind="stable")]
    none = np.full(len(trace), "", dtype=object)
    names = {"user": "user_name", "account": "account", "partition": "partition_name"}
    jobs = {own: trace.texts.get(name, none)[rows].tolist() for own, name in names.items()}
    jobs["limit"] = [f"{one:.0f}" for one in limit[rows].tolist()]
    return RunTimes(np.minimum(trace.runtime[rows] / limit[rows], 1.0), jobs)


def read_history(folder: Path) -> Trace | None:
    """Return the jobs in the output of ``sacct`` in a folder that have ended; None without any."""
    path = captured_file(folder, "sacct.json", "sacct.sacct")
    if path is None:
        return None
    try:
        trace = read_trace(path, clean=False)
    except NoJobsError:
        return None
    return clean(trace) if (trace.runtime >= 1).any() else None


INTERVAL = (0.1, 0.9)  # quantiles of the draws between which the start of a job is in 80 % of them


class Start(NamedTuple):
    """The forecast of one job; times are in seconds since 1970, nan for never."""

    label: str
    job: QueuedJob
    ahead: int  # pending jobs before it, see `Order`
    by_limits: float  # its start if all jobs run to their time limits
    median: float  # its start in the median of the draws, as the next
    low: float
    high: float
    basis: str  # the jobs of which its run time was drawn; empty for its limit

    @property
    def expected(self) -> float:
        """The median, or without draws the start by the limits."""
        return self.by_limits if math.isnan(self.median) else self.median


TIMES = ("by_limits", "median", "low", "high")


@dataclass(frozen=True, eq=False)
class Forecast:
    """The starts of the pending jobs of a queue, if no job is submitted meanwhile."""

    future: Future
    by_limits: Floats  # start of each pending job in seconds from now, shape (pending jobs,)
    drawn: Floats  # the same in each draw, shape (draws, pending jobs)
    basis: tuple[str, ...]  # of each pending job
    asked: int = 0  # how many draws are asked for

    @cached_property
    def starts(self) -> tuple[Start, ...]:
        """The forecast of each job, in the order of the expected starts."""
        now = self.future.supply.time
        rows = self.future.waiting_rows
        order = Order(self.future.queue, self.future.now)
        low, median, high = _quantiles(self.drawn) + now
        times = np.array([self.by_limits + now, median, low, high]).tolist()
        found = [
            Start(row.label, row.job, order.number_before(row.task), *each)
            for row, *each in zip(rows, *times, self.basis)
            if row.job is not None
        ]
        return tuple(sorted(found, key=lambda one: (math.isnan(one.expected), one.expected)))

    @cached_property
    def never(self) -> Mapping[str, str]:
        """By label, why jobs do not start if all jobs run to their time limits."""
        future = self.future
        starts = {row.label for row, at in zip(future.waiting_rows, self.by_limits) if at >= 0}
        return {label: why for label, why in future.never.items() if label not in starts}

    def notes(self, jobs: Collection[str] = ()) -> tuple[str, ...]:
        """Return notes on rules and facts that the forecast leaves out, of some jobs or of all."""
        future = self.future
        found = list(filter(None, (future.out_of_service,)))
        alike: dict[str, list[str]] = {}
        for label, texts in future.doubts.items():
            for text in texts if not jobs or label in jobs else ():
                alike.setdefault(text, []).append(label)
        found += [f"{named(labels)}: {text}" for text, labels in alike.items()]
        if not future.policy and future.chosen == "easy":
            waits = counted(len(future.waiting), "pending job")
            found.append(f"{waits}: of each queue only the first blocked one has a reservation")
        if future.unheeded and future.chosen != "none":
            found.append(f"SchedulerParameters that are not heeded: {', '.join(future.unheeded)}")
        if self.asked and not len(self.drawn):
            found.append("no sacct output of ended jobs, so all jobs run to their limits")
        return tuple(found)

    def to_json(self, jobs: Collection[str] = ()) -> dict[str, Any]:
        """Return the forecast of some jobs or of all as JSON; times in seconds since 1970."""
        return {
            "time": self.future.supply.time,
            "draws": len(self.drawn),
            "jobs": [
                {
                    "job": one.label,
                    "user": one.job.user,
                    "partition": ",".join(one.job.partitions),
                    "priority": one.job.priority,
                    "ahead": one.ahead,
                    "slurm_start": one.job.start,
                    **{name: _known(getattr(one, name)) for name in TIMES},
                    "basis": one.basis or None,
                    "doubts": [*self.future.doubts.get(one.label, ())],
                    "why_never": self.never.get(one.label),
                }
                for one in self.starts
                if not jobs or one.label in jobs
            ],
            "left": dict(self.future.left),
            "notes": list(self.notes(jobs)),
        }


def forecast(future: Future, times: RunTimes | None, *, draws: int, seed: int = 0) -> Forecast:
    """Return when the pending jobs start.

    `times`: how long jobs have run; without it, there are no draws. `draws`: their number. Jobs
    that may preempt others start as if these were gone, see `optsched.slurm.running.views`.
    """
    found = _played(future, times, draws, seed)
    by_limits, drawn = found.by_limits.copy(), found.drawn.copy()
    for view in future.views:
        seen = replace(future, queue=view.queue, supply=view.supply)
        there = _played(seen, times, draws, seed)
        place = {row.label: at for at, row in enumerate(seen.waiting_rows)}
        for at, row in enumerate(future.waiting_rows):
            if row.number in view.jobs and row.label in place:
                by_limits[at] = there.by_limits[place[row.label]]
                drawn[:, at] = there.drawn[:, place[row.label]]
    return replace(found, by_limits=by_limits, drawn=drawn)


def _played(future: Future, times: RunTimes | None, draws: int, seed: int) -> Forecast:
    """Return the forecast in which all jobs wait for others to end."""
    by_limits = future.by_limits
    if times is None or not draws or not len(times.shares):
        none = np.empty((0, len(by_limits)))
        return Forecast(future, by_limits, none, ("",) * len(by_limits), draws)
    seconds, basis = _drawn(future, times, draws, seed)
    starts = np.array([future.starts(column) for column in seconds.T])
    return Forecast(future, by_limits, starts, basis, draws)


def _drawn(
    future: Future, times: RunTimes, draws: int, seed: int
) -> tuple[Floats, tuple[str, ...]]:
    """Return for how long rows run in each draw, and of which jobs that is for those pending."""
    now = future.supply.time
    found = np.repeat(future.limits[:, None], draws, axis=1)
    running: dict[int, Floats] = {}
    basis = []
    for place, row in enumerate(future.rows):
        job = row.job
        if row.until:
            its = [running.get(each.job_id, found[place]) for each in row.until]
            found[place] = np.max(its, axis=0)
        if job is None:
            continue
        ran = 0.0 if row.label else float(job.has_run(now))
        # a stream for each job, so that no other one changes what is drawn for it
        rng = np.random.default_rng((seed, job.job_id, *row.label.encode()))
        limit = row.limit + ran
        if row.label:
            basis.append(times.of(job, limit)[1])
            found[place] = times.draw(job, limit, ran, rng, draws)
        elif not job.is_suspended:  # its rows run for as long
            if job.job_id not in running:
                running[job.job_id] = times.draw(job, limit, ran, rng, draws)
            found[place] = running[job.job_id]
    return found, tuple(basis)


def _quantiles(drawn: Floats) -> Floats:
    """Return low, median and high of the draws, where a start that is never counts as the last."""
    if not len(drawn):
        return np.full((3, drawn.shape[1]), np.nan)
    last = np.where(np.isnan(drawn), np.inf, drawn)
    found = np.quantile(last, (INTERVAL[0], 0.5, INTERVAL[1]), axis=0, method="nearest")
    return np.where(np.isinf(found), np.nan, found)


SHORTER = (0.75, 0.5, 0.25, 0.1)
"""Shares of its limit with which it is tried whether a job starts sooner."""

SOONER = 60.0  # seconds by which a start is sooner at least, that it counts


def sooner(future: Future, label: str) -> list[tuple[str, float]]:
    """Return changes with which a job starts sooner, and its start then, in seconds since 1970.

    These are the highest priority, and the longest of the shorter limits `SHORTER` that helps. All
    jobs run to their limits.
    """
    row = next(row for row in future.waiting_rows if row.label == label)
    job = row.job
    assert job is not None
    found = list[tuple[str, float]]()

    def start(**changes: Any) -> float:
        jobs = tuple(
            replace(each, **changes) if each.job_id == job.job_id else each
            for each in future.queue.jobs
        )
        there = replace(future, queue=replace(future.queue, jobs=jobs))
        starts = forecast(there, None, draws=0).by_limits.tolist()
        by_label = {row.label: at for row, at in zip(there.waiting_rows, starts)}
        return float(there.supply.time + by_label.get(label, math.nan))

    before = start()
    top = max((each.priority for each in future.queue.pending), default=0) + 1
    first = start(priority=top)
    if first < before - SOONER:
        found.append(("as the first by priority", first))
    for share in SHORTER:
        limit = max(60, math.ceil(share * row.limit / 60) * 60)
        if limit < row.limit and (then := start(limit=float(limit))) < before - SOONER:
            found.append((f"with a time limit of {short(limit)}", then))
            break
    return found


SUBMITTED = "what-if"  # name of a job that is only submitted in a what-if


class Shift(NamedTuple):
    """How much later a job starts if something is different; negative for earlier."""

    label: str
    job: QueuedJob
    before: float  # expected start in seconds since 1970, as the next; nan for never
    after: float

    @property
    def seconds(self) -> float:
        """The shift in seconds; infinite for a job that starts no more, or only then."""
        before, after = (math.inf if math.isnan(at) else at for at in (self.before, self.after))
        return 0.0 if before == after else after - before


def shifts(before: Forecast, after: Forecast) -> tuple[Shift, ...]:
    """Return the jobs of both forecasts whose expected starts differ, the largest shift first."""
    starts = [{one.label: one for one in each.starts} for each in (before, after)]
    found = []
    for label, one in (starts[1] | starts[0]).items():
        if one.job.name != SUBMITTED:
            was, will = (there[label].expected if label in there else math.nan for there in starts)
            found.append(Shift(label, one.job, was, will))
    moved = (each for each in found if each.seconds)
    return tuple(sorted(moved, key=lambda each: -abs(each.seconds)))


def by(moved: Sequence[Shift], name: str) -> Mapping[str, list[Shift]]:
    """Return shifts by ``user`` or ``partitions`` of their jobs."""
    found: dict[str, list[Shift]] = {}
    for each in moved:
        value = getattr(each.job, name)
        found.setdefault(value if isinstance(value, str) else ",".join(value), []).append(each)
    return found


NAMED = 10  # most jobs that a note names


def named(labels: Sequence[str]) -> str:
    """Return in words which jobs a note is on."""
    rest = f" and {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
    return f"job{'s' * (len(labels) > 1)} {', '.join(labels[:NAMED])}{rest}"


def _known(seconds: float) -> int | None:
    return None if math.isnan(seconds) else round(seconds)
