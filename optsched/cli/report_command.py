"""``optsched report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from optsched.cli.folder_pages import report
from optsched.cli.terminal import print_line


def command(*folders: Annotated[Path, Parameter(required=True)]) -> None:
    """Rewrite the HTML pages of run, comparison and study folders from the files in them.

    Parameters
    ----------
    folders
        Folders that `optsched simulate`, `optsched compare` or `optsched study` wrote.
    """
    for path in report(folders):
        print_line(path)
