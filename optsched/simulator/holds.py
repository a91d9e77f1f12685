"""Jobs that are held: until a time, or until the jobs that they depend on have started or ended."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from optsched.errors import InputError
from optsched.schedule import State
from optsched.traces.trace import UNKNOWN, Trace

NEVER = math.inf

COLUMNS = frozenset({"begin", "eligible", "dependency"})
"""Annotations and texts for which jobs are held."""

UNSUCCESSFUL = (0, 5)
"""Values of the status of a job in the log: failed, and cancelled."""

ENDED = (State.FINISHED, State.KILLED, State.REJECTED)

_KINDS = {kind: kind for kind in ("after", "afterany", "afterok", "afternotok")}
_KINDS |= {"aftercorr": "afterok", "afterburstbuffer": "afterany"}
_JOB = re.compile(r"([0-9]{1,18})(?:\+([0-9]{1,9}))?")


class _Condition(NamedTuple):
    """What must have become of a job before another is in the queue."""

    kind: str
    row: int
    delay: int = 0


class Holds:
    """The jobs of a trace that are not in the queue from their submission on.

    They wait for `begin` and for the jobs in `dependency`, in Slurm's form: ``afterok:130:131``,
    ``after:130+5`` (minutes), ``singleton``, with ``,`` for all and ``?`` for any of several. A job
    that the trace states neither for waits until `eligible`. Conditions on jobs that are not in the
    trace count as fulfilled.
    """

    def __init__(self, trace: Trace, state: Sequence[State], start: Sequence[float | None]) -> None:
        self._state, self._start = state, start  # of each job, which change
        self._failed = [status in UNSUCCESSFUL for status in trace.status.tolist()]
        self.absent = 0  # conditions on jobs that are not in the trace
        self._conditions: dict[int, list[_Condition]] = {}
        self._any: set[int] = set()
        self._dependents: dict[int, list[int]] = defaultdict(list)
        stated = _known(trace, "begin")
        self._begin = _known(trace, "eligible") | stated
        if "dependency" in trace.texts:
            self._read(trace, stated)

    def __bool__(self) -> bool:
        return bool(self._begin or self._conditions)

    def eligible(self, job: int) -> float | None:
        """Return from when on `job` is in the queue, `NEVER` if not yet known; None for never."""
        begin = self._begin.get(job, -NEVER)
        conditions = self._conditions.get(job)
        if not conditions:
            return begin
        found = [self._fulfilled(condition) for condition in conditions]
        possible = [at for at in found if at is not None]
        if job in self._any:
            return max(begin, min(possible)) if possible else None
        return max(begin, *possible) if len(possible) == len(found) else None

    def dependents(self, job: int) -> Sequence[int]:
        """Return the jobs that depend on `job`."""
        return self._dependents.get(job, ())

    def _fulfilled(self, condition: _Condition) -> float | None:
        """Return from when on a condition is fulfilled, `NEVER` if not yet, None if never."""
        kind, row, delay = condition
        state, start = self._state[row], self._start[row]
        if kind == "after" and start is not None:
            return start + delay
        if state not in ENDED:
            return NEVER
        is_ok = state is State.FINISHED and not self._failed[row]
        is_fulfilled = kind in ("after", "afterany") or is_ok == (kind == "afterok")
        return -NEVER if is_fulfilled else None

    def _read(self, trace: Trace, stated: Mapping[int, float]) -> None:
        """Read the dependencies of a trace, in which some jobs have stated begin times."""
        row_of = {number: row for row, number in enumerate(trace.job_id.tolist())}
        earlier: dict[tuple[int, int], list[int]] = defaultdict(list)
        names = zip(trace.user.tolist(), trace.executable.tolist())
        for job, (text, name) in enumerate(zip(trace.texts["dependency"].tolist(), names)):
            if text:
                try:
                    found, absent = _conditions(text, row_of, earlier[name])
                except InputError as error:
                    where = f"dependency of job {trace.job_id[job]}"
                    raise InputError(*error.mistakes, file=trace.path, field=where) from None
                self.absent += absent
                self._conditions[job] = [] if absent and "?" in text else found
                if "?" in text:
                    self._any.add(job)
                if job not in stated:
                    self._begin.pop(job, None)
                for condition in found:
                    self._dependents[condition.row].append(job)
            earlier[name].append(job)


def _known(trace: Trace, name: str) -> dict[int, float]:
    """Return the known values of an annotation by job."""
    values = trace.annotations.get(name, np.empty(0)).tolist()
    return {job: at for job, at in enumerate(values) if at != UNKNOWN}


def _conditions(
    text: str, row_of: Mapping[int, int], earlier: Sequence[int]
) -> tuple[list[_Condition], int]:
    """Return the conditions that a text states, and the number of those on unknown jobs."""
    found: list[_Condition] = []
    absent = 0
    for part in re.split(r"[,?]", re.sub(r"\([a-z]*\)", "", text)):
        if part == "singleton":
            found += [_Condition("afterany", row) for row in earlier]
            continue
        kind, *numbers = part.split(":")
        jobs = [_JOB.fullmatch(number) for number in numbers]
        if kind not in _KINDS or not jobs or None in jobs:
            raise InputError(f"{text!r}; expected jobs to wait for, afterok:130 for instance")
        for job in filter(None, jobs):
            if (row := row_of.get(int(job[1]))) is None:
                absent += 1
            else:
                found.append(_Condition(_KINDS[kind], row, 60 * int(job[2] or 0)))
    return found, absent
