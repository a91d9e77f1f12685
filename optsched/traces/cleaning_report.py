"""What cleaning did to a trace, counted."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class CleaningReport:
    """What cleaning did, in jobs.

    A job is dropped for the first reason that applies; the counts below the drops are of the jobs
    that were kept.

    Parameters
    ----------
    jobs_read : int
        Jobs in the raw trace.
    dropped_runtime : int
        Dropped: run time unknown or less than 1 s.
    dropped_processors : int
        Dropped: fewer than 1 processor, allocated and requested.
    dropped_submit : int
        Dropped: submit time unknown.
    processors_from_request : int
        Processors taken from the request, because none are stated as allocated.
    requested_time_missing : int
        Without a requested time; it was set to the run time.
    requested_time_raised : int
        With a requested time shorter than the run time; it was raised to the run time.
    reordered : int
        Jobs at another place after ordering by submit time and job number.
    """

    jobs_read: int
    dropped_runtime: int
    dropped_processors: int
    dropped_submit: int
    processors_from_request: int
    requested_time_missing: int
    requested_time_raised: int
    reordered: int

    @property
    def dropped(self) -> int:
        """Number of jobs dropped, for whatever reason."""
        return self.dropped_runtime + self.dropped_processors + self.dropped_submit

    def to_json(self) -> dict[str, int]:
        """Return the counts by name, with their sum ``dropped``."""
        return {"dropped": self.dropped, **asdict(self)}

    def counts(self) -> list[tuple[int, str]]:
        """Return what happened, with how often; what did not happen is left out."""
        counts = (
            (self.dropped_runtime, "dropped: run time unknown or less than 1 s"),
            (self.dropped_processors, "dropped: less than 1 processor"),
            (self.dropped_submit, "dropped: submit time unknown"),
            (self.processors_from_request, "processors taken from the request"),
            (self.requested_time_missing, "requested time missing, set to the run time"),
            (self.requested_time_raised, "requested time raised to the run time"),
            (self.reordered, "moved when ordered by submit time and job number"),
        )
        return [(count, what) for count, what in counts if count]

    def lines(self) -> list[str]:
        """Return the counts as lines for a terminal; what did not happen is left out."""
        counts = [(self.jobs_read, "jobs read"), *self.counts()]
        return [f"{count:>9,} {what}" for count, what in counts]
