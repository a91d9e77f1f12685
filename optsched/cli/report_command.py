"""``optsched report``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from optsched.cli.terminal import print_line
from optsched.errors import InputError
from optsched.files import check_name
from optsched.folders import COMPARISON, RUN, RUNS, SWEEP
from optsched.report import comparison_page, run_comparison, run_page
from optsched.report.page import Page, write_page
from optsched.studies import effects, running
from optsched.sweeps import sweep_folder


def _writing(page: Callable[[Path], Page]) -> Callable[[Path], Path]:
    return lambda folder: write_page(page(folder), folder)


KINDS = (
    (RUN, _writing(run_page.page)),
    (COMPARISON, _writing(comparison_page.page)),
    (RUNS, _writing(run_comparison.page)),
    (SWEEP, sweep_folder.report),
    (effects.FOLDER, effects.report),
    (running.FOLDER, running.report),
)


def command(*folders: Annotated[Path, Parameter(required=True)]) -> None:
    """Write the HTML pages of folders that optsched wrote, from their files.

    Parameters
    ----------
    folders
        Folders that `optsched simulate`, `compare`, `sweep` or `study` wrote.
    """
    known: list[tuple[Callable[[Path], Path], Path]] = []
    for folder in folders:  # before any page is written
        check_name(folder)
        found = next((report for kind, report in KINDS if (folder / kind.marker).is_file()), None)
        if found is None:
            expected = " or ".join(f"{kind.name} ({kind.marker})" for kind, _ in KINDS)
            is_not = "not a folder that optsched wrote" if folder.is_dir() else "not a folder"
            raise InputError(f"{is_not}; expected that of {expected}", file=folder)
        known.append((found, folder))
    for page in [report(folder) for report, folder in known]:
        print_line(page)
