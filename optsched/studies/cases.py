"""The cases of a study that simulates nothing: solve those that are not solved yet.

Folder format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from optsched.errors import InputError
from optsched.files import make_folder, remove_leftovers, unwritable, write_json
from optsched.report.folder_files import Expected, checked, read_object

Case = Callable[[], Iterable[Mapping[str, Any]]]
"""Solves the problems of a case, and returns a row of the results for each answer."""

PLANNED = "cases.json"
"""The file with the names of all cases, and with what their answers rest on."""

FOLDER = "cases"
"""The folder with a file for each case that is solved."""

SOLVED: Expected = {"versions": dict, "rows": list}
ROW: Expected = {"jobs": int, "wall_seconds": (int, float)}

log = logging.getLogger("optsched")


class Cases:
    """The cases of a study, with those in its folder that are solved.

    Those that were solved are not solved again, unless `origin`, on which the answers rest, has
    changed; `pending` has the names of the others. `versions` are those of the packages that solve.
    """

    def __init__(
        self,
        cases: Mapping[str, Case],
        origin: Mapping[str, Any],
        versions: Mapping[str, str],
        folder: Path,
    ) -> None:
        self.all = cases
        self._folder = folder / FOLDER
        self._versions = versions
        described = {**origin, "cases": list(cases)}
        try:
            make_folder(self._folder)
            remove_leftovers(self._folder)
            if _read(folder / PLANNED, {}) != described:
                for stale in self._folder.glob("*.json"):
                    stale.unlink()
                write_json(folder / PLANNED, described)
        except OSError as error:
            raise unwritable(self._folder, error) from None
        self.pending = tuple(name for name in cases if not self._is_solved(name))

    def work(self) -> Iterator[str]:
        """Solve the pending cases, and yield the name of each when its answers are on the disk."""
        for name in self.pending:
            rows = [dict(row) for row in self.all[name]()]
            write_json(self._file(name), {"versions": self._versions, "rows": rows})
            yield name

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _is_solved(self, name: str) -> bool:
        """Return whether the answers of a case are on file; damaged ones are said, and are not."""
        file = self._file(name)
        solved = _read(file, SOLVED) is not None
        if file.is_file() and not solved:
            log.warning("%s is damaged; the case is solved again", file)
        return solved


def answers(folder: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the rows of all cases of a study, in order, and the versions that they used."""
    rows: list[dict[str, Any]] = []
    versions: dict[str, set[str]] = {}
    for name in read_object(folder / PLANNED, {"cases": list})["cases"]:
        file = folder / FOLDER / f"{name}.json"
        solved = read_object(file, SOLVED)
        rows += [checked(row, ROW, file, "rows") for row in solved["rows"]]
        for package, version in solved["versions"].items():
            versions.setdefault(package, set()).add(str(version))
    return rows, {package: " and ".join(sorted(found)) for package, found in versions.items()}


def _read(file: Path, expected: Expected) -> dict[str, Any] | None:
    """Return the object in a file, None if it is not there or damaged."""
    try:
        return read_object(file, expected)
    except InputError:
        return None
