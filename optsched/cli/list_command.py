"""``optsched list``."""

from __future__ import annotations

from itertools import chain
from typing import Any, Literal

from optsched import registry
from optsched.cli.terminal import print_json, print_table, say
from optsched.docstrings import first_line
from optsched.errors import InputError
from optsched.settings import settings_of
from optsched.solvers.profiles import load_profile, profile_names

What = Literal[
    "policies",
    "solvers",
    "profiles",
    "models",
    "machines",
    "executions",
    "workloads",
    "studies",
    "formats",
]


def command(what: What = "solvers", /, *, json: bool = False) -> None:
    """List policies, solvers and all else that the command line takes by name.

    Parameters
    ----------
    what
        Policies, solvers, profiles of solvers, models, machines, execution models, workloads,
        studies or trace formats.
    json
        Print one JSON object.
    """
    columns, rows = _LISTS[what]()
    if json:
        print_json({what: [dict(zip(columns, row)) for row in rows]})
    else:
        print_table(columns, rows)


def _settings(cls: type[Any]) -> str:
    return " ".join(f"{field.name}={field.default}" for field in settings_of(cls))


def _policies() -> tuple[list[str], list[list[Any]]]:
    rows = []
    for name in registry.policies:
        cls = registry.policies[name]
        solver = ", ".join(f"{model}: {own.solver}" for model, own in cls.models.items())
        rows.append([name, _settings(cls), solver, " ".join(sorted(cls.machines)), first_line(cls)])
    return ["policy", "settings", "model: solver", "machines", "what it does"], rows


def _solvers() -> tuple[list[str], list[list[Any]]]:
    from optsched.solvers.dispatch import classes_of
    from optsched.solvers.solver_call import check_models, version_of

    rows = []
    for cls in chain.from_iterable(map(classes_of, registry.solvers)):
        try:
            check_models(cls)
            version = version_of(cls)
        except InputError as error:
            say(f"optsched: left out: {error}")
            continue
        models = "all that are formulated" if cls.models is None else " ".join(sorted(cls.models))
        installed = version or f"no (needs {cls.requires})"
        rows.append([cls.name, installed, cls.exact, models, cls.work_unit, first_line(cls)])
    return ["solver", "installed", "exact", "models", "work in", "what it does"], rows


def _profiles() -> tuple[list[str], list[list[Any]]]:
    rows = []
    for profile in map(load_profile, profile_names()):
        options = " ".join(f"{key}={value}" for key, value in profile.options.items())
        rows.append([profile.name, profile.solver, options, profile.description])
    return ["profile", "solver", "options", "what it is for"], rows


def _models() -> tuple[list[str], list[list[Any]]]:
    rows = []
    for name in registry.models:
        cls = registry.models[name]
        special = [s for s in registry.solvers if name in _models_of(s)]
        rows.append([name, cls.default_solver, " ".join(special), first_line(cls)])
    return ["model", "default solver", "its own solvers", "what it decides"], rows


def _models_of(solver: str) -> frozenset[str]:
    models = registry.solvers[solver].models
    return models if isinstance(models, frozenset) else frozenset()


def _machines() -> tuple[list[str], list[list[Any]]]:
    kinds = [(registry.machines[name], name) for name in registry.machines]
    return ["machine", "what it is"], [[cls.usage, first_line(cls)] for cls, _ in kinds]


def _executions() -> tuple[list[str], list[list[Any]]]:
    classes = [registry.executions[name] for name in registry.executions]
    rows = [[cls.name, _settings(cls), first_line(cls)] for cls in classes]
    return ["execution model", "settings", "what it does"], rows


def _workloads() -> tuple[list[str], list[list[Any]]]:
    from optsched.workloads.spec_file import read_workload, workload_names

    specs = [read_workload(name) for name in workload_names()]
    rows = [[spec.title, spec.name, spec.processors, spec.description] for spec in specs]
    without = set(registry.workloads) - {spec.name for spec in specs}
    rows += [[None, name, None, first_line(registry.workloads[name])] for name in sorted(without)]
    return ["workload", "model", "processors", "what it is"], rows


def _studies() -> tuple[list[str], list[list[Any]]]:
    classes = [registry.studies[name] for name in registry.studies]
    return ["study", "paper"], [[cls.name, cls.paper] for cls in classes]


def _formats() -> tuple[list[str], list[list[Any]]]:
    rows = []
    for name in registry.readers:
        cls = registry.readers[name]
        rows.append([name, " ".join(cls.suffixes), first_line(cls)])
    return ["format", "suffixes", "what it is"], rows


_LISTS = {
    "policies": _policies,
    "solvers": _solvers,
    "profiles": _profiles,
    "models": _models,
    "machines": _machines,
    "executions": _executions,
    "workloads": _workloads,
    "studies": _studies,
    "formats": _formats,
}
