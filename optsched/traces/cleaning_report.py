"""Counts of what cleaning changed in a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from optsched.numbers import counted

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
    """Number of jobs read, and of those that cleaning dropped or changed, by reason.

    A job is dropped for the first reason that applies; the other counts are over the jobs that
    were kept.
    """

    jobs_read: int  # jobs in the raw trace
    dropped_runtime: int  # jobs dropped because the run time is unknown or less than 1 s
    # Jobs dropped because fewer than 1 processor is allocated and requested
    dropped_processors: int
    dropped_submit: int  # jobs dropped because the submit time is unknown
    # Jobs that count with their requested processors, because no allocated ones are stated
    processors_from_request: int
    requested_time_missing: int  # jobs without a requested time, which was set to the run time
    # Jobs whose requested time was shorter than the run time, and was raised to it
    requested_time_raised: int
    reordered: int  # jobs moved by ordering by submit time and job number
    # Lines dropped because they are parts of a checkpointed job (status 2 to 4) of which
    # another line is the whole (status 0, 1 or 5)
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
