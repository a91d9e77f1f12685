"""``optsched simulate``, of one policy or several."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from optsched import registry
from optsched.cli import BAD_INPUT, DONE, INTERRUPTED
from optsched.cli.compare_command import print_comparison
from optsched.cli.options import (
    Completer,
    Integer,
    Number,
    Output,
    Rules,
    as_options,
    comma_separated,
    machine_names,
    registered,
    setting_names,
    solver_names,
    trace_names,
    workload_files,
)
from optsched.cli.sweep_command import execute_runs, say_failures, say_wrong_answers
from optsched.cli.terminal import print_json, print_lines, progress_bar, say, say_note, warn
from optsched.cli.trace_command import say_file
from optsched.compilation import clock
from optsched.errors import InputError, UnknownNameError
from optsched.files import check_replaceable, write_json, written_folder
from optsched.folders import RUN, SWEEP, finished_runs, read_object
from optsched.metrics.jobs import MEASURES
from optsched.models.snapshot_file import CAPTURE
from optsched.numbers import counted, percent, short
from optsched.registry import check_file
from optsched.report.page import compact, duration
from optsched.report.run_page import ignored
from optsched.report.saved import fill_run
from optsched.settings import read_settings, settings_of
from optsched.simulator.scenario import (
    OPTIONS,
    TRACE,
    Scenario,
    configure,
    described,
    from_words,
)
from optsched.simulator.simulate import prepared, run_scenario
from optsched.sweeps.sweep_file import KEYS, SweepPlan, read_sweep
from optsched.sweeps.sweep_folder import compared, write_comparison
from optsched.sweeps.sweeping import Sweep
from optsched.traces.cleaning import numbers_in
from optsched.traces.requests import check_demands
from optsched.traces.trace import CleaningReport


def summary_lines(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return label and text of each line, from the summary of a run, which has all figures."""
    outcomes = ("finished", "killed", "rejected", "waiting", "dropped")
    jobs = [f"{summary[key]:,} {MEASURES[key].name}" for key in outcomes if summary.get(key)]
    lines = [("jobs", f"{summary['jobs']:,}: {', '.join(jobs)}" if jobs else "0")]
    if summary["utilization"] is not None:
        span = duration(summary["makespan"]).text
        lines.append(("utilization", f"{percent(summary['utilization'])} over {span}"))
    lines += [
        (measure.replace("_", " "), amounts)
        for measure in ("wait", "response", "bounded_slowdown")
        if (amounts := _amounts(summary, f"{{}}_{measure}"))
    ]
    if summary.get("large_jobs"):
        wait = _amounts(summary, "large_{}_wait")
        large_from = counted(summary["large_from"], "processor")
        large = f"{summary['large_jobs']:,} of {large_from} or more"
        lines.append(("large jobs", f"{large}; wait {wait}"))
    if posed := summary.get("problems"):
        parts = [f"{posed:,}", f"{posed - summary['unproven']:,} proven"]
        if summary["fallbacks"]:
            parts.append(f"{summary['fallbacks']:,} decided by the fallback")
        if summary["wrong_answers"]:
            parts.append(counted(summary["wrong_answers"], "wrong answer"))
        lines.append(("problems", ", ".join(parts)))
    return lines


def cleaning_notes(config: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    """Return a line for each count of cleaning; none if it changed nothing."""
    report = None if summary["cleaning"] is None else CleaningReport.from_json(summary["cleaning"])
    if report is None or not report.counts():
        return []
    of_whole = "" if config["jobs"] is None else " of the whole trace"
    return [f"cleaning{of_whole}: {line.strip()}" for line in report.lines()]


def _amounts(summary: Mapping[str, Any], form: str) -> str:
    """Return mean, quantiles and maximum of a measure, those that the summary has."""
    places = {"mean": "mean", "median": "median", "p95": "95%", "max": "longest"}
    return ", ".join(
        f"{name} {compact(MEASURES[key], summary[key]).text}"
        for place, name in places.items()
        if summary.get(key := form.format(place)) is not None
    )


PLACE = re.compile(r"^(runs\[\d+\]\.)?(trace: |machine: |solver: )?")
"""Place of a mistake in a sweep file, which the user of these options has not written."""


def simulate_policies(
    policies: Sequence[str],  # two policies or more
    # The values of the options of a scenario by name, ``settings`` as a dictionary
    options: Mapping[str, Any],
    output: Path,  # the folder of the sweep
    *,
    # Whether to write the jobs as CSV too, to make the page, and to print JSON
    csv: bool,
    plots: bool,
    json: bool,
) -> int:
    """Run the same jobs under several policies, of which the first is the baseline.

    Runs that are finished in the folder are not repeated.
    """
    check_replaceable(output, SWEEP)
    sweep = Sweep(_planned(policies, options, "all" if csv else "jobs"), output)
    say(f"{counted(len(sweep.plan.runs), 'run')}, {len(sweep.pending):,} to do")
    if execute_runs(sweep, None) is None:
        return INTERRUPTED
    failed, wrong = say_failures(sweep), say_wrong_answers(sweep)
    code = BAD_INPUT if failed or wrong else DONE
    if len(finished_runs(output)[0]) < 2:
        warn("nothing to compare; expected two finished runs or more")
        return code
    comparison = compared(output)
    if all(run.summary["rejected"] == run.summary["jobs"] for run in comparison.runs):
        code = BAD_INPUT
    for run in comparison.runs:
        for left, what in (("rejected", "rejected"), ("waiting", "never started")):
            if jobs := run.summary[left]:
                warn(f"{run.name}: {counted(jobs, 'job')} {what}")
    warn(*dict.fromkeys(text for run in comparison.runs for text in ignored(run.config)))
    if not json:
        say_note(*cleaning_notes(comparison.runs[0].config, comparison.runs[0].summary))
    made = [("report", write_comparison(comparison, output))] if plots else []
    print_comparison(comparison.table, json=json)
    if not json:
        print_lines([("run folders", sweep.runs), *made])
    return code


def _planned(policies: Sequence[str], options: Mapping[str, Any], keep: str) -> SweepPlan:
    """Return the sweep of the policies: each has the settings and options that it has a use for."""
    if "" in policies:
        expected = "expected names with single commas between them"
        raise InputError(f"{options['policy']!r}; {expected}", field="--policy")
    for place, policy in enumerate(policies):
        if policy in policies[:place]:
            expected = "expected different policies"
            raise InputError(f"{policy!r} is given twice; {expected}", field="--policy")
    stated = {
        name: options[name]
        for name, option in OPTIONS.items()
        if name in options and options[name] not in (None, option.default)
    }
    settings, execution = stated.pop("settings", {}), stated.get("execution")
    stated.pop("policy", None)
    for name in stated:
        if name not in KEYS:
            raise InputError("is for one policy, not for several", field=OPTIONS[name].flag)
    for_problems = {name: stated.pop(name) for name in [*stated] if KEYS[name].needs_problems}
    known = {policy: _settings_of(policy, execution) for policy in policies}
    every = dict.fromkeys(name for own in known.values() for name in own)
    for name in settings:
        if name not in every:
            raise UnknownNameError(f"setting of {' and '.join(policies)}", name, [*every])
    blocks: list[dict[str, Any]] = []
    posing = []
    for policy in policies:
        own = {name: value for name, value in settings.items() if name in known[policy]}
        block = {"policy": policy} | ({"settings": own} if own else {})
        if configure(policy, execution, own)[0].posed():
            posing.append(policy)
            block |= for_problems
        blocks.append(block)
    if for_problems and not posing:
        flags = ", ".join(OPTIONS[name].flag for name in for_problems)
        raise InputError(f"none of the policies poses problems, so they have no use for {flags}")
    try:
        return read_sweep({"keep": keep, **stated, "runs": blocks})
    except InputError as error:
        raise InputError(*dict.fromkeys(PLACE.sub("", one) for one in error.lines())) from None


def _settings_of(policy: str, execution: str | None) -> list[str]:
    """Return the settings of a policy, and of the execution model, by default the policy's own."""
    model = execution or registry.policies[policy].execution
    parts = [registry.policies[policy], *([registry.executions[model]] if model else [])]
    return [setting.name for part in parts for setting in settings_of(part)]


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
    options = []
    for name, option in OPTIONS.items():
        if name == "trace":
            continue
        kind, negative = KINDS.get(option.kind, option.kind), None
        if isinstance(kind, tuple):
            kind = Literal[kind]
        if kind is dict:
            kind, negative = list[str], ()
        if option.default is None:
            kind = kind | None
        look = Parameter(
            name=option.flag, negative=negative, help=helps[name], completer=COMPLETERS.get(name)
        )
        options.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=option.default,
                annotation=Annotated[kind, look],
            )
        )
    signature = inspect.Signature([trace, *required, *options, *own[len(required) :]])
    command.__signature__ = signature  # type: ignore[attr-defined]
    return command


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
        if "rules" in options["settings"]:
            raise InputError("beside --set rules=; expected one of the two", field="--rule")
        options["settings"]["rules"] = ",".join(rule)
    if "," in options.get("policy", ""):
        if demands_sha256 is not None:
            raise InputError("is for one policy, not for several", field="--demands-sha256")
        policies = [name.strip() for name in options["policy"].split(",")]
        options["trace"] = trace
        return simulate_policies(policies, options, output, csv=csv, plots=plots, json=json)
    check_replaceable(output, RUN)
    replaced = None
    with suppress(InputError):  # of a folder without a run
        replaced = read_object(output / RUN.marker, {"policy": str})["policy"]
    capture = options.get("capture")
    if capture is not None:
        check_replaceable(capture, CAPTURE)
        one, other = output.resolve(), capture.resolve()
        if one.is_relative_to(other) or other.is_relative_to(one):
            raise InputError("lies in the other output folder or around it", field="--capture")
    with as_options(OPTIONS):
        scenario = Scenario(trace, **from_words(options))
    began = clock()
    source = prepared(scenario)
    say_file(source)
    if demands_sha256 is not None:
        check_demands(source, demands_sha256)
    read_seconds = clock() - began
    first, last = numbers_in(scenario.jobs, source)
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))  # for the output of solvers
        folder = stack.enter_context(written_folder(output, RUN))
        captured = None
        if capture is not None:
            captured = stack.enter_context(written_folder(capture, CAPTURE))
        advance = stack.enter_context(progress_bar("simulating", last - first + 1, "jobs"))
        given: dict[str, Any] = {"trace": source, "capture": captured}
        run = run_scenario(replace(scenario, progress=lambda done, now: advance(done), **given))
        run = replace(run, timing=dict(run.timing) | {"read_seconds": read_seconds})
        fill_run(run, folder, plots=plots, keep="all" if csv else "jobs")
        if captured is not None:
            write_json(captured / CAPTURE.marker, run.config)
    wrong = run.summary["wrong_answers"] or run.never_answered
    code = BAD_INPUT if wrong or run.summary["rejected"] == run.summary["jobs"] else DONE
    warn(*run.notes, *run.mishaps)
    if replaced is not None:
        say_note(f"optsched: replaced the run of {replaced} in {output}")
    if waiting := run.summary["waiting"]:
        never = "never starts" if waiting == 1 else "never start"
        warn(f"{counted(waiting, 'job')} {never} under this policy")
    if run.summary["rejected"] and "rejected_because" not in run.summary:
        warn(f"{counted(run.summary['rejected'], 'job')} rejected")
    for reason, jobs in run.summary.get("rejected_because", {}).items():
        warn(f"rejected ({counted(jobs, 'job')}): {reason}")
    if run.summary["rejected"] or run.summary["waiting"]:
        table = output / ("jobs.csv" if csv else "jobs.parquet")
        warn(f"the column reason of {table} says why each of these jobs never starts")
    if json:
        print_json(run.summary)
        return code
    say_note(*cleaning_notes(run.config, run.summary))
    written = [("run folder", f"{output}, with all figures in summary.json")]
    written += [("snapshots", str(capture))] if capture else []
    print_lines([*summary_lines(run.summary), *written])
    speed = run.timing["jobs_per_second"]
    say_note(f"{short(run.timing['simulation_seconds'])} of simulation, {speed:,.0f} jobs/s")
    return code
