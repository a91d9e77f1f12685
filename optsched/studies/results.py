"""The results of a study's sweep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError

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
        raise InputError(f"{len(failed)} runs of the study failed; the first: {failed.iloc[0]}")
    missing = [name for name in needed if name not in results]
    if missing:
        raise InputError(f"results without {missing[0]}; expected those of this study")


def grouped(frame: pd.DataFrame, by: list[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield the rows that agree in all of these columns, with their values, in order."""
    for key, own in frame.groupby(by, sort=True):
        yield tuple(key), own
