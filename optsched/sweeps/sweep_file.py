"""The file that defines a sweep. File format: ``docs/formats/sweep-file.md``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, get_args

from optsched.errors import InputError, UnknownNameError
from optsched.folders import Keep
from optsched.numbers import LARGEST
from optsched.simulator.scenario import OPTIONS, Option, from_words
from optsched.sweeps.planned_run import DEFAULTS, PlannedRun, Planner
from optsched.text_files import read_toml

KEYS: Mapping[str, Option] = {name: one for name, one in OPTIONS.items() if one.expected}
"""Options that a sweep file may state, each with one value or a list."""

TYPES: dict[Any, tuple[type[Any], ...]] = {float: (int, float), int: (int,), bool: (bool,)}
"""Types of values by the kind of an option, for kinds other than text."""

SETTING: tuple[tuple[type[Any], ...], str] = (
    (str, int, float, bool),
    "a number, a text, true or false",
)
COMBINE = ("product", "zip")
KEEP: tuple[str, ...] = get_args(Keep)
MOST_RUNS = 1_000_000
"""Largest number of runs of a sweep."""


@dataclass(frozen=True)
class SweepPlan:
    """The runs of a sweep file."""

    table: Mapping[str, Any]  # content of the file
    # Each run once, in the order of the file; the last list of the file varies fastest
    runs: tuple[PlannedRun, ...]
    # The names of the runs of each block of the file, with those that equal earlier ones
    blocks: tuple[tuple[str, ...], ...]
    keep: Keep  # files to keep of each run

    @property
    def duplicates(self) -> int:
        """Number of further runs in the file that equal one of `runs`."""
        return sum(map(len, self.blocks)) - len(self.runs)

    @property
    def columns(self) -> list[str]:
        """The names of all values in any run, in order of appearance."""
        return list(dict.fromkeys(name for run in self.runs for name in run.columns))

    @property
    def varying(self) -> list[str]:
        """The columns that differ between runs."""
        rows = [run.columns for run in self.runs]
        return [
            name
            for name in self.columns
            if any(row.get(name) != rows[0].get(name, row) for row in rows)
        ]


def read_sweep(source: str | Path | Mapping[str, Any], base: Path | None = None) -> SweepPlan:
    """Read a sweep from a TOML file, or from a mapping of the same form.

    `source`: the TOML file or the mapping; `base`: the folder that relative paths start from; by
    default that of the file, or the current one for a mapping.
    """
    if isinstance(source, Mapping):
        table, file = _plain(source), None
    elif isinstance(source, str | Path):
        file = Path(source)
        table = read_toml(file)
    else:
        raise InputError(f"{source!r}; expected a TOML file or a mapping", field="sweep file")
    planner = Planner(base or (Path() if file is None else file.parent))
    mistakes: list[str] = []
    blocks = _blocks(table, mistakes)
    for block in blocks:
        mistakes += block.mistakes(planner)
    total = sum(block.runs for block in blocks)
    if not mistakes and total > MOST_RUNS:
        mistakes.append(f"asks for {total:,} runs; expected at most {MOST_RUNS:,}")
    if mistakes:
        raise InputError(*dict.fromkeys(mistakes), file=file)
    planned: list[list[PlannedRun]] = []
    for block in blocks:
        planned.append([])
        for values in block.expanded():
            try:
                planned[-1].append(planner.plan(values))
            except InputError as error:  # incompatible values
                key = (error.field or "").replace(" ", "_")
                if error.file is None and key in values:
                    error.field = block.place(key)
                mistakes += error.lines()
    if mistakes:
        raise InputError(*dict.fromkeys(mistakes), file=file)
    every = [run for own in planned for run in own]
    runs = {run.name: run for run in reversed(every)}  # keeps the first of equal runs
    return SweepPlan(
        table=table,
        runs=tuple(reversed(runs.values())),
        blocks=tuple(tuple(run.name for run in own) for own in planned),
        keep=table.get("keep", "jobs"),
    )


@dataclass(frozen=True)
class _Block:
    """A block of runs that are combined from the same lists."""

    number: int  # of the ``[[runs]]`` block, from 1; 0 for a file without such blocks
    own: frozenset[str]  # keys in the block itself, as opposed to inherited keys
    combine: str  # one of `COMBINE`
    axes: Mapping[str, list[Any]]  # values of each key, ``settings.window`` for a setting

    @property
    def runs(self) -> int:
        """Number of runs that the lists combine to."""
        lengths = [len(values) for values in self.axes.values()]
        return max(lengths) if self.combine == "zip" else math.prod(lengths)

    def expanded(self) -> Iterator[dict[str, Any]]:
        """Yield the values of each run."""
        if self.combine == "zip":
            columns = [v if len(v) > 1 else v * self.runs for v in self.axes.values()]
            rows: Iterator[tuple[Any, ...]] = zip(*columns)
        else:
            rows = product(*self.axes.values())
        for row in rows:
            values: dict[str, Any] = {}
            for name, value in zip(self.axes, row):
                key, _, setting = name.partition(".")
                if setting:
                    values.setdefault(key, {})[setting] = value
                else:
                    values[key] = value
            yield values

    def mistakes(self, planner: Planner) -> list[str]:
        """Return the mistakes in the values."""
        found = []
        if "trace" not in self.axes and "workload" not in self.axes:
            found.append(f"trace: missing; expected {KEYS['trace'].expected}, or a workload")
        if "trace" in self.axes and "workload" in self.axes:
            found.append(f"{self.place('workload')}: beside a trace; expected one of the two")
        for name, values in self.axes.items():
            place = self.place(name)
            if not values:
                found.append(f"{place}: an empty list; expected at least one value")
            for value in values:
                try:
                    _check_value(name, value, planner)
                except InputError as error:
                    found += [f"{place}: {line}" for line in error.lines()]
        lengths = {self.place(name): len(v) for name, v in self.axes.items() if len(v) != 1}
        if self.combine == "zip" and len(set(lengths.values())) > 1:
            stated = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            found.append(f"zip takes lists of one length; {stated}")
        return found + self._wrong_settings(planner)

    def place(self, name: str) -> str:
        """Return the location of a value in the file, for messages."""
        return f"runs[{self.number}].{name}" if name in self.own else name

    def _wrong_settings(self, planner: Planner) -> list[str]:
        found = []
        policies = self.axes.get("policy", [DEFAULTS["policy"]])
        policies = [one for one in policies if _is_valid("policy", one, planner)]
        models = self.axes.get("execution", [None])
        models = [one for one in models if one is None or _is_valid("execution", one, planner)]
        for policy, model in product(policies, models):
            for name, values in self.axes.items():
                key, _, setting = name.partition(".")
                for value in (v for v in values if key == "settings" and _fits(v, SETTING[0])):
                    try:
                        planner.configured({"policy": policy, "execution": model}, {setting: value})
                    except InputError as error:
                        found += [f"{self.place(name)}: {line}" for line in error.lines()]
        return found


def _blocks(table: Mapping[str, Any], mistakes: list[str]) -> list[_Block]:
    """Return the blocks of a sweep file, and add mistakes in its structure to `mistakes`."""
    top = {key: value for key, value in table.items() if key not in ("keep", "runs")}
    keep = table.get("keep", "jobs")
    if keep not in KEEP:
        mistakes.append(f"keep: {keep!r}; expected one of {', '.join(KEEP)}")
    if "runs" not in table:
        return [_block(0, top, {}, mistakes)]
    runs = table["runs"]
    if not (isinstance(runs, list) and runs and all(isinstance(run, dict) for run in runs)):
        mistakes.append("runs: expected tables, each under the heading [[runs]]")
        return []
    for name, value in _flat("", top, []).items():  # even a value that every block overrides
        types, expected = _expected(name)
        each = value if isinstance(value, list) else [value]
        mistakes += [
            f"{name}: {one!r}; expected {expected}" for one in each if type(one) not in types
        ]
    return [_block(number, top, own, mistakes) for number, own in enumerate(runs, 1)]


def _block(
    number: int, top: Mapping[str, Any], own: Mapping[str, Any], mistakes: list[str]
) -> _Block:
    inherited, flat = _flat("", top, mistakes), _flat(f"runs[{number}].", own, mistakes)
    merged = inherited | flat
    combine = merged.pop("combine", COMBINE[0])
    if combine not in COMBINE:
        mistakes.append(f"combine: {combine!r}; expected one of {', '.join(COMBINE)}")
    axes = {name: value if isinstance(value, list) else [value] for name, value in merged.items()}
    return _Block(number, frozenset(flat), combine, axes)


def _flat(place: str, table: Mapping[str, Any], mistakes: list[str]) -> dict[str, Any]:
    """Return the known keys of a table, with settings as ``settings.window``."""
    flat: dict[str, Any] = {}
    known = (*KEYS, "settings", "combine", *(() if place else ("keep", "runs")))
    for key, value in table.items():
        if key not in known:
            mistakes.append(f"{place}{key}: {UnknownNameError('key', key, known)}")
        elif key != "settings":
            flat[key] = value
        elif isinstance(value, dict):
            flat |= {f"settings.{name}": one for name, one in value.items()}
        else:
            mistakes.append(f"{place}settings: {value!r}; expected a table")
    return flat


def _expected(name: str) -> tuple[tuple[type[Any], ...], str]:
    """Return the types of a key's values, and the expected value in messages."""
    if name not in KEYS:
        return SETTING
    return TYPES.get(KEYS[name].kind, (str,)), KEYS[name].expected


def _check_value(name: str, value: Any, planner: Planner) -> None:
    types, expected = _expected(name)
    if not _fits(value, types):
        raise InputError(f"{value!r}; expected {expected}")
    if name in KEYS and isinstance(value, int | float) and abs(value) > LARGEST:
        raise InputError(f"{value!r}; expected a number of at most 2^53")
    if name in planner.look_up:
        planner.look_up[name](value)
    elif name in KEYS and isinstance(KEYS[name].kind, tuple) and value not in KEYS[name].kind:
        raise InputError(f"{value!r}; expected {expected}")
    elif name in KEYS:
        from_words({name: value})


def _is_valid(name: str, value: Any, planner: Planner) -> bool:
    try:
        _check_value(name, value, planner)
    except InputError:
        return False
    return True


def _fits(value: Any, types: tuple[type[Any], ...]) -> bool:
    return type(value) in types and (type(value) is not float or math.isfinite(value))


def _plain(value: Any) -> Any:
    """Return a value with the types that TOML gives."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Path) else value
