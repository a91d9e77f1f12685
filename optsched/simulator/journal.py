"""The journal: every event and every action of a simulation, in order."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class Journal:
    """Events and actions in the order in which they took place."""

    def __init__(self) -> None:
        # time; event; row of the job; place, limit, speed or share, or the reason of a rejection
        self.entries: list[tuple[float, str, int, str]] = []

    def __repr__(self) -> str:
        return f"<Journal: {len(self.entries):,} entries>"

    def record(self, time: float, event: str, job: int, detail: object = "") -> None:
        """Add an entry."""
        self.entries.append((time, event, job, str(detail)))

    def digest(self) -> str:
        """Return the SHA-256 of the journal, equal for equal runs."""
        text = "".join(
            f"{float(time)!r} {event} {job} {detail}\n" for time, event, job, detail in self.entries
        )
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def frame(self) -> pd.DataFrame:
        """The journal as a data frame: time, event, job (row of the trace), detail."""
        import pandas as pd

        return pd.DataFrame(self.entries, columns=["time", "event", "job", "detail"])
