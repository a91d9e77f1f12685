"""``optsched simulate``."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from optsched.cli import BAD_INPUT, DONE
from optsched.cli.options import Integer, Number, Output
from optsched.cli.terminal import figure, print_json, print_lines, progress_bar, say, say_file
from optsched.errors import InputError
from optsched.files import check_replaceable, write_json, written_folder
from optsched.models.snapshot_file import CAPTURE
from optsched.numbers import parse_span
from optsched.report.run_folder import FOLDER, fill
from optsched.settings import read_settings
from optsched.simulator.posing import never_answered
from optsched.simulator.simulate import prepare_trace, simulate
from optsched.solvers.result import Budget
from optsched.traces.demands import check_demands


def command(
    trace: str,
    /,
    *,
    output: Output,
    machine: str | None = None,
    policy: str = "easy",
    solver: str | None = None,
    settings: Annotated[list[str] | None, Parameter(name="--set", negative=())] = None,
    execution: str | None = None,
    jobs: str | None = None,
    event_order: Literal["batched", "one-by-one"] = "batched",
    time_limit: Number | None = None,
    work_limit: Number | None = None,
    seed: Integer | None = None,
    capture: Path | None = None,
    capture_every: Integer = 1,
    charge_decisions: bool = False,
    large_from: Integer | None = None,
    check: bool = False,
    journal: bool = False,
    demands_sha256: str | None = None,
    plots: bool = True,
    json: bool = False,
) -> int:
    """Run a trace under a policy, with a solver behind it, and write a run folder.

    Parameters
    ----------
    trace
        A trace file (.swf, .swf.gz, Batsim .json) or a name from the catalogue.
    output
        The run folder. A run that is there already is replaced.
    machine
        nodes:NUMBER, another of `optsched list machines`, or a TOML file; of the size that the
        trace states if left out.
    policy
        A policy; `optsched list policies`.
    solver
        Solver or profile that answers the policy's problems; `optsched list solvers`.
    settings
        KEY=VALUE, a setting of the policy or of the execution model; may be given several times.
    execution
        An execution model, which gives the jobs their speeds; `optsched list executions`.
    jobs
        FROM:TO, the jobs to run, counted in the cleaned trace from 1, both included.
    event_order
        What happens at one instant: all ends, all submissions, one decision; or each event alone.
    time_limit
        Wall-clock seconds for one problem. The run then depends on the machine.
    work_limit
        Work for one problem in the solver's own deterministic unit.
    seed
        Seed of the solver's random choices; the profile's own if left out.
    capture
        Folder that the posed problems are written to, as snapshots.
    capture_every
        Write every so-manieth problem.
    charge_decisions
        Let what is decided wait as long as the solver's work nominally takes.
    large_from
        Jobs of so many processors count as large; the tenth that needs most if left out.
    check
        Check the invariants of the simulation after every event (slow).
    journal
        Write every event and action to journal.parquet.
    demands_sha256
        SHA-256 that the file of demands beside the trace must have, as run.json states it.
    plots
        Draw the pictures and write the page, report.html.
    json
        Print the summary as one JSON object.
    """
    check_replaceable(output, FOLDER)
    if capture is not None:
        check_replaceable(capture, CAPTURE)
        if _nested(output, capture):
            raise InputError("lies in the other output folder or around it", field="--capture")
    budget = None
    if time_limit is not None or work_limit is not None:
        budget = Budget(time_limit, work_limit)
    span = _range(jobs)
    began = time.perf_counter()
    prepared = prepare_trace(trace)
    say_file(prepared)
    if demands_sha256 is not None:
        check_demands(prepared, demands_sha256)
    read_seconds = time.perf_counter() - began
    total = len(prepared) if span is None else span[1] - span[0] + 1
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))  # for what a solver prints
        folder = stack.enter_context(written_folder(output, FOLDER))
        captured = None
        if capture is not None:
            captured = stack.enter_context(written_folder(capture, CAPTURE))
        advance = stack.enter_context(progress_bar("simulating", total, "jobs"))
        run = simulate(
            prepared,
            machine,
            policy,
            settings=read_settings(settings or ()),
            solver=solver,
            budget=budget,
            seed=seed,
            execution=execution,
            jobs=span,
            event_order=event_order,
            capture=captured,
            capture_every=capture_every,
            charge_decisions=charge_decisions,
            large_from=large_from,
            check=check,
            journal=journal,
            progress=lambda done, now: advance(done),
        )
        timed = replace(run, timing=dict(run.timing) | {"read_seconds": read_seconds})
        fill(timed, folder, plots=plots)
        if captured is not None:
            write_json(captured / CAPTURE.marker, run.config)
    wrong = run.summary["wrong_answers"] or never_answered(run.decisions)
    code = BAD_INPUT if wrong else DONE
    for note in run.notes:
        say(f"optsched: {note}")
    for mishap in run.mishaps:
        say(f"optsched: {mishap}")
    if run.summary["waiting"]:
        say(f"optsched: {run.summary['waiting']:,} jobs wait for ever; the policy starts no more")
    if json:
        print_json(run.summary)
        return code
    print_lines(
        [(k, figure(value)) for k, value in run.summary.items() if not isinstance(value, dict)]
    )
    if run.trace.cleaning is not None:
        of_whole = "" if span is None else " of the whole trace"
        for line in run.trace.cleaning.lines():
            say(f"cleaning{of_whole}: {line.strip()}")
    print_lines([("run folder", output)] + ([("snapshots", capture)] if capture else []))
    speed = run.timing["jobs_per_second"]
    say(f"{run.timing['simulation_seconds']:.2f} s of simulation, {speed:,.0f} jobs/s")
    return code


def _nested(one: Path, other: Path) -> bool:
    one, other = one.resolve(), other.resolve()
    return one == other or one in other.parents or other in one.parents


def _range(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        return parse_span(text)
    except ValueError:
        expected = "expected FROM:TO, 1:5000 for instance"
        raise InputError(f"{text!r}; {expected}", field="--jobs") from None
