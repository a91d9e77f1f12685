"""Keep what a benchmark measured: the rows as CSV, the table as text, and where it was measured.

Beside these go the times of all cells, `Times`, which ``compare.py`` compares between two folders.
"""

from __future__ import annotations

import csv
import heapq
import io
import math
import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import track

from optsched.files import write_text
from optsched.registry import policies
from optsched.simulator.policy import Policy

Row = TypeVar("Row")

BEGAN = time.perf_counter()

PACKAGES = ("optsched", "numba", "numpy", "ortools", "highspy", "pyscipopt", "pulp")


COMPILED = " (compiled)"
"""End of the name of a policy that is to decide by its kernel."""


def decided(name: str) -> Policy:
    """Return a policy that decides in Python if it can, or by its kernel if the name says so."""
    kind = policies[name.removesuffix(COMPILED)]
    return kind() if name.endswith(COMPILED) else type(name, (kind,), {"compiled": None})()


def circumstances() -> list[str]:
    """Return the machine, its load before the run, and the versions."""
    model = platform.processor() or platform.machine()
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    load = f"load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return [
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} x {model}, {load}",
        f"Python {platform.python_version()}, {versions}",
    ]


def yardstick() -> float:
    """Return the seconds of a fixed piece of work: the best of five times a heap and a sort."""
    random = np.random.default_rng(1)
    keys, numbers = random.random(4_000).tolist(), random.random(40_000)
    best = math.inf
    for _ in range(5):
        began = time.perf_counter()
        heap: list[float] = []
        for key in keys:
            heapq.heappush(heap, key)
        while heap:
            heapq.heappop(heap)
        np.sort(numbers)
        best = min(best, time.perf_counter() - began)
    return best


class Times:
    """Seconds of cells, each with those of the yardstick before and after it, their mean.

    A cell can be added several times, once for each repeat.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._before = yardstick()

    def add(self, cell: str, seconds: float) -> None:
        """Add what has just been measured."""
        self.add_all({cell: seconds})

    def add_all(self, cells: Mapping[str, float]) -> None:
        """Add several cells that have just been measured together."""
        after = yardstick()
        beside = (self._before + after) / 2
        self._before = after
        self.rows += [
            {"cell": cell, "seconds": f"{seconds:.6g}", "yardstick_s": f"{beside:.6g}"}
            for cell, seconds in cells.items()
        ]

    def add_medians(self, cells: Mapping[str, Mapping[str, Any]], limit: float) -> None:
        """Add medians (``ms``) of rows without a time (``most_ms``) at the limit in seconds."""
        self.add_all(
            {cell: row["ms"] / 1e3 for cell, row in cells.items() if row["most_ms"] < 1e3 * limit}
        )


def keep(
    folder: Path,
    name: str,
    measured_on: Sequence[str],
    table: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    times: Times,
) -> None:
    """Write ``name.txt``, ``name.csv`` and ``name.times.csv``, and print the table.

    Parameters
    ----------
    folder : Path
        Made if it is missing.
    name : str
        Name of the measurement.
    measured_on : sequence of str
        What `circumstances` returned before the run.
    table : sequence of str
        The lines for people.
    rows : sequence of mapping
        All that was measured, one row each.
    times : Times
        The cells that are compared between runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = [*measured_on, f"{time.perf_counter() - BEGAN:.0f} s in all", "", *table]
    write_text(folder / f"{name}.txt", "\n".join(lines) + "\n")
    files = {f"{name}.csv": rows} | ({f"{name}.times.csv": times.rows} if times.rows else {})
    for file, its_rows in files.items():
        stream = io.StringIO(newline="")
        writer = csv.DictWriter(stream, fieldnames=list(its_rows[0]))
        writer.writeheader()
        writer.writerows(its_rows)
        write_text(folder / file, stream.getvalue())
    print("\n".join(lines))


def shown(rows: Iterable[Row], total: int | None = None) -> Iterable[Row]:
    """Return the rows, with a progress bar on a terminal while they are measured."""
    return track(rows, total=total, console=Console(stderr=True), disable=not sys.stderr.isatty())


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
