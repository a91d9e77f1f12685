"""``optsched sweep``."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

from optsched.cli import INTERRUPTED
from optsched.cli.options import Integer, Output
from optsched.cli.sweep_table import execute_runs, say_failures, say_wrong_answers
from optsched.cli.terminal import print_json, print_lines, say_note
from optsched.errors import InputError
from optsched.files import check_replaceable
from optsched.numbers import counted, parse_integer
from optsched.sweeps.engines import check_engine
from optsched.sweeps.sweep_file import read_sweep
from optsched.sweeps.sweeping import FOLDER, Sweep


def command(
    file: Path,
    /,
    *,
    output: Output,
    engine: Literal["local", "dask"] = "local",
    workers: Integer | None = None,
    address: str | None = None,
    shard: str | None = None,
    json: bool = False,
) -> int:
    """Run a sweep: many simulations from one file, each of them once.

    Parameters
    ----------
    file
        A TOML file; any of its values may be a list.
    output
        The folder of the sweep. Runs that are finished there are not repeated: to resume a sweep,
        start it again.
    engine
        Local processes, or a Dask cluster.
    workers
        Number of local processes; by default the cores divided by the threads of a solver.
    address
        Address of the Dask scheduler, tcp://HOST:PORT.
    shard
        I/N: only the I-th of N parts of the runs, for job arrays.
    json
        Print the counts of runs as one JSON object.
    """
    check_engine(engine, workers, address)
    check_replaceable(output, FOLDER)
    sweep = Sweep(read_sweep(file), output, _part(shard))
    done_before = len(sweep.own) - len(sweep.pending)
    say_note(_plan(sweep, done_before, shard))
    ended = execute_runs(sweep, workers, address)
    if ended is None:
        return INTERRUPTED
    done, merged = ended
    # failed runs of other shards may still be repeated
    failures = say_failures(sweep, own=not merged)
    wrong = say_wrong_answers(sweep)
    results = str(output / "results.parquet") if merged else None
    facts = {
        "runs": len(sweep.plan.runs),
        "duplicates": sweep.plan.duplicates,
        "own": len(sweep.own),
        "done_before": done_before,
        "done": done,
        "failed": sorted(failures),
        "results": results,
    }
    if json:
        print_json(facts)
    else:
        shown = facts | {"failed": len(failures), "results": results or "when all shards are done"}
        print_lines([(name.replace("_", " "), value) for name, value in shown.items()])
    return 1 if failures or wrong else 0


def _plan(sweep: Sweep, done_before: int, shard: str | None) -> str:
    plan = counted(len(sweep.plan.runs), "run")
    if sweep.plan.duplicates:
        plan += f", {counted(sweep.plan.duplicates, 'duplicate')} left out"
    if shard is not None:
        plan += f"; {len(sweep.own):,} in shard {shard}"
    return f"{plan}; {done_before:,} done before, {len(sweep.pending):,} to do"


def _part(shard: str | None) -> tuple[int, int]:
    if shard is None:
        return 1, 1
    number, _, of = shard.partition("/")
    with suppress(ValueError):
        part = parse_integer(number), parse_integer(of)
        if 1 <= part[0] <= part[1]:
            return part
    raise InputError(f"{shard!r}; expected I/N, from 1/N to N/N", field="--shard")
