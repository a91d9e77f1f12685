"""All kernels compiled ahead: each reference snapshot and each policy is used once, in small."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from optsched import registry
from optsched.cli.terminal import progress_bar, say_note, shows_progress
from optsched.content import bundled
from optsched.cores import cores
from optsched.errors import InputError
from optsched.models.snapshot_file import read_snapshot, snapshot_files

if TYPE_CHECKING:
    from optsched.traces.trace import Trace

SAMPLES = {
    "nodes": ("nodes:256", "sample-256.swf"),
    "torus": ("torus:8x8x4", "sample-256.swf"),
    "matrix": ("matrix:256", "sample-256.swf"),
    "smp": ("smp:64x4", "sample-256.swf"),
    "cluster": ("cluster:8x20", "sample-8x20.rackham"),
    "site": ("site:sample-site", "sample-256.swf"),
}
"""A machine and a bundled trace for each kind of machine."""

JOBS = 200
"""Number of jobs of a simulation, enough for a queue."""

LONGEST = ("window-mkp", "migration", "node-placement", "gang", "locality", "rua")
"""Models and policies whose kernels take longest to compile."""

PROCESSES = 2
"""Number of processes: more would compile the same kernels."""


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
    from optsched.simulator.simulate import simulate

    machine, trace = SAMPLES[kind][0], _trace(kind)
    some = (1, JOBS)
    run = simulate(trace, machine, policy, jobs=some, check=True, compiled_from=0)
    assert run.summary
    simulate(trace, machine, policy, jobs=some, compiled_from=0)


def _trace(kind: str) -> Trace:
    from optsched.traces.annotations import drawn
    from optsched.traces.reading import read_trace

    trace = read_trace(bundled("traces") / "samples" / SAMPLES[kind][1])
    none = np.zeros(len(trace), dtype=np.int64)
    annotations = {**trace.annotations, "priority": none}
    trace = trace.changed(wait=none, annotations=annotations)  # for as-logged and priority
    return drawn(trace, "HIGH") if kind == "smp" else trace
