"""``optsched solve``."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from optsched.cli import BAD_INPUT, DONE, INFEASIBLE, NO_SOLUTION, options
from optsched.cli.terminal import figure, print_json, print_lines, show_cursor, shows_progress, warn
from optsched.errors import InputError, StatementError
from optsched.files import check_output, write_json
from optsched.folders import read_object
from optsched.models.node_placement.problem import NodePlacement
from optsched.models.node_placement.rules import with_rules
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import read_snapshot, sources
from optsched.report import displays
from optsched.report.solutions import find_picture
from optsched.report.style import check_suffix, save_as
from optsched.solvers.comparison.claims import read_known, reconcile
from optsched.solvers.finding import check_options, find_solver
from optsched.solvers.interruption import PATIENCE, noted_once, requested
from optsched.solvers.result import Budget, Limit, Result, Status
from optsched.solvers.separate_process import EndedError, SeparateProcess
from optsched.solvers.solver_call import answer_to_json, verify
from optsched.solvers.solving import solve

DEFAULT_SECONDS = 60.0
"""Default time limit in seconds, if neither the user nor a profile gives a budget."""

EXIT = {
    Status.OPTIMAL: DONE,
    Status.FEASIBLE: DONE,
    Status.INFEASIBLE: INFEASIBLE,
    Status.NO_SOLUTION: NO_SOLUTION,
    Status.ERROR: BAD_INPUT,
}


def command(
    snapshot: Annotated[Path, Parameter(completer=options.snapshot_names)],
    /,
    *,
    solver: options.SolverName | None = None,
    time_limit: options.Seconds | None = None,
    work_limit: options.Number | None = None,
    seed: options.Integer | None = None,
    hint: options.SolverName | None = None,
    json: options.Json = False,
    output: options.Output | None = None,
    picture: Path | None = None,
    model: options.Models = None,
    rule: options.Rules = None,
) -> int:
    """Solve one snapshot of a decision.

    Parameters
    ----------
    snapshot
        A snapshot (.json, .json.gz), a name (see `optsched list snapshots`), or a problem in
        another format: OR-Library text (.txt; FILE.txt#3 is the third in it), knapsacks as CSV, or
        a program (.lp, .mps).
    solver
        A solver, a profile, a profile's TOML file or FILE.py:CLASS (see `optsched list
        solvers`). By default that of the model (see `optsched list models`).
    time_limit
        Wall-clock seconds; 60 if no limit is given.
    work_limit
        Deterministic work in the solver's own unit: nodes, or deterministic seconds of CP-SAT.
    seed
        Seed of the solver's random choices.
    hint
        A feasible solution to start from: the file of an answer (.json, as --output writes it), or
        a solver that finds one.
    output
        A file to write the JSON object to.
    picture
        A picture of the solution to write, .svg or .png.
    """
    options.import_models(model)
    for written in (output, picture):
        if written is not None:
            check_output(written, *sources(snapshot))
    if output and picture and os.path.realpath(output) == os.path.realpath(picture):
        raise InputError("is the output; expected another file to write to", file=picture)
    read = read_snapshot(snapshot)
    if rule:
        if not isinstance(read.problem, NodePlacement):
            reason = f"is for node-placement problems, not for {read.problem.name}"
            raise InputError(reason, field="--rule")
        # the known values are those without rules
        read = replace(read, problem=with_rules(read.problem, options.rules_of(rule)), known={})
    draw = None
    if picture is not None:
        check_suffix(picture)
        draw = find_picture(read.problem.name)
    known = read_known(read, snapshot)
    check_options(read, snapshot)
    name = solver or read.problem.solver
    budget = None
    if time_limit is not None or work_limit is not None:
        budget = options.budget_of(time_limit, work_limit)
    elif find_solver(name, read.problem.name)[1].budget == Budget():
        budget = Budget(DEFAULT_SECONDS)
    start = None if hint is None else _start(hint, read.problem)
    result = solve_in_process(read, solver, budget, start, seed, watched=True)
    reconciled = reconcile(read.problem, known, [result])
    result = reconciled.results[0]
    answer = describe(read, result) | {"contradictions": list(reconciled.contradictions)}
    if output is not None:
        write_json(output, answer)
    if picture is not None and draw is not None:
        if result.solution is None or not result.verified:
            warn(f"{picture}: not drawn, as there is no verified solution")
        else:
            save_as(draw(read.problem, result.solution), picture)
    if json:
        print_json(answer)
    else:
        print_lines(lines(read, result))
    if result.limit is Limit.INTERRUPT:
        found = "no solution so far" if result.solution is None else "the best solution so far"
        warn(f"interrupted: {found}")
    told = filter(None, reconciled.contradictions or (result.message, result.conflict))
    warn(*(f"{snapshot}: {text}" for text in told))
    return BAD_INPUT if reconciled.contradictions else EXIT[result.status]


def _start(hint: str, problem: Problem[Any]) -> Any:
    """Return the solution in the file of an answer, or else the name of a solver."""
    if not hint.endswith((".json", ".json.gz")):
        return hint
    answer = read_object(Path(hint), {"kind": str, "solution": dict})
    if answer["kind"] != problem.name:
        expected = f"{answer['kind']!r}; expected {problem.name}, as of the snapshot"
        raise InputError(expected, file=hint, field="kind")
    try:
        return problem.solution_from_json(answer["solution"])
    except StatementError:
        raise  # names the file of the model
    except InputError as error:
        raise error.within(hint) from None


def solve_in_process(
    snapshot: Snapshot,
    name: str | None,
    budget: Budget | None,
    hint: Any,
    seed: int | None,
    *,
    watched: bool = False,
) -> Result:
    """Solve in a separate process, by default with the default solver, and verify the result again.

    If the user watches, progress is shown on a terminal, and the first Ctrl-C is passed on to that
    process, which then returns its best solution. KeyboardInterrupt is raised if Ctrl-C is pressed
    before the search or twice, if the search does not end, and if the user does not watch.
    """
    display = watched and shows_progress()

    def answer() -> Result:
        limits: dict[str, Any] = {"budget": budget, "seed": seed, "interruptible": watched}
        found = solve(snapshot, name, hint=hint, display=display, **limits)
        return replace(found, problem=None)  # known here, and to send it takes time

    began = time.perf_counter()
    with ExitStack() as stack:
        process = stack.enter_context(SeparateProcess(answer))
        if watched:
            stack.enter_context(noted_once(process.interrupt, 1 + PATIENCE))
        if display:
            stack.callback(show_cursor)  # which a process that is ended may have hidden
        try:
            return verify(snapshot.problem, process())
        except EndedError as error:
            if requested():
                raise KeyboardInterrupt from None
            seconds = time.perf_counter() - began
            label = name or snapshot.problem.solver
            return Result(label, Status.ERROR, seconds=seconds, message=f"{label} {error}")


def describe(snapshot: Snapshot, result: Result) -> dict[str, Any]:
    """Return a result as a JSON-able object."""
    problem = snapshot.problem
    plain = ("solver", "version", "status", "limit", "objective", "bound", "gap", "seconds")
    return {
        "kind": problem.name,
        **{name: getattr(result, name) for name in (*plain, "work", "seed", "verified")},
        "violations": [str(violation) for violation in result.violations],
        "message": result.message,
        "conflict": None if result.conflict is None else asdict(result.conflict),
        "solution": answer_to_json(problem, result),
    }


def lines(snapshot: Snapshot, result: Result) -> list[tuple[str, str]]:
    """Return a result as lines for a terminal."""
    problem = snapshot.problem
    shown = [
        ("problem", f"{problem.name} {problem.size}"),
        ("solver", f"{result.solver} {result.version}".rstrip()),
        *((name, figure(value)) for name, value in displays.answer(result)),
    ]
    known = {name: snapshot.known.get(name) for name in ("objective", "bound")}
    if known["objective"] is not None:
        is_open = known["bound"] not in (None, known["objective"])
        bound = f", bound {figure(known['bound'])}" if is_open else ""
        shown.append(("best known", f"{figure(known['objective'])}{bound}"))
    shown += [line for line in snapshot.describe_origin() if line[0] == "scaled"]
    if result.solution is not None and result.verified:
        shown += problem.describe(result.solution)
    elif result.solution is not None:
        shown.append(("refused", answer_to_json(problem, result)))
    return shown + [("violation", str(violation)) for violation in result.violations]
