"""``optsched slurm``."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from cyclopts import App, Parameter

from optsched.cli import BAD_INPUT, DONE, NO_SOLUTION, options
from optsched.cli.solve_command import solve_in_process
from optsched.cli.terminal import (
    figure,
    labelled,
    print_json,
    print_line,
    print_lines,
    print_table,
    say_note,
    warn,
)
from optsched.content import bundled_sites
from optsched.errors import InputError
from optsched.files import check_output, write_text, written_folder
from optsched.models.node_placement.problem import NodePlacement, Placements
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import save_snapshot
from optsched.numbers import counted, percent, short
from optsched.sites.site_file import write_site_file
from optsched.sites.slurm_files import captured_folder
from optsched.sites.slurm_notation import host_list
from optsched.slurm.capture import FOLDER, capture, captured
from optsched.slurm.forecast import read_history
from optsched.slurm.order import age
from optsched.slurm.pins import Update, pinned_placements
from optsched.slurm.plan import (
    Ask,
    QueuePlan,
    Situation,
    current_situation,
    on_lighter_nodes,
    read_situation,
    strict,
)
from optsched.slurm.running import read_captured
from optsched.slurm.snapshot import Row
from optsched.slurm.starts import when
from optsched.slurm.supply import read_supply
from optsched.slurm.what_if import Change, read_changes
from optsched.solvers.finding import find_solver
from optsched.solvers.result import Budget, Result, Status
from optsched.solvers.separate_process import EndedError, SeparateProcess
from optsched.solvers.solver_call import verify
from optsched.solvers.solving import solve

SHOWN = 10  # most reasons that the summary of a plan lists of one kind
NO_PLACE = "-"  # what a table shows for no nodes

command = App(name="slurm", help="Plan the pending jobs of Slurm, and let Slurm follow the plan.")
command.command(
    "optsched.cli.slurm_explain_command:explain",
    name="explain",
    help="Say why a pending job does not start, when it can, and the least to do so that it does.",
)
command.command(
    "optsched.cli.slurm_forecast_command:forecast",
    name="forecast",
    help="Say when pending jobs start: by the time limits, and by how long like jobs have run.",
)
for _name, _help in (
    ("apply", "Plan, and pin the jobs to their nodes; earlier pins are replaced."),
    ("watch", "Apply a new plan again and again; at the end remove all pins."),
    ("reset", "Remove all pins: jobs become what they were."),
):
    command.command(f"optsched.cli.slurm_follow_command:{_name}", name=_name, help=_help)

SPARE = ("priority", "partition", "user", "start by Slurm", "nodes by Slurm")
"""Columns of a plan that a narrow terminal leaves out, the first one first."""

Weigh: TypeAlias = Annotated[
    str, Parameter(help="The weight of a job: priority, rank, nodes, cores or gpus.")
]

MOST_RESERVED = 100

MOMENT = 0.1  # seconds of a solver at least


@Parameter(name="*")
@dataclass(frozen=True)
class Asked:
    """The options of a plan.

    Parameters
    ----------
    solver
        A solver of node-placement; by default the default solver of the model.
    time_limit
        Wall-clock seconds of the solver.
    order
        weight: the jobs of greatest weight start; strict: no job that fits is passed over for
        others of lower priority.
    reserve
        So many of the jobs that do not fit now, the first ones by priority, are not delayed, as by
        Slurm's backfill scheduler; those of the plan are raised until they start.
    """

    solver: str | None = None
    time_limit: options.Seconds = 10.0
    weigh: Weigh = "priority"
    order: Literal["weight", "strict"] = "weight"
    reserve: options.Integer = 0
    rule: options.Rules = None

    @property
    def solver_name(self) -> str:
        """The solver, by default that of the model."""
        return self.solver or NodePlacement.default_solver

    def checked(self) -> Ask:
        """Return the request for a plan; check the solver and the limits before calling Slurm."""
        find_solver(self.solver_name, NodePlacement.name)
        options.budget_of(self.time_limit)
        if not 0 <= self.reserve <= MOST_RESERVED:
            expected = f"expected a number from 0 to {MOST_RESERVED}"
            raise InputError(f"{self.reserve}; {expected}", field="--reserve")
        rules = options.rules_of(self.rule)
        return Ask(self.weigh, self.order == "strict", self.reserve, rules)


BY_DEFAULT = Asked()


class Solved(NamedTuple):
    """A plan with the answer of the solver, which is None if there was nothing to place."""

    plan: QueuePlan
    result: Result | None


@command.command
def snapshot(
    *,
    source: options.Captured = None,
    weigh: Weigh = "priority",
    keep: Path | None = None,
    output: options.Output,
) -> None:
    """Write the pending jobs and what is free as a problem file, for `optsched solve`.

    Parameters
    ----------
    keep
        A folder in which to keep the output of Slurm's commands.
    output
        The file to write: .json or .json.gz.
    """
    if not output.name.endswith((".json", ".json.gz")):
        raise InputError("unknown suffix; expected .json or .json.gz", file=output)
    check_output(output, *_files_in(source))
    if keep is None:
        situation = situation_of(source, Ask(weigh))
    elif source is not None:
        raise InputError("expected without --from, which is such a folder", field="--keep")
    else:
        with written_folder(keep, FOLDER) as folder:
            capture(folder)
        check_output(output, *_files_in(keep))
        situation = read_situation(keep, Ask(weigh))
    save_snapshot(situation.snapshot(), output)
    _say_notes(situation)
    posed = situation.posed
    lines: list[tuple[str, Any]] = [
        ("jobs", figure(len(posed.rows))),
        ("nodes", figure(len(situation.supply.site.nodes))),
        *_reasons("blocked", posed.blocked),
        *_reasons("left to Slurm", posed.left),
        ("written", output),
    ]
    print_lines(lines)


@command.command
def plan(
    *,
    source: options.Captured = None,
    asked: Asked = BY_DEFAULT,
    what_if: options.WhatIf = None,
    json: options.Json = False,
) -> int:
    """Plan which pending jobs start now, and where, next to Slurm's own plan."""
    ask, changes = asked.checked(), read_changes(what_if or ())
    with captured(source) as folder:
        solved = planned(situation_of(folder, ask), asked)
        then: Solved | int | None = None
        if changes and not isinstance(solved, int):
            there = situation_of(folder, ask._replace(changes=changes))
            then = planned(there, asked, {*solved.plan.situation.notes})
    if isinstance(solved, int):
        return solved
    if isinstance(then, int):
        return then
    if json:
        print_json(_describe(solved) | ({} if then is None else {"what_if": _describe(then)}))
        return DONE
    if then is not None:
        _print_difference(solved, then, changes)
        return DONE
    _print_jobs(solved.plan)
    print_lines(_summary(solved))
    if solved.plan.updates.updates:
        print()
        print_updates(solved.plan.updates.updates, solved.plan)
    return DONE


@command.command
def site(*, source: options.Captured = None, output: options.Output) -> int:
    """Write the nodes as a site file, to edit and to simulate.

    Parameters
    ----------
    output
        The file to write: .toml.
    """
    _check(output, ".toml", source)
    with captured(source) as folder:
        supply = read_supply(folder)
    say_note(*(f"optsched: {note}" for note in supply.notes))
    # those with nodes and dates, which a site file can state
    kept = tuple(each for each in supply.reservations if each.nodes and each.start > -math.inf)
    found = replace(supply.site, reservations=kept)
    write_site_file(found, output)
    print_lines([("site", found.inventory), ("written", output)])
    return DONE


@command.command
def report(*, source: options.Captured = None, output: options.Output) -> int:
    """Write a page on the state of the nodes: what is free, who waits, and why.

    Parameters
    ----------
    output
        The file to write: .html.
    """
    from optsched.report.page import render
    from optsched.slurm.state import ClusterState, page

    _check(output, ".html", source)
    with captured(source, history=True) as folder:
        queue, supply = read_captured(folder)
        history = read_history(folder)
    given = next((name for name, path in bundled_sites().items() if path == source), source)
    found = page(ClusterState(queue, supply), history, given)
    write_text(output, render(found))
    print_lines([("state", found.lead), ("written", output)])
    return DONE


def _check(output: Path, suffix: str, source: Path | None) -> None:
    if output.suffix != suffix:
        raise InputError(f"unknown suffix; expected {suffix}", file=output)
    check_output(output, *_files_in(source))


def _files_in(folder: Path | None) -> list[Path]:
    """Return the files in a folder that must not be overwritten; none without a folder."""
    return [] if folder is None else sorted(captured_folder(folder).iterdir())


def situation_of(source: Path | None, ask: Ask) -> Situation:
    """Return the situation in a folder, or that of the Slurm of this machine."""
    with options.as_options(("weigh",)):
        return current_situation(ask) if source is None else read_situation(source, ask)


def planned(situation: Situation, asked: Asked, said: set[str] | None = None) -> Solved | int:
    """Return the plan that a solver finds, or the exit code if it finds none.

    The solver starts from the pins of earlier plans, which stay if its plan is no better.
    """
    _say_notes(situation, said)
    if not situation.posed.rows:
        return Solved(QueuePlan(situation, Placements((), ())), None)
    name, time_limit = asked.solver_name, asked.time_limit
    if situation.ask.strict:
        return _solve_strictly(situation, name, time_limit)
    stated = situation.snapshot()
    pinned = pinned_placements(situation.queue, situation.posed)
    result = solve_in_process(stated, name, Budget(time_limit), pinned, None)
    if result.solution is None or not result.verified:
        return _no_plan(result, name, time_limit)
    chosen = result.solution
    if pinned is not None and stated.problem.objective(pinned) == result.objective:
        chosen = pinned
    chosen = on_lighter_nodes(situation.posed.problem, chosen, situation.supply.weights)
    return Solved(QueuePlan(situation, chosen), result)


def _solve_strictly(situation: Situation, solver: str, time_limit: float) -> Solved | int:
    """Return the plan in strict order, which one process finds within the time limit."""
    posed, until = situation.posed, time.monotonic() + time_limit

    def answer(problem: NodePlacement, hint: Placements | None) -> Result:
        left = max(MOMENT, until - time.monotonic())
        found = solve(Snapshot(problem), solver, budget=Budget(left), hint=hint)
        return replace(found, problem=None)  # known here, and to send it takes time

    try:
        with SeparateProcess(partial(strict, posed, situation.supply, answer)) as process:
            found = process()
    except EndedError as error:
        ended = Result(solver, Status.ERROR, message=f"{solver} {error}")
        return _no_plan(ended, solver, time_limit)
    if found.placements is None and found.result is not None:
        return _no_plan(found.result, solver, time_limit)
    if found.proven < found.of:
        jobs = counted(found.of, "job")
        warn(f"the order is proven of the first {found.proven:,} of {jobs}")
    none = ((),) * len(posed.rows)
    chosen = found.placements or Placements(none, none)
    again = verify(posed.problem, Result(solver, Status.FEASIBLE, solution=chosen))
    if not again.verified:
        return _no_plan(again, solver, time_limit)
    chosen = on_lighter_nodes(posed.problem, chosen, situation.supply.weights)
    return Solved(QueuePlan(situation, chosen), found.result)


def _no_plan(result: Result, solver: str, time_limit: float) -> int:
    warn(result.message or f"{solver} found no plan within {time_limit:g} s")
    return BAD_INPUT if result.status is Status.ERROR else NO_SOLUTION


def print_updates(updates: Iterable[Update], plan: QueuePlan | None = None) -> None:
    """Print the lines of updates, and how the nice of raised jobs of a plan is set back by hand."""
    for update in updates:
        print_line(update.line)
    if plan is not None and (raised := plan.updates.raised):
        print_line(f"# {counted(len(raised), 'job')} raised until the start; soon afterwards:")
        print_line("# optsched slurm reset --yes")


def _print_jobs(plan: QueuePlan) -> None:
    """Print a table of the jobs that start now, beside Slurm's plan."""
    problem = plan.situation.posed.problem
    blocks = problem.switches is None and problem.blocks is not None
    columns = ["job", "user", "partition", "priority", "nodes"]
    columns += ["blocks" if blocks else "leaf switches", "nodes by Slurm", "start by Slurm"]
    now = plan.situation.supply.time
    rows = [
        [
            each.label,
            job.user,
            ",".join(job.partitions),
            f"{job.priority:,}",
            host_list(each.nodes) or NO_PLACE,
            ", ".join(each.groups) or NO_PLACE,
            host_list(job.planned_nodes) or NO_PLACE,
            when(job.start, now) if job.planned_nodes and job.start is not None else NO_PLACE,
        ]
        for each in plan.jobs
        for job in [each.job]
    ]
    if rows:
        print_table(columns, rows, SPARE)
        print()


def _summary(solved: Solved) -> list[tuple[str, Any]]:
    """Return lines on a plan: totals beside Slurm's, proof, and the jobs that are not in it."""
    plan, result = solved
    situation = plan.situation
    ours, slurm = plan.totals["plan"], plan.totals["slurm"]
    lines: list[tuple[str, Any]] = [("jobs", f"{ours['jobs']:,}; by Slurm {slurm['jobs']:,} now")]
    if plan.may_wait:
        lines.append(("", "Slurm may let them wait: it reserves nodes for jobs of higher priority"))
    lines += [
        (name, f"{ours[key]:,}" + (f"; by Slurm {slurm[key]:,} now" if slurm["jobs"] else ""))
        for name, key in (("weight", "weight"), ("leaf switches", "switches"))
        if key != "switches" or situation.posed.problem.switches is not None
    ]
    if result is not None:
        lines += [
            ("solver", f"{result.solver} {result.version}".rstrip()),
            ("status", f"{result.status.value}, verified"),
            ("objective", figure(result.objective)),
            ("bound", figure(result.bound)),
            ("gap", NO_PLACE if result.gap is None else percent(result.gap)),
            ("time", short(result.seconds)),
        ]
    now = situation.supply.time
    reserved = (
        f"job {one.row.label} starts in {short(one.start - now)} on {host_list(one.nodes)}, "
        "whatever starts now"
        for one in situation.reserved
    )
    lines += labelled("reserved", reserved)
    if situation.rules:
        lines.append(("rules", ", ".join(situation.rules)))
    unseen = (f"{text}: {counted(many, 'job')}" for text, many in plan.unseen.items())
    lines += labelled("not known", unseen)
    lines += _not_placed(plan)
    lines += _reasons("blocked", situation.posed.blocked)
    lines += _reasons("left to Slurm", situation.posed.left)
    lines += _reasons("not pinned", plan.updates.without)
    return lines


def _print_difference(now: Solved, changed: Solved, changes: Sequence[Change]) -> None:
    """Print which jobs start now only if something is different, and which then do not."""
    plan, then = now.plan, changed.plan
    print_lines(labelled("what if", (each.dated(plan.situation.supply.time) for each in changes)))
    starts, starts_then = (
        {each.label: each for each in one.jobs if each.nodes} for one in (plan, then)
    )
    rows = [
        [label, each.job.user, f"{each.job.priority:,}", host_list(each.nodes), what]
        for what, one, other in (
            ("starts only then", starts_then, starts),
            ("starts no more", starts, starts_then),
        )
        for label, each in one.items()
        if label not in other
    ]
    total = f"now {counted(len(starts), 'start')}, and then {len(starts_then):,}"
    print_lines([("plan", total if rows else f"{total}: the same ones")])
    if rows:
        print()
        print_table(["job", "user", "priority", "nodes", "what changes"], rows)
    results = [each.result for each in (now, changed) if each.result is not None]
    if any(each.status is not Status.OPTIMAL for each in results):
        print()
        print_line("Not both plans are proven: part of the difference may be the solver's.")


def _not_placed(plan: QueuePlan) -> list[tuple[str, Any]]:
    """Return the number of jobs that are not placed, and those of highest priority with reasons."""
    lines = [f"{len(plan.not_placed):,}"]
    tasks: dict[tuple[int, str], list[Row]] = {}
    for row, reason in plan.not_placed:
        tasks.setdefault((row.job.job_id, reason), []).append(row)
    for (_, reason), (first, *others) in list(tasks.items())[:SHOWN]:
        more = f" and {counted(len(others), 'more task')}" if others else ""
        waited = short(age(first.job, plan.situation.supply.time))
        who = f"job {first.label}{more}, priority {first.job.priority:,}, age {waited}"
        lines.append(f"{who}: {reason}")
    if rest := sum(map(len, list(tasks.values())[SHOWN:])):
        lines.append(f"{counted(rest, 'more job')}, see --json")
    return labelled("not placed", lines)


def _reasons(label: str, reasons: Mapping[str, str]) -> list[tuple[str, Any]]:
    """Return the number of jobs, then the reasons with the number of jobs of each."""
    counts = Counter(reasons.values()).most_common()
    lines = [f"{len(reasons):,}"]
    lines += [f"{counted(count, 'job')}: {reason}" for reason, count in counts[:SHOWN]]
    if rest := sum(count for _, count in counts[SHOWN:]):
        more = counted(len(counts) - SHOWN, "more reason")
        lines.append(f"{counted(rest, 'job')} for {more}")
    return labelled(label, lines)


def _describe(solved: Solved) -> dict[str, Any]:
    plan, result = solved
    names = ("solver", "version", "status", "objective", "bound", "gap", "seconds", "verified")
    answer = None if result is None else {name: getattr(result, name) for name in names}
    situation = plan.situation
    return {
        "site": situation.supply.site.name,
        "time": situation.supply.time,
        "weigh": situation.ask.weigh,
        "order": "strict" if situation.ask.strict else "weight",
        "answer": answer,
        **plan.to_json(),
    }


def _say_notes(situation: Situation, said: set[str] | None = None) -> None:
    """Say the notes that are not among those said before, and add them to these."""
    said = set() if said is None else said
    say_note(*(f"optsched: {note}" for note in dict.fromkeys(situation.notes) if note not in said))
    said.update(situation.notes)
