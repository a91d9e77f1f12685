"""``optsched sweep``, and the live table of its runs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from optsched.cli import INTERRUPTED
from optsched.cli.options import Integer, Output
from optsched.cli.terminal import (
    figure,
    pace,
    print_json,
    print_lines,
    say_note,
    shows_progress,
    warn,
)
from optsched.errors import InputError
from optsched.files import check_replaceable
from optsched.folders import SWEEP
from optsched.numbers import counted, parse_integer
from optsched.report.page import Cell, cell, duration, share
from optsched.sweeps.engines import check_engine, start_engine
from optsched.sweeps.sweep_file import read_sweep
from optsched.sweeps.sweeping import Sweep

if TYPE_CHECKING:
    from optsched.sweeps.engines import Engine, Outcome


SHOWN = 8  # number of runs in the table
FAILURES = 5  # number of failed runs that are printed one by one

HEADLINES: dict[str, tuple[str, Callable[[float | None], Cell]]] = {
    "utilization": ("util.", share),
    "mean_wait": ("wait", duration),
    "mean_bounded_slowdown": ("bsld", cell),
}
"""The metrics in the table, with their headings and what shows them."""

WIDEST = 8  # width of the columns of metrics


def say_failures(sweep: Sweep, *, own: bool = False) -> dict[str, str]:
    """Print the failed runs of a sweep, or those of its shard, and return their errors by name."""
    failures = sweep.failures()
    if own:
        names = {run.name for run in sweep.own}
        failures = {name: error for name, error in failures.items() if name in names}
    for name, error in list(failures.items())[:FAILURES]:
        warn(f"run {name} failed: {error}")
    if failures:
        warn(f"{counted(len(failures), 'run')} failed; the reasons are in {sweep.failed}")
    return failures


def say_wrong_answers(sweep: Sweep) -> bool:
    """Print the runs with wrong answers of solvers, and return whether there are any."""
    wrong = sweep.wrong_answers()
    for name, count in list(wrong.items())[:SHOWN]:
        warn(f"run {name}: {counted(count, 'wrong answer')} of solvers, not used")
    if wrong:
        warn(f"wrong answers in {counted(len(wrong), 'run')}; see the column wrong_answers")
    return bool(wrong)


class SweepTable:
    """A live table of a sweep whose runs an engine executes."""

    def __init__(self, sweep: Sweep, engine: Engine) -> None:
        self._columns = {run.name: run.columns for run in sweep.pending}
        self._varying = sweep.plan.varying
        self._engine = engine
        self._total = len(sweep.pending)
        self._done = self._failed = 0
        self._last: deque[Outcome] = deque(maxlen=SHOWN)
        self._began = time.perf_counter()

    def shown(self) -> AbstractContextManager[object]:
        """Return a context that shows the table on stderr, if stderr is a terminal."""
        if not shows_progress():
            return nullcontext()
        console = Console(stderr=True)
        return Live(
            get_renderable=self._picture, console=console, refresh_per_second=4, transient=True
        )

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a run."""
        self._done += 1
        self._failed += outcome.error is not None
        self._last.append(outcome)

    def _picture(self) -> Group:
        remaining = self._total - self._done
        pace_so_far = ""
        if self._done:
            rate = self._done / (time.perf_counter() - self._began)
            minutes, seconds = divmod(round(remaining / rate), 60)
            hours, minutes = divmod(minutes, 60)
            pace_so_far = f"{pace(rate, 'runs')}  {hours}:{minutes:02}:{seconds:02} left"
        bar = Table.grid(padding=(0, 2), expand=True)
        bar.add_column(ratio=1)
        for _ in range(4):
            bar.add_column(no_wrap=True)
        bar.add_row(
            ProgressBar(self._total, self._done),
            f"{self._done:,}/{self._total:,} runs",
            f"{min(remaining, self._engine.slots):,} running",
            f"{self._failed:,} failed" if self._failed else "",
            pace_so_far,
        )
        table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
        table.add_column("run", overflow="ellipsis", no_wrap=True, max_width=24)
        table.add_column("varying values", overflow="ellipsis", no_wrap=True, ratio=1)
        for heading in ("time", *(heading for heading, _ in HEADLINES.values())):
            table.add_column(heading, justify="right", no_wrap=True, min_width=WIDEST)
        for outcome in reversed(self._last):
            values = self._columns[outcome.name]
            varying = [
                Path(value).name  # of a file
                if isinstance(value, str) and "/" in value and Path(value).suffix
                else figure(value)
                for value in (values[name] for name in self._varying if name in values)
            ]
            cells = [outcome.name, " ".join(varying), duration(outcome.seconds).text]
            if outcome.summary is None:
                cells.append("failed")
            else:
                metrics = outcome.summary
                cells += [show(metrics.get(name)).text for name, (_, show) in HEADLINES.items()]
            table.add_row(*cells)
        return Group(bar, table)


def execute_runs(
    sweep: Sweep, workers: int | None, address: str | None = None
) -> tuple[int, bool] | None:
    """Execute the pending runs of a sweep under a live table, and merge the results.

    The result is the number of runs that have finished, and whether the results are merged; None,
    with a message, if the user has interrupted the sweep.
    """
    done = 0
    try:
        if sweep.pending:
            started = start_engine(sweep.pending, workers, address)
            table = SweepTable(sweep, started)
            with table.shown(), closing(sweep.work(started)) as outcomes:
                for outcome in outcomes:
                    done += outcome.error is None
                    table.add(outcome)
        return done, sweep.finish()
    except KeyboardInterrupt:
        unfinished = counted(sweep.unfinished, "run")
        warn(f"interrupted with {unfinished} left; the same command executes them")
        return None


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
    check_replaceable(output, SWEEP)
    sweep = Sweep(read_sweep(file), output, _part(shard))
    done_before = len(sweep.own) - len(sweep.pending)
    plan = counted(len(sweep.plan.runs), "run")
    if sweep.plan.duplicates:
        plan += f", {counted(sweep.plan.duplicates, 'duplicate')} left out"
    if shard is not None:
        plan += f"; {len(sweep.own):,} in shard {shard}"
    say_note(f"{plan}; {done_before:,} done before, {len(sweep.pending):,} to do")
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


def _part(shard: str | None) -> tuple[int, int]:
    if shard is None:
        return 1, 1
    number, _, of = shard.partition("/")
    with suppress(ValueError):
        part = parse_integer(number), parse_integer(of)
        if 1 <= part[0] <= part[1]:
            return part
    raise InputError(f"{shard!r}; expected I/N, from 1/N to N/N", field="--shard")
