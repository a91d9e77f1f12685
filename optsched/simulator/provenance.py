"""What a run says of itself: enough to repeat it, or that it cannot be repeated by a command."""

from __future__ import annotations

import hashlib
import platform
import shlex
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from optsched import registry
from optsched.errors import InputError
from optsched.machines.machine import Machine
from optsched.settings import settings_of
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Policy
from optsched.solvers.solving import find_solver
from optsched.traces.trace import Trace
from optsched.version import __version__

PACKAGES = ("numpy", "numba", "pandas", "pyarrow", "matplotlib", "jinja2")
"""Packages whose version may show in the bytes of a run folder."""


def versions() -> dict[str, str]:
    """Return the versions that a run depends on."""
    own = {"optsched": __version__, "python": platform.python_version()}
    return own | {package: _version(package) for package in PACKAGES}


_version = cache(version)  # looking it up takes longer than simulating a small trace


def workload_sha256(trace: Trace) -> str:
    """Return the SHA-256 of what is simulated.

    Submit, run and requested times, processors, and the annotations in the order of their names.
    """
    digest = hashlib.sha256()
    for column in (trace.submit, trace.runtime, trace.requested_time, trace.processors):
        digest.update(column.astype("<f8").tobytes())
    for name, column in sorted(trace.annotations.items()):
        digest.update(name.encode())
        digest.update(column.astype("<f8").tobytes())
    return digest.hexdigest()


def describe(
    source: Trace,
    trace: Trace,
    machine: Machine,
    policy: Policy,
    execution: ExecutionModel | None,
    posing: Mapping[str, Any],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the config of a run.

    Parameters
    ----------
    source : Trace
        The trace as it was read.
    trace : Trace
        The jobs of it that are run.
    machine : Machine
        The machine.
    policy : Policy
        The policy.
    execution : ExecutionModel or None
        What gives the jobs their speeds.
    posing : mapping
        The solvers, and whether they are charged for, for a policy that poses problems.
    options : mapping
        ``jobs``, ``event_order``, ``capture_every``, ``large_from``, ``budget``, ``seed`` and
        ``journal``.
    """
    config = {
        "trace": source.published or (source.name if source.path is None else str(source.path)),
        "trace_sha256": source.sha256,
        "demands_sha256": source.demands_sha256,
        "workload_sha256": workload_sha256(trace),
        "machine": machine.spec,
        "policy": policy.name,
        "settings": _settings(policy),
        "execution": None if execution is None else execution.name,
        "execution_settings": {} if execution is None else _settings(execution),
        **options,
        **posing,
        "versions": versions(),
    }
    known = _is_registered(policy, registry.policies) and (
        execution is None or _is_registered(execution, registry.executions)
    )
    repeatable = source.path is not None and known and _is_named(posing)
    config["repeat"] = _command(config) if repeatable else None
    return config


def _settings(configured: Any) -> dict[str, Any]:
    if not is_dataclass(configured):
        return {}
    return {field.name: getattr(configured, field.name) for field in settings_of(type(configured))}


def _is_registered(thing: Any, kind: registry.Registry[Any]) -> bool:
    return thing.name in kind and kind[thing.name] is type(thing)


def _is_named(posing: Mapping[str, Any]) -> bool:
    """Return whether a command can name the solvers: not one that was built with options."""
    for chosen in posing.get("solvers", {}).values():
        try:
            _, profile = find_solver(chosen["solver"])
        except InputError:
            return False
        if profile.options != chosen["options"]:
            return False
    return True


def _command(config: Mapping[str, Any]) -> str:
    """Return the command that repeats a run."""
    words = ["optsched", "simulate", config["trace"], "--machine", config["machine"]]
    words += ["--policy", config["policy"], "--event-order", config["event_order"]]
    if config["execution"] is not None:
        words += ["--execution", config["execution"]]
    for name, value in (config["settings"] | config["execution_settings"]).items():
        words += ["--set", f"{name}={value}"]
    if config["jobs"] is not None:
        words += ["--jobs", ":".join(map(str, config["jobs"]))]
    if "solver" in config:
        words += ["--solver", config["solver"]]
        words += [] if config["seed"] is None else ["--seed", str(config["seed"])]
        for option, name in (("--time-limit", "seconds"), ("--work-limit", "work")):
            limit = (config["budget"] or {}).get(name)
            words += [] if limit is None else [option, str(limit)]
        words += ["--charge-decisions"] if config["charge_decisions"] else []
    if config["capture_every"] is not None:
        words += ["--capture", "SNAPSHOTS", "--capture-every", str(config["capture_every"])]
    if config["large_from"] is not None:
        words += ["--large-from", str(config["large_from"])]
    words += ["--journal"] if config["journal"] else []
    if config["demands_sha256"] is not None:
        words += ["--demands-sha256", config["demands_sha256"]]
    return shlex.join([*words, "-o", "DIR"])
