"""``optsched study``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from optsched.cli import INTERRUPTED
from optsched.cli.completion import registered
from optsched.cli.options import Integer, Output, as_options
from optsched.cli.sweep_table import execute_runs, say_wrong_answers
from optsched.cli.terminal import print_lines, progress_bar, say, say_note
from optsched.numbers import counted
from optsched.studies.cases import Cases
from optsched.studies.study_folder import evaluate, plan_study
from optsched.sweeps.engines import check_engine


def command(
    name: Annotated[str, Parameter(completer=registered("studies"))],
    /,
    *,
    output: Output,
    traces: Path | None = None,
    trace: str | None = None,
    quick: bool = False,
    workers: Integer | None = None,
) -> int:
    """Run the evaluation of a paper again, and judge its claims.

    Parameters
    ----------
    name
        The study (see `optsched list studies`).
    output
        The folder of the study. Finished runs and cases in it are not repeated.
    traces
        Folder of the public logs; those of OPTSCHED_TRACES by default.
    trace
        Your own trace in place of the logs: a file or a name from the catalogue. Only systems
        takes one.
    quick
        Run a small part only, within a minute.
    workers
        Number of processes; by default, as many as there are cores for.
    """
    check_engine("local", workers, None)
    with as_options(("trace",)):
        planned = plan_study(name, output, traces=traces, trace=trace, quick=quick)
    if isinstance(planned, Cases):
        return _solve(planned, output)
    runs = len(planned.plan.runs)
    say_note(f"{counted(runs, 'run')}, {len(planned.pending):,} to do")
    if execute_runs(planned, workers) is None:
        return INTERRUPTED
    print_lines([("runs", runs), ("report", evaluate(output).page)])
    return 1 if say_wrong_answers(planned) else 0


def _solve(cases: Cases, output: Path) -> int:
    """Solve the pending cases of a study under a progress bar, and return the exit code."""
    total, pending = len(cases.all), len(cases.pending)
    say_note(f"{counted(total, 'case')}, {pending:,} to do")
    done = 0
    try:
        with progress_bar("solving", pending, "cases") as advance:
            for done, _ in enumerate(cases.work(), 1):
                advance(done)
    except KeyboardInterrupt:
        left = counted(pending - done, "case")
        say(f"optsched: interrupted with {left} left; the same command resumes the study")
        return INTERRUPTED
    print_lines([("cases", total), ("report", evaluate(output).page)])
    return 0
