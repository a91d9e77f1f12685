"""Kinds of output folders, and the reading of their files, also of old and damaged ones.

File formats: ``docs/formats``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from optsched import registry
from optsched.errors import InputError, path_of
from optsched.fields import Of, Table
from optsched.files import FolderKind, read_bytes
from optsched.numbers import LARGEST
from optsched.text_files import parse_json
from optsched.traces.trace import CleaningReport

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

REPORT = "report.html"
"""Name of the page of a folder."""

CHARTS = "gantt.json"
"""File of the data of Gantt charts to zoom."""

RESULTS = ("results.parquet", "results.csv")
PICTURES = ("*.svg", "*.png", CHARTS)

RUN = FolderKind(
    "a run",
    "run.json",
    ("summary.json", "timing.json", "jobs.csv", "*.parquet", "*.svg", "*.png", REPORT),
)
COMPARISON = FolderKind(
    "a comparison",
    "comparison.json",
    ("results.csv", "table.csv", "*.parquet", "answers.jsonl", "*.svg", "*.png", REPORT),
)
RUNS = FolderKind(
    "a comparison of runs", "runs.json", ("table.csv", "jobs.parquet", *PICTURES, REPORT)
)
SWEEP = FolderKind("a sweep", "sweep.json", (*RESULTS, *PICTURES, REPORT), ("runs", "failed"))

Keep = Literal["summary", "jobs", "all"]
"""Tables of a run to write: no table, the tables as Parquet, or the jobs as CSV too."""

Expected = Mapping[str, type | tuple[type, ...]]
"""Required fields of an object, with their types."""

NAMES: dict[type, str] = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "an integer",
    list: "a list",
    str: "a text",
    type(None): "null",
}

NUMBER = (int, float, type(None))
CONFIG: Expected = {
    "trace": str,
    "machine": str,
    "policy": str,
    "settings": dict,
    "event_order": str,
    "jobs": (list, type(None)),
    "repeat": (str, type(None)),
    "versions": dict,
}
SINCE: Expected = {
    "execution": (str, type(None)),
    "execution_settings": dict,
    "measure": (list, type(None)),
    **dict.fromkeys(("workload_seed", "load", "shake", "shake_seed"), NUMBER),
}
"""Fields that older folders do not have."""
POSING: Expected = {"solver": str, "solvers": dict, "charge_decisions": bool}
SOLVER: Expected = {
    "solver": str,
    "version": (str, type(None)),
    "budget": dict,
    "seed": int,
    "fallback": str,
}
BUDGET: Expected = dict.fromkeys(("seconds", "work"), NUMBER)
CLEANING: Expected = {
    field.name: int for field in fields(CleaningReport) if field.default is MISSING
}
COUNTS = (
    *("jobs", "finished", "killed", "rejected", "waiting"),
    *("decisions", "problems", "unproven", "fallbacks"),
)
WAITS = (
    *("mean_wait", "median_wait", "p95_wait", "max_wait"),
    *("mean_response", "mean_slowdown", "mean_bounded_slowdown", "p95_bounded_slowdown"),
)
SUMMARY: Expected = (
    dict.fromkeys(COUNTS, int)
    | dict.fromkeys(("dropped", "utilization", "makespan", *WAITS), NUMBER)
    | {"cleaning": (dict, type(None))}
)
FIGURE_NAME = re.compile(r"[^\x00-\x1f\x7f\",]+")

RECORD: Expected = {
    "snapshots": list,
    "solvers": list,
    "versions": dict,
    "skipped": list,
    "contradictions": list,
}
SNAPSHOT: Expected = {"name": str, "path": (str, type(None)), "kind": str, "size": str}
CONTENDER: Expected = {
    "name": str,
    "solver": str,
    "version": (str, type(None)),
    "options": dict,
    "budget": dict,
    "seed": (int, str),
}
KNOWN_VALUES: Expected = {"path": str, "snapshots": int, "unused": list}

PLANNED: Expected = {"run": str, "config": dict}
SETTING = "settings."
"""Prefix of the settings among the values of a run."""


def checked_folder(folder: str | Path, kind: FolderKind) -> Path:
    """Return a folder that is of a kind."""
    place = path_of(folder, "folder", f"expected the folder of {kind.name}")
    if not (place / kind.marker).is_file():
        what = "no such folder" if not place.is_dir() else f"holds no {kind.marker}"
        raise InputError(f"{what}; expected the folder of {kind.name}", file=place)
    return place


def read_config(folder: Path) -> dict[str, Any]:
    """Return the content of ``run.json`` of a run folder."""
    file = folder / "run.json"
    config = read_object(file, CONFIG)
    checked(config, {name: kind for name, kind in SINCE.items() if name in config}, file)
    if "solver" in config:
        checked(config, POSING, file)
        for model, chosen in config["solvers"].items():
            checked(chosen, SOLVER, file, f"solvers {model}")
            checked(chosen["budget"], BUDGET, file, f"solvers {model} budget")
    for name in ("jobs", "measure"):
        if config.get(name) is not None and list(map(type, config[name])) != [int, int]:
            wrong = f"{config[name]!r:.40}; expected two integers or null"
            raise InputError(wrong, file=file, field=name)
    return config


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the content of ``summary.json`` of a run folder."""
    file = folder / "summary.json"
    summary = read_object(file, SUMMARY)
    if summary["cleaning"] is not None:
        checked(summary["cleaning"], CLEANING, file, "cleaning")
    types: dict[str, Any] = {"wrong_answers": int}
    types |= {
        key: dict if measure.by else NUMBER
        for name in registry.metrics
        for key, measure in registry.metrics[name].measures.items()
    }
    checked(summary, {name: kind for name, kind in types.items() if name in summary}, file)
    for name, value in summary.items():
        if not FIGURE_NAME.fullmatch(name):
            raise InputError(f"{name!r:.40} is not the name of a figure", file=file)
        if types.get(name) is dict:
            checked(value, dict.fromkeys(value, NUMBER), file, name)
        for part in value.values() if types.get(name) is dict else [value]:
            if type(part) is int and abs(part) > LARGEST:
                wrong = f"{part!r:.40}; expected a number of at most 2^53"
                raise InputError(wrong, file=file, field=name)
    return summary


def read_record(folder: Path) -> dict[str, Any]:
    """Return the content of ``comparison.json`` of a comparison folder."""
    file = folder / "comparison.json"
    config = read_object(file, RECORD)
    # older folders do not have these fields
    lists = config.keys() & {"wrong_answers", "failures", "refusals", "known_values", "missing"}
    checked(config, dict.fromkeys(lists, list), file)
    for table in config.get("known_values", ()):
        checked(table, KNOWN_VALUES, file, "known_values")
    for snapshot in config["snapshots"]:
        checked(snapshot, SNAPSHOT, file, "snapshots")
        optional = {"known": (dict,), "sense": (str, type(None))}
        checked(snapshot, {n: optional[n] for n in snapshot.keys() & optional}, file, "snapshots")
        known = snapshot.get("known", {})
        kinds = dict.fromkeys(known.keys() & {"objective"}, (int, type(None)))
        checked(known, kinds, file, "snapshots known")
    for solver in config["solvers"]:
        checked(solver, CONTENDER, file, "solvers")
        checked(solver["budget"], BUDGET, file, "solvers budget")
    return config


def finished_runs(folder: Path) -> tuple[dict[str, Path], int]:
    """Return the folders of the finished runs of a sweep, and the number of the other runs.

    The runs are in the order of the sweep, under speaking names: the policy and the other values
    of the sweep file in which the runs differ, ``easy, event_order=batched`` for instance. A run
    that no such values tell apart has the name of its folder.
    """
    values = planned(folder)
    keys = varying(values.values())
    names = {run: speaking(own, keys) for run, own in values.items()}
    uses = Counter(names.values())
    places = {
        name if name and uses[name] == 1 else run: folder / "runs" / run
        for run, name in names.items()
    }
    found = {name: place for name, place in places.items() if (place / RUN.marker).is_file()}
    return found, len(places) - len(found)


def planned(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the values of each run of a sweep, by its name; settings as ``settings.window``."""
    file = folder / SWEEP.marker
    found = {}
    for run in read_object(file, {"runs": list})["runs"]:
        checked(run, PLANNED, file, "runs")
        found[run["run"]] = flat(run["config"])
    return found


def flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a run with its settings among them, as ``settings.window``."""
    values = dict(config)
    settings = values.pop("settings", None)
    settings = settings if isinstance(settings, Mapping) else {}
    return values | {f"{SETTING}{key}": one for key, one in settings.items()}


def varying(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the keys in which runs differ, in order of appearance."""
    values = list(runs)
    keys = dict.fromkeys(key for own in values for key in own)
    return [key for key in keys if any(own.get(key) != values[0].get(key) for own in values)]


def speaking(values: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Return the name of a run by some of its values: ``easy, event_order=batched``."""
    shown = {key.removeprefix(SETTING): values[key] for key in keys if key in values}
    policy = [in_words(shown.pop("policy"))] if "policy" in shown else []
    return ", ".join(policy + [f"{key}={in_words(value)}" for key, value in shown.items()])


def in_words(value: Any) -> str:
    """Return a value of a sweep file as text."""
    return value if isinstance(value, str) else json.dumps(value)


def read_object(path: Path, expected: Expected) -> dict[str, Any]:
    """Return the JSON object of a file with the expected fields; further fields are allowed."""
    data, _ = read_bytes(path)
    try:
        fields = parse_json(data)
    except InputError as error:
        raise InputError(*error.mistakes, file=path, line=error.line) from None
    return checked(fields, expected, path)


def checked(fields: Any, expected: Expected, path: Path, place: str = "") -> dict[str, Any]:
    """Check that a value of a JSON file is an object with the expected fields, and return it."""
    if not isinstance(fields, dict):
        raise InputError("not an object; expected one", file=path, field=place or None)
    table = Table(fields, f"{place} ".lstrip())
    for name, types in expected.items():
        types = types if isinstance(types, tuple) else (types,)
        table.read(name, Of(*types, expected=" or ".join(NAMES[one] for one in types)))
    if table.mistakes:
        raise InputError(*table.mistakes, file=path)
    return fields


def read_frame(path: Path, columns: Mapping[str, str], later: Collection[str] = ()) -> pd.DataFrame:
    """Return columns of a parquet file as the given types; `later` ones may be missing."""
    table = read_table(path, [name for name in columns if name not in later], later)
    frame: pd.DataFrame = table.to_pandas().reindex(columns=list(columns))
    try:
        return frame.astype(dict(columns))
    except (TypeError, ValueError):
        raise InputError("a column has values of another type", file=path) from None


def read_columns(
    path: Path, columns: Mapping[str, str], optional: Mapping[str, str] | None = None
) -> dict[str, NDArray[Any]]:
    """Return columns of a parquet file as arrays of the given types, without importing pandas.

    The types are ``float64`` for numbers with gaps, which become nan, ``int64`` for others, and
    ``str`` for texts, as an array of objects. Those of `optional` columns may be missing.
    """
    table, arrays = read_table(path, columns, optional or ()), {}
    kinds = {**columns, **(optional or {})}
    try:
        for name in table.column_names:
            array, kind = table[name].combine_chunks(), kinds[name]
            arrays[name] = _texts(array) if kind == "str" else _numbers(array, kind)
            table = table.drop_columns(name)  # never two copies of many columns
        return arrays
    except (TypeError, ValueError):
        raise InputError("a column has values of another type", file=path) from None


def read_table(path: Path, columns: Iterable[str], optional: Iterable[str] | None = ()) -> pa.Table:
    """Return columns of a parquet file, with those of `optional` ones that it has; None for all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError("No such file", file=path)
    try:
        file = pq.ParquetFile(path)  # `read_table` imports pandas
        held = file.schema_arrow.names
        wanted = held if optional is None else [*columns, *optional]
        table = file.read([name for name in wanted if name in held])
        table.validate(full=True)  # texts may be no UTF-8
        _ = table.schema.pandas_metadata  # nor may these
    except (pa.ArrowException, OSError, ValueError) as error:  # its metadata are JSON
        reason = getattr(error, "strerror", None) or "damaged; expected a Parquet file"
        raise InputError(reason, file=path) from None
    missing = [name for name in columns if name not in held]
    if missing:
        raise InputError(*(f"{name}: no such column" for name in missing), file=path)
    return table


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each line of a file."""
    data, _ = read_bytes(path)
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            yield checked(parse_json(line), {}, path, f"line {number}")
        except InputError as error:
            raise InputError(*error.mistakes, file=path, line=number) from None


def _texts(array: pa.Array) -> NDArray[Any]:
    import pyarrow as pa

    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    texts = np.array([*array.dictionary.to_pylist(), None], dtype=object)
    code = np.nan_to_num(_numbers(array.indices, "float64"), nan=-1)
    return np.asarray(texts[code.astype(np.int64)])


def _numbers(array: pa.Array, kind: str) -> NDArray[Any]:
    """Return numbers of Arrow, made from their buffers: `to_numpy` of Arrow imports pandas."""
    import pyarrow as pa

    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        raise TypeError
    present, stored = array.buffers()
    held = pa.Array.from_buffers(array.type, len(array), [None, stored], offset=array.offset)
    numbers = np.from_dlpack(held).astype(kind, copy=False)
    if not array.null_count:
        return numbers
    if kind != "float64":
        raise ValueError
    bits = np.unpackbits(np.frombuffer(present, np.uint8), bitorder="little")
    return np.where(bits[array.offset :][: len(array)], numbers, np.nan)


def read_pictures(folder: Path, order: Sequence[str]) -> dict[str, str]:
    """Return the SVG pictures of a folder by name: those of `order` first, then all others."""
    found = {path.stem: path for path in sorted(folder.glob("*.svg"))}
    names = [name for name in order if name in found] + [n for n in found if n not in order]
    pictures = {}
    for name in names:
        data, _ = read_bytes(found[name])
        try:
            pictures[name] = data.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError("not text; expected SVG", file=found[name]) from None
        if not pictures[name].rstrip().endswith("</svg>"):
            raise InputError("damaged; expected SVG to its end", file=found[name])
    return pictures
