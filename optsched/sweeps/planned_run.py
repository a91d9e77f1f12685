"""One run of a sweep: its values in the file, and the arguments of `optsched.simulate`."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from optsched import registry
from optsched.binary_files import sha256_of
from optsched.class_file import ClassInFile, find_class, names_class, origin_of
from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.machines.site import SiteMachine
from optsched.numbers import check_seed
from optsched.settings import naming_values_of, settings_of
from optsched.simulator.chosen_solvers import (
    ChosenSolver,
    SolverChoice,
    choose_solvers,
    names_models,
    read_models,
)
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Policy
from optsched.simulator.scenario import (
    OPTIONS,
    Scenario,
    check_use,
    configure,
    from_words,
)
from optsched.sites.site_file import site_text
from optsched.solvers.finding import Profile, find_solver
from optsched.solvers.result import Budget
from optsched.solvers.solver import Solver
from optsched.traces.demands import demands_file
from optsched.traces.job_spans import Days, Span, span_of
from optsched.traces.reading import find_trace
from optsched.traces.scaling import check_load, check_shake
from optsched.workloads.spec_file import find_workload, read_workload

DIGITS = 12
"""Number of hexadecimal digits in the name of a run: enough to tell a million runs apart."""

FORMER_DIGITS = 16
"""Number of hexadecimal digits that were the whole name of a run in version 0.1.0."""

LONGEST = 60
"""Most characters of a name before its digits."""

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
        flat = {key: value for key, value in self.values.items() if key != "settings"}
        settings = self.values.get("settings", {})
        return flat | {f"settings.{key}": value for key, value in settings.items()}


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
        arguments = _with_effect(arguments)
        stated = {k: v for k, v in arguments.items() if k not in OPTIONS or v != OPTIONS[k].default}
        stated.pop("workload", None)  # its content counts
        identity = dict(DEFAULTS) | stated | {"trace": trace.sha256, "settings": settings}
        if trace.demands_sha256 is not None:
            identity["demands"] = trace.demands_sha256
        solvers = {model: _solver_identity(one) for model, one in chosen.items()}
        identity["solver"] = solvers
        digest = _hash(identity)
        parts = [identity["policy"], identity.get("execution")]
        words = [part.name if isinstance(part, ClassInFile) else part for part in parts if part]
        others = (one["name"] for m, one in solvers.items() if one != _solver_identity(own[m]))
        words += [*dict.fromkeys(others), *_changed(policy), *_changed(execution)]
        return PlannedRun(
            name=f"{_speaking(words)}-{digest[:DIGITS]}",
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
        """Return a name that is registered, or the class in a file."""
        if names_class(text):
            return origin_of(kind[find_class(text, self._base)]) or text
        kind[text]
        return text

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
        """Return the argument of `optsched.simulate`, and the profile."""
        if names_models(text, self._base):
            named = read_models(text)
            if not any(map(names_class, named.values())):
                return text, None
            choice = {
                model: self._class(registry.solvers, one) if names_class(one) else one
                for model, one in named.items()
            }
            return choice, None
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


def _with_effect(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `optsched.simulate` that change the run: not a load of 1."""
    scenario = Scenario(None if "workload" in arguments else "", **arguments)
    return {key: value for key, value in arguments.items() if getattr(scenario, key) is not None}


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


def _speaking(words: Sequence[str]) -> str:
    """Return words as the beginning of the name of a folder, portable and not too long."""
    return re.sub(r"[^A-Za-z0-9.=+-]+", "_", "-".join(words)).lstrip(".-")[:LONGEST].rstrip(".-")


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


def _hash(identity: Mapping[str, Any]) -> str:
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), default=_identity)
    return hashlib.sha256(text.encode()).hexdigest()


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
