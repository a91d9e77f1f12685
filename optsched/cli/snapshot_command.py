"""``optsched snapshot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from optsched.cli import BAD_INPUT, DONE
from optsched.cli.terminal import figure, print_json, print_lines, say
from optsched.errors import InputError
from optsched.models.snapshot_file import read_snapshot, save_snapshot

command = App(name="snapshot", help="Look at snapshots, check them, export them.")

Output = Annotated[Path, Parameter(alias="-o")]


@command.command
def show(snapshot: Path, /, *, json: bool = False) -> None:
    """Print a snapshot: the problem, where it came from, what is known of it.

    Parameters
    ----------
    snapshot
        A snapshot or a knapsack instance in the literature's text format.
    json
        Print it as one JSON object.
    """
    read = read_snapshot(snapshot)
    if json:
        print_json(read.to_json())
        return
    program = read.problem.formulate()
    lines = [
        ("kind", read.problem.name),
        ("size", read.problem.size),
        ("program", f"{program.num_variables:,} variables, {program.num_rows:,} rows"),
        *read.problem.describe(),
    ]
    lines += [(name, str(value)) for name, value in read.origin.items()]
    for name, value in read.known.items():
        text = figure(value) if isinstance(value, int | float) else str(value)
        lines.append((f"known {name}", text))
    print_lines(lines)


@command.command
def check(*snapshots: Path) -> int:
    """Check snapshots, and the solutions they claim to know.

    Parameters
    ----------
    snapshots
        Snapshot files; every mistake of every file is named.
    """
    if not snapshots:
        raise InputError("expected at least one snapshot")
    code = DONE
    for path in snapshots:
        try:
            mistakes = _doubts(path)
        except InputError as error:
            mistakes = [str(error)]
        for mistake in mistakes:
            say(f"optsched: {mistake}")
            code = BAD_INPUT
        if not mistakes:
            print(f"{path}: good")
    return code


@command.command
def export(snapshot: Path, /, *, output: Output) -> None:
    """Write the program of a snapshot for other solvers.

    Parameters
    ----------
    snapshot
        A snapshot.
    output
        The file to write: .lp, .mps, or .pb.txt for CP-SAT.
    """
    from optsched.models.export import export as write

    write(read_snapshot(snapshot).problem, output)
    print_lines([("written", output)])


@command.command
def convert(snapshot: Path, /, *, output: Output) -> None:
    """Write a snapshot as JSON: a knapsack instance in the literature's text format, say.

    Parameters
    ----------
    snapshot
        A snapshot or a text instance.
    output
        The file to write: .json or .json.gz.
    """
    save_snapshot(read_snapshot(snapshot), output)
    print_lines([("written", output)])


def _doubts(path: Path) -> list[str]:
    read = read_snapshot(path)
    problem, known = read.problem, read.known
    objective, bound = known.get("objective"), known.get("bound")
    found = []
    if "solution" in known:
        solution = problem.solution_from_json(known["solution"])
        found += [f"known solution: {violation}" for violation in problem.violations(solution)]
        if not found and problem.objective(solution) != objective:
            value = problem.objective(solution)
            found.append(f"known solution is worth {value}, known objective is {objective}")
    if objective is not None and bound is not None:
        reaches = objective <= bound if problem.sense == "max" else objective >= bound
        if not reaches:
            found.append(f"known objective {objective} is better than known bound {bound}")
    return [f"{path}: {doubt}" for doubt in found]
