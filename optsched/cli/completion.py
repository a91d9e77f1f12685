"""Completion of names in shells: what Tab offers for the word that is typed."""

from __future__ import annotations

import os
from collections.abc import Callable
from glob import escape, glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.completion import CompletionContext

Completer = Callable[["CompletionContext"], list[str]]

COMMAS = ("""printf -v _q '%q' "$_x";""", """printf -v _q '%q' "$_x"; _q="${_q//\\\\,/,}";""")
"""What the script for bash does with a name, and what it does so that commas have no backslash."""


def installer(app: App) -> Callable[..., Path]:
    """Return a function that installs the completion of an application."""

    def install(**given: Any) -> Path:
        script = app.install_completion(**given)
        script.write_text(script.read_text().replace(*COMMAS))
        return script

    return install


def registered(kind: str) -> Completer:
    """Return the completer of the names of a registry."""

    def complete(_context: CompletionContext) -> list[str]:
        from optsched import registry

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
    from optsched import registry
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
    from optsched import registry
    from optsched.content import bundled_sites

    kinds = [f"{kind}:" for kind in registry.machines]
    sites = [f"site:{name}" for name in bundled_sites()]
    return [*kinds, *sites, *files(context.incomplete, ".toml")]


def setting_names(context: CompletionContext) -> list[str]:
    """Return the settings of the policies that are typed, or of all, with what they may be."""
    from optsched import registry
    from optsched.settings import settings_of

    typed = [token.value for token in context.arguments["--policy"].tokens]
    policies = typed[0].split(",") if typed else list(registry.policies)
    found = [one for policy in policies for one in settings_of(registry.policies[policy])]
    return [f"{name}=" for name in dict.fromkeys(setting.name for setting in found)]


def captured_names(context: CompletionContext) -> list[str]:
    """Return the bundled folders with captured output of Slurm, and folders."""
    from optsched.content import bundled_sites

    known = [name for name, path in bundled_sites().items() if path.is_dir()]
    return [*known, *files(context.incomplete)]


def snapshot_names(context: CompletionContext) -> list[str]:
    """Return the names of the reference snapshots, with and without their models, and files."""
    from optsched.content import reference_snapshots

    known = list(reference_snapshots())
    short = (name.partition("/")[2] for name in known)
    return [*short, *known, *files(context.incomplete)]


def models_and_snapshots(context: CompletionContext) -> list[str]:
    """Return the names of models and of their reference snapshots, and files."""
    from optsched import registry

    return [*registry.models, *snapshot_names(context)]


def files(word: str, *suffixes: str) -> list[str]:
    """Return folders, with a slash, and the files whose names begin with a word."""
    found = (f"{one}/" if os.path.isdir(one) else one for one in glob(f"{escape(word)}*"))
    return [one for one in found if one.endswith(("/", *suffixes)) or not suffixes]
