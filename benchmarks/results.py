"""Keep what a benchmark measured: the rows as CSV, the table as text, and where it was measured."""

from __future__ import annotations

import csv
import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import track

from optsched.files import written

Row = TypeVar("Row")

PACKAGES = ("optsched", "numba", "numpy", "ortools", "highspy", "pyscipopt", "pulp")


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


def keep(
    folder: Path,
    name: str,
    measured_on: Sequence[str],
    table: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
) -> None:
    """Write ``name.txt`` and ``name.csv``, and print the table.

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
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = [*measured_on, "", *table]
    with written(folder / f"{name}.txt") as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (
        written(folder / f"{name}.csv") as temporary,
        temporary.open("w", encoding="utf-8", newline="") as stream,
    ):
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print("\n".join(lines))


def shown(rows: Iterable[Row], total: int | None = None) -> Iterable[Row]:
    """Return the rows, with a progress bar on a terminal while they are measured."""
    return track(rows, total=total, console=Console(stderr=True), disable=not sys.stderr.isatty())


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
