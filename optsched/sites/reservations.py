"""Reservations: nodes that are kept for some jobs during some time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from optsched.errors import InputError
from optsched.files import read_bytes
from optsched.numbers import counted, whole_number
from optsched.sites.host_lists import hosts, read_together
from optsched.sites.records import repeated
from optsched.sites.slurm_amounts import licences
from optsched.sites.slurm_json import UNSET, RecordFields, read_dump
from optsched.text_files import lines_of

YEAR = 365 * 86_400
"""Seconds of the year 1970."""

FLOATS = "TIME_FLOAT"
"""Flag of a reservation that is always some time ahead."""

FLEX = "FLEX"
"""Flag of a reservation whose jobs may use other nodes, and start before it begins."""

MAGNETIC = "MAGNETIC"
"""Flag of a reservation that jobs use without asking for it."""

ADMITS = {
    "users": "Users",
    "accounts": "Accounts",
    "groups": "Groups",
    "qos": "QOS",
    "allowed_partitions": "AllowedPartitions",
}
"""Fields of JSON that say who may use a reservation, with the keys of the text."""

_NAME = re.compile(r"ReservationName=(\S+) StartTime=")
_NODES = re.compile(r" Nodes=(\S+) NodeCnt=")
_LICENCES = re.compile(r" Licenses=(\S+) State=")
_PAIRS = re.compile(r" ([A-Za-z]+)=(\S*)")


@dataclass(frozen=True)
class Reservation:
    """Nodes that only the jobs of the reservation may use between two times."""

    name: str
    # Names of its nodes. One that reserves only some cores of a node is taken to reserve it.
    nodes: tuple[str, ...]
    # Times in seconds since 1970; minus infinity and infinity where they are not known
    start: float = -math.inf
    end: float = math.inf
    licences: Mapping[str, int] = field(default_factory=dict)  # licences that only its jobs may use
    # Seconds from any time to the start, of a reservation whose start floats
    # (``TIME_FLOAT``): it never holds, but keeps from its nodes the jobs that run for longer
    ahead: float | None = None
    flags: tuple[str, ...] = ()  # further properties, such as `FLEX`
    # By field of `ADMITS`, whom it admits; those with a minus in front it does not
    admits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cores: int = 0  # physical cores of its nodes that it reserves, 0 if that is not known
    # Whether it names the cores of its nodes, or reserves generic resources
    has_parts: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("empty; expected a name", field="name")
        if not self.start < self.end:
            raise InputError("expected a time after the start", field="end")

    def at(self, time: float) -> bool:
        """Return whether the reservation holds at a time."""
        return self.ahead is None and self.start <= time < self.end

    @property
    def finite(self) -> list[float]:
        """The start and the end, where there are any."""
        return [at for at in (self.start, self.end) if math.isfinite(at)]

    def overlaps(self, first: float, last: float) -> bool:
        """Return whether the reservation holds at some time from `first` until `last`."""
        if self.ahead is not None:
            return first + self.ahead < last
        return self.start < last and first < self.end


def overlapping(
    one: Reservation, others: Iterable[Reservation]
) -> Iterator[tuple[Reservation, list[str]]]:
    """Yield the other reservations of the same nodes at the same time, with these nodes."""
    for other in others:
        shared = sorted({*one.nodes} & {*other.nodes})
        if other is not one and shared and one.overlaps(other.start, other.end):
            yield other, shared


def untimely(reservations: Sequence[Reservation], first: float, last: float) -> str:
    """Return a note on dates of reservations that have no effect on a trace; empty for none.

    `first` and `last`: first submission of the trace, and its last one with the requested time, in
    seconds since 1970. A trace that begins in 1970 does not say when it begins.
    """
    if first < YEAR:
        later = [each for each in reservations if max(last, YEAR) < max(each.finite, default=0)]
        if later:
            return (
                f"{counted(len(later), 'reservation')} with dates after the trace, which does not "
                "say when it begins (UnixStartTime in SWF); it is taken to begin in 1970"
            )
    elif reservations and not any(each.overlaps(first, last) for each in reservations):
        return f"none of {len(reservations):,} holds during the trace"
    return ""


@read_together()
def read_reservations(path: str | Path) -> tuple[Reservation, ...]:
    """Return the reservations in a file.

    `path`: what ``scontrol show reservations`` wrote with ``--json``, or with ``--oneliner`` where
    a version has no JSON; plain or gzip. The text has local times, so these are not known, and the
    nodes count as reserved at all times.
    """
    path = Path(path)
    data, _ = read_bytes(path)
    if data.lstrip().startswith(b"{"):
        dump = read_dump(path, "reservations")
        records = (RecordFields(dump, place) for place in range(len(dump.records)))
        found = tuple(map(_from_record, records))
    else:
        found = _from_text(data.decode("utf-8", errors="replace"), path)
    if (twice := repeated(each.name for each in found)) is not None:
        raise InputError(f"{twice}: is there twice; expected different names", file=path)
    return found


def _from_record(record: RecordFields) -> Reservation:
    name, nodes = record.text("name"), record.parsed("node_list", hosts)
    begin, kept = record.instant("start_time") or -math.inf, record.parsed("licenses", licences)
    now, flags = record.dump.time, record.words("flags")
    listed = {key: _listed(",".join(record.words(key))) for key in ADMITS}
    admits = {key: names for key, names in listed.items() if names}
    has_parts = bool(record.value("core_specializations")) or "gres/" in record.text("tres")
    rest = flags, admits, record.count("core_count"), has_parts
    if name and FLOATS in flags and now is not None and now <= begin:
        return Reservation(name, nodes, -math.inf, math.inf, kept, begin - now, *rest)
    fields = name, nodes, begin, record.instant("end_time") or math.inf, kept
    try:
        return Reservation(*fields, None, *rest)
    except InputError as error:
        if error.field == "name":
            raise record.wrong("name", "a name") from None
        start, end = (datetime.fromtimestamp(at, UTC).isoformat() for at in fields[2:4])
        message = f"{record.dump.name(record.place)}: {end}; expected a time after {start}"
        raise InputError(message, file=record.dump.path, field="end_time") from None


def _from_text(text: str, path: Path) -> tuple[Reservation, ...]:
    found = []
    for place, line in lines_of(text, path):
        if not line.strip() or line.startswith("No reservations"):
            continue
        name, nodes = _NAME.match(line), _NODES.search(line)
        if name is None or nodes is None:
            expected = "expected a line of a reservation, as --oneliner writes it"
            raise InputError(expected, file=path, line=place)
        listed = "" if nodes[1] == "(null)" else nodes[1]
        try:
            there = hosts(listed)
        except InputError as error:
            raise InputError(*error.mistakes, file=path, line=place, field="Nodes") from None
        has = _LICENCES.search(line)
        try:
            kept = licences("" if has is None or has[1] in UNSET else has[1])
        except InputError as error:
            raise InputError(*error.mistakes, file=path, line=place, field="Licenses") from None
        said = dict(reversed(_PAIRS.findall(line)))
        listed = {key: _listed(said.get(shown, "")) for key, shown in ADMITS.items()}
        admits = {key: names for key, names in listed.items() if names}
        cores = whole_number(said.get("CoreCnt", "")) or 0
        has_parts = "CoreIDs" in said or "gres/" in said.get("TRES", "")
        flags = _listed(said.get("Flags", ""))
        rest = flags, admits, cores, has_parts
        found.append(Reservation(name[1], there, -math.inf, math.inf, kept, None, *rest))
    return tuple(found)


def _listed(text: str) -> tuple[str, ...]:
    return () if text in UNSET else tuple(word for word in text.split(",") if word)
