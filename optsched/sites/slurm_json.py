"""JSON that the commands of Slurm write, by the version of its data parser.

The data parser, not the release of Slurm, decides on the fields: version 38 (Slurm 22.05) has bare
numbers and texts, later ones numbers as objects and states as lists.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from optsched.binary_files import read_bytes, read_head
from optsched.errors import InputError
from optsched.sites.near_misses import A_LIST, near_miss
from optsched.text_files import parse_json

VERSIONS = range(38, 46)
"""Versions of the data parser that are known: v0.0.38 (Slurm 22.05) to v0.0.45 (Slurm 26.05)."""

UNSET = ("", "None assigned", "(null)", "N/A", "None", "Unknown")
"""Texts that stand for no value."""

_IS_OF = {"squeue": "job_state", "sacct": "steps"}
"""Field of jobs that one command alone writes."""

_VERSION = re.compile(r"v0\.0\.([0-9]+)$")


class Dump(NamedTuple):
    """Records that a command of Slurm wrote as JSON."""

    records: list[dict[str, Any]]  # one object for each node, job or the like
    version: int  # version of the data parser: 42 for v0.0.42
    release: str  # release of Slurm, such as ``24.11.5``; empty if it is not stated
    path: Path
    # When the records were written, in seconds since 1970; None if it is not stated
    time: int | None = None
    errors: str = ""  # what Slurm reports to have failed beside the records

    def name(self, place: int) -> str:
        """Return the name of a record, from 0, for messages."""
        record = self.records[place]
        known = record.get("name") if "job_id" not in record else record["job_id"]
        return f"record {place + 1}" + ("" if known is None else f" ({known})")


def is_json(path: Path) -> bool:
    """Return whether a file, plain or gzip, holds JSON and no text."""
    return read_head(path).lstrip().startswith(b"{")


def read_dump(path: str | Path, *keys: str, written_by: str | None = None) -> Dump:
    """Return the records of a file, plain or gzip.

    `keys`: key of the records, ``jobs`` or ``nodes`` for instance; the first one that is there
    counts; `written_by`: command whose jobs are expected.
    """
    path = Path(path)
    data, _ = read_bytes(path)
    try:
        value = parse_json(data)
    except InputError as error:
        if said := near_miss(data):
            raise InputError(said, file=path) from None
        raise error.within(path) from None
    if isinstance(value, list):
        raise InputError(A_LIST, file=path)
    meta = value.get("meta") if isinstance(value, Mapping) else None
    if not isinstance(meta, Mapping):
        expected = "expected what Slurm writes with --json"
        raise InputError(f"no version of a data parser; {expected}", file=path, field="meta")
    for key in keys:
        records = value.get(key)
        if isinstance(records, list):
            errors = _errors(value)
            if errors and not records:
                raise InputError(f"no {key}, and an error of Slurm: {errors}", file=path)
            for place, record in enumerate(records, 1):
                if not isinstance(record, dict):
                    shown = f"{record!r:.60}"
                    raise InputError(
                        f"record {place}: {shown}; expected an object", file=path, field=key
                    )
            other = "squeue" if written_by == "sacct" else "sacct"
            if written_by and records and _IS_OF[other] in records[0]:
                raise InputError(
                    f"jobs of {other} --json; expected those of {written_by} --json", file=path
                )
            time = number(value.get("last_update"))
            time = int(time) if time is not None and 0 < time < math.inf else None
            return Dump(records, _version(meta, path), _release(meta), path, time, errors)
    lists = [key for key, each in value.items() if isinstance(each, list) and each]
    there = f"no list, but of {', '.join(lists)[:60]}" if lists else "no list"
    raise InputError(f"{there}; expected {' or '.join(keys)}", file=path, field=keys[0])


def _errors(value: Mapping[str, Any]) -> str:
    """Return the errors that Slurm reports beside the records."""
    errors = value.get("errors")
    told = []
    for each in errors if isinstance(errors, list) else ():
        fields = each if isinstance(each, Mapping) else {"error": each}
        texts = (fields.get(key) for key in ("description", "error", "source"))
        told.append(", ".join(str(one) for one in texts if one) or "not described")
    return "; ".join(told)[:200]


def number(value: Any, otherwise: float | None = None) -> Any:
    """Return a number that is bare or an object with ``set``, ``infinite`` and ``number``.

    `otherwise` is returned for a number that is not set, and infinity for an infinite one.

    >>> number({"set": True, "infinite": False, "number": 3}), number(None), number(7)
    (3, None, 7)
    """
    if isinstance(value, Mapping):
        if value.get("infinite"):
            return math.inf
        value = value.get("number") if value.get("set") else None
    return value if type(value) in (int, float) else otherwise


def words(value: Any) -> tuple[str, ...]:
    """Return the texts of a list, or of a text with commas.

    >>> words("ib,skylake"), words(["IDLE", "DRAIN"]), words(None)
    (('ib', 'skylake'), ('IDLE', 'DRAIN'), ())
    """
    if isinstance(value, str):
        return tuple(word for word in (part.strip() for part in value.split(",")) if word)
    return tuple(str(word) for word in value) if isinstance(value, list) else ()


def text(value: Any) -> str:
    """Return a text, empty for one that stands for no value."""
    return "" if not isinstance(value, str) or value in UNSET else value


def _version(meta: Mapping[str, Any], path: Path) -> int:
    plugin = meta.get("plugin", meta.get("plugins"))
    given = plugin if isinstance(plugin, Mapping) else {}
    stated = str(given.get("data_parser") or given.get("type") or "")
    found = _VERSION.search(stated)
    if found is None or int(found[1]) not in VERSIONS:
        known = f"v0.0.{VERSIONS[0]} to v0.0.{VERSIONS[-1]}"
        shown = stated or "none"
        expected = f"expected {known}, which --json=v0.0.44 asks for, for instance"
        raise InputError(f"data parser {shown}; {expected}", file=path, field="meta.plugin")
    return int(found[1])


def _release(meta: Mapping[str, Any]) -> str:
    slurm = meta.get("slurm", meta.get("Slurm"))
    return str(slurm.get("release", "")) if isinstance(slurm, Mapping) else ""
