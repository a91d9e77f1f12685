"""``optsched slurm explain``."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from optsched.cli import DONE, NO_SOLUTION, options
from optsched.cli.solve_command import solve_in_process
from optsched.cli.terminal import (
    labelled,
    print_json,
    print_line,
    print_lines,
    print_table,
    say_note,
)
from optsched.errors import InputError
from optsched.models.hold import Hold
from optsched.models.hold.program import Shortage, shortage
from optsched.models.snapshot import Snapshot
from optsched.numbers import LONGEST, counted, moment, parse_moment, short
from optsched.sites.job_request import CORES, MEMORY
from optsched.sites.site import typed
from optsched.sites.slurm_notation import host_list
from optsched.slurm.capture import captured
from optsched.slurm.explain import DEFAULT, Explanation
from optsched.slurm.explain import explain as explained
from optsched.slurm.hold_problem import ACTIONS, UNTIL, Question
from optsched.slurm.order import tasks
from optsched.slurm.pins import without_pins
from optsched.slurm.plan import blocked_by_site
from optsched.slurm.queue import read_factors
from optsched.slurm.relief import Relief
from optsched.slurm.running import read_captured
from optsched.slurm.starts import when
from optsched.slurm.what_if import Change, Present, changed, read_changes
from optsched.solvers.finding import find_solver
from optsched.solvers.result import Budget, Result, Status

SECONDS = 10.0  # default time limit of the solver in seconds
MICROSECONDS = 3.6e9  # microseconds of an hour
RULE = "cheapest-first"  # the rule that gives an exact solver a first answer
CLOSED = (Status.OPTIMAL, Status.INFEASIBLE)  # states of an answer that is proven


class Answer(NamedTuple):
    """The least to do, if it is known."""

    relief: Relief | None = None  # the cheapest answer
    result: Result | None = None  # what the solver said of it; of any question without an answer
    # Whether it is proven that there is no cheaper answer, or none at all, at any start by the
    # time, and that there is none at its start
    proven: bool = False
    proven_there: bool = False


def explain(
    job: str,
    /,
    *,
    source: options.Captured = None,
    by: str | None = None,
    within: options.Seconds | None = None,
    actions: Annotated[
        str, Parameter(completer=options.comma_separated(lambda _: [*ACTIONS]))
    ] = ",".join(DEFAULT),
    force: Annotated[bool, Parameter(negative="")] = False,
    solver: str | None = None,
    time_limit: options.Seconds = SECONDS,
    rule: options.Rules = None,
    what_if: options.WhatIf = None,
    json: options.Json = False,
) -> int:
    """Say why a pending job does not start, when it can, and the least to do so that it does.

    Nothing is done: the commands for a shell are only printed.

    Parameters
    ----------
    job
        The number of the job: 17, or 17_3 for a task of an array.
    by
        When the job is to start at the latest: a time such as 18:00 or 2026-11-25T18:00, in this
        machine's time zone, or with an offset, as in 2026-11-25T18:00+01:00, or seconds since
        1970; by default now.
    within
        In how many seconds the job is to start at the latest, in place of --by.
    actions
        What may be done, with commas: requeue, hold, drain, migrate, resume.
    force
        Print the commands that stop running jobs even if something about the job is unknown.
    solver
        A solver of hold; by default the default solver of the model.
    time_limit
        Wall-clock seconds of the solver, for a start now, and again for all later ones together.
    """
    if by is not None and within is not None:
        raise InputError("expected without --by", field="--within")
    if within is not None and not 0 <= within <= LONGEST:
        expected = "expected a number of seconds from 0 to 10^9"
        raise InputError(f"{within:g}; {expected}", field="--within")
    asked = tuple(actions.split(","))
    find_solver(solver or Hold.default_solver, Hold.name)
    options.budget_of(time_limit)
    changes = read_changes(what_if or ())
    with captured(source) as folder:
        found = _explanation(folder, job, by, within, asked, force, changes)
        before = None
        if changes:
            with suppress(InputError):  # a job that is there only then
                before = _explanation(folder, job, by, within, asked, force)
    notes = (*found.supply.notes, *found.queue.notes)
    say_note(*(f"optsched: {note}" for note in notes))
    kept_by = blocked_by_site(found.queue, found.supply, found.job, options.rules_of(rule))
    answer = _least(found, solver, time_limit)
    if json:
        print_json(_describe(found, answer) | {"site_rule": kept_by or None})
    else:
        if kept_by:
            print_lines([("rule of the site", kept_by)])
        print_lines(labelled("what if", (each.dated(found.supply.time) for each in changes)))
        given = [] if source is None else ["--from", str(source)]
        if before is not None:
            said = before.rule or before.left or f"earliest start {_earliest(before, given)}"
            print_lines([("without it", said)])
        given += _supposed(each.text for each in changes)
        _print(found, answer, given, is_real=not changes)
    is_open = answer.result is not None and answer.relief is None and not answer.proven
    return NO_SOLUTION if is_open else DONE


def _explanation(
    folder: Path,
    label: str,
    by: str | None,
    within: float | None,
    actions: tuple[str, ...],
    force: bool,
    changes: Sequence[Change] = (),
) -> Explanation:
    queue, supply = read_captured(folder)
    present = changed(Present(without_pins(queue), supply), changes)
    queue, supply = present.queue, present.supply
    at = supply.time + round(within or 0)
    if by is not None:
        try:
            at = parse_moment(by, supply.time)
        except InputError as error:
            raise InputError(*error.mistakes, field="--by") from None
    with options.as_options(("by", "actions")):
        return explained(
            queue, supply, label, by=at, actions=actions, force=force, factors=read_factors(folder)
        )


def _least(found: Explanation, solver: str | None, time_limit: float) -> Answer:
    """Return the cheapest answer to the questions of all starts, each solved in turn."""
    if found.left or found.is_expected or found.rule_then:
        return Answer()
    least, unsolved, proven = Answer(), None, True
    until = math.inf  # of the starts but the first, which have the time limit once more together
    for start in found.starts:
        left = min(time_limit, until - time.monotonic())
        if left <= 0:
            proven = False
            break
        results, best = [], Answer()
        for question in () if found.rule_at(start) else found.questions(start):
            result = _solved(question, solver, left)
            results.append(result)
            if result.solution is not None and result.verified:
                relief = Relief(found, question, result.solution)
                if best.relief is None or _cost(relief) < _cost(best.relief):
                    best = Answer(relief, result)
        closed = all(each.status in CLOSED for each in results)
        proven &= closed
        unsolved = unsolved or next(iter(results), None)
        if until == math.inf:
            until = time.monotonic() + time_limit
        if best.relief is None:
            continue
        if not best.relief.count:  # nothing is less
            return best._replace(proven=True, proven_there=True)
        if least.relief is None or _cost(best.relief) < _cost(least.relief):
            least = best._replace(proven_there=closed)
    return (least if least.relief else Answer(None, unsolved))._replace(proven=proven)


def _solved(question: Question, solver: str | None, time_limit: float) -> Result:
    if not shortage(question.problem).is_proof:
        solver = RULE  # which lifts nothing then, and nothing is less
    hint = None if solver == RULE else RULE
    result = solve_in_process(Snapshot(question.problem), solver, Budget(time_limit), hint, None)
    if result.status is Status.ERROR:
        raise InputError(result.message or f"{result.solver} failed")
    return result


def _cost(relief: Relief) -> tuple[int, int, int]:
    """Return the cost of a relief: the lost node time, how much is done, the weight of nodes."""
    return relief.lost, relief.count, relief.weight


def _supposed(changes: Iterable[str]) -> list[str]:
    return [word for text in changes for word in ("--what-if", text)]


def _forecast(*words: str) -> str:
    return shlex.join(("optsched", "slurm", "forecast", *words))


def _print(found: Explanation, answer: Answer, given: Sequence[str], *, is_real: bool) -> None:
    """Print an explanation for people; with commands, unless something is only supposed.

    `given`: options of a forecast of the same state.
    """
    job, now = found.job, found.supply.time
    start = "no start planned"
    if job.start is not None:
        nodes = f" on {host_list(job.planned_nodes)}" if job.planned_nodes else ""
        start = f"start {when(job.start, now)}{nodes}"
    lines: list[tuple[str, Any]] = [
        ("job", f"{job.label} of {job.user or '-'}, partition {','.join(job.partitions) or '-'}"),
        ("by Slurm", f"{job.reason or 'no reason'}; {start}"),
    ]
    if found.rule:
        lines.append(("rule", found.rule))
        if users := found.limit_users:
            names = ", ".join(f"{user or '-'} {count:,}" for user, count in users[:5])
            lines.append(("in use by", names + (", ..." if len(users) > 5 else "")))
    if found.left:
        print_lines(lines if found.rule else [*lines, ("left to Slurm", found.left)])
        return
    lines += labelled("not known", found.unseen)
    lines += labelled("asks", _asks(found))
    lines += labelled("now", _short(found, found.shortage))
    if found.shortage.is_proof and found.shortage_of_idle.is_proof:
        lines += labelled("if no job ran", _short(found, found.shortage_of_idle))
    lines.append(("earliest start", _earliest(found, given)))
    if found.ahead:
        lines.append(("before it", _ahead(found)))
    lines += labelled("its priority", _priority(found))
    print_lines([*lines, *labelled("least to do", _to_do(found, answer, given))])
    if (relief := answer.relief) is None:
        return
    rows = []
    lifted = ((claim, (), claim.lost) for claim in relief.lifted)
    for claim, places, lost in (*lifted, *relief.moved):
        if (its := claim.job) is None:
            continue
        action = f"migrate to {host_list(places)}" if places else claim.action
        there: Sequence[str] = its.planned_nodes
        has_run = "-"
        if not claim.is_pending:
            there, has_run = [each.node for each in its.allocations], short(its.has_run(now))
        rows.append([action, its.label, its.user, host_list(there), has_run, _hours(lost)])
    if rows:
        print()
        print_table(["action", "job", "user", "nodes", "has run", "node-hours lost"], rows)
    if relief.withheld or not is_real:
        unknown = "something about the job is unknown: --force prints them"
        print()
        print_line(f"# no commands, as {unknown if relief.withheld else 'not all of this is so'}")
        return
    by_hand = [
        f"# first migrate job {claim.job.label} to {host_list(nodes)}: "
        "Slurm cannot, checkpoint and restart it by other means"
        for claim, nodes, _ in relief.moved
        if claim.job is not None
    ]
    parts = (
        ("", [*by_hand, *relief.lines]),
        (f"# at {moment(relief.question.start)}:", relief.at_start),
        (f"# once job {job.label} has started:", relief.afterwards),
    )
    for heading, listed in parts:
        for line in (heading, *listed) if listed else ():
            print_line(line)
    if relief.is_pinned:
        print_line(f"# if job {job.label} is requeued: optsched slurm reset --yes clears its pin")


def _ahead(found: Explanation) -> str:
    """Return how many jobs come first, and the highest of them."""
    number = tasks(found.ahead)
    higher = number - tasks(found.ahead_by_priority)
    names = ", ".join(each.label for each in found.ahead[:3])
    more = "" if len(found.ahead) <= 3 else ", ..."
    by = "by the tier of their partitions" if higher else "by priority"
    if 0 < higher < number:
        by = f"by priority, {higher:,} of them by the tier of a partition"
    return f"{counted(number, 'job')} {by}: {names}{more}"


def _priority(found: Explanation) -> list[str]:
    """Return the factors of the priority of the job, and in which those before it are ahead."""
    if found.released.priority != found.job.priority:
        priority, why = found.priority_then
        return [f"{priority:,} once it is released, as is assumed: {why}"]
    own = found.factors.get(found.job.job_id)
    if own is None:
        return []
    if found.job.priority_by_operator:
        return [f"{found.job.priority:,}, which an operator has set: it does not grow with age"]
    parts = [f"{name} {weighted:,}" for name, weighted in own.items() if weighted]
    lines = [f"{found.job.priority:,}: {', '.join(parts) or 'all factors are 0'}"]
    if found.behind:
        ahead = ", ".join(f"{name} {more:,}" for name, more in found.behind[:3])
        lines.append(f"the jobs before it have more, on average: {ahead}")
    return lines


def _hours(lost: int) -> str:
    """Return node time in microseconds as node-hours."""
    return f"{lost / MICROSECONDS:,.3g}"


def _when(at: int, now: int) -> str:
    return "now" if at <= now else f"in {short(at - now)}"


def _asks(found: Explanation) -> list[str]:
    """Return the request of the job, and where it is narrower than what Slurm would accept."""
    request = found.request
    names = found.supply.site.resources
    of_types = {
        base: sum(request.demand.get(names[at], 0) for at in types)
        for base, types in typed(names).items()
    }
    needs = [
        counted(needed, "core")
        if name == CORES
        else f"{needed:,} {'MB of ' if name == MEMORY else ''}{name}"
        for name in names
        if (needed := request.demand.get(name, 0)) > of_types.get(name, 0)
    ]
    each = ", each with" if request.chunks > 1 else " with"
    text = f"{counted(request.chunks, request.unit)}{each} {', '.join(needs) or 'nothing'}"
    if request.most_per_node and request.unit != "node":
        text += f", at most {request.most_per_node:,} on a node"
    if request.span != "anywhere":
        text += f", in one {request.span}"
    for limit in request.limits:
        text += f", in one of the {limit.level}"
    if request.exclusive:
        text += ", on nodes of its own"
    for name, count in request.licences.items():
        text += f", {count:,} of licence {name}"
    return [text, *request.notes]


def _short(found: Explanation, short_of: Shortage) -> list[str]:
    """Return how many nodes meet each requirement, and what follows."""
    (_, nodes), *rest = short_of.filters
    lines = [counted(nodes, "node"), *(f"{count:,} {text}" for text, count in rest)]
    span = found.request.span
    where = f" in {'' if span == 'anywhere' else f'{span} '}{short_of.group}, which has most"
    where = where if short_of.group else ""
    on, unit = "on" if found.request.unit == "node" else "for", found.request.unit
    room = f"room {on} {counted(short_of.room, unit)}{where}"
    lines.append(f"{room}, and {short_of.chunks:,} needed")
    names = sorted(found.request.licences)
    lines += [
        f"{each.free:,} free of licence {names[each.number]}, and {each.needed:,} needed"
        for each in short_of.licences
    ]
    if short_of.is_proof:
        return [*lines, f"so it cannot start{_as_known(found)}"]
    if found.rule:
        return [*lines, "so it would fit, and the rule keeps it from starting"]
    waits = "behind other jobs, or " if found.ahead else ""
    return [*lines, f"so it fits now, and waits {waits}for the next cycle of Slurm"]


def _earliest(found: Explanation, given: Sequence[str]) -> str:
    """Return the earliest start, by the time limits of running jobs."""
    once = "" if found.released is found.job else ", once it is released"
    if found.earliest is not None:
        text = _when(found.earliest, found.supply.time)
        if found.gives_up_switches:
            text += ", when it no longer waits for one switch"
        return f"{text}, if jobs end at their limits and no other job starts first{once}"
    if state := found.lacks_service:
        hint = state == "drained" and "resume" not in found.actions
        return f"{UNTIL[state]}{', see --actions resume' if hint else ''}"
    if found.shortage_of_idle.is_proof:
        return "none that is known" if found.unseen else "never, as the site is now"
    if not found.rule:
        return "unknown"
    ask = f"; see {_forecast(found.job.label, *given)}" if found.job.dependency else ""
    return f"unknown, as it is unknown when the rule ends{ask}"


def _to_do(found: Explanation, answer: Answer, given: Sequence[str]) -> list[str]:
    now = found.supply.time
    latest = "now" if found.by == now else f"at the latest {_when(found.by, now)}"
    if found.is_expected:
        expected = _when(found.job.start or now, now)
        return [f"{latest}: nothing has to be done, as Slurm expects to start it {expected}"]
    if found.rule_then:
        return [f"nothing lets it start {latest}: {found.rule_then}"]
    relief, result = answer.relief, answer.result
    stops = relief is None or any(not claim.is_pending for claim in relief.lifted)
    resume = []
    if stops and "resume" not in found.actions and found.resumed_fits:
        resume = ["it would fit if drained nodes were resumed: see --actions resume"]
    if relief is None:
        if answer.proven:
            proof = _as_known(found) or ": proven"
            return [f"nothing that may be done lets it start {latest}{proof}", *resume]
        return [f"not found within the time limit, to start {latest}", *resume]
    assert result is not None
    notes = [f"it is not pinned there: {relief.not_pinned}"] if relief.not_pinned else []
    if relief.raising:
        notes.append("raising it may delay the jobs that it passes; this command says by how much:")
        notes.append(_forecast(*given, *_supposed(relief.raising)))
    proof = "not proven to be the least"
    if answer.proven_there:
        proof = "the least as far as is known" if found.unseen else f"proven by {result.solver}"
        proof += "" if answer.proven else " for this start alone"
    at = f"to start {_when(relief.question.start, now)} on {host_list(relief.nodes)}"
    asked = "" if found.by == now else f"{latest}: "
    if not relief.count:
        steps = " and ".join(filter(None, (", ".join(relief.steps[:-1]), *relief.steps[-1:])))
        return [f"{asked}{f'{steps},' if steps else 'nothing has to be done'} {at}", *notes]
    pending = sum(claim.is_pending for claim in relief.lifted)
    resumed = sum(claim.job is None for claim in relief.lifted)
    counts = (
        ("requeue", len(relief.lifted) - pending - resumed, "job"),
        ("migrate", len(relief.moved), "job"),
        ("hold", pending, "job"),
        ("drain", len(relief.drained), "node"),
        ("resume", resumed, "node"),
    )
    parts = [f"{what} {counted(count, name)}" for what, count, name in counts if count]
    return [
        f"{asked}{', '.join(parts)}, {at}",
        f"{_hours(relief.lost)} node-hours are lost, {proof}",
        *resume,
        *notes,
    ]


def _as_known(found: Explanation) -> str:
    """Return the words that weaken a claim about a job of which not all is known."""
    return ", as far as is known" if found.unseen else ""


def _describe(found: Explanation, answer: Answer) -> dict[str, Any]:
    job = found.job
    described: dict[str, Any] = {
        "job": job.label,
        "user": job.user,
        "partition": ",".join(job.partitions),
        "time": found.supply.time,
        "reason": job.reason,
        "slurm_start": job.start,
        "slurm_nodes": list(job.planned_nodes),
        "rule": found.rule or None,
        "left": (found.left != found.rule and found.left) or None,
        "unseen": list(found.unseen),
    }
    if found.left:
        return described
    request, relief, result = found.request, answer.relief, answer.result
    least = None
    if result is not None:
        status = result.status
        if relief is not None and status in CLOSED and not answer.proven:
            status = Status.FEASIBLE
        elif relief is not None and answer.proven:
            status = Status.OPTIMAL
        if found.unseen and status in CLOSED:
            status = Status.FEASIBLE if relief is not None else Status.NO_SOLUTION
        least = {
            "solver": result.solver,
            "status": status.value,
            "proven": answer.proven and not found.unseen,
            "proven_for_start": answer.proven_there and not found.unseen,
            "start": None if relief is None else relief.question.start,
            "withheld": relief is not None and relief.withheld,
            "node_seconds": None if relief is None else relief.lost / 1e6,
            "lifted": [claim.name for claim in relief.lifted] if relief else [],
            "drained": list(relief.drained) if relief else [],
            "migrated": [
                {"job": claim.job.label, "nodes": list(nodes)}
                for claim, nodes, _ in (relief.moved if relief else ())
                if claim.job is not None
            ],
            "nodes": list(relief.nodes) if relief else [],
            "lines": list(relief.lines) if relief else [],
            "at_start": list(relief.at_start) if relief else [],
            "not_pinned": (relief.not_pinned or None) if relief else None,
            "afterwards": list(relief.afterwards) if relief else [],
        }
    return described | {
        "asks": {
            "chunks": request.chunks,
            "unit": request.unit,
            "demand": {name: request.demand.get(name, 0) for name in found.supply.site.resources},
            "most_per_node": request.most_per_node,
            "span": request.span,
            "one_of": [limit.level for limit in request.limits],
            "exclusive": request.exclusive,
            "licences": dict(request.licences),
            "notes": list(request.notes),
        },
        "now": _shortage(found, found.shortage),
        "idle": _shortage(found, found.shortage_of_idle),
        "earliest": found.earliest,
        "lacks_service": found.lacks_service or None,
        "resume_suffices": found.resumed_fits,
        "ahead": [each.label for each in found.ahead],
        "limit_users": dict(found.limit_users),
        "factors": dict(found.factors.get(found.job.job_id, {})),
        "behind_by": dict(found.behind),
        "by": found.by,
        "actions": list(found.actions),
        "rule_then": found.rule_then or None,
        "expected_by_then": found.is_expected,
        "least": least,
    }


def _shortage(found: Explanation, short_of: Shortage) -> dict[str, Any]:
    names = sorted(found.request.licences)
    return {
        "fits": not short_of.is_proof,
        "nodes": [{"requirement": text, "nodes": count} for text, count in short_of.filters],
        "room": short_of.room,
        "group": short_of.group or None,
        "chunks": short_of.chunks,
        "licences": [
            {"licence": names[each.number], "free": each.free, "needed": each.needed}
            for each in short_of.licences
        ],
    }
