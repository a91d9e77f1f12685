"""Reservations: nodes that are kept for some jobs during some time."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from optsched.binary_files import read_bytes
from optsched.errors import InputError
from optsched.sites.slurm_json import read_dump
from optsched.sites.slurm_record import RecordFields, hosts

_NAME = re.compile(r"ReservationName=(\S+) StartTime=")
_NODES = re.compile(r" Nodes=(\S+) NodeCnt=")


@dataclass(frozen=True)
class Reservation:
    """Nodes that only the jobs of the reservation may use between two times.

    Parameters
    ----------
    name : str
        Name of the reservation.
    nodes : tuple of str
        Names of its nodes. One that reserves only some cores of a node is taken to reserve it.
    start, end : float
        Times in seconds since 1970; minus infinity and infinity where they are not known.

    Raises
    ------
    InputError
        If it has no name, or ends before it starts.
    """

    name: str
    nodes: tuple[str, ...]
    start: float = -math.inf
    end: float = math.inf

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("empty; expected a name", field="name")
        if not self.start < self.end:
            raise InputError("expected a time after the start", field="end")

    def at(self, time: float) -> bool:
        """Return whether the reservation holds at a time."""
        return self.start <= time < self.end

    def overlaps(self, first: float, last: float) -> bool:
        """Return whether the reservation holds at some time from `first` until `last`."""
        return self.start < last and first < self.end


def read_reservations(path: str | Path) -> tuple[Reservation, ...]:
    """Return the reservations in a file.

    Parameters
    ----------
    path : path
        What ``scontrol show reservations`` wrote with ``--json``, or with ``--oneliner`` where a
        version has no JSON; plain or gzip. The text has local times, so these are not known, and
        the nodes count as reserved at all times.

    Raises
    ------
    InputError
        If the file cannot be read or a field has another form.
    """
    path = Path(path)
    data, _ = read_bytes(path)
    if not data.lstrip().startswith(b"{"):
        return _from_text(data.decode("utf-8", errors="replace"), path)
    dump = read_dump(path, "reservations")
    records = (RecordFields(dump, place) for place in range(len(dump.records)))
    return tuple(map(_from_record, records))


def _from_record(record: RecordFields) -> Reservation:
    fields = (
        record.text("name"),
        record.parsed("node_list", hosts),
        record.instant("start_time") or -math.inf,
        record.instant("end_time") or math.inf,
    )
    try:
        return Reservation(*fields)
    except InputError as error:
        if error.field == "name":
            raise record.wrong("name", "a name") from None
        start, end = (datetime.fromtimestamp(at, UTC).isoformat() for at in fields[2:])
        message = f"{record.dump.name(record.place)}: {end}; expected a time after {start}"
        raise InputError(message, file=record.dump.path, field="end_time") from None


def _from_text(text: str, path: Path) -> tuple[Reservation, ...]:
    found = []
    for place, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("No reservations"):
            continue
        name, nodes = _NAME.match(line), _NODES.search(line)
        if name is None or nodes is None:
            expected = "expected a line of a reservation, as --oneliner writes it"
            raise InputError(expected, file=path, line=place)
        listed = "" if nodes[1] == "(null)" else nodes[1]
        try:
            found.append(Reservation(name[1], hosts(listed)))
        except InputError as error:
            raise InputError(*error.mistakes, file=path, line=place, field="Nodes") from None
    return tuple(found)
