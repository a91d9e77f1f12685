"""``optsched study``."""

from __future__ import annotations

from pathlib import Path

from optsched.cli import INTERRUPTED
from optsched.cli.options import Integer, Output
from optsched.cli.sweep_table import execute_runs, say_wrong_answers
from optsched.cli.terminal import print_lines, say
from optsched.numbers import counted
from optsched.studies.study_folder import evaluate, plan_study
from optsched.sweeps.engines import check_engine


def command(
    name: str,
    /,
    *,
    output: Output,
    traces: Path | None = None,
    quick: bool = False,
    workers: Integer | None = None,
) -> int:
    """Run the evaluation of a paper again, and judge its claims.

    Parameters
    ----------
    name
        The study; `optsched list studies`.
    output
        The folder of the study. Finished runs in it are not repeated.
    traces
        Folder of the public logs; those of OPTSCHED_TRACES by default.
    quick
        Run a small part only, within a minute.
    workers
        Number of processes; by default, as many as there are cores for.
    """
    check_engine("local", workers, None)
    sweep = plan_study(name, output, traces=traces, quick=quick)
    if sweep is None:
        print_lines([("report", evaluate(output, traces=traces).page)])
        return 0
    runs = len(sweep.plan.runs)
    say(f"{counted(runs, 'run')}, {len(sweep.pending):,} to do")
    if execute_runs(sweep, workers) is None:
        return INTERRUPTED
    print_lines([("runs", runs), ("report", evaluate(output).page)])
    return 1 if say_wrong_answers(sweep) else 0
