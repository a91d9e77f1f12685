"""A migration and its plans in words, as lines for a terminal."""

from __future__ import annotations

from optsched.models.migration.problem import LARGE, Migration, Plan
from optsched.models.migration.program import measure

Lines = list[tuple[str, str]]


def described(problem: Migration) -> Lines:
    """Return what there is to decide, and the size of the program."""
    held = sum(box.volume for box in problem.running)
    usable = int(problem.grid.free_of(problem.holes).sum())
    share = held / usable if usable else 0.0
    columns, entries = measure(problem)
    sides = "x".join(map(str, problem.torus))
    return [
        ("torus", f"{sides}, nodes per router: {problem.nodes_per_router}"),
        ("running", f"{len(problem.running)} jobs on {share:.1%} of {usable} routers"),
        ("movable", f"{len(problem.movers)} jobs"),
        ("large job", f"{problem.incoming} nodes, shapes: {len(problem.place_extents)}"),
        ("program", f"{columns} variables, up to {entries} entries"),
    ]


def told(problem: Migration, plan: Plan) -> Lines:
    """Return a plan step by step."""
    lines = []
    parked = set()
    for number, (job, box) in enumerate(plan.steps, start=1):
        name = f"{problem.named(job)} ({problem.sizes[job]})"
        if box is None:
            text = f"park {name}, give back {problem.running[job]}"
            parked.add(job)
        elif job in parked:
            text = f"restart {name} in {box}"
        else:
            text = f"move {name} from {problem.running[job]} to {box}"
        lines.append((f"step {number}", text))
    place = "-" if plan.place is None else str(plan.place)
    return [*lines, ("start", f"{problem.named(LARGE)} ({problem.incoming}) in {place}")]
