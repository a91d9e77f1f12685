"""Types of command-line options: their conversion to values, completion, and shared help."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from glob import escape, glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from cyclopts import Parameter, Token

from optsched import registry
from optsched.content import bundled_sites, reference_snapshots
from optsched.errors import InputError
from optsched.models.problem import Problem
from optsched.numbers import LARGEST, parse_integer, parse_number
from optsched.registry import find_class, models
from optsched.solvers.result import Budget

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext

Completer = Callable[["CompletionContext"], list[str]]
"""Function that offers names for the word that is typed when Tab is pressed."""


def registered(kind: str) -> Completer:
    """Return the completer of the names of a registry."""

    def complete(_context: CompletionContext) -> list[str]:
        return list(getattr(registry, kind))

    return complete


def study_names(context: CompletionContext) -> list[str]:
    """Return the names of studies."""
    from optsched.studies.folder import study_plans

    return sorted(study_plans())


def comma_separated(complete: Completer) -> Completer:
    """Return the completer of several names with commas between, of which none is offered again."""

    def complete_last(context: CompletionContext) -> list[str]:
        *before, last = context.incomplete.split(",")
        names = complete(type(context)(last, context.argument, context.arguments))
        return [",".join([*before, name]) for name in names if name not in before]

    return complete_last


def solver_names(context: CompletionContext) -> list[str]:
    """Return the names of solvers and profiles, and files of either."""
    from optsched.solvers.finding import profile_names

    return [*registry.solvers, *profile_names(), *files(context.incomplete, ".toml", ".py")]


def trace_names(context: CompletionContext) -> list[str]:
    """Return the names of the samples and of the catalogue, and files."""
    from optsched.traces.catalogue import entries, samples

    return [*samples(), *(entry.name for entry in entries()), *files(context.incomplete)]


def workload_files(context: CompletionContext) -> list[str]:
    """Return the bundled specs of workload models, and files of such."""
    from optsched.workloads.spec_file import workload_names

    return [*workload_names(), *files(context.incomplete, ".toml")]


def machine_names(context: CompletionContext) -> list[str]:
    """Return the kinds of machines, the bundled sites, and files of machines."""
    kinds = [f"{kind}:" for kind in registry.machines]
    sites = [f"site:{name}" for name in bundled_sites()]
    return [*kinds, *sites, *files(context.incomplete, ".toml")]


def setting_names(context: CompletionContext) -> list[str]:
    """Return the settings of the policies that are typed, or of all, with what they may be."""
    from optsched.settings import settings_of

    typed = [token.value for token in context.arguments["--policy"].tokens]
    policies = typed[0].split(",") if typed else list(registry.policies)
    found = [one for policy in policies for one in settings_of(registry.policies[policy])]
    return [f"{name}=" for name in dict.fromkeys(setting.name for setting in found)]


def captured_names(context: CompletionContext) -> list[str]:
    """Return the bundled folders with captured output of Slurm, and folders."""
    known = [name for name, path in bundled_sites().items() if path.is_dir()]
    return [*known, *files(context.incomplete)]


def snapshot_names(context: CompletionContext) -> list[str]:
    """Return the names of the reference snapshots, with and without their models, and files."""
    known = list(reference_snapshots())
    short = (name.partition("/")[2] for name in known)
    return [*short, *known, *files(context.incomplete)]


def models_and_snapshots(context: CompletionContext) -> list[str]:
    """Return the names of models and of their reference snapshots, and files."""
    return [*registry.models, *snapshot_names(context)]


def files(word: str, *suffixes: str) -> list[str]:
    """Return folders, with a slash, and the files whose names begin with a word."""
    found = (f"{one}/" if os.path.isdir(one) else one for one in glob(f"{escape(word)}*"))
    return [one for one in found if one.endswith(("/", *suffixes)) or not suffixes]


def _converter(parse: Callable[[str], Any]) -> Callable[[Any, Sequence[Token]], Any]:
    """Return a converter of one word to a number of at most 2^53."""

    def convert(_type: Any, tokens: Sequence[Token]) -> Any:
        [word] = tokens
        value = parse(word.value)
        if abs(value) > LARGEST:
            raise ValueError(f"{word.value!r}; expected a number of at most 2^53")
        return value

    return convert


Integer: TypeAlias = Annotated[int, Parameter(converter=_converter(parse_integer))]
"""A whole number in decimal digits."""

Number: TypeAlias = Annotated[float, Parameter(converter=_converter(parse_number))]
"""A number, which may have decimals and an exponent."""


def _seeds(_type: Any, tokens: Sequence[Token]) -> list[int]:
    read = _converter(parse_integer)
    return [read(int, [Token(value=word.strip())]) for word in tokens[0].value.split(",")]


Seeds: TypeAlias = Annotated[list[int], Parameter(converter=_seeds, negative="", n_tokens=1)]
"""Whole numbers, separated by commas."""


def _parse_seconds(text: str) -> float:
    try:
        return parse_number(text)
    except ValueError as error:
        raise ValueError(str(error).replace("a number", "a number of seconds")) from None


Seconds: TypeAlias = Annotated[float, Parameter(converter=_converter(_parse_seconds))]
"""A number of seconds."""

Output: TypeAlias = Annotated[Path, Parameter(alias="-o")]  # the file or folder to write to

Json: TypeAlias = Annotated[bool, Parameter(help="Print one JSON object.")]


def _captured(_type: Any, tokens: Sequence[Token]) -> Path:
    """Return the folder of a path, or of the name of a bundled one."""
    path = Path(tokens[0].value)
    known = bundled_sites().get(str(path), path)
    return known if known.is_dir() and not path.exists() else path


Captured: TypeAlias = Annotated[
    Path | None,
    Parameter(
        name="--from",
        converter=_captured,
        completer=captured_names,
        help="A folder with the output of Slurm's commands, or `sample-slurm`, which comes with "
        "optsched; by default the Slurm of this machine.",
    ),
]

TraceName: TypeAlias = Annotated[
    str,
    Parameter(help="A trace file or a name (see `optsched list traces`).", completer=trace_names),
]

SolverName: TypeAlias = Annotated[str, Parameter(completer=solver_names)]

Rules: TypeAlias = Annotated[
    list[str] | None,
    Parameter(
        name="--rule",
        negative="",
        help="FILE.py with rules that placements must keep, or FILE.py:NAME; may be repeated.",
    ),
]

_WHAT_IF = (
    "What is different: drain c[01-10] at 18:00, resume c01, add 10 like c01, priority 317 = 2000, "
    "limit 317 = 2:00:00, hold user anna, release 317, submit -N 20 -t 1:00:00, {}or @FILE with a "
    "line for each; may be repeated."
)

WhatIf: TypeAlias = Annotated[
    list[str] | None, Parameter(name="--what-if", negative="", help=_WHAT_IF.format(""))
]

ForecastWhatIf: TypeAlias = Annotated[WhatIf, Parameter(help=_WHAT_IF.format("policy none, "))]

Models: TypeAlias = Annotated[
    list[str] | None,
    Parameter(
        name="--model",
        negative="",
        help="FILE.py with a model of your own, which is run; may be repeated.",
    ),
]

TraceOutput: TypeAlias = Annotated[
    Output, Parameter(help="The file to write; the suffix states the format, .gz compresses.")
]


def budget_of(time_limit: float | None, work_limit: float | None = None) -> Budget:
    """Return the budget of ``--time-limit`` and ``--work-limit``; errors name the option."""
    limits = {"seconds": ("--time-limit", time_limit), "work": ("--work-limit", work_limit)}
    for name, (option, limit) in limits.items():
        try:
            Budget(**{name: limit})
        except InputError as error:
            raise InputError(*error.mistakes, field=option) from None
    return Budget(time_limit, work_limit)


def import_models(places: Sequence[str] | None) -> list[str]:
    """Run the files of ``--model``, which register their models, and return the names of these."""
    names = []
    for place in places or ():
        home = find_class(place)
        module = home.module()
        own = [
            one
            for name, one in vars(module).items()
            if isinstance(one, type) and issubclass(one, Problem)
            if one.__module__ == module.__name__ and home.name in ("", name)
        ]
        if not own:
            what = f"holds no model {home.name}".rstrip()
            expected = 'expected a function with @optsched.model("NAME")'
            raise InputError(f"{what}; {expected}", file=home.file)
        for one in own:
            name = getattr(one, "name", "")
            if name not in models or models[name] is not one:
                taken = f"{name!r}, which optsched has" if name else "no name of a model"
                raise InputError(f"{one.__name__} has {taken}", file=home.file)
            if name in names:
                raise InputError(f"{name} is a model of two files", field="--model")
            names.append(name)
    return names


def rules_of(places: Sequence[str] | None) -> dict[str, Any]:
    """Return the rules of ``--rule`` by name."""
    from optsched.models.node_placement.rules import rules_at

    return rules_at(places or (), "--rule")


@contextmanager
def as_options(names: Container[str]) -> Iterator[None]:
    """Replace the fields of errors by the options that the user typed, of the given names."""
    try:
        yield
    except InputError as error:
        name = (error.field or "").replace(" ", "_")
        if name not in names:
            raise
        option = f"--{name.replace('_', '-')}"
        raise InputError(*error.mistakes, file=error.file, field=option) from None
