"""The runs of a study: the blocks of ``plan.toml`` for every label of the axes that they name.

File format: ``docs/formats/study-folder.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.content import bundled
from optsched.errors import InputError, UnknownNameError
from optsched.sweeps.sweep_file import KEYS
from optsched.traces.catalogue import VARIABLE

if TYPE_CHECKING:
    import pandas as pd

INPUTS = "inputs"
"""The folder of the traces that a study makes for itself, in its output."""

ABOUT = ("title", "paper", "packages", "parts", "axes", "lists", "own", "quick", "runs")
"""Keys of ``plan.toml`` that are not those of a sweep."""

ALL = "all"
"""In place of a list of labels: all of the axis."""

Labels = Mapping[str, str]
"""A label of each axis that a block of runs names."""


def merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with changes, which go into its tables."""
    found = dict(table)
    for key, value in changes.items():
        inner = found.get(key)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        found[key] = merged(inner, value) if both else value  # type: ignore[arg-type]
    return found


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
        if axis in KEYS or axis in ("settings", "combine", "keep", "label"):
            wrong = "is the name of a key of a run; expected another"
            raise InputError(wrong, field=f"axes.{axis}")
    runs = table.get("runs", [{}])
    if not (isinstance(runs, list) and all(isinstance(run, dict) for run in runs)):
        raise InputError("expected a list of tables", field="runs")
    every = [
        pair
        for number, run in enumerate(runs, 1)
        for pair in _labelled(run, axes, lists, f"runs[{number}]")
    ]
    blocks = [block for _, block in every]
    for block in (usual, *blocks):
        if "trace" in block:
            traces = block["trace"] if isinstance(block["trace"], list) else [block["trace"]]
            block["trace"] = [_trace(str(file), folders, study, inputs) for file in traces]
    return usual | {"runs": blocks}, [labels for labels, _ in every]


def _labelled(
    run: Mapping[str, Any], axes: Mapping[str, Any], lists: Mapping[str, Any], at: str
) -> Iterator[tuple[Labels, dict[str, Any]]]:
    """Yield a block for each combination of the labels that a block names, with the labels."""
    own = {key: value for key, value in run.items() if key not in (*axes, "label")}
    stated, named = _table(run, "label", f"{at}."), dict[str, list[Any]]()
    for axis in (one for one in axes if one in run):
        asked = [*axes[axis]] if run[axis] == ALL else run[axis]
        named[axis] = asked if isinstance(asked, list) else [asked]
        for label in named[axis]:
            if label not in axes[axis]:
                raise InputError(
                    f"{UnknownNameError(axis, label, axes[axis])}", field=f"{at}.{axis}"
                )
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

    rows: dict[Any, dict[str, str]] = {}
    for names, own in zip(blocks, labels, strict=True):
        rows |= {(name, *sorted(own.items())): {"run": name, **own} for name in names}
    table = pd.DataFrame([*rows.values()])
    if clash := [name for name in table if name in results and name != "run"]:
        raise InputError("is the name of a column of results", field=f"axes.{clash[0]}")
    return table.merge(results, on="run", validate="m:1")


def find_log(file: str, folders: Sequence[Path]) -> Path:
    """Find a sample that comes with optsched, or a log in the first folder that has it."""
    for folder in (bundled("traces"), *folders):
        if (folder / file).is_file():
            return (folder / file).resolve()
    looked = f"not in {', '.join(map(str, folders))}" if folders else "no folder is named"
    expected = f"expected --traces, or {VARIABLE}, to name the folder of the public logs"
    raise InputError(f"{looked}; {expected}", file=file)
