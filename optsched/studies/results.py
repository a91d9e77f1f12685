"""The results of a study's sweep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.numbers import counted

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
"""The name of all workloads together."""


def check_results(results: pd.DataFrame, needed: Iterable[str]) -> None:
    """Refuse results from which nothing can be said, by the columns that the evaluation needs.

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


def labelled(
    results: pd.DataFrame,
    planned: Mapping[tuple[Any, ...], Mapping[str, Any]],
    names: Sequence[str],
) -> pd.DataFrame:
    """Name the runs, and bring them into the order of the plan.

    Parameters
    ----------
    planned : mapping of tuple to mapping
        The runs, as blocks of a sweep file without lists, by label. Of a trace the name of the file
        counts, and of the other keys those that any block states.
    names : sequence of str
        The columns that get the parts of the label.

    Raises
    ------
    InputError
        If a run is not planned.
    """
    import pandas as pd

    blocks = {label: _flat(block) for label, block in planned.items()}
    keys = list(dict.fromkeys(key for block in blocks.values() for key in block))
    labels = {tuple(map(block.get, keys)): label for label, block in blocks.items()}
    stated = results.reindex(columns=keys).astype(object)
    stated = stated.where(stated.notna(), None)
    if "trace" in keys:
        stated["trace"] = [PurePath(trace).name for trace in stated["trace"]]
    found = [labels.get(row) for row in stated.itertuples(index=False, name=None)]
    if None in found:
        run = results.iloc[found.index(None)]
        asked = f"{run['policy']} on {run['machine']} is not part of this study"
        raise InputError(f"{asked}; expected its runs, of policies that are registered")
    order = {label: place for place, label in enumerate(blocks)}
    rows = sorted(range(len(found)), key=lambda row: order[found[row]])  # type: ignore[index]
    columns = dict(zip(names, zip(*(found[row] for row in rows))))
    return results.iloc[rows].reset_index(drop=True).assign(**pd.DataFrame(columns))


def _flat(block: Mapping[str, Any]) -> dict[str, Any]:
    flat = {key: value for key, value in block.items() if key != "settings"}
    return flat | {f"settings.{key}": value for key, value in block.get("settings", {}).items()}


def by_workload(frame: pd.DataFrame, *, together: bool = False) -> dict[str, pd.DataFrame]:
    """Return the runs of each ``workload``, by its name, in order of appearance.

    If there are several, `together` puts those of `ALL` before them.
    """
    parts = {str(name): own for name, own in frame.groupby("workload", sort=False)}
    return {ALL: frame} | parts if together and len(parts) > 1 else parts


def grouped(frame: pd.DataFrame, by: list[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield the rows that agree in all of these columns, with their values, in order."""
    for key, own in frame.groupby(by, sort=True):
        yield tuple(key), own
