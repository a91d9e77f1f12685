"""The file of a sweep, and the runs planned of it. File format: ``docs/formats/sweep-file.md``."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, get_args

from optsched import registry
from optsched.errors import InputError, UnknownNameError
from optsched.files import sha256_of
from optsched.folders import Keep, flat, varying
from optsched.machines.machine import read_machine
from optsched.machines.site import SiteMachine
from optsched.numbers import LARGEST, check_seed
from optsched.registry import ClassInFile, find_class, names_class, origin_of
from optsched.settings import naming_values_of, settings_of
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Policy
from optsched.simulator.problem_solver import (
    ChosenSolver,
    SolverChoice,
    choose_solvers,
    names_models,
    read_models,
)
from optsched.simulator.scenario import OPTIONS, Option, Scenario, check_use, configure, from_words
from optsched.sites.site_file import site_text
from optsched.solvers.finding import Profile, find_solver
from optsched.solvers.result import Budget
from optsched.solvers.solver import Solver
from optsched.text_files import read_toml
from optsched.traces.cleaning import Days, Span, span_of
from optsched.traces.reading import find_trace
from optsched.traces.requests import demands_file
from optsched.traces.transformations import check_load, check_shake
from optsched.workloads.spec_file import find_workload, read_workload

DIGITS = 12
"""Number of hexadecimal digits in the name of a run: enough to tell a million runs apart."""

FORMER_DIGITS = 16
"""Number of hexadecimal digits that were the whole name of a run in version 0.1.0."""

LONGEST = 60  # most characters of a name before its digits

DEFAULTS: Mapping[str, Any] = {
    name: OPTIONS[name].default for name in ("policy", "event_order", "charge_decisions")
}
"""Options whose defaults are part of the name of a run.

The default of a new option does not belong here: runs that do not state the option keep their
names, and are found again in an old folder."""


class TraceFile(NamedTuple):
    """The absolute path of a trace file, its SHA-256, and that of a file of demands beside it.

    Of a workload, it is the file of the spec. A trace is `published` under its name, `optsched list
    traces`, if the sweep file uses that.
    """

    path: str
    sha256: str
    demands_sha256: str | None
    published: str | None


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep."""

    # Name of the run and its folder: what schedules, and the first digits of the SHA-256 of
    # the config; ``window-greedy-window=10-6e5b37e199ec`` for instance
    name: str
    former_name: str  # the name in folders of version 0.1.0: more of these digits, and nothing else
    # The keys of the sweep file with their values for this run; ``settings`` is a mapping
    values: Mapping[str, Any]
    trace: TraceFile
    arguments: Mapping[str, Any]  # the arguments of `optsched.simulate` besides the trace
    threads: int  # number of threads of the solver

    @property
    def columns(self) -> dict[str, Any]:
        """The values by flat name, ``settings.window`` for instance."""
        return flat(self.values)


class Planner:
    """Turns the values of a sweep file into runs, and looks up each file and name once.

    Relative paths start from the folder `base`. For each key whose value names something, or
    has a range, `look_up` has the function that returns the object or raises an `InputError`.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self.look_up: Mapping[str, Callable[[str], Any]] = {
            "trace": cache(self._trace),
            "machine": cache(self._machine),
            "policy": cache(partial(self._class, registry.policies)),
            "execution": cache(partial(self._class, registry.executions)),
            "solver": cache(self._solver),
            "jobs": _span,
            "measure": _span,
            "workload": cache(self._workload),
            "workload_seed": _unplaced(check_seed),
            "load": _unplaced(check_load),
            "shake": _unplaced(check_shake),
            "shake_seed": _unplaced(check_seed),
        }

    def plan(self, values: Mapping[str, Any]) -> PlannedRun:
        """Return the run with given values of the keys of a sweep file, at least ``trace``.

        The digits in the name of a run hash its inputs: the content of files and not their names,
        and all settings of the policy including defaults, but for those of settings that came
        later. Versions are not part of the name, so all hosts and shards agree on it, and a folder
        is found again after an upgrade; ``run.json`` has the versions. Nor are the other runs of
        the sweep, so a run has the same name in all sweep files.
        """
        policy, execution = self.configured(values, values.get("settings", {}))
        given = [OPTIONS[name] for name, value in values.items() if value != OPTIONS[name].default]
        for_problems = [option for option in given if option.needs_problems]
        check_use(policy, for_problems, for_problems[0].name if for_problems else None)
        settings = naming_values_of(policy) | naming_values_of(execution)
        source = "trace" if "trace" in values else "workload"
        trace: TraceFile = self.look_up[source](values[source])
        choice, profile = None, None
        if "solver" in values:
            choice, profile = self.look_up["solver"](values["solver"])
        chosen: Mapping[str, ChosenSolver] = {}
        own: Mapping[str, ChosenSolver] = {}
        if posed := policy.posed():
            chosen = choose_solvers(posed, choice)
            own = chosen if choice is None else choose_solvers(posed, None)
        arguments = from_words({name: value for name, value in values.items() if name != "trace"})
        for key in ("machine", "jobs", "measure", "policy", "execution"):
            if key in values:
                arguments[key] = self.look_up[key](values[key])
        arguments |= _solver_arguments(choice, profile, arguments)
        scenario = Scenario(None if "workload" in arguments else "", **arguments)
        # what changes the run: not a load of 1
        arguments = {k: v for k, v in arguments.items() if getattr(scenario, k) is not None}
        stated = {k: v for k, v in arguments.items() if k not in OPTIONS or v != OPTIONS[k].default}
        stated.pop("workload", None)  # its content counts
        identity = dict(DEFAULTS) | stated | {"trace": trace.sha256, "settings": settings}
        if trace.demands_sha256 is not None:
            identity["demands"] = trace.demands_sha256
        solvers = {model: _solver_identity(one) for model, one in chosen.items()}
        identity["solver"] = solvers
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"), default=_identity)
        digest = hashlib.sha256(text.encode()).hexdigest()
        parts = [identity["policy"], identity.get("execution")]
        words = [part.name if isinstance(part, ClassInFile) else part for part in parts if part]
        others = (one["name"] for m, one in solvers.items() if one != _solver_identity(own[m]))
        words += [*dict.fromkeys(others), *_changed(policy), *_changed(execution)]
        portable = re.sub(r"[^A-Za-z0-9.=+-]+", "_", "-".join(words)).lstrip(".-")[:LONGEST]
        return PlannedRun(
            name=f"{portable.rstrip('.-')}-{digest[:DIGITS]}",
            former_name=digest[:FORMER_DIGITS],
            values=dict(values),
            trace=trace,
            arguments=arguments,
            threads=max((one.solver.threads for one in chosen.values()), default=1),
        )

    def configured(
        self, values: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> tuple[Policy, ExecutionModel | None]:
        """Return the policy and the execution model of a run, with settings."""
        execution = values.get("execution")
        return configure(
            self.look_up["policy"](values.get("policy", DEFAULTS["policy"])),
            execution and self.look_up["execution"](execution),
            settings,
        )

    def _class(self, kind: registry.Registry[Any], text: str) -> str | ClassInFile:
        return origin_of(kind[find_class(text, self._base) if names_class(text) else text]) or text

    def _trace(self, text: str) -> TraceFile:
        path, published = find_trace(text, base=self._base)
        demands = demands_file(path)
        demands_sha256 = sha256_of(demands) if os.path.lexists(demands) else None
        return TraceFile(str(path.absolute()), sha256_of(path), demands_sha256, published)

    def _workload(self, text: str) -> TraceFile:
        path = find_workload(text, self._base)
        read_workload(path)
        return TraceFile(str(path.absolute()), sha256_of(path), None, None)

    def _machine(self, text: str) -> str | SiteMachine:
        """Return a specification; a site as an object, since its file is not where it is stated."""
        machine = read_machine(text, self._base)
        if isinstance(machine, SiteMachine):
            return machine.stated_as(text.removeprefix("site:"))
        return machine.spec

    def _solver(self, text: str) -> tuple[SolverChoice, Profile | None]:
        if names_models(text, self._base):
            named = read_models(text)
            own = [model for model, one in named.items() if names_class(one)]
            choice = named | {model: self._class(registry.solvers, named[model]) for model in own}
            return choice if own else text, None
        if names_class(text):
            return self._class(registry.solvers, text), None
        if not text.endswith(".toml"):
            return text, find_solver(text)[1]
        return find_solver(str(self._base / text))


def _solver_arguments(
    choice: SolverChoice, profile: Profile | None, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments solver, budget and seed of `optsched.simulate`, unless they are None."""
    budget, seed = arguments.get("budget"), arguments.get("seed")
    if profile is not None and isinstance(choice, Solver):
        # passed as an object, so that no path gets into the record; apply its profile here
        budget = budget or (None if profile.budget == Budget() else profile.budget)
        seed = profile.seed if seed is None else seed
    stated = {"solver": choice, "budget": budget, "seed": seed}
    return {key: value for key, value in stated.items() if value is not None}


def _solver_identity(chosen: ChosenSolver) -> dict[str, Any]:
    """Return the name and the profile of a solver, or the name and the hash of a user's file."""
    profile, origin = chosen.profile, origin_of(type(chosen.solver))
    if origin is not None:
        return {"name": origin.name, "sha256": origin.sha256}
    return {
        "name": chosen.name,
        "solver": profile.solver,
        "options": dict(profile.options),
        "budget": asdict(profile.budget),
        "seed": profile.seed,
    }


def _changed(configured: Policy | ExecutionModel | None) -> list[str]:
    """Return the settings that are not at their defaults, ``window=10`` for instance."""
    shown = {True: "yes", False: "no"}
    return [
        f"{one.name}={shown[value] if isinstance(value, bool) else value}"
        for one in settings_of(type(configured))
        for value in [getattr(configured, one.name)]
        if one.default is MISSING or value != one.default
    ]


def _unplaced(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a check whose errors do not name the option, as the file says where it is."""

    def checked(value: Any) -> None:
        try:
            check(value)
        except InputError as error:
            raise InputError(*error.mistakes) from None

    return checked


def _span(text: str) -> Span:
    span = span_of(text) or (1, None)
    if isinstance(span, Days):
        in_order = not (span.first and span.last) or span.first <= span.last
    else:
        first, last = span
        in_order = 1 <= first <= (first if last is None else last)
    if not in_order:
        raise InputError(f"{text!r}; expected FROM:TO, 1:5000 for instance")
    return span


def _identity(value: Budget | ClassInFile | SiteMachine) -> dict[str, Any]:
    """Return the part of an argument's value that enters the name of a run."""
    if isinstance(value, SiteMachine):
        text, configuration = site_text(value.site), value.configuration
        return {
            "site": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
            "configuration": configuration and sha256_of(configuration),
        }
    if isinstance(value, ClassInFile):
        return {"name": value.name, "sha256": value.sha256}
    return asdict(value)


KEYS: Mapping[str, Option] = {name: one for name, one in OPTIONS.items() if one.expected}
"""Options that a sweep file may state, each with one value or a list."""

TYPES: dict[Any, tuple[type[Any], ...]] = {float: (int, float), int: (int,), bool: (bool,)}
"""Types of values by the kind of an option, for kinds other than text."""

SETTING = (str, int, float, bool), "a number, a text, true or false"
COMBINE = ("product", "zip")
KEEP: tuple[str, ...] = get_args(Keep)
MOST_RUNS = 1_000_000  # largest number of runs of a sweep


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
        return varying(run.columns for run in self.runs)


def read_sweep(source: str | Path | Mapping[str, Any], base: Path | None = None) -> SweepPlan:
    """Read a sweep from a TOML file, or from a mapping of the same form.

    Relative paths start from `base`, by default the folder of the file, or else the current one.
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
        every = self.axes.values()
        alike = zip(*(own if len(own) > 1 else own * self.runs for own in every))
        for row in alike if self.combine == "zip" else product(*every):
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
        found: list[str] = []
        valid: dict[str, list[Any]] = {}
        if "trace" not in self.axes and "workload" not in self.axes:
            found.append(f"trace: missing; expected {KEYS['trace'].expected}, or a workload")
        if "trace" in self.axes and "workload" in self.axes:
            found.append(f"{self.place('workload')}: beside a trace; expected one of the two")
        for name, values in self.axes.items():
            place = self.place(name)
            if not values:
                found.append(f"{place}: an empty list; expected at least one value")
            valid[name] = own = []
            for value in values:
                try:
                    _check_value(name, value, planner)
                    own.append(value)
                except InputError as error:
                    found += [f"{place}: {line}" for line in error.lines()]
        lengths = {self.place(name): len(v) for name, v in self.axes.items() if len(v) != 1}
        if self.combine == "zip" and len(set(lengths.values())) > 1:
            stated = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            found.append(f"zip takes lists of one length; {stated}")
        policies = valid.get("policy", [DEFAULTS["policy"]])
        for policy, model in product(policies, valid.get("execution", [None])):
            for name in (name for name in valid if name.startswith("settings.")):
                setting = name.removeprefix("settings.")
                for value in valid[name]:
                    try:
                        planner.configured({"policy": policy, "execution": model}, {setting: value})
                    except InputError as error:
                        found += [f"{self.place(name)}: {line}" for line in error.lines()]
        return found

    def place(self, name: str) -> str:
        """Return the location of a value in the file, for messages."""
        return f"runs[{self.number}].{name}" if name in self.own else name


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
    if type(value) not in types or (type(value) is float and not math.isfinite(value)):
        raise InputError(f"{value!r}; expected {expected}")
    if name in KEYS and isinstance(value, int | float) and abs(value) > LARGEST:
        raise InputError(f"{value!r}; expected a number of at most 2^53")
    if name in planner.look_up:
        planner.look_up[name](value)
    elif name in KEYS and isinstance(KEYS[name].kind, tuple) and value not in KEYS[name].kind:
        raise InputError(f"{value!r}; expected {expected}")
    elif name in KEYS:
        from_words({name: value})


def _plain(value: Any) -> Any:
    """Return a value with the types that TOML gives."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Path) else value
