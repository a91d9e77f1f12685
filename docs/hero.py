"""Draw docs/hero.svg: eight jobs that wait for GPUs, placed one at a time and all at once.

    python docs/hero.py docs/hero.svg

Both answers are computed here, from the reference snapshot node-placement/gpu-queue.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optsched

WIDTH, HEIGHT, NODE, CELL = 720, 476, 42, 29
GPUS = 8  # of each node
INK, RUNNING, LARGE = "#757d86", "#8b949e", "#d9534a"  # readable on white and on black
JOBS = ("#2f81c7", "#2c974b", "#8957e5", "#1b8a8f", "#b35900", "#bf3989", "#6a7fdb", LARGE)


def main(path: str) -> None:
    """Solve the snapshot by a rule and exactly, and draw both answers."""
    problem = optsched.load_snapshot("node-placement/gpu-queue")
    rule = optsched.solve(problem, solver="tree-best-fit")
    exact = optsched.solve(problem, solver="highs")
    assert exact.status == "optimal"
    free, size = int(problem.free.sum()), int(exact.objective)
    parts = [
        text(0, 24, f"{len(JOBS)} jobs wait for GPUs, and {free} GPUs are free", 26, "bold"),
        *queue(problem),
        *panel(0, "One job at a time", "the rule of best fit", problem, rule),
        *panel(WIDTH - 8 * NODE + 6, "All jobs at once", "exact, proven", problem, exact),
        text(0, HEIGHT - 8, "A column is a node of 8 GPUs. Gray: busy before. Outlined: idle.", 19),
    ]
    about = f"Of {free} free GPUs, best fit fills {int(rule.objective)}, an exact placement {size}"
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-2 0 {WIDTH + 4} {HEIGHT}" role="img" '
        f'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" '
        f'aria-label="{about}">'
    )
    Path(path).write_text("\n".join((svg, *parts, "</svg>")) + "\n")


def queue(problem: Any) -> Iterator[str]:
    """Draw the waiting jobs in their order, as wide as they are large."""
    sizes = (problem.chunks * problem.demand[:, 0]).tolist()
    unit = (WIDTH - 6 * (len(sizes) - 1)) / sum(sizes)
    x = 0.0
    for job, size in enumerate(sizes):
        yield cell(x, 42, size * unit, 36, JOBS[job])
        label = text(x + size * unit / 2, 67, str(size), 20, "bold", "#fff")
        yield label.replace("<text ", '<text text-anchor="middle" ')
        x += size * unit + 6


def panel(x: float, title: str, how: str, problem: Any, result: Any) -> Iterator[str]:
    """Draw one answer: a column for each node, with what ran, what starts and what stays idle."""
    started: list[list[str]] = [[] for _ in problem.free]
    for job, nodes in enumerate(result.solution.nodes):
        for node in nodes or ():
            started[node] += [JOBS[job]] * int(problem.demand[job][0])
    idle = int(problem.free.sum()) - sum(map(len, started))
    waiting = sum(not nodes for nodes in result.solution.nodes)
    yield text(x, 126, title, 24, "bold")
    yield text(x, 150, how, 20)
    for node, ((free,), colors) in enumerate(zip(problem.free.tolist(), started)):
        busy = [RUNNING] * (GPUS - free)
        for height, color in enumerate([*busy, *colors, *[None] * (free - len(colors))], 1):
            yield cell(x + node * NODE, 168 + (GPUS - height) * CELL, NODE - 6, CELL - 4, color)
    units = "GPU" if idle == 1 else "GPUs"
    outcome = f"{waiting} job waits" if waiting else "all start"
    yield text(x, 432, f"{idle} {units} idle, {outcome}", 24, "bold", LARGE if waiting else JOBS[1])


def cell(x: float, y: float, width: float, height: float, color: str | None) -> str:
    """Return a rectangle, outlined without a color, pale in that of running jobs."""
    style = f'fill="none" stroke="{LARGE}" stroke-width="1.5" stroke-dasharray="4 3"'
    if color is not None:
        style = f'fill="{color}"' + (' opacity=".4"' if color == RUNNING else "")
    return f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="3" {style}/>'


def text(
    x: float, y: float, words: str, size: int, weight: str = "normal", color: str = INK
) -> str:
    """Return a line of text."""
    style = f'font-size="{size}" font-weight="{weight}" fill="{color}"'
    return f'<text x="{x:.1f}" y="{y}" {style}>{words}</text>'


if __name__ == "__main__":
    main(*sys.argv[1:])
