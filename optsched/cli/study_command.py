"""``optsched study``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from optsched.cli import INTERRUPTED
from optsched.cli.options import Integer, as_options, study_names
from optsched.cli.sweep_command import execute_runs, say_wrong_answers
from optsched.cli.terminal import print_line, print_lines, progress_bar, say, say_note, warn
from optsched.errors import InputError
from optsched.numbers import counted
from optsched.studies.folder import check_page, evaluate, find_study
from optsched.studies.running import Cases, StudyRun
from optsched.sweeps.engines import check_engine
from optsched.sweeps.sweeping import Sweep

SHOWN = 20  # most mistakes of a page that are shown after its study has run


def command(
    study: Annotated[str, Parameter(completer=study_names)],
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    traces: Path | None = None,
    trace: str | None = None,
    quick: bool = False,
    new_only: Annotated[bool, Parameter(negative="")] = False,
    check: Annotated[bool, Parameter(negative="")] = False,
    write: Annotated[bool, Parameter(negative="")] = False,
    workers: Integer | None = None,
) -> int:
    """Run a study, judge its claims, and check the numbers on its page.

    Parameters
    ----------
    study
        The folder of a study, or the name of one in studies/ (see `optsched list studies`).
    output
        The folder of its runs. Finished runs and cases in it are not repeated.
    traces
        Folder of the public logs; those of OPTSCHED_TRACES by default.
    trace
        Your own trace in place of the logs: a file or a name from the catalogue. Only systems
        takes one.
    quick
        Run a small part only, within a minute.
    new_only
        Run only what has changed since the results in the study's folder; take all else from them.
    check
        Run nothing: compare each number on the page with the results in the study's folder.
    write
        Write tables and figures into the study's folder, and tables into its page: of these runs,
        or without -o of the results that it has.
    workers
        Number of processes; by default, as many as there are cores for.
    """
    check_engine("local", workers, None)
    found = find_study(study)
    if check:
        mistakes, names = check_page(found)
        for one in mistakes:
            print_line(one)
        if not mistakes:
            print_line(f"{found.path / 'page.md'}: {counted(names, 'number')} as computed")
        return 1 if mistakes else 0
    if output is None:
        if not write:
            expected = "expected -o DIR to run it, or --check or --write of its results"
            raise InputError(f"missing; {expected}", field="--output")
        print_lines([("page", evaluate(found, found.path).page)])
        return 0
    if write and trace is not None:
        expected = "expected no --trace, since a study's results are those of its own logs"
        raise InputError(f"given with --trace; {expected}", field="--write")
    with as_options(("trace",)):
        planned = StudyRun(
            found, output, traces=traces, trace=trace, quick=quick, new_only=new_only
        )
    if not _work(planned, workers):
        return INTERRUPTED
    ended = planned.conclude(write=write)
    print_lines([("runs", planned.total), ("results" if quick else "page", ended.page)])
    for one in ended.mistakes[:SHOWN]:
        say(one)
    if ended.mistakes:
        warn(f"the page differs from these results in {counted(len(ended.mistakes), 'place')}")
    return 1 if isinstance(planned.work, Sweep) and say_wrong_answers(planned.work) else 0


def _work(planned: StudyRun, workers: int | None) -> bool:
    """Do the pending work under a progress bar; return whether it is done."""
    work, done = planned.work, 0
    pending = len(work.pending) if work else 0
    noun = "case" if isinstance(work, Cases) else "run"
    say_note(f"{counted(planned.total, noun)}, {pending:,} to do")
    if not isinstance(work, Cases):
        return work is None or execute_runs(work, workers) is not None
    try:
        with progress_bar("solving", pending, "cases") as advance:
            for done, _ in enumerate(work.work(workers), 1):
                advance(done)
    except KeyboardInterrupt:
        left = counted(pending - done, "case")
        warn(f"interrupted with {left} left; the same command resumes the study")
        return False
    return True
