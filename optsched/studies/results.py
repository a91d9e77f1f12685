"""The results of a study's sweep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.numbers import counted
from optsched.report.folder_files import read_object

if TYPE_CHECKING:
    import pandas as pd


def check_results(results: pd.DataFrame, needed: Iterable[str]) -> None:
    """Refuse results from which nothing can be said.

    Parameters
    ----------
    results : pandas.DataFrame
        One row per run.
    needed : iterable of str
        The columns that the evaluation reads.

    Raises
    ------
    InputError
        If runs have failed or a column is missing.
    """
    if "error" in results and len(failed := results["error"].dropna()):
        raise InputError(
            f"{counted(len(failed), 'run')} of the study failed; the first: {failed.iloc[0]}"
        )
    missing = [name for name in needed if name not in results]
    if missing:
        raise InputError(f"results without {missing[0]}; expected those of this study")


def with_parts(results: pd.DataFrame, metrics: Sequence[str], runs: Path) -> pd.DataFrame:
    """Return the results with a column for each number of metrics that are tables of their own.

    Parameters
    ----------
    results : pandas.DataFrame
        One row per run.
    metrics : sequence of str
        The metrics; the column of a number is named ``recorded_node_time.running``, for instance.
    runs : path
        The folder that holds the folders of the runs; one that has failed has none.

    Raises
    ------
    InputError
        If the summary of a run is damaged.
    """
    import pandas as pd

    if not metrics:
        return results
    rows = []
    for run in results["run"]:
        file = runs / run / "summary.json"
        summary = read_object(file, {}) if file.is_file() else {}
        tables = ((name, summary.get(name) or {}) for name in metrics)
        rows.append({f"{name}.{part}": v for name, table in tables for part, v in table.items()})
    return pd.concat([results, pd.DataFrame(rows, index=results.index, dtype=float)], axis=1)


def grouped(frame: pd.DataFrame, by: list[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield the rows that agree in all of these columns, with their values, in order."""
    for key, own in frame.groupby(by, sort=True):
        yield tuple(key), own
