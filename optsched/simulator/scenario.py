"""Scenarios: all that determines a run, with each option declared once, and the config of a run.

`optsched.simulate`, the options of the command line, the keys of a sweep file, ``run.json`` and the
command that repeats a run derive from the fields of `Scenario`. A new option is a new field: type,
default, entry in the docstring, and an `Option` in the metadata.
"""

from __future__ import annotations

import hashlib
import platform
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, fields
from enum import StrEnum
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optsched import registry
from optsched.documentation import parameters
from optsched.errors import InputError, brief
from optsched.files import json_text
from optsched.machines.machine import Machine
from optsched.numbers import check_seed, counted
from optsched.registry import ClassInFile, origin_of
from optsched.settings import configure_parts, has_plain_settings, values_of
from optsched.simulator.engine import EventOrder
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Policy
from optsched.simulator.problem_solver import ProblemSolver, SolverChoice, Ties
from optsched.solvers.result import Budget
from optsched.solvers.solving import as_budget, checked_seed
from optsched.traces.cleaning import Days, Span, span_of
from optsched.traces.trace import UNKNOWN, Trace
from optsched.traces.transformations import check_load, check_shake
from optsched.version import __version__


class Option(NamedTuple):
    """An option of a run, in the form of the command line and of sweep files."""

    name: str
    kind: Any  # str, int, float, bool, Path, dict for ``KEY=VALUE``, or the tuple of choices
    default: Any = None
    expected: str = ""  # in messages about a sweep file; empty if only the command line has it
    help: str = ""  # if it differs from the docstring of the field
    needs_problems: str = ""  # words for it in messages, if only problems have a use for it

    @property
    def flag(self) -> str:
        """The option on the command line, ``--event-order`` for instance."""
        return f"--{'set' if self.kind is dict else self.name.replace('_', '-')}"

    def words(self, value: Any) -> list[str]:
        """Return the words of the command line that state a value, empty for None and False."""
        if value is None or value is False:
            return []
        if self.kind is dict:
            return [word for key, one in value.items() for word in (self.flag, f"{key}={one}")]
        if isinstance(value, list):
            value = ":".join(map(str, value))
        return [self.flag] if value is True else [self.flag, str(value)]


def _option(
    default: Any, kind: Any, *more: str, recorded: bool = False, needs_problems: str = ""
) -> Any:
    """Return a field with one option; ``run.json`` holds its value if it is recorded."""
    option = Option("", kind, default, *more)._replace(needs_problems=needs_problems)
    return field(default=default, metadata={"options": (option,), "recorded": recorded})


BUDGET = (
    Option(
        *("time_limit", float, None, "seconds above 0"),
        help="Wall-clock seconds for one problem. The run then depends on the machine.",
        needs_problems="a limit",
    ),
    Option(
        *("work_limit", float, None, "a number above 0"),
        help="Work for one problem in the solver's deterministic unit; each solver has a default.",
        needs_problems="a limit",
    ),
)
"""The options that make up a budget, in the order of its fields."""

TRACE = Option(
    *("trace", str, None, "a trace file or the name of a trace"),
    help="A trace file (.swf, .parquet, .csv, Batsim .json, output of sacct, also .gz) or a name "
    "(see `optsched list traces`).",
)


@dataclass(frozen=True, eq=False)
class Scenario:
    """All that determines a run.

    Parameters
    ----------
    trace : Trace, path or str, optional
        A trace, a trace file (.swf, .parquet, .csv, Batsim .json, output of sacct, also .gz), or a
        name (see `optsched list traces`); in Python also a DataFrame with the columns of
        `optsched.trace_from_frame`. A raw trace is cleaned first. With `workload`, none, or the
        trace that was generated from it.
    machine : Machine, path, str or int, optional
        nodes:NUMBER or the number alone, another one (see `optsched list machines`), or a TOML
        file; by default of the size that the trace states.
    policy : Policy or str
        A policy (see `optsched list policies`), or FILE.py:CLASS.
    solver : str, Solver or mapping, optional
        Solver or profile for the policy's problems (see `optsched list solvers`), or FILE.py:CLASS;
        by default the policy's choice. MODEL=NAME,MODEL=NAME names one for each of several models.
    settings : mapping, optional
        Settings of the policy and of the execution model, where these are given by name.
    execution : ExecutionModel or str, optional
        An execution model, which sets the speeds of jobs (see `optsched list executions`), or
        FILE.py:CLASS; by default the policy's choice. Under most policies every job runs for its
        run time.
    jobs : (int, int), int or str, optional
        FROM:TO, the jobs to run, counted in the cleaned trace from 1, both included. FROM or TO may
        be left out; a number alone is TO. In a trace that says when it begins also days,
        2003-01-01:2003-06-30.
    measure : (int, int), int or str, optional
        FROM:TO, the jobs that figures are of, counted in those that run, in the form of `jobs`. The
        others run beside them, to warm up the machine for instance.
    workload : path or str, optional
        A workload model in place of a trace (see `optsched list workloads`), or its TOML file;
        `jobs` says how many jobs to generate.
    workload_seed : int, optional
        Seed of the generated workload, by default 0.
    load : float, optional
        Factor of the load: the interarrival times of the jobs that run are divided by it, as
        `optsched trace scale` does.
    shake : int, optional
        Seconds: the submission of each job that runs is put off by up to so many, at random, to see
        how far chance moves a result.
    shake_seed : int, optional
        Seed of `shake`, by default 0.
    unknown_negative : bool
        Read negative times of a trace in SWF as unknown, and count them.
    event_order : {"batched", "one-by-one"}
        Order within an instant: all ends, all submissions, one decision; or each event alone.
    capture : path, optional
        Existing, empty folder for snapshots of the posed problems.
    capture_every : int
        Write every N-th problem of each model.
    large_from : int, optional
        Number of processors from which a job counts as large in the summary; by default the
        policy's number, or that of the largest tenth of the jobs.
    budget : Budget or float, optional
        Budget of a solver for one problem; by default that of its profile, or its default work.
        `optsched.simulate` takes ``time_limit`` and ``work_limit`` in its place.
    seed : int, optional
        Seed of the solver's random choices; by default the profile's seed.
    charge_decisions : bool
        Delay decisions by the nominal time of the solver's work.
    ties : {"heuristic", "solver", "random"}
        Which of equally good solutions of a problem is used: that of the policy's heuristic, the
        solver's own, or a random one of all of them, by the seed.
    check : bool
        Check the invariants of the simulation after every event (slow).
    journal : bool
        Keep every event and action.
    compiled_from : int, optional
        Number of jobs from which kernels that are not on disk are compiled, for a policy that can
        decide without them. The run is the same. By default, they are compiled as soon as the runs
        of a process have 20,000 jobs: Python takes less time for fewer.
    progress : callable, optional
        Called periodically with the number of jobs that have left the queue (started or rejected),
        and the simulated time.
    """

    trace: Trace | Path | str | None = field(default=None, metadata={"options": (TRACE,)})
    machine: Machine | Path | str | int | None = _option(
        None, str, "a machine, nodes:1152 for instance, or a TOML file"
    )
    policy: Policy | ClassInFile | str = _option("easy", str, "the name of a policy")
    _: KW_ONLY
    solver: SolverChoice = _option(
        None, str, "a solver, a profile or a TOML file", needs_problems="a solver"
    )
    settings: Mapping[str, Any] | None = _option(
        *(None, dict, ""),
        "KEY=VALUE, a setting of the policy or of the execution model; may be given several times.",
    )
    execution: ExecutionModel | ClassInFile | str | None = _option(
        None, str, "the name of an execution model"
    )
    jobs: Span | int | str | None = _option(
        None, str, "FROM:TO, 1:5000 for instance", recorded=True
    )
    measure: Span | int | str | None = _option(
        None, str, "FROM:TO, 1001:5000 for instance", recorded=True
    )
    workload: Path | str | None = _option(
        None, str, "the name of a workload model, or a TOML file", recorded=True
    )
    workload_seed: int | None = _option(None, int, "an integer", recorded=True)
    load: float | None = _option(None, float, "a factor, 0.8 for instance", recorded=True)
    shake: int | None = _option(None, int, "a whole number of seconds", recorded=True)
    shake_seed: int | None = _option(None, int, "an integer", recorded=True)
    unknown_negative: bool = _option(False, bool, "true or false", recorded=True)
    event_order: EventOrder | str = _option(
        EventOrder.BATCHED, tuple(map(str, EventOrder)), " or ".join(EventOrder), recorded=True
    )
    capture: Path | str | None = _option(
        *(None, Path, "", "Folder for snapshots of the posed problems."),
        needs_problems="a capture folder",
    )
    capture_every: int = _option(1, int, recorded=True)
    large_from: int | None = _option(None, int, "a number of processors", recorded=True)
    budget: Budget | float | None = field(
        default=None, metadata={"options": BUDGET, "recorded": True}
    )
    seed: int | None = _option(None, int, "an integer", recorded=True, needs_problems="a seed")
    charge_decisions: bool = _option(
        False, bool, "true or false", needs_problems="charging decisions"
    )
    ties: Ties | str = _option(
        *(Ties.HEURISTIC, tuple(map(str, Ties)), ", ".join(Ties)), needs_problems="a rule for ties"
    )
    check: bool = _option(False, bool)
    journal: bool = _option(
        False, bool, "", "Write every event and action to journal.parquet.", recorded=True
    )
    compiled_from: int | None = None
    progress: Callable[[int, float], None] | None = None

    def __post_init__(self) -> None:
        of_model = "an execution model or the name of one"
        flags = ("unknown_negative", "charge_decisions", "check", "journal")
        checks: tuple[tuple[str, Any, str], ...] = (
            ("policy", Policy | ClassInFile | str, "a policy or the name of one"),
            ("settings", Mapping | None, "a mapping of names to values"),
            ("execution", ExecutionModel | ClassInFile | str | None, of_model),
            *((flag, bool, "True or False") for flag in flags),
            ("compiled_from", int | None, "a number of jobs"),
            ("progress", Callable | None, "a function"),
        )
        for name, kinds, expected in checks:
            if not isinstance(value := getattr(self, name), kinds):
                shown = brief(value) if name in ("policy", "execution") else repr(value)
                raise InputError(f"{shown}; expected {expected}", field=name)
        counts = {"capture every": self.capture_every}
        if self.large_from is not None:
            counts["large from"] = self.large_from
        for name, count in counts.items():
            if not isinstance(count, int) or isinstance(count, bool) or count < 1:
                raise InputError(f"{count!r}; expected a whole number from 1", field=name)
        if self.capture is None and self.capture_every != 1:
            raise InputError("no folder to capture to", field="capture every")
        object.__setattr__(self, "budget", as_budget(self.budget))
        for name, kind in (("event_order", EventOrder), ("ties", Ties)):
            object.__setattr__(self, name, _one_of(kind, getattr(self, name), name))
        for name in ("jobs", "measure"):
            object.__setattr__(self, name, span_of(getattr(self, name), name))
        object.__setattr__(self, "seed", checked_seed(self.seed))
        self._check_submissions()
        self._check_workload()

    def _check_submissions(self) -> None:
        """Check the options that move submissions; those without effect become None."""
        if self.load is not None:
            check_load(self.load)
            object.__setattr__(self, "load", None if self.load == 1 else float(self.load))
        if self.shake is None:
            if self.shake_seed is not None:
                raise InputError("nothing to shake; expected a shake too", field="shake seed")
            return
        seed = 0 if self.shake_seed is None else self.shake_seed
        check_shake(self.shake)
        check_seed(seed, "shake seed")
        object.__setattr__(self, "shake", self.shake or None)
        object.__setattr__(self, "shake_seed", seed if self.shake else None)

    def _check_workload(self) -> None:
        """Check that there is either a trace or a workload, of a known number of jobs."""
        if self.workload is None:
            if self.workload_seed is not None:
                raise InputError("no workload to seed", field="workload seed")
            if self.trace is None:
                raise InputError("missing; expected a trace or a workload", field="trace")
            return
        if not isinstance(self.workload, str | Path):
            raise InputError(f"{brief(self.workload)}; expected a file or a name", field="workload")
        if not isinstance(self.trace, Trace | None):
            raise InputError("beside a trace; expected one of the two", field="workload")
        span = self.span
        if isinstance(span, Days | None) or span[1] is None:
            expected = "expected the number of jobs to generate, 5000 for instance"
            said = "missing" if span is None else ":".join(str(end or "") for end in span)
            raise InputError(f"{said}; {expected}", field="jobs")
        seed = 0 if self.workload_seed is None else self.workload_seed
        check_seed(seed, "workload seed")
        object.__setattr__(self, "workload_seed", seed)

    @property
    def span(self) -> Span | None:
        """The jobs to run, None for all of them."""
        return span_of(self.jobs)

    def for_problems(self) -> list[Option]:
        """Return the given options that only a policy that poses problems has a use for."""
        return [
            option
            for field in fields(self)
            for option in field.metadata.get("options", ())
            if option.needs_problems and getattr(self, field.name) != field.default
        ]

    def recorded(self) -> dict[str, Any]:
        """Return the recorded options by name, JSON-able."""
        recorded = {
            field.name: _as_json(getattr(self, field.name))
            for field in fields(self)
            if field.metadata.get("recorded")
        }
        return recorded | ({} if self.capture is not None else {"capture_every": None})


OPTIONS: Mapping[str, Option] = {
    option.name or field.name: option._replace(name=option.name or field.name)
    for field in fields(Scenario)
    for option in field.metadata.get("options", ())
}
"""All options of the command line and of sweep files by name, in the order of the fields."""


def described() -> dict[str, str]:
    """Return the help of each of `OPTIONS`."""
    entries = parameters(Scenario)
    return {name: option.help or entries[name] for name, option in OPTIONS.items()}


def from_words(words: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `Scenario` for values of `OPTIONS`; None stands for the default."""
    stated = {name: value for name, value in words.items() if value is not None}
    limits = [stated.pop(option.name, None) for option in BUDGET]
    return stated | ({} if limits == [None, None] else {"budget": Budget(*limits)})


def configure(
    policy: Policy | ClassInFile | str,
    execution: ExecutionModel | ClassInFile | str | None,
    settings: Mapping[str, Any],
) -> tuple[Policy, ExecutionModel | None]:
    """Return a policy and an execution model, by default the policy's choice, with their settings.

    Settings belong to those of the two that are given by class or name.
    """
    chosen: Any = policy if isinstance(policy, Policy) else registry.policies[policy]
    model: Any = chosen.execution if execution is None else execution
    if isinstance(model, ClassInFile | str):
        model = registry.executions[model]
    of = {"policy": chosen, "execution model": model}
    parts = {f"{noun} {of[noun].name!r}": of[noun] for noun in of if isinstance(of[noun], type)}
    if settings and not parts:
        raise InputError("settings belong to a policy that is given by name")
    built = configure_parts(parts, settings)
    chosen = built.pop(0) if isinstance(chosen, type) else chosen
    chosen.check_declared()
    return chosen, built.pop() if isinstance(model, type) else model


def check_use(policy: Policy, for_problems: Sequence[Option], field: str | None = None) -> None:
    """Check that a policy has a use for options that need posed problems."""
    if for_problems and not policy.posed():
        words = ", ".join(dict.fromkeys(option.needs_problems for option in for_problems))
        reason = f"poses no problems, so it has no use for {words}"
        raise InputError(f"policy {policy.name!r} {reason}", field=field)


def _one_of(kind: type[StrEnum], name: str, field: str) -> StrEnum:
    try:
        return kind(name)
    except ValueError:
        *choices, last = kind
        expected = f"expected {', '.join(choices)} or {last}"
        raise InputError(f"{name!r}; {expected}", field=field.replace("_", " ")) from None


def _as_json(value: Any) -> Any:
    if isinstance(value, Budget):
        return asdict(value)
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


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
    solvers = problem_solver.solvers.values()
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
        **_files(policy, execution, *(chosen.solver for chosen in solvers)),
        "versions": versions(),
    }
    if ignored := _ignored(trace, machine):
        config["ignored"] = ignored
    known = _is_named(policy, registry.policies) and (
        execution is None or _is_named(execution, registry.executions)
    )
    from_file = source.path is not None or scenario.workload is not None
    repeatable = from_file and known and all(one.is_named for one in solvers)
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
