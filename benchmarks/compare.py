"""Compare the times of two result folders; name what got slower or faster by more than the noise.

    python benchmarks/compare.py BEFORE AFTER

The time of a cell is a ratio to the yardstick, a fixed piece of work timed beside it, see
`results.Times`; so the two folders may come from different machines, as far as these are faster or
slower in everything alike. The noise of a cell is what its run measured itself: the spread of its
repeats (half the range over the median), and at least that of the yardsticks of the same script,
without the tenths at both ends.
A cell has changed if the difference of its medians is larger than the noise of both runs together.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from pathlib import Path
from typing import NamedTuple


class Cell(NamedTuple):
    """Median time of a cell in yardsticks, and its noise, a share of that."""

    time: float
    noise: float


def spread(values: list[float]) -> float:
    """Return half the range of values over their median."""
    return (max(values) - min(values)) / 2 / statistics.median(values)


def cells(folder: Path) -> dict[str, Cell]:
    """Return all cells of a result folder, by script and name."""
    files = sorted(folder.glob("*.times.csv"))
    if not files:
        raise SystemExit(f"{folder}: no file *.times.csv")
    found = {}
    for file in files:
        with file.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        yardsticks = [float(row["yardstick_s"]) for row in rows]
        deciles = statistics.quantiles(yardsticks * 2, n=10)  # one row is enough
        least = spread([deciles[0], deciles[-1]])
        repeats: dict[str, list[float]] = {}
        for row in rows:
            ratio = float(row["seconds"]) / float(row["yardstick_s"])
            repeats.setdefault(row["cell"], []).append(ratio)
        script = file.name.removesuffix(".times.csv")
        for cell, ratios in repeats.items():
            noise = max(spread(ratios), least)
            found[f"{script}: {cell}"] = Cell(statistics.median(ratios), noise)
    return found


def compare(before: dict[str, Cell], after: dict[str, Cell]) -> list[str]:
    """Return the changes as lines for people, the largest first."""
    both = [name for name in before if name in after]
    slower, faster = [], []
    for name in both:
        old, new = before[name], after[name]
        ratio, noise = new.time / old.time, (1 + old.noise) * (1 + new.noise)
        line = f"{ratio:12.2f} {noise:6.2f}  {name}"
        if ratio > noise:
            slower.append((ratio, line))
        elif 1 / ratio > noise:
            faster.append((1 / ratio, line))
    lines = ["after/before  noise  cell"]
    for title, changed in (("slower", slower), ("faster", faster)):
        lines += [f"{title}: {len(changed)}"]
        lines += [line for _, line in sorted(changed, reverse=True)]
    lines.append(f"within the noise: {len(both) - len(slower) - len(faster)}")
    for title, own, other in (("before", before, after), ("after", after, before)):
        lines += [f"only {title}: {name}" for name in own if name not in other]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("before", type=Path, help="result folder")
    parser.add_argument("after", type=Path, help="result folder")
    options = parser.parse_args()
    print("\n".join(compare(cells(options.before), cells(options.after))))


if __name__ == "__main__":
    main()
