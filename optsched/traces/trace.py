"""Table of jobs, the workload of a machine, with its header and what cleaning changed."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.numbers import LARGEST, MOST_PROCESSORS, counted

if TYPE_CHECKING:
    import pandas as pd


_FACT = re.compile(r"\s*([A-Z]\w*):(?:\s+(.*))?$")
_NUMBER = re.compile(r"-?[0-9]{1,1000}(?=$|[\s;(])")

HIGHEST = {"MaxProcs": MOST_PROCESSORS, "MaxNodes": MOST_PROCESSORS, "UnixStartTime": LARGEST}
"""Keys whose numbers are used, each with the highest plausible number."""


@dataclass(frozen=True, slots=True)
class Header:
    """Lines of a header, in order; keys may repeat."""

    # Key and value of each line. A line without a key (the second line of a long value, a
    # table, an empty line) has the key ``""`` and its whole text as value.
    lines: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_comments(cls, comments: Iterable[str]) -> Header:
        """Build a header from the text of comment lines, without the comment sign.

        ``MaxProcs: 1152`` is a line with a key; a key is one word that starts with a capital.
        """
        lines = []
        for comment in comments:
            fact = _FACT.match(comment)
            lines.append((fact[1], (fact[2] or "").strip()) if fact else ("", comment.rstrip()))
        return cls(tuple(lines))

    def comments(self, path: Path) -> list[str]:
        """Return the text of each comment line for a file, the inverse of `from_comments`."""
        comments = [f" {key}: {value}" if key else value for key, value in self.lines]
        if any("\n" in comment for comment in comments):
            raise InputError("a header line with a line break cannot be written", file=path)
        return comments

    def noted(self, text: str) -> Header:
        """Return the header with a further line: ``Note: `` and the text."""
        return Header((*self.lines, ("Note", text)))

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Key and value of each fact, with the lines that continue a value joined to it."""
        return [(key, value) for _, key, value in self._placed_facts()]

    def _placed_facts(self) -> list[tuple[int, str, str]]:
        """Return the facts, each with the index of its first line."""
        facts: list[tuple[int, str, str]] = []
        continues = False
        for place, (key, value) in enumerate(self.lines):
            if key:
                facts.append((place, key, value))
                continues = True
            elif continues and value.strip():
                first, key, begun = facts[-1]
                facts[-1] = (first, key, f"{begun} {value.strip()}".lstrip())
            else:
                continues = False
        return facts

    def values(self, key: str) -> list[str]:
        """Return the values of every fact with a key; case does not matter."""
        return [value for name, value in self.facts if name.lower() == key.lower()]

    def number(self, key: str) -> int | None:
        """Return the integer at the beginning of the value of `key`, or None without one.

        ``338 (batch partition; 512 total)`` gives 338, ``N/A`` and ``1,024`` give None. If a key
        repeats, its first value with a number counts.
        """
        found = filter(None, map(_NUMBER.match, self.values(key)))
        return next((int(number[0]) for number in found), None)

    def check_numbers(self, line_numbers: Sequence[int]) -> None:
        """Refuse numbers that are too high to be plausible; lines have the given line numbers."""
        highest = {key.lower(): number for key, number in HIGHEST.items()}
        for place, key, value in self._placed_facts():
            number = _NUMBER.match(value)
            most = highest.get(key.lower())
            if number and most is not None and int(number[0]) > most:
                wrong = f"{number[0]}; expected at most {most:,}"
                raise InputError(wrong, line=line_numbers[place], field=key)

    @property
    def max_procs(self) -> int | None:
        """Processors of the machine, from ``MaxProcs``; None if that is less than 1."""
        stated = self.number("MaxProcs")
        return stated if stated is not None and stated >= 1 else None

    @property
    def max_nodes(self) -> int | None:
        """Nodes of the machine, from ``MaxNodes``."""
        return self.number("MaxNodes")

    @property
    def unix_start_time(self) -> int | None:
        """Unix time of submit time 0, from ``UnixStartTime``."""
        return self.number("UnixStartTime")


REASONS = {
    "dropped_parts": "dropped: parts of checkpointed jobs that have a line of their own as a whole",
    "dropped_runtime": "dropped: run time unknown or less than 1 s",
    "dropped_processors": "dropped: fewer than 1 processor",
    "dropped_submit": "dropped: submit time unknown",
    "processors_from_request": "with processors taken from the request",
    "requested_time_missing": "without a requested time, set to the run time",
    "requested_time_raised": "with the requested time raised to the run time",
    "reordered": "moved when ordered by submit time and job number",
}
"""Meaning of the counts of a report."""


@dataclass(frozen=True, slots=True)
class CleaningReport:
    """Number of jobs read, and of those that cleaning dropped or changed, see `REASONS`.

    A job is dropped for the first reason that applies; the other counts are over the jobs that
    were kept. Parts of a checkpointed job have the status 2 to 4, a whole one 0, 1 or 5.
    """

    jobs_read: int
    dropped_runtime: int
    dropped_processors: int
    dropped_submit: int
    processors_from_request: int
    requested_time_missing: int
    requested_time_raised: int
    reordered: int
    dropped_parts: int = 0

    @property
    def dropped(self) -> int:
        """Number of jobs dropped for any reason."""
        return sum(getattr(self, name) for name in REASONS if name.startswith("dropped_"))

    def to_json(self) -> dict[str, int]:
        """Return the counts by name, with their sum ``dropped``."""
        return {"dropped": self.dropped, **asdict(self)}

    @classmethod
    def from_json(cls, counts: Mapping[str, int]) -> CleaningReport:
        """Return the report of counts by name; others than those of its fields are left out."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: counts[name] for name in names if name in counts})

    def counts(self) -> list[tuple[int, str]]:
        """Return the positive counts, each with its reason."""
        return [(count, what) for name, what in REASONS.items() if (count := getattr(self, name))]

    def lines(self) -> list[str]:
        """Return the positive counts as lines for a terminal."""
        read = "job read" if self.jobs_read == 1 else "jobs read"
        counts = [(self.jobs_read, read), *self.counts()]
        return [f"{count:>9,} {what}" for count, what in counts]

    def lost(self) -> str:
        """Return a sentence on the jobs that were dropped, with the reasons; empty without any."""
        named = [(count, *what.partition("dropped: ")) for count, what in self.counts()]
        dropped = [f"{what} ({count:,})" for count, _, is_dropped, what in named if is_dropped]
        lost = f"{self.dropped:,} of the {counted(self.jobs_read, 'job')} of the trace"
        were = "was" if self.dropped == 1 else "were"
        return f"{lost} {were} dropped by cleaning: {'; '.join(dropped)}." if dropped else ""

    def note(self, jobs: int) -> str:
        """Return the note for the header of a file with the cleaned trace, which has `jobs`."""
        done = "; ".join(line.strip() for line in self.lines())
        return f"cleaned by optsched ({done}); {jobs:,} jobs here"


TIMES = (
    *("submit", "runtime", "requested_time", "stated_time", "wait"),
    *("average_cpu_time", "think_time"),
)
AMOUNTS = ("memory", "requested_memory")

UNKNOWN = -1  # value of every column for what a trace does not state

SECONDS_PER_DAY = 86_400


def _left_out() -> NDArray[Any]:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """Table of jobs, with a read-only array of shape (jobs,) per column.

    -1 stands for "unknown" in every column; a column that is left out is unknown for all jobs.
    Times are in seconds, int64 or, where the file has decimals, float64; other columns are int64.
    A cleaned trace has no unknown submit time, run time, requested time or processors.

    Parameters
    ----------
    job_id : array
        Number of the job in the file.
    submit : array
        Submit time; the origin is that of the file.
    runtime : array
        Run time.
    requested_time : array
        Walltime; in a cleaned trace at least the run time, unless `limits_hold`.
    processors : array
        Size: in a raw trace the allocated processors, in a cleaned trace the requested ones where
        no allocated ones are stated.
    stated_time : array, optional
        Requested time that the file states, which cleaning does not change; `requested_time` by
        default.
    requested_processors, wait, average_cpu_time, status, user, group, executable, queue, \
partition, preceding_job, think_time : array, optional
        Further columns of the Standard Workload Format.
    memory, requested_memory : array, optional
        Used and requested memory per processor, in KB; int64 or float64.
    name : str
        Name of the trace.
    path : pathlib.Path, optional
        File that the trace was read from.
    sha256 : str, optional
        SHA-256 of that file as it is on disk.
    demands_sha256 : str, optional
        SHA-256 of the demands file, if there is one; see `optsched.traces.requests`.
    published : str, optional
        Name in the catalogue or of a sample, if the trace was found by it.
    header : Header
        Header of the file.
    oddities : mapping
        Unusual features that the reader found, with the number of jobs or lines; without those of
        0 jobs or lines.
    label : array of str, optional
        Names of the jobs in the file, where these are not numbers.
    cleaning : CleaningReport, optional
        Counts of what cleaning changed; None for a raw trace.
    annotations : mapping of str to array, optional
        Further columns by name, int64 or float64, finite. A name in `COLUMNS` is not allowed.
    texts : mapping of str to array, optional
        Columns of texts by name, object arrays of str; the empty text is unknown. A name in
        `COLUMNS`, or of an annotation, is not allowed.
    limits_hold : bool
        Whether a run time above the requested time is intended, so that the job is cut at its
        limit. Cleaning keeps such a requested time.

    Raises
    ------
    InputError
        If columns differ in length, a value is not a finite number (or not an integer where one
        is required), a time or an amount is above 2^53, a text is none or cannot be encoded, or an
        annotation or a column of texts has the name of another column.
    """

    job_id: NDArray[np.int64]
    submit: NDArray[Any]
    runtime: NDArray[Any]
    requested_time: NDArray[Any]
    processors: NDArray[np.int64]
    stated_time: NDArray[Any] = field(default_factory=_left_out)
    requested_processors: NDArray[np.int64] = field(default_factory=_left_out)
    wait: NDArray[Any] = field(default_factory=_left_out)
    average_cpu_time: NDArray[Any] = field(default_factory=_left_out)
    memory: NDArray[Any] = field(default_factory=_left_out)
    requested_memory: NDArray[Any] = field(default_factory=_left_out)
    status: NDArray[np.int64] = field(default_factory=_left_out)
    user: NDArray[np.int64] = field(default_factory=_left_out)
    group: NDArray[np.int64] = field(default_factory=_left_out)
    executable: NDArray[np.int64] = field(default_factory=_left_out)
    queue: NDArray[np.int64] = field(default_factory=_left_out)
    partition: NDArray[np.int64] = field(default_factory=_left_out)
    preceding_job: NDArray[np.int64] = field(default_factory=_left_out)
    think_time: NDArray[Any] = field(default_factory=_left_out)
    name: str = "trace"
    path: Path | None = None
    sha256: str | None = None
    demands_sha256: str | None = None
    published: str | None = None
    header: Header = field(default_factory=Header)
    oddities: Mapping[str, int] = field(default_factory=dict)
    label: NDArray[np.str_] | None = None
    cleaning: CleaningReport | None = None
    annotations: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    texts: Mapping[str, NDArray[np.object_]] = field(default_factory=dict)
    limits_hold: bool = False

    def __post_init__(self) -> None:
        jobs = len(self.job_id)
        unknown = np.broadcast_to(np.int64(UNKNOWN), jobs)
        for name in COLUMNS:
            column = np.asarray(getattr(self, name))
            if column.shape == (0,):
                column = self.requested_time if name == "stated_time" else unknown
            object.__setattr__(self, name, _checked(name, column, jobs))
        if self.label is not None and len(self.label) != jobs:
            raise InputError(f"{len(self.label)} values for {jobs} jobs", field="label")
        taken = {*COLUMNS, "label"}
        for kind in ("annotations", "texts"):
            for name in getattr(self, kind):
                if not name.isidentifier() or name in taken:
                    expected = "expected a word that is not the name of a column"
                    raise InputError(f"{name!r}; {expected}", field=kind)
            taken |= set(self.annotations)
        annotations = {
            name: _checked(name, np.asarray(column), jobs, annotation=True)
            for name, column in self.annotations.items()
        }
        object.__setattr__(self, "annotations", annotations)
        texts = {name: _checked_texts(name, column, jobs) for name, column in self.texts.items()}
        object.__setattr__(self, "texts", texts)
        oddities = {what: count for what, count in self.oddities.items() if count}
        object.__setattr__(self, "oddities", oddities)

    def __len__(self) -> int:
        return len(self.job_id)

    def __repr__(self) -> str:
        state = "raw" if self.cleaning is None else "cleaned"
        return f"<Trace {self.name}: {len(self)} jobs, {state}>"

    @property
    def frame(self) -> pd.DataFrame:
        """Table with a row per job: `COLUMNS`, annotations, texts, and `label` if there is one."""
        import pandas as pd

        columns = {name: getattr(self, name) for name in COLUMNS} | dict(self.annotations)
        columns |= self.texts
        if self.label is not None:
            columns["label"] = self.label
        return pd.DataFrame(columns)

    def select(self, rows: slice | NDArray[Any]) -> Trace:
        """Return the trace of a slice, of row numbers from 0 in the order given, or of a mask."""
        jobs = len(self.job_id[rows])

        def selected(column: NDArray[Any]) -> NDArray[Any]:
            # one value for all jobs, such as unknown, takes no memory
            return np.broadcast_to(column[:1], jobs) if column.strides == (0,) else column[rows]

        columns: dict[str, Any] = {name: selected(getattr(self, name)) for name in COLUMNS}
        label = None if self.label is None else self.label[rows]
        annotations = {name: selected(column) for name, column in self.annotations.items()}
        texts = {name: column[rows] for name, column in self.texts.items()}
        return replace(self, **columns, label=label, annotations=annotations, texts=texts)

    def annotated(self, **columns: NDArray[Any]) -> Trace:
        """Return the trace with further annotations, which replace those of the same names.

        Parameters
        ----------
        **columns : int64 or float64 array, shape (jobs,)
            Finite values by name.

        Raises
        ------
        InputError
            If a name is that of another column, or an array is not of that form.
        """
        return self.changed(annotations={**self.annotations, **columns})

    def changed(self, **fields: Any) -> Trace:
        """Return the trace with changed fields, and without its file and checksums."""
        # the files and their checksums are those of the unchanged trace
        return replace(self, **fields, path=None, sha256=None, demands_sha256=None, published=None)

    def jobs(self, first: int = 1, last: int | None = None) -> Trace:
        """Return the jobs from `first` to `last`, counted in order from 1, both included.

        Raises
        ------
        InputError
            Unless ``1 <= first <= last <= jobs``.
        """
        last = len(self) if last is None else last
        if not 1 <= first <= last <= len(self):
            expected = f"expected FROM:TO with 1 <= FROM <= TO <= {len(self)}"
            raise InputError(f"jobs {first}:{last}; {expected}", file=self.published or self.path)
        return self.select(slice(first - 1, last)).changed()

    def _repr_html_(self) -> str:
        rows = [("trace", self.name), ("jobs", f"{len(self):,}")]
        if len(self):
            days = float(self.submit.max() - self.submit.min()) / SECONDS_PER_DAY
            rows.append(("days", f"{days:.1f}"))
            rows.append(("processors", f"{self.processors.min():,} to {self.processors.max():,}"))
        if self.header.max_procs is not None:
            rows.append(("machine", f"{self.header.max_procs:,} processors"))
        rows.append(("cleaned", "no" if self.cleaning is None else "yes"))
        cells = [f"<th>{label}</th><td>{html.escape(text)}</td>" for label, text in rows]
        return f"<table>{''.join(f'<tr>{cell}</tr>' for cell in cells)}</table>"


_NAMES = [field.name for field in fields(Trace)]
COLUMNS = tuple(_NAMES[: _NAMES.index("name")])  # columns of a trace, in the order of `Trace.frame`


def _checked(
    name: str, column: NDArray[Any], jobs: int, *, annotation: bool = False
) -> NDArray[Any]:
    measured = name in (*TIMES, *AMOUNTS)
    decimals = measured or annotation
    if column.shape != (jobs,):
        raise InputError(f"shape {column.shape}; expected ({jobs},), one per job", field=name)
    if column.dtype.kind == "f" and decimals:
        if not np.isfinite(column).all():
            raise InputError("not all numbers are finite", field=name)
        column = column.astype(np.float64, copy=False)
    elif column.dtype.kind in "iu":
        column = column.astype(np.int64, copy=False)
    else:
        expected = "numbers" if decimals else "integers"
        raise InputError(f"type {column.dtype}; expected {expected}", field=name)
    if measured and (column > LARGEST).any():
        raise InputError(f"{column.max()}; expected numbers of at most 2^53", field=name)
    column = column.view()
    column.flags.writeable = False
    return column


def _checked_texts(name: str, column: Any, jobs: int) -> NDArray[np.object_]:
    texts: NDArray[np.object_] = np.asarray(column, dtype=object).view()
    if texts.shape != (jobs,):
        raise InputError(f"shape {texts.shape}; expected ({jobs},), one per job", field=name)
    if not all(type(text) is str for text in texts.tolist()):
        raise InputError("not all values are texts; expected str", field=name)
    try:
        "".join(texts.tolist()).encode()
    except UnicodeEncodeError:
        wrong = "half of a surrogate pair in a text; expected whole characters"
        raise InputError(wrong, field=name) from None
    texts.flags.writeable = False
    return texts
