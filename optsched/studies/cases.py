"""The cases of a study that simulates nothing: solve those that are not solved yet.

Folder format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from optsched.errors import InputError
from optsched.files import write_json
from optsched.report.folder_files import Expected, read_object

Case = Callable[[], Iterable[Mapping[str, Any]]]
"""Solves the problems of a case, and returns a row of the results for each answer."""

FOLDER = "cases"
"""The folder with a file for each case that is solved."""

SOLVED: Expected = {"origin": dict, "rows": list}

log = logging.getLogger("optsched")


class Cases:
    """The cases of a study, with a file in a folder for each that is solved.

    It is solved again if `origin`, on which its answers rest, has changed; `pending` has the names
    of those to solve.
    """

    def __init__(self, cases: Mapping[str, Case], origin: Mapping[str, Any], folder: Path) -> None:
        self.all, self.origin, self._folder = cases, origin, folder
        self.pending = tuple(name for name in cases if self._solved(name) is None)

    def work(self) -> Iterator[str]:
        """Solve the pending cases, and yield the name of each when its answers are on the disk."""
        for name in self.pending:
            rows = [dict(row) for row in self.all[name]()]
            write_json(self._file(name), {"origin": self.origin, "rows": rows})
            yield name

    def answers(self) -> list[dict[str, Any]]:
        """Return the rows of all cases, in order."""
        return [row for name in self.all for row in read_object(self._file(name), SOLVED)["rows"]]

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _solved(self, name: str) -> dict[str, Any] | None:
        """Return the content of a solved case, None if it is to be solved (again)."""
        file = self._file(name)
        try:
            solved = read_object(file, SOLVED)
        except InputError:
            if file.is_file():
                log.warning("%s is damaged; the case is solved again", file)
            return None
        return solved if solved["origin"] == self.origin else None
