"""The table of the results of a sweep, one row per run, and the check whether a run is finished.

A folder gets its name when it is complete and on the disk. Later damage, such as an interrupted
copy, leaves files that are missing, empty or truncated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.files import written
from optsched.sweeps.sweep_file import SweepPlan
from optsched.text_files import parse_json

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from optsched.folders import Keep


SUMMARY = "summary.json"
TABLES = ("jobs.parquet", "decisions.parquet")
NEEDED: dict[Keep, tuple[str, ...]] = {
    "summary": ("run.json", SUMMARY, "timing.json"),
    "jobs": ("run.json", SUMMARY, "timing.json", *TABLES),
    "all": ("run.json", SUMMARY, "timing.json", *TABLES, "jobs.csv"),
}
"""Files of a finished run, by the value of ``keep``."""

DRAWN = (".svg", ".png", ".html")
"""Files that are never empty."""

PARQUET = b"PAR1"
"""Magic number at the beginning and the end of a Parquet file."""


def fault(folder: Path, keep: Keep) -> str | None:
    """Return the first fault of an existing folder of a run, None if the run is finished."""
    try:
        found = set(os.listdir(folder))
        for name in NEEDED[keep]:
            if name not in found:
                return f"{folder / name} is missing"
        if damage := _damaged_record(folder):
            return damage
        for name in sorted(found):
            if not _is_complete(folder / name):
                return f"{folder / name} is damaged"
    except OSError as error:
        return f"{error.filename or folder} cannot be read"
    return None


def is_finished(folder: Path, keep: Keep) -> bool:
    """Return whether a folder holds a run with at least the files of `keep`."""
    return folder.is_dir() and fault(folder, keep) is None


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the JSON object of a file, None if the file is damaged."""
    try:
        read = parse_json(path.read_bytes())
    except InputError:
        return None
    return read if isinstance(read, dict) else None


def _damaged_record(folder: Path) -> str | None:
    """Return a message if the config or the summary of a run is damaged, None otherwise."""
    from optsched.folders import read_config, read_summary

    try:
        read_config(folder)
        read_summary(folder)
    except InputError as error:
        return f"{error.file} is damaged"
    return None


def _is_complete(path: Path) -> bool:
    """Return whether a file passes a quick check for truncation."""
    if path.suffix == ".json":
        return read_object(path) is not None
    if path.suffix == ".parquet":
        return _has_its_footer(path)
    if path.suffix == ".csv":
        summary = read_object(path.with_name(SUMMARY)) or {}
        return bool(path.read_bytes().count(b"\n") > summary.get("jobs", 0))
    return path.suffix not in DRAWN or path.stat().st_size > 0


def _has_its_footer(path: Path) -> bool:
    with path.open("rb") as file:
        begins = file.read(4)
        size = file.seek(0, os.SEEK_END)
        if size < 12:
            return False
        file.seek(-8, os.SEEK_END)
        length, ends = int.from_bytes(file.read(4), "little"), file.read(4)
    return begins == ends == PARQUET and length <= size - 12


def merge(plan: SweepPlan, runs: Path, failures: Mapping[str, str]) -> pa.Table:
    """Return the table of results of a sweep, in which every run is finished or has failed.

    The folders of the runs are in `runs`; `failures` has the error of each failed run by name.

    Its columns are ``run``, the values in the sweep file, the metrics, ``error``. A value with the
    name of a metric gets the prefix ``config.``; a metric that is a list or a table is left out.
    """
    import pyarrow as pa

    summaries = [
        {} if run.name in failures else _figures(runs / run.name / "summary.json")
        for run in plan.runs
    ]
    metrics = list(dict.fromkeys(name for summary in summaries for name in summary))
    columns: dict[str, pa.Array] = {"run": pa.array([run.name for run in plan.runs])}
    rows = [run.columns for run in plan.runs]
    for name in plan.columns:
        label = f"config.{name}" if name in metrics else name
        columns[label] = _column([row.get(name) for row in rows])
    for name in metrics:
        columns[name] = _column([summary.get(name) for summary in summaries])
    errors = [failures.get(run.name) for run in plan.runs]
    columns["error"] = pa.array(errors, type=pa.string())
    return pa.table(columns)


def write_results(table: pa.Table, folder: Path) -> None:
    """Write ``results.parquet`` and ``results.csv``, either both or neither."""
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    plain = pacsv.WriteOptions(quoting_style="needed", quoting_header="none")
    with written(folder / "results.csv") as csv, written(folder / "results.parquet") as parquet:
        pacsv.write_csv(table, csv, plain)
        pq.write_table(table, parquet)


def with_parts(results: pd.DataFrame, metrics: Sequence[str], runs: Path) -> pd.DataFrame:
    """Return the results with a column for each number of metrics that are tables of their own.

    A column is named ``recorded_node_time.running``, for instance. `runs` holds the run folders.
    """
    import pandas as pd

    if not metrics:
        return results
    rows = []
    for run in results["run"]:
        summary = _read(runs / run / "summary.json")
        tables = ((name, summary.get(name) or {}) for name in metrics)
        rows.append({f"{name}.{part}": v for name, table in tables for part, v in table.items()})
    return pd.concat([results, pd.DataFrame(rows, index=results.index, dtype=float)], axis=1)


def versions_used(names: Sequence[str], runs: Path) -> dict[str, list[str]]:
    """Return the versions of each package and solver that the runs with given names used."""
    seen: dict[str, set[str]] = {}
    for name in names:
        config = _read(runs / name / "run.json")
        used = dict(config["versions"])
        for chosen in config.get("solvers", {}).values():
            used[chosen["solver"]] = chosen["version"]
        for package, version in used.items():
            seen.setdefault(package, set()).add(str(version))
    return {package: sorted(found) for package, found in seen.items()}


def _figures(path: Path) -> dict[str, Any]:
    return {k: v for k, v in _read(path).items() if not isinstance(v, dict | list)}


def _read(path: Path) -> dict[str, Any]:
    read = read_object(path)
    if read is None:
        raise InputError("damaged; start the sweep again to repeat the run", file=path)
    return read


def _column(values: Sequence[Any]) -> pa.Array:
    """Return values as a column of their type, or as text if they have several types."""
    import pyarrow as pa

    types = {type(value) for value in values if value is not None}
    if types <= {int, float} and types != {int}:
        return pa.array(values, type=pa.float64())
    if len(types) > 1:
        return pa.array([v if isinstance(v, str | None) else json.dumps(v) for v in values])
    return pa.array(values)
