"""The config of a run: all that is needed to repeat it, with the command if there is one."""

from __future__ import annotations

import hashlib
import platform
import shlex
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from optsched import registry
from optsched.errors import InputError
from optsched.files import json_text
from optsched.machines.machine import Machine
from optsched.numbers import counted
from optsched.registry import origin_of
from optsched.settings import has_plain_settings, values_of
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Policy
from optsched.simulator.problem_solver import ProblemSolver
from optsched.simulator.scenario import BUDGET, OPTIONS, Scenario
from optsched.solvers.finding import find_solver
from optsched.traces.trace import UNKNOWN, Trace
from optsched.version import __version__

PACKAGES = ("numpy", "numba", "pandas", "pyarrow", "matplotlib", "jinja2")
"""Packages whose version may change the bytes of a run folder."""


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a run depends on."""
    own = {"optsched": __version__, "python": platform.python_version()}
    return own | {package: _version(package) for package in PACKAGES}


_version = cache(version)  # looking it up takes longer than simulating a small trace


def workload_sha256(trace: Trace) -> str:
    """Return the SHA-256 of the columns of a trace that a simulation reads."""
    digest = hashlib.sha256()
    for column in (trace.submit, trace.runtime, trace.requested_time, trace.processors):
        digest.update(column.astype("<f8").tobytes())
    for name, column in sorted(trace.annotations.items()):
        digest.update(name.encode())
        digest.update(column.astype("<f8").tobytes())
    if (trace.wait != UNKNOWN).any():
        digest.update(b"wait")
        digest.update(trace.wait.astype("<f8").tobytes())
    if "partition_name" in trace.texts:  # partitions have limits
        digest.update(trace.stated_time.astype("<f8").tobytes())
    for name, texts in sorted(trace.texts.items()):
        digest.update(f"{name}:{json_text(texts.tolist())}".encode())
    return digest.hexdigest()


def describe(
    scenario: Scenario,
    source: Trace,
    trace: Trace,
    machine: Machine,
    policy: Policy,
    execution: ExecutionModel | None,
    problem_solver: ProblemSolver,
) -> dict[str, Any]:
    """Return the config of a run of the jobs `trace` of `source`."""
    config = {
        "trace": source.published or (source.name if source.path is None else str(source.path)),
        "trace_sha256": source.sha256,
        "demands_sha256": source.demands_sha256,
        "workload_sha256": workload_sha256(trace),
        "machine": machine.spec,
        "policy": policy.name,
        "settings": values_of(policy),
        "execution": None if execution is None else execution.name,
        "execution_settings": {} if execution is None else values_of(execution),
        **scenario.recorded(),
        **problem_solver.config,
        **_files(policy, execution, *(chosen.solver for chosen in problem_solver.solvers.values())),
        "versions": versions(),
    }
    if ignored := _ignored(trace, machine):
        config["ignored"] = ignored
    known = _is_named(policy, registry.policies) and (
        execution is None or _is_named(execution, registry.executions)
    )
    from_file = source.path is not None or scenario.workload is not None
    repeatable = from_file and known and _names_solvers(problem_solver)
    config["repeat"] = _command(config) if repeatable else None
    return config


def _ignored(trace: Trace, machine: Machine) -> list[str]:
    """Return the constraints of the trace that the run ignores, with the numbers of jobs."""
    found = []
    stated = trace.texts.get("dependency", np.full(len(trace), "", dtype=object)) != ""
    if not machine.follows_requests:
        begins = np.zeros(len(trace), dtype=bool)
        for name in ("begin", "eligible"):
            if name in trace.annotations:
                begins |= trace.annotations[name] > trace.submit
        for what, jobs in (("dependencies", stated), ("begin times", begins & ~stated)):
            if number := int(jobs.sum()):
                where = f"{machine.spec} does not model them, a site does"
                found.append(f"{what} of {counted(number, 'job')} ignored: {where}")
    if number := int(((trace.preceding_job != UNKNOWN) & (trace.preceding_job > 0)).sum()):
        where = "no machine models them (columns 17 and 18 of SWF)"
        found.append(f"preceding jobs of {counted(number, 'job')} ignored: {where}")
    found += [
        f"dependencies of {counted(number, 'job')} not read"
        for what, number in trace.oddities.items()
        if "not used" in what and "depend" in what
    ]
    return found


def _files(*parts: Any) -> dict[str, Any]:
    """Return the user's files that parts of a run come from, under one key if there are any."""
    origins = [origin_of(type(part)) for part in parts]
    files = {origin.file: origin.sha256 for origin in origins if origin is not None}
    return {"files": files} if files else {}


def _is_named(part: Any, kind: registry.Registry[Any]) -> bool:
    """Return whether a command can state a policy or an execution model, with its settings."""
    in_file = origin_of(type(part)) is not None
    is_registered = part.name in kind and kind[part.name] is type(part)
    return (in_file or is_registered) and has_plain_settings(type(part))


def _names_solvers(problem_solver: ProblemSolver) -> bool:
    """Return whether a command can name the solvers, as none was built with options."""
    for chosen in problem_solver.solvers.values():
        if origin_of(type(chosen.solver)) is not None and not chosen.profile.options:
            continue
        try:
            _, profile = find_solver(chosen.name)
        except InputError:
            return False
        if profile.options != chosen.profile.options:
            return False
    return True


def _command(config: Mapping[str, Any]) -> str:
    """Return the command that repeats a run."""
    stated = dict(config)
    stated["settings"] = config["settings"] | config["execution_settings"]
    for limit, value in zip(BUDGET, (config["budget"] or {}).values()):
        stated[limit.name] = value
    if config["capture_every"] is not None:
        stated["capture"] = "SNAPSHOTS"
    words = ["optsched", "simulate", *([] if config["workload"] else [config["trace"]])]
    for name, option in OPTIONS.items():
        if name != "trace":
            words += option.words(stated.get(name))
    if config["demands_sha256"] is not None:
        words += ["--demands-sha256", config["demands_sha256"]]
    for file, sha256 in config.get("files", {}).items():
        words += ["--file-sha256", f"{file}={sha256}"]
    return shlex.join([*words, "-o", "DIR"])
