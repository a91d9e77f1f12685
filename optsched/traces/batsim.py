"""Workloads of the simulator Batsim: JSON with jobs and profiles.

File format: ``docs/formats/batsim-workload.md``.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.files import json_text, read_bytes, write_bytes
from optsched.numbers import LARGEST, MOST_PROCESSORS
from optsched.registry import readers
from optsched.text_files import parse_json
from optsched.traces.formats import TraceFormat, say_left_out, stem
from optsched.traces.trace import UNKNOWN, Header, Trace

DELAY = {4: "delay", 5: "DelayProfile"}
"""The type of a profile that is a plain run time, by major version of Batsim."""

SHOWN = 10  # largest number of mistakes shown of one file

_JOB_FIELDS = {"id", "subtime", "res", "profile", "walltime"}
_PROFILE_FIELDS = {"type", "delay"}
_WRITTEN = {"job_id", "submit", "runtime", "requested_time", "processors"}
_NUMBERED = re.compile(r"(?:(?P<workload>[^!]*)!)?(?P<number>[0-9]{1,18})")


def read_batsim(path: str | Path) -> Trace:
    """Read a raw trace from a Batsim workload, plain or gzipped."""
    path = Path(path)
    data, sha256 = read_bytes(path)
    try:
        if not data.strip():
            raise InputError("the file is empty; expected a Batsim workload in JSON")
        workload = _Workload(parse_json(data))
        columns = workload.columns()
    except InputError as error:
        raise error.within(path) from None
    return Trace(
        **columns,
        name=stem(path),
        path=path,
        sha256=sha256,
        header=Header((("MaxProcs", str(workload.num_resources)),)),
        oddities=workload.oddities,
        label=workload.label,
    )


def write_batsim(trace: Trace, path: str | Path, version: Literal[4, 5] = 4) -> None:
    """Write a workload for a major version of Batsim; gzipped if the name ends in ``.gz``."""
    write_bytes(path, _encode(trace, Path(path), version))


def _encode(trace: Trace, path: Path, version: Literal[4, 5] = 4) -> bytes:
    lacking = (trace.submit < 0) | (trace.runtime <= 0) | (trace.processors < 1)
    if lacking.any():
        source = trace.published or trace.path
        words = ["optsched", "trace", "clean", str(source), "-o", str(path)]
        wrong = f"{int(lacking.sum()):,} jobs without submit time, run time or processors, which a"
        wrong += " Batsim workload must have; expected a cleaned trace"
        raise InputError(wrong + (f": {shlex.join(words)}" if source else ""), file=source)
    names = trace.job_id.tolist() if trace.label is None else trace.label.tolist()
    columns = (trace.submit, trace.requested_time, trace.processors, trace.runtime)
    values = zip(map(str, names), *(column.tolist() for column in columns))
    fields = ("id", "subtime", "walltime", "res", "profile")
    jobs = [dict(zip(fields, (*own, str(runtime)))) for *own, runtime in values]
    profiles = {
        str(runtime): {"type": DELAY[version], "delay": runtime}
        for runtime in np.unique(trace.runtime).tolist()
    }
    num_resources = trace.header.max_procs or int(trace.processors.max())
    workload = {"nb_res": num_resources, "jobs": jobs, "profiles": profiles}
    say_left_out(trace, "a Batsim workload", _WRITTEN, frozenset({"maxprocs"}))
    return (json_text(workload) + "\n").encode()


@readers.register("batsim")
class BatsimWorkload(TraceFormat):
    """Workloads of Batsim."""

    suffixes = (".json",)
    read = staticmethod(read_batsim)
    encode = staticmethod(_encode)

    @staticmethod
    def recognizes(first_bytes: bytes, path: Path) -> bool:
        """Return whether the text begins as a JSON object with a field of a workload."""
        return re.match(rb'\s*\{\s*"', first_bytes) is not None and any(
            name in first_bytes for name in (b'"nb_res"', b'"profiles"', b'"subtime"')
        )

    @staticmethod
    def job_numbers(trace: Trace) -> NDArray[np.int64]:
        """Return the numbers of the jobs, which the file states in their ids."""
        if trace.label is None:
            return trace.job_id
        numbers = _numbers(trace.label.tolist())
        return np.arange(1, len(trace) + 1) if numbers is None else numbers


class _Workload:
    """The parsed JSON of a workload, checked as a whole."""

    def __init__(self, fields: Any) -> None:
        self._mistakes: list[str] = []
        self.oddities: dict[str, int] = {}
        self.label: NDArray[np.str_] | None = None
        if not isinstance(fields, dict):
            raise InputError("expected a JSON object with nb_res, jobs and profiles")
        self._jobs: Sequence[Any] = self._member(fields, "jobs", list, "a list") or []
        self._profiles: Mapping[str, Any] = (
            self._member(fields, "profiles", dict, "an object") or {}
        )
        self.num_resources = self._member(fields, "nb_res", int, "an integer")
        if self._mistakes:
            raise InputError(*self._mistakes)
        if not self._jobs:
            raise InputError("no jobs", field="jobs")
        if not 1 <= self.num_resources <= MOST_PROCESSORS:
            expected = f"expected an integer from 1 to {MOST_PROCESSORS:,}"
            raise InputError(f"{self.num_resources}; {expected}", field="nb_res")

    def columns(self) -> dict[str, Any]:
        """Return the columns of the trace, or raise the first `SHOWN` mistakes of the workload."""
        rows = [self._row(place, job) for place, job in enumerate(self._jobs)]
        ids = [row[0] for row in rows if row[0] is not None]
        for name, count in Counter(ids).items():
            if count > 1:
                self._mistakes.append(f"jobs: the id {name!r} is used {count} times")
        if self._mistakes:
            more = len(self._mistakes) - SHOWN
            shown = self._mistakes[:SHOWN] + ([f"{more} more mistakes"] if more > 0 else [])
            raise InputError(*shown)
        self._count_unused("job", _JOB_FIELDS, self._jobs)
        self._count_unused("profile", _PROFILE_FIELDS, list(self._profiles.values()))
        names = ("submit", "requested_time", "processors", "runtime")
        columns = {name: np.array(values) for name, values in zip(names, list(zip(*rows))[1:])}
        numbers = _numbers(ids)
        if numbers is None or "!" in ids[0]:
            self.label = np.array(ids)
        if numbers is None:
            self.oddities["jobs numbered in the order of the file, ids kept as labels"] = len(ids)
            numbers = np.arange(1, len(ids) + 1)
        return {"job_id": numbers} | columns

    def _member(self, fields: Mapping[str, Any], name: str, kind: type, expected: str) -> Any:
        value = fields.get(name)
        if isinstance(value, kind) and not isinstance(value, bool):
            return value
        wrong = f"expected {expected}" if name in fields else f"missing; expected {expected}"
        self._mistakes.append(f"{name}: {wrong}")
        return None

    def _row(self, place: int, job: Any) -> tuple[str | None, Any, Any, Any, Any]:
        """Return id, submit time, requested time, processors and run time of one job."""
        here = f"jobs[{place}]"
        if not isinstance(job, dict):
            self._mistakes.append(f"{here}: expected an object")
            return None, 0, 0, 0, 0
        name = job.get("id")
        if isinstance(name, (str, int)) and not isinstance(name, bool) and name != "":
            name = str(name)
        else:
            self._mistakes.append(f"{here}.id: {_found(job, 'id')}; expected a name or a number")
            name = None
        submit = self._number(here, job, "subtime", "a number of at least 0")
        processors = self._number(here, job, "res", "an integer of at least 0", integer=True)
        walltime = UNKNOWN
        if job.get("walltime", UNKNOWN) != UNKNOWN:
            walltime = self._number(
                here, job, "walltime", "a positive number, or -1 for none", positive=True
            )
        return name, submit, walltime, processors, self._delay(here, job)

    def _delay(self, here: str, job: Mapping[str, Any]) -> Any:
        name = job.get("profile")
        profile = self._profiles.get(name) if isinstance(name, str) else None
        if not isinstance(profile, dict):
            self._mistakes.append(
                f"{here}.profile: {_found(job, 'profile')}; expected the name of a profile"
            )
            return 0
        if profile.get("type") not in DELAY.values():
            self._mistakes.append(
                f"{here}.profile: {name!r} is of type {profile.get('type')!r}, which states no run "
                f"time; expected {' or '.join(DELAY.values())}"
            )
            return 0
        return self._number(f"{here}.profile: {name!r}", profile, "delay", "a number of at least 0")

    def _number(
        self,
        here: str,
        fields: Mapping[str, Any],
        name: str,
        expected: str,
        *,
        integer: bool = False,
        positive: bool = False,
    ) -> Any:
        """Return the number in a field, an integer as int; note a mistake if it is not valid."""
        value = fields.get(name)
        if (
            isinstance(value, int if integer else (int, float))
            and not isinstance(value, bool)
            and (value > 0 if positive else value >= 0)
            and value <= LARGEST
        ):
            return value
        self._mistakes.append(f"{here}.{name}: {_found(fields, name)}; expected {expected}")
        return 0

    def _count_unused(self, noun: str, used: set[str], objects: Sequence[Any]) -> None:
        extra = [
            fields.keys() - used
            for fields in objects
            if isinstance(fields, dict) and not fields.keys() <= used
        ]
        if extra:
            names = ", ".join(sorted(set().union(*extra)))
            self.oddities[f"{noun}s with fields that are not used ({names})"] = len(extra)


def _numbers(ids: Sequence[str]) -> NDArray[np.int64] | None:
    """Return the numbers in the ids of jobs, or None if the numbers do not identify the jobs."""
    matches = [match for match in map(_NUMBERED.fullmatch, ids) if match]
    workloads = {match["workload"] for match in matches}
    numbers = {int(match["number"]): None for match in matches}
    if len(workloads) == 1 and len(numbers) == len(ids):
        return np.array(list(numbers))
    return None


def _found(fields: Mapping[str, Any], name: str) -> str:
    return json.dumps(fields[name])[:40] if name in fields else "missing"
