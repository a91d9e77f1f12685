"""``optsched simulate``."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from optsched.class_file import check_file
from optsched.cli import BAD_INPUT, DONE
from optsched.cli.completion import (
    Completer,
    comma_separated,
    machine_names,
    registered,
    setting_names,
    solver_names,
    trace_names,
    workload_files,
)
from optsched.cli.options import Integer, Number, Output, Rules, as_options
from optsched.cli.run_summary import cleaning_notes, policy_of_run, summary_lines
from optsched.cli.simulate_policies import simulate_policies
from optsched.cli.terminal import print_json, print_lines, progress_bar, say, say_note
from optsched.cli.trace_files import say_file
from optsched.compilation import clock
from optsched.durations import short
from optsched.errors import InputError
from optsched.files import check_replaceable, write_json, written_folder
from optsched.models.snapshot_file import CAPTURE
from optsched.numbers import counted
from optsched.report.run_folder import FOLDER, fill
from optsched.settings import read_settings
from optsched.simulator.scenario import OPTIONS, TRACE, Option, Scenario, described, from_words
from optsched.simulator.simulate import prepared, run_scenario
from optsched.traces.demands import check_demands
from optsched.traces.job_spans import numbers_in

SEVERAL = {
    "policy": " Or several, separated by commas.",
    "settings": " Of several policies, those that have the setting take it.",
}
"""What the command adds to the help of options."""

COMPLETERS: dict[str, Completer] = {
    "machine": machine_names,
    "policy": comma_separated(registered("policies")),
    "settings": setting_names,
    "solver": solver_names,
    "execution": registered("executions"),
    "workload": workload_files,
}
"""What completes the values of options that are names."""

KINDS: dict[type[Any], Any] = {int: Integer, float: Number}
"""Command-line types of options, by type, where the two differ."""


def _with_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of a scenario to a command, after the required ones of the command."""
    trace, *own = list(inspect.signature(command, eval_str=True).parameters.values())[:-1]
    required = [one for one in own if one.default is one.empty]
    helps = {name: text + SEVERAL.get(name, "") for name, text in described().items()}
    options = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=_annotation(option, helps[name]),
        )
        for name, option in OPTIONS.items()
        if name != "trace"
    ]
    signature = inspect.Signature([trace, *required, *options, *own[len(required) :]])
    command.__signature__ = signature  # type: ignore[attr-defined]
    return command


def _annotation(option: Option, help_text: str) -> Any:
    """Return the command-line type of an option."""
    kind = KINDS.get(option.kind, option.kind)
    if isinstance(kind, tuple):
        kind = Literal[kind]
    name, negative = option.flag, None
    if kind is dict:
        kind, negative = list[str], ()
    if option.default is None:
        kind = kind | None
    return Annotated[
        kind,
        Parameter(
            name=name, negative=negative, help=help_text, completer=COMPLETERS.get(option.name)
        ),
    ]


@_with_options
def command(
    trace: Annotated[
        str | None, Parameter(help=f"{TRACE.help} None with --workload.", completer=trace_names)
    ] = None,
    /,
    *,
    output: Output,
    demands_sha256: str | None = None,
    file_sha256: Annotated[list[str] | None, Parameter(negative=())] = None,
    csv: bool = True,
    plots: bool = True,
    json: bool = False,
    rule: Rules = None,
    **options: Any,
) -> int:
    """Simulate a trace under a policy, with any solver for its decisions, or under several.

    Parameters
    ----------
    output
        The run folder; an existing run is replaced. With several policies, the folder of their runs
        and of the page that compares them; finished runs in it are not repeated.
    demands_sha256
        Expected SHA-256 of the file of demands beside the trace, as run.json states it.
    file_sha256
        FILE=SHA256, the expected SHA-256 of a file with a class, as run.json states it; may be
        given several times.
    csv
        Write jobs.csv beside jobs.parquet, which has the same table.
    plots
        Draw the pictures and write the page, report.html.
    json
        Print the summary as one JSON object.
    """
    for stated in file_sha256 or ():
        check_file(stated)
    if trace is None and options.get("workload") is None:
        raise InputError("missing; expected a trace, or --workload", field="TRACE")
    options["settings"] = read_settings(options.get("settings") or ())
    if rule:
        options["settings"]["rules"] = ",".join(rule)
    if "," in options.get("policy", ""):
        if demands_sha256 is not None:
            raise InputError("is for one policy, not for several", field="--demands-sha256")
        policies = [name.strip() for name in options["policy"].split(",")]
        options["trace"] = trace
        return simulate_policies(policies, options, output, csv=csv, plots=plots, json=json)
    check_replaceable(output, FOLDER)
    replaced = policy_of_run(output)
    capture = options.get("capture")
    if capture is not None:
        check_replaceable(capture, CAPTURE)
        if _nested(output, capture):
            raise InputError("lies in the other output folder or around it", field="--capture")
    with as_options(OPTIONS):
        scenario = Scenario(trace, **from_words(options))
    began = clock()
    source = prepared(scenario)
    say_file(source)
    if demands_sha256 is not None:
        check_demands(source, demands_sha256)
    read_seconds = clock() - began
    first, last = (1, len(source)) if scenario.span is None else numbers_in(scenario.span, source)
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))  # for the output of solvers
        folder = stack.enter_context(written_folder(output, FOLDER))
        captured = None
        if capture is not None:
            captured = stack.enter_context(written_folder(capture, CAPTURE))
        advance = stack.enter_context(progress_bar("simulating", last - first + 1, "jobs"))
        run = run_scenario(
            replace(
                scenario,
                trace=source,
                capture=captured,
                progress=lambda done, now: advance(done),
            )
        )
        run = replace(run, timing=dict(run.timing) | {"read_seconds": read_seconds})
        fill(run, folder, plots=plots, keep="all" if csv else "jobs")
        if captured is not None:
            write_json(captured / CAPTURE.marker, run.config)
    wrong = run.summary["wrong_answers"] or run.never_answered
    code = BAD_INPUT if wrong or run.summary["rejected"] == run.summary["jobs"] else DONE
    for message in (*run.notes, *run.mishaps):
        say(f"optsched: {message}")
    if replaced is not None:
        say_note(f"optsched: replaced the run of {replaced} in {output}")
    if waiting := run.summary["waiting"]:
        never = "never starts" if waiting == 1 else "never start"
        say(f"optsched: {counted(waiting, 'job')} {never} under this policy")
    if run.summary["rejected"] and "rejected_because" not in run.summary:
        say(f"optsched: {counted(run.summary['rejected'], 'job')} rejected")
    for reason, jobs in run.summary.get("rejected_because", {}).items():
        say(f"optsched: rejected ({counted(jobs, 'job')}): {reason}")
    if run.summary["rejected"] or run.summary["waiting"]:
        table = output / ("jobs.csv" if csv else "jobs.parquet")
        say(f"optsched: the column reason of {table} says why each of these jobs never starts")
    if json:
        print_json(run.summary)
        return code
    for line in cleaning_notes(run.config, run.summary):
        say_note(line)
    written = [("run folder", f"{output}, with all figures in summary.json")]
    written += [("snapshots", str(capture))] if capture else []
    print_lines([*summary_lines(run.summary), *written])
    speed = run.timing["jobs_per_second"]
    say_note(f"{short(run.timing['simulation_seconds'])} of simulation, {speed:,.0f} jobs/s")
    return code


def _nested(one: Path, other: Path) -> bool:
    one, other = one.resolve(), other.resolve()
    return one == other or one in other.parents or other in one.parents
