"""``optsched study``."""

from __future__ import annotations

from pathlib import Path

from optsched import registry
from optsched.cli import INTERRUPTED
from optsched.cli.options import Integer, Output
from optsched.cli.sweep_table import execute_runs, say_wrong_answers
from optsched.cli.terminal import print_lines, say
from optsched.files import check_replaceable
from optsched.numbers import counted
from optsched.studies.study import Study
from optsched.studies.study_folder import FOLDER, INPUTS, SWEEP, begin, evaluate, write_inputs
from optsched.sweeps.engines import check_engine
from optsched.sweeps.sweep_file import read_sweep
from optsched.sweeps.sweeping import Sweep
from optsched.traces.catalogue import folders


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
        The folder of the study. Runs that are finished there are not repeated.
    traces
        Folder of the public logs; by default those of OPTSCHED_TRACES.
    quick
        Run a small part only, within a minute.
    workers
        Number of processes; by default the cores divided by the threads of a solver.
    """
    check_engine("local", workers, None)
    check_replaceable(output, FOLDER)
    study: Study = registry.studies[name]()
    logs = folders() if traces is None else [traces]
    inputs = study.inputs(logs, quick=quick)
    table = study.plan(logs, Path(INPUTS), quick=quick)
    begin(name, output, quick=quick)
    write_inputs(inputs, output)
    planned = read_sweep(table, base=output)
    sweep = Sweep(planned, output / SWEEP)
    say(f"{counted(len(planned.runs), 'run')}, {len(sweep.pending):,} to do")
    if execute_runs(sweep, "local", workers, None) is None:
        return INTERRUPTED
    page = evaluate(output)
    print_lines([("runs", len(planned.runs)), ("report", page)])
    return 1 if say_wrong_answers(sweep) else 0
