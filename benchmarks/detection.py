"""Detection of free partitions on a 3-D torus, exact and by layers, by occupancy.

    python benchmarks/detection.py -o benchmarks/results

Protocol: a torus that wraps around is filled with random boxes, one job after the other: sizes
log-uniform from 1 to 1,024 routers, one of the five best shapes that hold it, anywhere that shape
is free, until the share of busy routers is reached. Each method is called `--repeats` times on each
of `--tori` such tori after its kernels are compiled; the median call counts, and the median torus.
"maximal" are all free boxes that no larger one contains; "largest" the one of most routers; "bins"
the largest again and again until no router is left; "layered" the binary tree over Y of Li et al.
2015, which sees no wrap-around. "anchors" is where a box of 4 x 4 x 4 is free; "first_fit" asks for
all shapes of one router more than the largest box has, none of which is there. "layered_share" is
the size of the largest box by layers over that of the largest box.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from results import Times, circumstances, keep, shown

from optsched.boxes.box import Box, Grid, shapes
from optsched.boxes.free_boxes import (
    anchors,
    disjoint_bins,
    first_fit,
    largest_free_box,
    maximal_free_boxes,
)
from optsched.boxes.layer_shapes import largest_layered_box, layered_bins

LARGEST_JOB = 1024
COLUMNS = (
    "busy",
    "maximal_ms",
    "maximal",
    "largest_ms",
    "layered_ms",
    "layered_share",
    "bins_ms",
    "bins",
    "layered_bins_ms",
    "layered_bins",
    "anchors_us",
    "first_fit_us",
    "shapes",
)
UNITS = {"_ms": 1e3, "_us": 1e6}
TIMED = [name for name in COLUMNS if name[-3:] in UNITS]
WHOLE = ("maximal", "bins", "layered_bins", "anchors_us", "first_fit_us", "shapes")


def torus(grid: Grid, busy: float, seed: int) -> np.ndarray:
    """Return a mask of the routers that are free beside random jobs, which hold a share of them."""
    random = np.random.default_rng(seed)
    free = np.ones(grid.shape, dtype=bool)
    largest = math.log(min(LARGEST_JOB, grid.routers))
    while free.mean() > 1 - busy:
        size = round(math.exp(random.uniform(0, largest)))
        ranked = shapes(size, grid)[:5]
        shape = ranked[random.integers(len(ranked))]
        where = anchors(free, grid, shape)
        if len(where):
            box = Box(*where[random.integers(len(where))].tolist(), *shape)
            free[grid.routers_of(box)] = False
    return free


def timed(method: Callable[..., Any], repeats: int, *arguments: Any) -> tuple[float, Any]:
    """Return the median seconds of a call, and what it returned."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        answer = method(*arguments)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds), answer


def measure(free: np.ndarray, grid: Grid, repeats: int) -> dict[str, float]:
    """Return times and numbers of all methods on one torus."""
    maximal_s, maximal = timed(maximal_free_boxes, repeats, free, grid)
    largest_s, largest = timed(largest_free_box, repeats, free, grid)
    layered_s, layered = timed(largest_layered_box, repeats, free, grid)
    bins_s, bins = timed(disjoint_bins, repeats, free, grid)
    layered_bins_s, by_layers = timed(layered_bins, repeats, free, grid)
    anchors_s, _ = timed(anchors, repeats, free, grid, (4, 4, 4))
    ranked = np.array(shapes(largest.volume + 1, grid))
    first_fit_s, _ = timed(first_fit, repeats, free, grid, ranked)
    return {
        "maximal_ms": 1e3 * maximal_s,
        "maximal": len(maximal),
        "largest_ms": 1e3 * largest_s,
        "layered_ms": 1e3 * layered_s,
        "layered_share": layered.volume / largest.volume,
        "bins_ms": 1e3 * bins_s,
        "bins": len(bins),
        "layered_bins_ms": 1e3 * layered_bins_s,
        "layered_bins": len(by_layers),
        "anchors_us": 1e6 * anchors_s,
        "first_fit_us": 1e6 * first_fit_s,
        "shapes": len(ranked),
    }


def measure_all(
    grid: Grid, occupancies: list[float], tori: int, repeats: int
) -> Iterator[dict[str, Any]]:
    """Yield the medians over the tori of each occupancy."""
    measure(torus(grid, occupancies[0], seed=0), grid, 1)
    for busy in occupancies:
        cells = [measure(torus(grid, busy, seed), grid, repeats) for seed in range(1, tori + 1)]
        yield {"busy": busy} | {
            name: round(statistics.median(cell[name] for cell in cells), 3) for name in cells[0]
        }


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the measurements as lines for people, a column for each occupancy."""
    return [
        f"{name:18}" + "".join(f"{row[name]:>12,.{0 if name in WHOLE else 2}f}" for row in rows)
        for name in COLUMNS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--side", type=int, default=24, help="routers in each dimension")
    parser.add_argument("--busy", default="0.3,0.6,0.9", help="shares, with commas between")
    parser.add_argument("--tori", type=int, default=9, help="random tori for each share")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    measured_on = circumstances()
    grid = Grid((options.side,) * 3, (True,) * 3)
    occupancies = [float(share) for share in options.busy.split(",")]
    rows, times = [], Times()
    measured = measure_all(grid, occupancies, options.tori, options.repeats)
    for row in shown(measured, len(occupancies)):
        rows.append(row)
        times.add_all(
            {f"{name}, {row['busy']} busy": row[name] / UNITS[name[-3:]] for name in TIMED}
        )
    lines = [f"{'x'.join(map(str, grid.shape))}, {options.tori} tori of each occupancy", ""]
    keep(options.output, "detection", measured_on, lines + table(rows), rows, times)


if __name__ == "__main__":
    main()
