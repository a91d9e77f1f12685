"""Cases: work that simulates nothing, each with a file of its answers, that can be resumed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optsched.cores import cores
from optsched.errors import InputError
from optsched.files import write_json
from optsched.folders import Expected, read_object
from optsched.sweeps.engines import LocalProcesses

SOLVED: Expected = {"origin": dict, "rows": list}
Case = Callable[[], Iterable[Mapping[str, Any]]]  # solves problems; a row for each answer

log = logging.getLogger("optsched")


@dataclass(frozen=True)
class _Case:
    """A case to solve in a process of its own, and the file for its answers."""

    name: str
    load: Callable[[], Mapping[str, Case]]
    file: Path
    origin: Mapping[str, Any]

    def write(self) -> None:
        """Solve the case, and write its answers."""
        rows = [dict(row) for row in self.load()[self.name]()]
        write_json(self.file, {"origin": self.origin, "rows": rows})


class Cases:
    """Cases by name, with a file in `folder` for each that is solved.

    A case is solved again if `origin`, on which its answers rest, has changed. Each process calls
    `load`, which has to be picklable, for the cases.
    """

    def __init__(
        self, load: Callable[[], Mapping[str, Case]], origin: Mapping[str, Any], folder: Path
    ) -> None:
        self._load, self.origin, self._folder = load, origin, folder.absolute()
        self.all: list[str] = [*load()]
        self.pending = [name for name in self.all if not self._is_solved(name)]

    def work(self, workers: int | None = None) -> Iterator[str]:
        """Solve the pending cases, and yield the name of each when its answers are on the disk."""
        tasks = [_Case(name, self._load, self._file(name), self.origin) for name in self.pending]
        if not tasks:
            return
        engine = LocalProcesses(min(workers or cores(), len(tasks)))
        with closing(engine.execute_all(tasks)) as outcomes:
            for outcome in outcomes:
                if outcome.error is not None:
                    raise InputError(f"case {outcome.name}: {outcome.error}")
                yield outcome.name

    def answers(self) -> list[dict[str, Any]]:
        """Return the rows of all cases, in order."""
        return [row for name in self.all for row in read_object(self._file(name), SOLVED)["rows"]]

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _is_solved(self, name: str) -> bool:
        try:
            return bool(read_object(self._file(name), SOLVED)["origin"] == self.origin)
        except InputError:
            if self._file(name).is_file():
                log.warning("%s is damaged; the case is solved again", self._file(name))
            return False
