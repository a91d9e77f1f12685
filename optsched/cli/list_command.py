"""``optsched list``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Literal

from optsched import registry
from optsched.cli.options import Json
from optsched.cli.terminal import print_json, print_table, warn
from optsched.content import bundled_sites, reference_snapshots
from optsched.documentation import first_line
from optsched.errors import InputError
from optsched.settings import settings_of
from optsched.solvers.finding import (
    check_models,
    classes_of,
    load_profile,
    profile_names,
    version_of,
)

What = Literal[
    "policies", "solvers", "profiles", "models", "machines", "sites",
    "executions", "workloads", "traces", "snapshots", "studies", "formats",
]  # fmt: skip
Row = list[Any]

SPARE = ("work in", "installed", "exact", "model: solver", "machines")
"""Columns that a narrow terminal leaves out, the first one first."""


def command(what: What = "solvers", /, *, json: Json = False) -> None:
    """List policies, solvers and all else that the command line takes by name.

    Parameters
    ----------
    what
        Policies, solvers, profiles of solvers, models, machines, bundled sites, execution
        models, workloads, traces, reference snapshots of models, studies or trace formats.
    """
    columns, list_rows = _LISTS[what]
    rows = list(list_rows())
    if json:
        print_json({what: [dict(zip(columns, row)) for row in rows]})
    else:
        print_table(columns, rows, SPARE)


def _settings(cls: type[Any]) -> str:
    return " ".join(f"{field.name}={field.default}" for field in settings_of(cls))


def _policies() -> Iterator[Row]:
    for cls in registry.policies.values():
        solver = ", ".join(f"{model}: {own.solver}" for model, own in cls.models.items())
        machines = " ".join(sorted(cls.machines))
        yield [cls.name, _settings(cls), solver, machines, first_line(cls)]


def _solvers() -> Iterator[Row]:
    for cls in chain.from_iterable(map(classes_of, registry.solvers)):
        try:
            check_models(cls)
            version = version_of(cls)
        except InputError as error:
            warn(f"left out: {error}")
            continue
        models = "all with a formulation" if cls.models is None else " ".join(sorted(cls.models))
        installed = version or f"no (needs {cls.requires})"
        yield [cls.name, installed, cls.exact, models, cls.work_unit, first_line(cls)]


def _profiles() -> Iterator[Row]:
    for profile in map(load_profile, profile_names()):
        options = " ".join(f"{key}={value}" for key, value in profile.options.items())
        yield [profile.name, profile.solver, options, profile.description]


def _models() -> Iterator[Row]:
    solved = {name: registry.solvers[name].models for name in registry.solvers}
    for cls in registry.models.values():
        own = [name for name, models in solved.items() if isinstance(models, frozenset)]
        special = [name for name in own if cls.name in (solved[name] or ())]
        yield [cls.name, cls.default_solver, " ".join(special), first_line(cls)]


def _machines() -> Iterator[Row]:
    return ([cls.usage, first_line(cls)] for cls in registry.machines.values())


def _sites() -> Iterator[Row]:
    from optsched.sites.loading import load_site

    return ([name, load_site(path).inventory] for name, path in bundled_sites().items())


def _executions() -> Iterator[Row]:
    return ([cls.name, _settings(cls), first_line(cls)] for cls in registry.executions.values())


def _workloads() -> Iterator[Row]:
    from optsched.workloads.spec_file import read_workload, workload_names

    specs = []
    for name in workload_names():
        try:
            specs.append(read_workload(name))
        except InputError as error:  # its model needs a package that is not installed
            warn(f"left out: {error}")
    for spec in specs:
        yield [spec.title, spec.name, spec.processors, spec.description]
    for name in sorted(set(registry.workloads) - {spec.name for spec in specs}):
        yield [None, name, None, first_line(registry.workloads[name])]


def _traces() -> Iterator[Row]:
    from optsched.traces.catalogue import entries, samples, search, size_of
    from optsched.traces.reading import format_of

    for name, path in samples().items():
        yield [name, *size_of(path), "yes", f"sample of the format {format_of(path).name}"]
    for entry in entries():
        here = "yes" if search(entry) else "no"
        yield [entry.name, entry.jobs, entry.processors, here, entry.title]


def _snapshots() -> Iterator[Row]:
    from optsched.models.snapshot_file import read_snapshot

    for name, path in reference_snapshots().items():
        read = read_snapshot(path)
        known = read.known
        best = "infeasible" if known.get("infeasible") else known.get("objective")
        yield [name, read.problem.size, best, known.get("source")]


def _studies() -> Iterator[Row]:
    from optsched.studies.folder import study_plans

    for name, plan in sorted(study_plans().items()):
        yield [name, plan.get("paper", plan.get("title", ""))]


def _formats() -> Iterator[Row]:
    for cls in registry.readers.values():
        yield [cls.name, " ".join(cls.suffixes), first_line(cls)]


_LISTS: Mapping[What, tuple[list[str], Callable[[], Iterator[Row]]]] = {
    "policies": (["policy", "settings", "model: solver", "machines", "what it does"], _policies),
    "solvers": (["solver", "installed", "exact", "models", "work in", "what it does"], _solvers),
    "profiles": (["profile", "solver", "options", "what it is for"], _profiles),
    "models": (["model", "default solver", "its own solvers", "what it decides"], _models),
    "machines": (["machine", "what it is"], _machines),
    "sites": (["site", "what it has"], _sites),
    "executions": (["execution model", "settings", "what it does"], _executions),
    "workloads": (["workload", "model", "processors", "what it is"], _workloads),
    "traces": (["trace", "jobs", "processors", "on this machine", "what it is"], _traces),
    "snapshots": (["snapshot", "size", "best known", "source of that"], _snapshots),
    "studies": (["study", "paper"], _studies),
    "formats": (["format", "suffixes", "what it is"], _formats),
}
