"""HTML pages of folders, by the marker file that identifies the kind of folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from optsched.errors import InputError
from optsched.files import check_name
from optsched.report import comparison_folder, run_folder
from optsched.studies import study_folder

KINDS = (run_folder, comparison_folder, study_folder)


def report(folders: Iterable[Path]) -> list[Path]:
    """Rewrite the page of each run, comparison or study folder from the files in the folder.

    Returns
    -------
    list of pathlib.Path
        The pages, in the order of the folders.

    Raises
    ------
    InputError
        If a folder is of no such kind, before any page is written; or if a file in a folder is
        missing or damaged.
    """
    known = [(folder, _kind(folder)) for folder in folders]
    return [kind.report(folder) for folder, kind in known]


def _kind(folder: Path) -> ModuleType:
    check_name(folder)
    found = next((kind for kind in KINDS if (folder / kind.FOLDER.marker).is_file()), None)
    if found is None:
        expected = " or ".join(f"{kind.FOLDER.name} ({kind.FOLDER.marker})" for kind in KINDS)
        is_not = "not such a folder" if folder.is_dir() else "not a folder"
        raise InputError(f"{is_not}; expected the folder of {expected}", file=folder)
    return found
