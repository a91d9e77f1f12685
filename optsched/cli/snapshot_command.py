"""``optsched snapshot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from optsched.cli import BAD_INPUT, DONE
from optsched.cli.options import Models, Output, import_models
from optsched.cli.terminal import figure, print_json, print_line, print_lines, say_error, warn
from optsched.errors import InputError
from optsched.files import check_output
from optsched.models.pages import stated_page
from optsched.models.snapshot import snapshot_schema
from optsched.models.snapshot_file import read_snapshot, save_snapshot, snapshot_files, sources
from optsched.registry import names_class
from optsched.solvers.comparison.claims import read_known, reconcile
from optsched.solvers.finding import check_options

command = App(name="snapshot", help="Inspect, check, convert and export snapshots.")


@command.command
def show(snapshot: Path, /, *, json: bool = False, model: Models = None) -> None:
    """Print a snapshot: the problem, its origin, and its known results.

    Parameters
    ----------
    snapshot
        A snapshot, a problem in another format (.txt, .csv, .lp, .mps), or a name (see `optsched
        list snapshots`).
    json
        Print the snapshot as one JSON object.
    """
    import_models(model)
    read = read_snapshot(snapshot)
    if json:
        print_json(read.to_json())
        return
    try:
        program = read.problem.formulate().program
        size = f"{program.num_variables:,} variables, {program.num_rows:,} rows"
    except InputError as error:  # too large, or the model has no formulation
        size = f"- ({error})"
    lines = [
        ("kind", read.problem.name),
        ("size", read.problem.size),
        ("program", size),
        *read.problem.describe(),
    ]
    lines += read.describe_origin()
    known = read_known(read, snapshot)
    for name, value in read.known.items():
        if name != "solution":
            text = figure(value) if isinstance(value, int | float) else str(value)
            lines.append((f"known {name}", text))
    if known.solution is not None:
        broken = [str(violation) for violation in read.problem.violations(known.solution)]
        lines += [("known solution", f"is wrong: {detail}") for detail in broken]
        if broken:  # the solution may name jobs and places that do not exist
            print_lines(lines)
            return
        placed = [f"{label}  {text}" for label, text in read.problem.describe(known.solution)]
        lines += zip(["known solution"] + [""] * (len(placed) - 1), placed)
    print_lines(lines)


@command.command
def check(*snapshots: Annotated[Path, Parameter(required=True)], model: Models = None) -> int:
    """Check snapshots and the known results in them.

    Parameters
    ----------
    snapshots
        Snapshot files, or folders of snapshots; every mistake of every file is reported.
    """
    import_models(model)
    code = DONE
    for path in (file for given in snapshots for file in snapshot_files(given)):
        try:
            read = read_snapshot(path)
            check_options(read, path)
            wrong = reconcile(read.problem, read_known(read, path), ()).contradictions
        except InputError as error:
            say_error(error)
            code = BAD_INPUT
            continue
        warn(*(f"{path}: {mistake}" for mistake in wrong))
        if wrong:
            code = BAD_INPUT
        else:
            print_line(f"{path}: good")
    return code


@command.command
def schema(model: str, /) -> None:
    """Print the JSON Schema of a model's snapshots, draft 2020-12.

    Parameters
    ----------
    model
        A model (see `optsched list models`), or FILE.py with one of your own.
    """
    print_json(snapshot_schema(_named(model)))


@command.command
def page(model: str, /) -> None:
    """Print the page of a model that is one function: fields, statement, equations; Markdown.

    Parameters
    ----------
    model
        FILE.py with the model, or its name (see `optsched list models`).
    """
    for line in stated_page(_named(model)).splitlines():
        print_line(line)


def _named(model: str) -> str:
    """Return the name of a model, which may be given by its file."""
    return import_models([model])[-1] if names_class(model) else model


@command.command
def export(snapshot: Path, /, *, output: Output, model: Models = None) -> None:
    """Write the program of a snapshot for other solvers.

    Parameters
    ----------
    snapshot
        A snapshot, or a problem in another format.
    output
        The file to write: .lp, .mps, .mzn for MiniZinc, .pb.txt for CP-SAT, or, of a knapsack, .txt
        in the literature's text format.
    """
    from optsched.models.export import export as write

    import_models(model)
    check_output(output, *sources(snapshot))
    problem = read_snapshot(snapshot).problem
    write(problem, output)
    print_lines([("written", output)])


@command.command
def convert(snapshot: Path, /, *, output: Output, model: Models = None) -> None:
    """Write a problem in another format as a snapshot, with its known values.

    Parameters
    ----------
    snapshot
        A snapshot, or a problem in another format.
    output
        The file to write: .json or .json.gz.
    """
    import_models(model)
    check_output(output, *sources(snapshot))
    read = read_snapshot(snapshot)
    save_snapshot(read, output)
    print_lines([("written", output)])
