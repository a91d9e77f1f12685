"""The runs of a study: the blocks of ``plan.toml`` for every label of the axes that they name.

File format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError, UnknownNameError
from optsched.sweeps.sweep_file import KEYS
from optsched.text_files import merged
from optsched.traces.catalogue import find_log

if TYPE_CHECKING:
    import pandas as pd

INPUTS = "inputs"  # the folder of the traces that a study makes for itself, in its output
ABOUT = ("title", "paper", "packages", "parts", "axes", "lists", "own", "quick", "runs")
"""Keys of ``plan.toml`` that are not those of a sweep."""

Labels = Mapping[str, str]  # a label of each axis that a block of runs names


def looked_at(table: Mapping[str, Any], *, quick: bool) -> dict[str, Any]:
    """Return the content of ``plan.toml``, in a quick look with the changes of its ``quick``."""
    changes = _table(table, "quick")
    whole = {key: value for key, value in table.items() if key != "quick"}
    return merged(whole, changes) if quick else whole


def _table(table: Mapping[str, Any], key: str, at: str = "") -> dict[str, Any]:
    """Return a table in a table, an empty one if it is not there."""
    if not isinstance(found := table.get(key, {}), dict):
        raise InputError(f"{found!r}; expected a table", field=f"{at}{key}")
    return found


def study_runs(
    table: Mapping[str, Any], folders: Sequence[Path], study: Path, inputs: Path
) -> tuple[dict[str, Any], list[Labels]]:
    """Expand the blocks of a plan by the labels of axes and by lists, and find their traces.

    These are in the folder of the study, in `inputs`, or in the folders of the public logs. The
    result is what `read_sweep` reads, and the labels of each of its blocks.
    """
    usual = {key: value for key, value in table.items() if key not in ABOUT}
    axes, lists = _table(table, "axes"), _table(table, "lists")
    for axis in axes:
        for name in _table(axes, axis, "axes."):
            _table(_table(axes[axis], name, f"axes.{axis}."), "lists", f"axes.{axis}.{name}.")
        if axis in (*KEYS, "settings", "combine", "keep", "label"):
            wrong = "is the name of a key of a run; expected another"
            raise InputError(wrong, field=f"axes.{axis}")
    runs = table.get("runs", [{}])
    if not (isinstance(runs, list) and all(isinstance(run, dict) for run in runs)):
        raise InputError("expected a list of tables", field="runs")
    every = [*_labelled(runs, axes, lists)]
    blocks = [block for _, block in every]
    for block in (usual, *blocks):
        if "trace" in block:
            traces = block["trace"] if isinstance(block["trace"], list) else [block["trace"]]
            block["trace"] = [_trace(str(file), folders, study, inputs) for file in traces]
    return usual | {"runs": blocks}, [labels for labels, _ in every]


def _labelled(
    runs: Sequence[Mapping[str, Any]], axes: Mapping[str, Any], lists: Mapping[str, Any]
) -> Iterator[tuple[Labels, dict[str, Any]]]:
    """Yield a block for each combination of the labels that a block names, with the labels."""
    for number, run in enumerate(runs, 1):
        own = {key: value for key, value in run.items() if key not in (*axes, "label")}
        at, named = f"runs[{number}]", dict[str, list[Any]]()
        stated = _table(run, "label", f"{at}.")
        for axis in (one for one in axes if one in run):
            asked = [*axes[axis]] if run[axis] == "all" else run[axis]
            named[axis] = asked if isinstance(asked, list) else [asked]
            if unknown := [label for label in named[axis] if label not in axes[axis]]:
                wrong = str(UnknownNameError(axis, unknown[0], axes[axis]))
                raise InputError(wrong, field=f"{at}.{axis}")
        for chosen in product(*named.values()):
            block: dict[str, Any] = {}
            for axis, label in zip(named, chosen):
                block = merged(block, axes[axis][label])
            known = lists | block.pop("lists", {})
            yield dict(zip(named, chosen)) | stated, _listed(merged(block, own), known, at)


def _listed(value: Any, lists: Mapping[str, Any], at: str) -> Any:
    """Return a value with lists in place of the texts that name them, such as ``@seeds``."""
    if isinstance(value, dict):
        return {key: _listed(one, lists, f"{at}.{key}") for key, one in value.items()}
    if not (isinstance(value, str) and value.startswith("@")):
        return value
    if value[1:] not in lists:
        raise InputError(f"{UnknownNameError('list', value[1:], lists)}", field=at)
    return lists[value[1:]]


def _trace(file: str, folders: Sequence[Path], study: Path, inputs: Path) -> str:
    if file.startswith(f"{INPUTS}/"):
        return str((inputs / file.removeprefix(f"{INPUTS}/")).absolute())
    own = study / file
    return str(own.resolve() if own.is_file() else find_log(file, folders))


def labelled(
    results: pd.DataFrame, blocks: Sequence[Sequence[str]], labels: Sequence[Labels]
) -> pd.DataFrame:
    """Return the results with a column for each axis, in the order of the plan.

    A run of several labels has a row for each of them. `blocks` has the names of the runs of each
    block, `labels` the labels of each.
    """
    import pandas as pd

    pairs = zip(blocks, labels, strict=True)
    table = pd.DataFrame([{"run": name, **own} for names, own in pairs for name in names])
    table = table.drop_duplicates()
    if clash := [name for name in table if name in results and name != "run"]:
        raise InputError("is the name of a column of results", field=f"axes.{clash[0]}")
    return table.merge(results, on="run", validate="m:1")
