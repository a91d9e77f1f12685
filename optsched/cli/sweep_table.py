"""Execution of a sweep under a live table: progress, and the runs that ended last."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from optsched.cli.terminal import figure, pace, say, shows_progress
from optsched.numbers import counted
from optsched.report.page import Cell, cell, duration, share
from optsched.sweeps.engines import start_engine

if TYPE_CHECKING:
    from optsched.sweeps.engines import Engine
    from optsched.sweeps.executing import Outcome
    from optsched.sweeps.sweeping import Sweep

SHOWN = 8
"""Number of runs in the table."""

FAILURES = 5
"""Number of failed runs that are printed one by one."""

HEADLINES: dict[str, tuple[str, Callable[[float | None], Cell]]] = {
    "utilization": ("util.", share),
    "mean_wait": ("wait", duration),
    "mean_bounded_slowdown": ("bsld", cell),
}
"""The metrics in the table, with their headings and what shows them."""

WIDEST = 8
"""Width of the columns of metrics."""


def say_failures(sweep: Sweep, *, own: bool = False) -> dict[str, str]:
    """Print the failed runs of a sweep, or those of its shard, and return their errors by name."""
    failures = sweep.failures()
    if own:
        names = {run.name for run in sweep.own}
        failures = {name: error for name, error in failures.items() if name in names}
    for name, error in list(failures.items())[:FAILURES]:
        say(f"optsched: run {name} failed: {error}")
    if failures:
        say(f"optsched: {counted(len(failures), 'run')} failed; the reasons are in {sweep.failed}")
    return failures


def say_wrong_answers(sweep: Sweep) -> bool:
    """Print the runs with wrong answers of solvers, and return whether there are any."""
    wrong = sweep.wrong_answers()
    for name, count in list(wrong.items())[:SHOWN]:
        answers = counted(count, "wrong answer")
        say(f"optsched: run {name}: {answers} of solvers, not used")
    if wrong:
        runs = counted(len(wrong), "run")
        say(f"optsched: wrong answers in {runs}; see the column wrong_answers")
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
        bar = Table.grid(padding=(0, 2), expand=True)
        bar.add_column(ratio=1)
        for _ in range(4):
            bar.add_column(no_wrap=True)
        bar.add_row(
            ProgressBar(self._total, self._done),
            f"{self._done:,}/{self._total:,} runs",
            f"{min(remaining, self._engine.slots):,} running",
            f"{self._failed:,} failed" if self._failed else "",
            self._pace(remaining),
        )
        table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
        table.add_column("run", overflow="ellipsis", no_wrap=True, max_width=24)
        table.add_column("varying values", overflow="ellipsis", no_wrap=True, ratio=1)
        for heading in ("time", *(heading for heading, _ in HEADLINES.values())):
            table.add_column(heading, justify="right", no_wrap=True, min_width=WIDEST)
        for outcome in reversed(self._last):
            values = self._columns[outcome.name]
            varying = (_short(values[name]) for name in self._varying if name in values)
            cells = [outcome.name, " ".join(varying), duration(outcome.seconds).text]
            if outcome.summary is None:
                cells.append("failed")
            else:
                metrics = outcome.summary
                cells += [show(metrics.get(name)).text for name, (_, show) in HEADLINES.items()]
            table.add_row(*cells)
        return Group(bar, table)

    def _pace(self, remaining: int) -> str:
        """Return the rate and the remaining time, empty before the first run has ended."""
        if not self._done:
            return ""
        rate = self._done / (time.perf_counter() - self._began)
        minutes, seconds = divmod(round(remaining / rate), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{pace(rate, 'runs')}  {hours}:{minutes:02}:{seconds:02} left"


def _short(value: object) -> str:
    """Return a value of a run in short: of the path of a file, its last part."""
    text = figure(value)
    is_path = isinstance(value, str) and "/" in value and Path(value).suffix
    return Path(text).name if is_path else text


def execute_runs(
    sweep: Sweep, workers: int | None, address: str | None = None
) -> tuple[int, bool] | None:
    """Execute the pending runs of a sweep under a live table, and merge the results.

    The result is the number of runs that have ended, and whether the results are merged; None,
    with a message, if the user has interrupted the sweep.
    """
    done = 0
    try:
        if sweep.pending:
            started = start_engine(sweep.pending, workers, address)
            table = SweepTable(sweep, started)
            with table.shown(), closing(sweep.work(started)) as outcomes:
                for outcome in outcomes:
                    done += 1
                    table.add(outcome)
        return done, sweep.finish()
    except KeyboardInterrupt:
        unfinished = counted(sweep.unfinished, "run")
        say(f"optsched: interrupted with {unfinished} left; the same command executes them")
        return None
