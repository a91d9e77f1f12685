"""The table of the results of a sweep, one row per run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.files import written
from optsched.sweeps.run_check import read_object
from optsched.sweeps.sweep_file import SweepPlan

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


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
