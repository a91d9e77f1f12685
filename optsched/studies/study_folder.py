"""The folder of a study: its sweep, and what is made of the results.

Folder format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched import registry
from optsched.errors import InputError
from optsched.files import FolderKind, check_replaceable, write_json, written
from optsched.report import style
from optsched.report.folder_files import read_object, read_pictures
from optsched.report.page import write_page
from optsched.studies.study import Study

if TYPE_CHECKING:
    import pandas as pd

FOLDER = FolderKind("a study", "study.json", ("sweep", "report.html", "*.csv", "*.svg", "*.png"))
SWEEP = "sweep"
"""The folder of the runs, inside."""


def begin(name: str, folder: Path, *, quick: bool) -> None:
    """Mark a folder as that of a study, before its runs.

    Raises
    ------
    InputError
        If it holds something else, or cannot be written.
    """
    check_replaceable(folder, FOLDER)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=folder) from None
    write_json(folder / FOLDER.marker, {"study": name, "quick": quick})


def evaluate(folder: Path) -> Path:
    """Write tables, pictures and page from the results of the sweep; return the page.

    Raises
    ------
    InputError
        If a run has failed or a file is missing.
    """
    study, results = _read(folder)
    for name, table in study.tables(results).items():
        with written(folder / f"{name}.csv") as temporary:
            table.to_csv(temporary, index=False, lineterminator="\n")
    for name, figure in study.figures(results).items():
        style.save(figure, folder, name)
    return report(folder)


def report(folder: Path) -> Path:
    """Write the page of a study folder from the files in it, and return its path.

    Raises
    ------
    InputError
        If a file is missing or damaged, or the page cannot be written.
    """
    study, results = _read(folder)
    names = sorted(path.stem for path in folder.glob("*.svg"))
    return write_page(study.page(results, _pictures(folder, names)), folder)


def _pictures(folder: Path, names: list[str]) -> Mapping[str, str]:
    return {name: svg for name, svg in read_pictures(folder, names).items() if svg}


def _read(folder: Path) -> tuple[Study, pd.DataFrame]:
    import pandas as pd

    about: dict[str, Any] = read_object(folder / FOLDER.marker, {"study": str, "quick": bool})
    path = folder / SWEEP / "results.parquet"
    if not path.is_file():
        raise InputError("missing; expected the results of the study's runs", file=path)
    return registry.studies[about["study"]](), pd.read_parquet(path)
