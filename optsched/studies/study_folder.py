"""The folder of a study: its sweep, and what is made of the results.

Folder format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched import registry
from optsched.errors import InputError
from optsched.files import (
    FolderKind,
    check_replaceable,
    make_folder,
    remove_leftovers,
    unwritable,
    write_json,
    written,
)
from optsched.report import style
from optsched.report.folder_files import read_object, read_pictures
from optsched.report.page import write_page
from optsched.studies.results import with_parts
from optsched.studies.study import Study
from optsched.sweeps.merging import versions_used
from optsched.traces.reading import write_trace

if TYPE_CHECKING:
    import pandas as pd

    from optsched.traces.trace import Trace

SWEEP = "sweep"
"""The folder of the runs, inside."""

MADE = ("report.html", "*.csv", "*.svg", "*.png")
"""What is made of the results, and made anew when there are new ones."""

INPUTS = "inputs"
"""The folder of the traces that a study makes for itself, inside."""

FOLDER = FolderKind("a study", "study.json", MADE, (SWEEP, INPUTS))


def begin(name: str, folder: Path, *, quick: bool) -> None:
    """Mark a folder as that of a study, before its runs; what was made of earlier ones goes.

    Raises
    ------
    InputError
        If it holds something else, another study for instance, or cannot be written.
    """
    check_replaceable(folder, FOLDER)
    about = {"study": name, "quick": quick}
    if (folder / FOLDER.marker).is_file() and _about(folder) != about:
        raise InputError("holds another study; expected a folder of its own", file=folder)
    try:
        make_folder(folder)
        remove_leftovers(folder)
        for stale in (path for pattern in MADE for path in folder.glob(pattern)):
            stale.unlink()
    except OSError as error:
        raise unwritable(folder, error) from None
    write_json(folder / FOLDER.marker, about)


def write_inputs(traces: Mapping[str, Trace], folder: Path) -> None:
    """Write the traces that a study makes for itself; those of another make of it go.

    Raises
    ------
    InputError
        If they cannot be written.
    """
    inputs = folder / INPUTS
    try:
        if traces:
            make_folder(inputs)
        made = {f for name, trace in traces.items() for f in write_trace(trace, inputs / name)}
        for stale in set(inputs.glob("*")) - made:
            stale.unlink()
    except OSError as error:
        raise unwritable(inputs, error) from None


def evaluate(folder: Path) -> Path:
    """Write tables, pictures and page from the results of the sweep; return the page.

    Raises
    ------
    InputError
        If a run has failed or a file is missing.
    """
    study, frame = _read(folder)
    for name, table in study.tables(frame).items():
        with written(folder / f"{name}.csv") as temporary:
            table.to_csv(temporary, index=False, lineterminator="\n")
    for name, figure in study.figures(frame).items():
        style.save(figure, folder, name)
    return _write_page(folder, study, frame)


def report(folder: Path) -> Path:
    """Write the page of a study folder from the files in it, and return its path.

    Raises
    ------
    InputError
        If a file is missing or damaged, or the page cannot be written.
    """
    return _write_page(folder, *_read(folder))


def _about(folder: Path) -> dict[str, Any]:
    return read_object(folder / FOLDER.marker, {"study": str, "quick": bool})


def _write_page(folder: Path, study: Study, frame: pd.DataFrame) -> Path:
    used = versions_used(frame["run"].tolist(), folder / SWEEP / "runs")
    versions = {package: " and ".join(found) for package, found in used.items()}
    pictures = read_pictures(folder, [])
    return write_page(study.page(frame, pictures, versions, quick=_about(folder)["quick"]), folder)


def _read(folder: Path) -> tuple[Study, pd.DataFrame]:
    import pandas as pd

    study: Study = registry.studies[_about(folder)["study"]]()
    path = folder / SWEEP / "results.parquet"
    if not path.is_file():
        raise InputError("missing; expected the results of the study's runs", file=path)
    try:
        results = pd.read_parquet(path)
    except (OSError, ValueError):
        raise InputError("damaged; expected the Parquet file of a sweep", file=path) from None
    runs = folder / SWEEP / "runs"
    results = with_parts(results, study.parts, runs)
    results = results.assign(folder=[str(runs / run) for run in results["run"]])
    try:
        return study, study.prepare(results, folder / INPUTS)
    except InputError as error:
        raise error.within(path) from None
