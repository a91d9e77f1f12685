"""``optsched report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from optsched.cli.folder_pages import report
from optsched.cli.terminal import print_line


def command(*folders: Annotated[Path, Parameter(required=True)]) -> None:
    """Write the HTML page of run and comparison folders anew, from the files in them.

    Parameters
    ----------
    folders
        Folders that `optsched simulate` or `optsched compare` wrote.
    """
    for path in report(folders):
        print_line(path)
