"""``optsched report``."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Annotated

from cyclopts import Parameter

from optsched.cli.terminal import print_line
from optsched.errors import InputError
from optsched.files import check_name
from optsched.report import comparison_folder, run_folder, runs_folder
from optsched.studies import effects_folder, running
from optsched.sweeps import sweep_folder

KINDS = (run_folder, comparison_folder, runs_folder, sweep_folder, effects_folder, running)


def command(*folders: Annotated[Path, Parameter(required=True)]) -> None:
    """Write the HTML pages of folders that optsched wrote, from their files.

    Parameters
    ----------
    folders
        Folders that `optsched simulate`, `compare`, `sweep` or `study` wrote.
    """
    known = [(folder, _kind(folder)) for folder in folders]  # before any page is written
    for page in [kind.report(folder) for folder, kind in known]:
        print_line(page)


def _kind(folder: Path) -> ModuleType:
    """Return the module of a kind of folder, identified by its marker file."""
    check_name(folder)
    found = next((kind for kind in KINDS if (folder / kind.FOLDER.marker).is_file()), None)
    if found is None:
        expected = " or ".join(f"{kind.FOLDER.name} ({kind.FOLDER.marker})" for kind in KINDS)
        is_not = "not a folder that optsched wrote" if folder.is_dir() else "not a folder"
        raise InputError(f"{is_not}; expected that of {expected}", file=folder)
    return found
