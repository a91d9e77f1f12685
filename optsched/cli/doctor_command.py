"""``optsched doctor``."""

from __future__ import annotations

import multiprocessing
import os
import platform
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from typing import Any

import numpy as np

from optsched import registry
from optsched.cli import BAD_INPUT, DONE
from optsched.cli.options import Json
from optsched.cli.terminal import (
    print_json,
    print_lines,
    print_table,
    progress_bar,
    say_note,
    shows_progress,
)
from optsched.compilation import cores
from optsched.content import bundled, reference_snapshots
from optsched.errors import InputError
from optsched.kernel_cache import NotOnDiskError, only_loading
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import read_snapshot, snapshot_files
from optsched.numbers import counted
from optsched.solvers.comparison.claims import read_known, reconcile
from optsched.solvers.finding import classes_of, supports, version_of
from optsched.solvers.result import Budget, Status
from optsched.solvers.solver import Solver
from optsched.solvers.solving import solve
from optsched.traces.catalogue import folders
from optsched.version import __version__

SAMPLES = {
    "nodes": ("nodes:256", "sample-256.swf"),
    "torus": ("torus:8x8x4", "sample-256.swf"),
    "matrix": ("matrix:256", "sample-256.swf"),
    "smp": ("smp:64x4", "sample-256.swf"),
    "cluster": ("cluster:8x20", "sample-8x20.rackham"),
    "site": ("site:sample-site", "sample-256.swf"),
}
"""A machine and a bundled trace for each kind of machine."""

JOBS = 200  # number of jobs of a simulation, enough for a queue

LONGEST = ("window-mkp", "migration", "node-placement", "gang", "locality", "rua")
"""Models and policies whose kernels take longest to compile."""

PROCESSES = 2  # number of processes: more would compile the same kernels


def compile_all() -> None:
    """Compile the kernels of all solvers and policies of optsched, and keep them on disk."""
    parts = list_parts()
    if not shows_progress():
        say_note(f"compiling all kernels, {len(parts)} parts; this takes some minutes")
    context = multiprocessing.get_context("spawn")
    with (
        progress_bar("compiling", len(parts), "parts") as advance,
        ProcessPoolExecutor(min(PROCESSES, cores()), mp_context=context) as pool,
    ):
        for done, part in enumerate(as_completed([pool.submit(part) for part in parts]), 1):
            part.result()
            advance(done)


def list_parts() -> list[partial[None]]:
    """Return functions that together compile all kernels, the longest first."""
    solvers = [partial(_prepare, model) for model in registry.models]
    policies = [
        partial(_simulate, name, kind)
        for name in registry.policies
        for kind in sorted(registry.policies[name].machines & SAMPLES.keys())
        if registry.policies[name].__module__.startswith("optsched.")
    ]
    return sorted(solvers + policies, key=lambda part: part.args[0] not in LONGEST)


def _prepare(model: str) -> None:
    """Compile what the own solvers of a model need for its reference snapshots."""
    for file in snapshot_files(bundled("models") / model):
        problem = read_snapshot(file).problem
        for name in registry.solvers:
            if model in (registry.solvers[name].models or ()):
                with suppress(InputError):  # a solver may refuse a problem of its model
                    registry.solvers[name]().prepare(problem)


def _simulate(policy: str, kind: str) -> None:
    """Compile what a policy needs on a kind of machine, seen by others and alone."""
    from optsched.machines import texts
    from optsched.simulator.simulate import simulate
    from optsched.traces.reading import read_trace
    from optsched.traces.transformations import drawn

    texts.FEW = 0  # of this process, which only compiles
    machine, name = SAMPLES[kind]
    trace = read_trace(bundled("traces") / "samples" / name)
    none = np.zeros(len(trace), dtype=np.int64)
    annotations = {**trace.annotations, "priority": none}
    trace = trace.changed(wait=none, annotations=annotations)  # for as-logged and priority
    if kind == "smp":
        trace = drawn(trace, "HIGH")
    for seen in (True, False):
        run = simulate(trace, machine, policy, jobs=(1, JOBS), check=seen, compiled_from=0)
        assert run.summary or not seen


PACKAGES = ("numpy", "pandas", "pyarrow", "numba", "matplotlib", "networkx")

NOT_COMPILED = "not tried: not compiled yet"

BUDGET = Budget(seconds=10.0)  # budget of a solver, which needs a fraction of a second


def command(*, compile: bool = False, json: Json = False) -> int:  # noqa: A002 (an option)
    """Check the installation: versions, and a small problem for each solver.

    Parameters
    ----------
    compile
        Compile all kernels ahead, so that no later command waits for it: a minute or two. Solvers
        that are not compiled yet are not tried.
    """
    if compile:
        compile_all()
    installed = {
        "optsched": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **{package: _version(package) for package in PACKAGES},
        "content": str(bundled("models").parent),
        "traces": ":".join(map(str, folders())) or "samples; OPTSCHED_TRACES adds folders of logs",
    }
    classes = list(chain.from_iterable(map(classes_of, registry.solvers)))
    problems = list_problems()
    checked = []
    with progress_bar("trying", len(classes), "solvers") as advance:
        for cls in classes:
            checked.append(check(cls, problems))
            advance(len(checked))
    broken = [
        {"plug-in": name, "group": kind.group, "reason": reason}
        for kind in registry.all_kinds()
        for name, reason in kind.broken.items()
    ]
    if json:
        print_json({**installed, "solvers": checked, "broken": broken})
    else:
        print_lines(list(installed.items()))
        print()
        columns = ["solver", "version", "problem", "state"]
        print_table(columns, [[row[column] for column in columns] for row in checked])
        if broken:
            print()
            columns = ["broken plug-in", "group", "reason"]
            print_table(columns, [list(row.values()) for row in broken])
    if left := len({row["solver"] for row in checked if row["state"] == NOT_COMPILED}):
        ahead = "--compile does it ahead of first use"
        say_note(f"{counted(left, 'solver')} not compiled yet; {ahead}")
    healthy = not broken and all(row["works"] is not False for row in checked)
    return DONE if healthy else BAD_INPUT


def list_problems() -> dict[str, Snapshot]:
    """Return the reference snapshots that have a solution, by name, from the smallest file on."""
    files = sorted(reference_snapshots().items(), key=lambda item: item[1].stat().st_size)
    read = {name: read_snapshot(path) for name, path in files}
    return {name: one for name, one in read.items() if "objective" in one.known}


def check(cls: type[Solver], problems: dict[str, Snapshot]) -> dict[str, Any]:
    """Return the row of a solver; ``works`` is None for one that is not tried."""
    row: dict[str, Any] = {"solver": cls.name, "version": None, "problem": None, "works": None}
    try:
        row["version"] = version_of(cls)
        if row["version"] is None:
            return row | {"state": f"not installed: {cls.install_command()}"}
        own = [name for name, one in problems.items() if supports(cls, one.problem.name)]
    except InputError as error:
        return row | {"works": False, "state": str(error)}
    for name in own:
        row |= {"problem": name} | _try(cls, problems[name])
        if "state" in row:
            return row
    return row | {"problem": None, "state": "not tried: it solves no reference snapshot"}


def _try(cls: type[Solver], snapshot: Snapshot) -> dict[str, Any]:
    """Return how a solver answers; without a state if it refuses, or has no solution."""
    problem = snapshot.problem
    try:
        with only_loading():
            cls().prepare(problem)
    except NotOnDiskError:
        return {"works": None, "state": NOT_COMPILED}
    except Exception:
        pass  # as that of the solve, which names it
    try:
        result = solve(snapshot, cls(), budget=BUDGET, interruptible=False)
    except Exception as error:  # a user's solver may raise anything
        return {"works": False, "state": f"raises {type(error).__name__}: {error}"}
    reconciled = reconcile(problem, read_known(snapshot, problem.name), [result])
    if wrong := reconciled.contradictions:
        return {"works": False, "state": wrong[0]}
    if result.status is Status.NO_SOLUTION:
        return {"works": None}
    if not result.verified or (cls.exact and result.status is not Status.OPTIMAL):
        return {"works": False, "state": result.message or f"{result.status.value}, not optimal"}
    return {"works": True, "state": f"works ({result.seconds * 1e3:.2f} ms)"}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
