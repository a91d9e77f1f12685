"""A study in its folder: the sweep, and the evaluation of its results.

Folder format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from optsched import registry
from optsched.binary_files import sha256_of
from optsched.errors import InputError, optional_module
from optsched.files import (
    FolderKind,
    check_replaceable,
    make_folder,
    remove_leftovers,
    unwritable,
    write_json,
    write_text,
    written,
)
from optsched.report import style
from optsched.report.folder_files import checked, read_object, read_pictures
from optsched.report.markdown import markdown
from optsched.report.page import write_page
from optsched.simulator.provenance import versions as installed
from optsched.studies import cases, running
from optsched.studies.cases import Cases
from optsched.studies.content import PLAN
from optsched.studies.folder import find_study
from optsched.studies.judging import frame_of_claims
from optsched.studies.running import Evaluation, with_parts, write_inputs
from optsched.studies.study import Study
from optsched.sweeps.engines import check_engine, start_engine
from optsched.sweeps.merging import versions_used
from optsched.sweeps.sweep_file import read_sweep
from optsched.sweeps.sweeping import Sweep
from optsched.traces.catalogue import folders

if TYPE_CHECKING:
    import pandas as pd


SWEEP = "sweep"
"""The folder of the runs, inside."""

RESULTS = "results.parquet"
"""The results on which tables, figures and verdicts rest: one row per run."""

MARKDOWN = "README.md"
"""The page as Markdown, which shows the pictures of its folder."""

TIMING = "timing.json"
"""The wall-clock seconds of each row of the results, where problems are solved without a sweep."""

MADE = (RESULTS, TIMING, "report.html", MARKDOWN, "*.csv", "*.svg", "*.png")
"""The files that are made from the results, and again whenever there are new ones."""

INPUTS = "inputs"
"""The folder of the traces that a study makes for itself, inside."""

CLAIMS = "claims"
"""The CSV with the verdicts, where claims are judged."""

FOLDER = FolderKind("a study", "study.json", (*MADE, cases.PLANNED), (SWEEP, cases.FOLDER, INPUTS))


def plan_study(
    name: str,
    folder: Path,
    *,
    traces: Path | None = None,
    trace: str | None = None,
    quick: bool = False,
) -> Sweep | Cases:
    """Begin a study in a folder, or go on with one, and return its runs, or its cases to solve.

    Tables, figures and page of earlier results are removed, finished runs and cases are not.

    Parameters
    ----------
    traces : path, optional
        Folder of the public logs; those of ``OPTSCHED_TRACES`` by default.
    trace : str, optional
        A trace file, or a name from the catalogue, in the place of the logs.
    quick : bool
        Whether to run a small part, within a minute.

    Raises
    ------
    InputError
        If the study is not known or takes no trace, a log is missing, SciPy is not installed, or
        the folder holds something else.
    """
    check_replaceable(folder, FOLDER)
    study: Study = registry.studies[name]()
    optional_module("scipy", "a study", "studies")  # for intervals, when all runs are done
    own: dict[str, Any] = {}
    if trace is not None:
        if not study.takes_trace:
            reason = f"study {name!r} has traces of its own; expected no other"
            raise InputError(reason, field="trace")
        own = {"trace": trace}
    logs = _logs(traces)
    if not study.simulates:
        stated, files = study.cases(logs, quick=quick), study.files(logs)
        origin = {"plan": _plan(study), "files": {file.name: sha256_of(file) for file in files}}
        used = installed() | {package: version(package) for package in study.packages}
        begin(name, folder, quick=quick)
        return Cases(stated, origin, used, folder)
    inputs = study.inputs(logs, quick=quick, **own)
    table = study.plan(logs, Path(INPUTS), quick=quick, **own)
    begin(name, folder, quick=quick, trace=trace)
    write_inputs(inputs, folder)
    return Sweep(read_sweep(table, base=folder), folder / SWEEP)


def study(
    name: str,
    output: str | Path,
    *,
    traces: str | Path | None = None,
    trace: str | Path | None = None,
    quick: bool = False,
    workers: int | None = None,
) -> Evaluation:
    """Run the evaluation of a paper again, and judge its claims.

    Parameters
    ----------
    name : str
        The study, as ``optsched list studies`` shows them.
    output : path
        The folder of the study. Finished runs and cases in it are not repeated.
    traces : path, optional
        Folder of the public logs; those of ``OPTSCHED_TRACES`` by default.
    trace : path or str, optional
        A trace file, or a name from the catalogue, in the place of the logs; only ``systems`` takes
        one.
    quick : bool
        Whether to run a small part, within a minute. It judges no claims.
    workers : int, optional
        Number of processes; by default, as many as there are cores for.

    Raises
    ------
    InputError
        If the study is not known, a log is missing, a run fails, or the folder cannot be used.
    """
    if find_study(name) is not None:
        return running.study(name, output, traces=traces, trace=trace, quick=quick, workers=workers)
    check_engine("local", workers, None)
    logs = None if traces is None else Path(traces)
    own = None if trace is None else str(trace)
    planned = plan_study(name, Path(output), traces=logs, trace=own, quick=quick)
    if isinstance(planned, Cases):
        for _ in planned.work():
            pass
    else:
        if planned.pending:
            for _ in planned.work(start_engine(planned.pending, workers)):
                pass
        planned.finish()
    return evaluate(Path(output))


def begin(name: str, folder: Path, *, quick: bool, trace: str | None = None) -> None:
    """Mark a folder as that of a study, and remove what was made from earlier results.

    Raises
    ------
    InputError
        If it holds something else, another study for instance, or cannot be written.
    """
    check_replaceable(folder, FOLDER)
    about: dict[str, Any] = {"study": name, "quick": quick}
    if trace is not None:
        about["trace"] = PurePath(trace).name
    there = _about(folder) if (folder / FOLDER.marker).is_file() else about
    if any(there.get(key) != about.get(key) for key in ("study", "quick", "trace")):
        raise InputError("holds another study; expected a folder of its own", file=folder)
    try:
        make_folder(folder)
        remove_leftovers(folder)
        for stale in (path for pattern in MADE for path in folder.glob(pattern)):
            stale.unlink()
    except OSError as error:
        raise unwritable(folder, error) from None
    write_json(folder / FOLDER.marker, about)


def evaluate(folder: Path) -> Evaluation:
    """Write results, figures, tables and page from the runs of the sweep, or from the cases.

    Raises
    ------
    InputError
        If a run has failed, or a file is missing or damaged.
    """
    about = _about(folder)
    study: Study = registry.studies[about["study"]]()
    if study.simulates:
        frame, versions = _of_sweep(study, folder)
    else:
        frame, versions = _of_cases(folder)
    with written(folder / RESULTS) as stream:
        frame.to_parquet(stream, index=False, compression="zstd")
    write_json(folder / FOLDER.marker, about | {"plan": _plan(study), "versions": versions})
    return _conclude(folder)


def _of_sweep(study: Study, folder: Path) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the results of the sweep, prepared, and the versions that its runs used."""
    runs = folder / SWEEP / "runs"
    results = with_parts(_read(folder / SWEEP / "results.parquet"), study.parts, runs)
    results = results.assign(folder=[str(runs / run) for run in results["run"]])
    try:
        frame = study.prepare(results, folder / INPUTS).drop(columns="folder")
    except InputError as error:
        raise error.within(folder / SWEEP / "results.parquet") from None
    frame["trace"] = [PurePath(trace).name for trace in frame["trace"]]  # equal on any machine
    used = versions_used(frame["run"].tolist(), runs)
    return frame, {package: " and ".join(found) for package, found in used.items()}


def _of_cases(folder: Path) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the answers to all cases and the versions that they used, and write their seconds."""
    import pandas as pd

    rows, versions = cases.answers(folder)
    frame = pd.DataFrame(rows)
    write_json(folder / TIMING, {"wall_seconds": frame.pop("wall_seconds").tolist()})
    return frame, versions


def _plan(study: Study) -> str:
    """Return the SHA-256 of the plan of a study."""
    return hashlib.sha256((study.content / PLAN).read_bytes()).hexdigest()


def _logs(traces: Path | None) -> Sequence[Path]:
    return folders() if traces is None else [traces]


def report(folder: Path) -> Path:
    """Write figures, tables, verdicts and page of a study folder from its results.

    Returns
    -------
    path
        The page.

    Raises
    ------
    InputError
        If a file is missing or damaged, or the page cannot be written.
    """
    if "/" in _about(folder)["study"]:
        return running.report(folder)
    return _conclude(folder).page


def _about(folder: Path) -> dict[str, Any]:
    return read_object(folder / FOLDER.marker, {"study": str, "quick": bool})


def _conclude(folder: Path) -> Evaluation:
    """Write figures, tables, verdicts and page from the results in the folder."""
    about = read_object(folder / FOLDER.marker, {"study": str, "quick": bool, "versions": dict})
    study: Study = registry.studies[about["study"]]()
    frame = _read(folder / RESULTS)
    for name, figure in study.figures(frame).items():
        style.save(figure, folder, name)
    tables = dict(study.tables(frame))
    claims = () if about["quick"] else study.claims(frame)
    verdicts = frame_of_claims(claims)
    for name, table in (tables | ({CLAIMS: verdicts} if len(verdicts) else {})).items():
        write_text(folder / f"{name}.csv", table.to_csv(index=False, lineterminator="\n"))
    pictures = read_pictures(folder, [])
    options = {"quick": about["quick"]}
    if "trace" in about:
        checked(about, {"trace": str}, folder / FOLDER.marker)
        options["trace"] = about["trace"]
    page = study.page(frame, claims, pictures, about["versions"], **options)
    write_text(folder / MARKDOWN, markdown(page))
    return Evaluation(folder, write_page(page, folder), tables, verdicts)


def _read(path: Path) -> pd.DataFrame:
    """Return the results in a Parquet file."""
    import pandas as pd

    if not path.is_file():
        raise InputError("missing; expected the results of the study's runs", file=path)
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError):
        raise InputError("damaged; expected results in a Parquet file", file=path) from None
