"""Seconds and memory of optsched as a command, with compiled kernels and without any.

    python benchmarks/commands.py --traces ../shared/traces --instances ../shared/instances/mkp \
        -o benchmarks/results

Protocol: each command runs as a process of its own, one after the other. "seconds" is from start to
exit, "CPU" that of all its processes, "peak" its memory. Each runs once without counting, which
compiles its kernels, and then `--repeats` times; the median counts. The commands called "first" run
once, with an empty cache of kernels, as after an installation. The last command simulates `--jobs`
generated jobs under EASY, from a gzip SWF trace to a run folder with jobs.parquet; generating the
trace is not measured.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results import Times, circumstances, keep, shown

from optsched.content import bundled

LOG = "SDSC-SP2-1998-4.2-cln.swf.gz"
INSTANCE = "SMALL/probT1_2S_R50_T002_M020_N0060_seed01.txt"
WORKLOAD = "lublin-feitelson"
DONT_WRITE = "PYTHONDONTWRITEBYTECODE"
FIGURES = ("seconds", "cpu_s", "peak_MB")


@dataclass(frozen=True)
class Command:
    """A command to measure; ``{out}`` in an argument is an empty folder."""

    name: str
    arguments: tuple[str | Path, ...]
    first: bool = False


def commands(traces: Path | None, unpacked: Path, large: Path | None) -> Iterator[Command]:
    """Yield the commands to measure."""
    sample = bundled("traces") / "samples" / "sample-256.swf"
    snapshot = bundled("models") / "window-mkp" / "yang-2014-example.json"
    log = sample if traces is None else traces / LOG
    easy = ("simulate", log, "--policy", "easy", "-o", "{out}/run")
    yield Command("--help", ("--help",))
    yield Command("solve a snapshot", ("solve", snapshot))
    yield Command("simulate, EASY, no pictures", (*easy, "--no-plots"))
    yield Command("simulate, EASY, pictures and page", easy)
    window = ("simulate", sample, "--policy", "window", "-o", "{out}/run")
    yield Command("first simulate, EASY", ("simulate", sample, *easy[2:]), first=True)
    yield Command("first simulate, window", window, first=True)
    yield Command("first solve of a snapshot", ("solve", snapshot), first=True)
    if unpacked.exists():
        hard = ("solve", unpacked, "--time-limit", "1")
        yield Command("first solve of SMALL, 1 s of search", hard, first=True)
    if large is not None:
        yield Command("simulate generated jobs, EASY", ("simulate", large, *easy[2:], "--no-csv"))


def measure(command: Command, cache: Path, times: Times) -> dict[str, float]:
    """Run a command once."""
    with tempfile.TemporaryDirectory() as out:
        arguments = [str(argument).replace("{out}", out) for argument in command.arguments]
        # with this variable set, Python compiles every module again
        kept = {name: value for name, value in os.environ.items() if name != DONT_WRITE}
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "optsched", *arguments],
            env=kept | {"NUMBA_CACHE_DIR": str(cache)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"optsched {' '.join(arguments)}: exit code {process.returncode}")
    times.add(command.name, seconds)
    cpu = used.ru_utime + used.ru_stime
    return dict(zip(FIGURES, (seconds, cpu, used.ru_maxrss / 1024), strict=True))


def measure_all(options: argparse.Namespace, times: Times) -> Iterator[dict[str, Any]]:
    """Yield one row for each command."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, large = Path(temporary), None
        if options.instances is not None:
            with tarfile.open(options.instances / "SMALL.tar.gz") as archive:
                archive.extract(INSTANCE, folder, filter="data")
        if options.jobs:
            large = folder / "generated.swf.gz"
            generate = ("trace", "generate", WORKLOAD, "--jobs", str(options.jobs), "-o", large)
            subprocess.run(
                [sys.executable, "-m", "optsched", *generate], check=True,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
        for command in commands(options.traces, folder / INSTANCE, large):
            if options.only not in command.name:
                continue
            compiled = folder / "compiled"
            if command.first:
                runs = [measure(command, folder / command.name, times)]
            else:
                measure(command, compiled, Times())
                runs = [measure(command, compiled, times) for _ in range(options.repeats)]
            yield {
                "command": command.name,
                **{name: statistics.median(run[name] for run in runs) for name in FIGURES},
            }


def table(rows: list[dict[str, Any]], jobs: int) -> list[str]:
    """Return the rows as lines for people."""
    lines = [f"{'command':40}{'seconds':>10}{'CPU s':>10}{'peak MB':>10}"]
    for row in rows:
        figures = f"{row['seconds']:10.2f}{row['cpu_s']:10.2f}{row['peak_MB']:10,.0f}"
        lines.append(f"{row['command']:40}{figures}")
    generated = f"; generated jobs: {jobs:,}" if jobs else ""
    return [*lines, "", f"first: without compiled kernels{generated}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, help="folder of the logs; the sample if left out")
    parser.add_argument("--instances", type=Path, help="folder of the literature instances")
    parser.add_argument("--jobs", type=int, default=0, help="generated jobs")
    parser.add_argument("--only", default="", help="commands with this text in their names")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    measured_on = circumstances()
    times = Times()
    rows = list(shown(measure_all(options, times)))
    keep(options.output, "commands", measured_on, table(rows, options.jobs), rows, times)


if __name__ == "__main__":
    main()
