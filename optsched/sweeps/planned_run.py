"""One run of a study: what the file says of it, and what `optsched.simulate` is asked for."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from optsched import registry
from optsched.binary_files import sha256_of
from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.numbers import parse_span
from optsched.settings import configure_parts, settings_of
from optsched.simulator.chosen_solvers import ChosenSolver, choose_solvers
from optsched.simulator.policy import Policy
from optsched.solvers.profiles import Profile
from optsched.solvers.result import Budget
from optsched.solvers.solver import Solver
from optsched.solvers.solving import find_solver
from optsched.traces.demands import demands_file
from optsched.traces.reading import find_trace

NAME_DIGITS = 16
"""Of the SHA-256 of a run's config, in hexadecimal."""

DEFAULTS: Mapping[str, Any] = {
    "policy": "easy",
    "event_order": "batched",
    "charge_decisions": False,
}
"""What a run has where the study says nothing."""

ELSEWHERE = ("trace", "solver", "seed", "time_limit", "work_limit")
"""Keys of a study that `optsched.simulate` does not take under their own name and as they are."""


class TraceFile(NamedTuple):
    """A trace on file.

    Parameters
    ----------
    path : str
        Where it is.
    sha256 : str
        SHA-256 of the file.
    demands_sha256 : str or None
        SHA-256 of the file of demands beside it, if there is one.
    published : str or None
        Its name in the catalogue, if it was found by that.
    """

    path: str
    sha256: str
    demands_sha256: str | None
    published: str | None


class NamedSolver(NamedTuple):
    """A solver as a study names it: what `optsched.simulate` is given, and its profile."""

    given: str | Solver
    profile: Profile | None = None


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study.

    Parameters
    ----------
    name : str
        The name of its folder: the beginning of the SHA-256 of its config.
    values : mapping
        The keys of the study and their values for this run, ``settings`` a mapping.
    trace : TraceFile
        The trace.
    arguments : mapping
        What `optsched.simulate` is given besides the trace.
    threads : int
        How many threads its solver keeps busy.
    """

    name: str
    values: Mapping[str, Any]
    trace: TraceFile
    arguments: Mapping[str, Any]
    threads: int

    @property
    def columns(self) -> dict[str, Any]:
        """The values under one name each, ``settings.window`` for instance."""
        flat = {key: value for key, value in self.values.items() if key != "settings"}
        settings = self.values.get("settings", {})
        return flat | {f"settings.{key}": value for key, value in settings.items()}


class Planner:
    """Looks up what the values of a study stand for, each file and name once.

    Parameters
    ----------
    base : path
        The folder that relative paths start from.

    Attributes
    ----------
    look_up : mapping of str to callable
        For the keys whose text stands for something: returns it, raises an InputError without it.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self.look_up: Mapping[str, Callable[[str], Any]] = {
            "trace": cache(self._trace),
            "machine": cache(self._machine),
            "policy": registry.policies.__getitem__,
            "execution": registry.executions.__getitem__,
            "solver": cache(self._solver),
            "jobs": _span,
        }

    def plan(self, values: Mapping[str, Any]) -> PlannedRun:
        """Return the run that has these values.

        Parameters
        ----------
        values : mapping
            A value for ``trace``, and for other keys of a study.

        Raises
        ------
        InputError
            If one stands for nothing, or the policy does not take its settings.

        Notes
        -----
        The name is that of the question, not of the answer. It comes from the content of files
        and not from their names, from all settings of the policy and not only those that are
        given, and not from versions: all hosts and shards agree on it, and a folder is found
        again after an upgrade. ``run.json`` says the versions.
        """
        policy: type[Policy] = self.look_up["policy"](values.get("policy", DEFAULTS["policy"]))
        parts = _configured(policy.name, values.get("execution"), values.get("settings", {}))
        settings = {
            field.name: getattr(part, field.name)
            for part in parts
            for field in settings_of(type(part))
        }
        trace: TraceFile = self.look_up["trace"](values["trace"])
        asked = self.look_up["solver"](values["solver"]) if "solver" in values else None
        chosen: Mapping[str, ChosenSolver] = {}
        if posed := parts[0].posed():
            chosen = choose_solvers(posed, asked and asked.given)
        arguments = {key: value for key, value in values.items() if key not in ELSEWHERE}
        for key in ("machine", "jobs"):
            if key in values:
                arguments[key] = self.look_up[key](values[key])
        arguments |= _solving(asked, values)
        identity = dict(DEFAULTS) | arguments
        identity |= {"trace": trace.sha256, "settings": settings}
        if trace.demands_sha256 is not None:
            identity["demands"] = trace.demands_sha256
        identity["solver"] = {model: _described(one) for model, one in chosen.items()}
        return PlannedRun(
            name=_hash(identity),
            values=dict(values),
            trace=trace,
            arguments=arguments,
            threads=max((one.solver.threads for one in chosen.values()), default=1),
        )

    def _trace(self, text: str) -> TraceFile:
        path, published = find_trace(text, base=self._base)
        demands = demands_file(path)
        demands_sha256 = sha256_of(demands) if os.path.lexists(demands) else None
        return TraceFile(str(path.absolute()), sha256_of(path), demands_sha256, published)

    def _machine(self, text: str) -> str:
        return read_machine(self._base / text if text.endswith(".toml") else text).spec

    def _solver(self, text: str) -> NamedSolver:
        if "=" in text and not (self._base / text).is_file():
            return NamedSolver(text)
        if not text.endswith(".toml"):
            return NamedSolver(text, find_solver(text)[1])
        solver, profile = find_solver(str(self._base / text))
        return NamedSolver(solver, profile)


def check_settings(policy: str, execution: str | None, settings: Mapping[str, Any]) -> None:
    """Check that a policy and an execution model take these settings.

    Raises
    ------
    InputError
        If it knows none of that name, or one has a value that is not of its type.
    """
    _configured(policy, execution, settings)


def _configured(policy: str, execution: str | None, settings: Mapping[str, Any]) -> list[Any]:
    """Return a policy, and an execution model if there is one, with their settings."""
    parts = {f"policy {policy!r}": registry.policies[policy]}
    execution = execution or registry.policies[policy].execution
    if execution is not None:
        parts[f"execution model {execution!r}"] = registry.executions[execution]
    configured = configure_parts(parts, settings)
    configured[0].check_interval()
    return configured


def _solving(asked: NamedSolver | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return solver, budget and seed as `optsched.simulate` takes them, where there are any."""
    budget, seed = None, values.get("seed")
    if "time_limit" in values or "work_limit" in values:
        budget = Budget(values.get("time_limit"), values.get("work_limit"))
    if asked is not None and asked.profile is not None and isinstance(asked.given, Solver):
        # given as a solver, so that no path gets into the record; so its profile speaks here
        budget = budget or (None if asked.profile.budget == Budget() else asked.profile.budget)
        seed = asked.profile.seed if seed is None else seed
    solving = {"solver": asked and asked.given, "budget": budget, "seed": seed}
    return {key: value for key, value in solving.items() if value is not None}


def _described(chosen: ChosenSolver) -> dict[str, Any]:
    """Return name and profile of a solver; a profile of the user's goes by what it says."""
    profile = chosen.profile
    return {
        "name": chosen.name,
        "solver": profile.solver,
        "options": dict(profile.options),
        "budget": asdict(profile.budget),
        "seed": profile.seed,
    }


def _span(text: str) -> tuple[int, int]:
    try:
        span = parse_span(text)
    except ValueError:
        span = 0, 0
    if not 1 <= span[0] <= span[1]:
        raise InputError(f"{text!r}; expected FROM:TO, 1:5000 for instance")
    return span


def _hash(identity: Mapping[str, Any]) -> str:
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), default=asdict)
    return hashlib.sha256(text.encode()).hexdigest()[:NAME_DIGITS]
