"""Draw the pictures of the front page: a decision, and what two of the commands there say.

    python docs/pictures.py docs

All figures are computed here, from samples that come with optsched.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import optsched
from optsched.cli import run
from optsched.numbers import short

WIDTH, NODE, CELL = 720, 42, 21
GPUS = 8  # of each node
INK, RUNNING, LARGE = "#757d86", "#8b949e", "#d9534a"  # readable on white and on black
JOBS = ("#2f81c7", "#2c974b", "#8957e5", "#1b8a8f", "#b35900", "#bf3989", "#6a7fdb", LARGE)


def main(folder: str) -> None:
    """Draw all pictures into a folder."""
    for name, draw in {"hero": hero, "policies": policies, "job": job}.items():
        Path(folder, f"front-{name}.svg").write_text(draw())


def hero() -> str:
    """Solve a snapshot by a rule and exactly, and draw both answers."""
    problem = optsched.load_snapshot("node-placement/gpu-queue")
    rule = optsched.solve(problem, solver="best-fit")
    exact = optsched.solve(problem, solver="highs")
    assert exact.status == "optimal"
    free = int(problem.free.sum())
    idle, left = free - int(rule.objective), free - int(exact.objective)
    [late] = (job for job, nodes in enumerate(rule.solution.nodes) if not nodes)
    assert all(exact.solution.nodes)
    return drawn(
        f"Eight jobs wait for {free} free GPUs. One job at a time, best fit leaves {idle} idle "
        f"and a job of {problem.demand[late][0] * problem.chunks[late]} waits; "
        f"placed all at once, all start and {left} GPU is idle",
        412,
        text(0, 24, f"{len(JOBS)} jobs wait for GPUs, and {free} GPUs are free", 26, "bold"),
        *queue(problem),
        *panel(0, "One job at a time", "the rule of best fit", problem, rule),
        *panel(WIDTH - 8 * NODE + 6, "All jobs at once", "exact, proven", problem, exact),
        text(0, 404, "A column is a node of 8 GPUs. Gray: busy before. Outlined: idle.", 19),
    )


def policies() -> str:
    """Draw the mean wait under three policies."""
    names = ("fcfs", "easy", "conservative")
    runs = [optsched.simulate("sample-256", policy=name) for name in names]
    waits = [run.summary["mean_wait"] for run in runs]
    return bars("Mean wait", names, waits, [short(wait) for wait in waits])


def job() -> str:
    """Draw how long a pending job of the sample of Slurm has to wait."""
    found = printed(["slurm", "explain", "290", "--from", "sample-slurm", "--json"])
    waits = [found[start] - found["time"] for start in ("slurm_start", "earliest")]
    labels = ("Slurm expects it", "if it goes first", "requeue one job")
    assert found["least"]["lifted"] == ["requeue 236"]
    return bars(
        "Start of job 290", labels, [*waits, 0], [*(f"in {short(w)}" for w in waits), "now"]
    )


def printed(words: list[str]) -> Any:
    """Return the JSON that a command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run(words) == 0
    return json.loads(out.getvalue())


def bars(title: str, labels: Sequence[str], sizes: Sequence[float], values: Sequence[str]) -> str:
    """Return a picture of one bar for each label."""
    rows = []
    for place, (label, size, value) in enumerate(zip(labels, sizes, values)):
        y, width = 40 + 34 * place, max(3.0, 320 * size / max(sizes))
        rows += [
            text(0, y + 20, label, 22),
            cell(230, y, width, 26, JOBS[0] if place else LARGE),
            text(240 + width, y + 20, value, 22, "bold"),
        ]
    told = ", ".join(f"{label} {value}" for label, value in zip(labels, values))
    return drawn(f"{title}: {told}", 40 + 34 * len(labels), text(0, 22, title, 22, "bold"), *rows)


def drawn(about: str, height: int, *parts: str) -> str:
    """Return an SVG file of these parts, two thirds as large, which narrow screens shrink."""
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * 2 // 3}" '
        f'height="{height * 2 // 3}" viewBox="-2 0 {WIDTH + 4} {height}" role="img" '
        f'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" '
        f'aria-label="{about}">'
    )
    return "\n".join((svg, *parts, "</svg>")) + "\n"


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
    yield text(x, 368, f"{idle} {units} idle, {outcome}", 24, "bold", LARGE if waiting else JOBS[1])


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
