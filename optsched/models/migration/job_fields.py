"""Fields of the jobs of a migration problem: the movable jobs, and joint checks."""

from __future__ import annotations

from typing import Any

from optsched.boxes.box import Grid
from optsched.models.fields import LARGEST_FIELD, first_few, plain
from optsched.models.schema import DOUBTFUL, Fields, Kind, Reading


class Movable(Kind):
    """Distinct numbers of running jobs in ascending order, from 1 on file and 0 in Python."""

    on_file = "list of numbers of running jobs, from 1"
    in_python = "sequence of int, from 0"

    def accept(self, value: Any, fields: Fields) -> Any:
        if type(value) not in (list, tuple) or not {*map(type, value)} <= {int}:
            return DOUBTFUL
        if value and not (min(value) >= 0 and max(value) < len(fields["running"])):
            return DOUBTFUL
        return tuple(sorted(set(value)))

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        given = plain(value)
        if not isinstance(given, list | tuple) or not {*map(type, given)} <= {int}:
            reading.wrong(name, "expected a list of numbers of running jobs, from 1")
            return self.blank
        most, known = LARGEST_FIELD, ""
        if "running" not in reading.unread:
            most = len(reading.fields["running"])
            known = f" to {most}"
        jobs = [job - reading.on_file for job in given]
        wrong = [
            f"{name}[{place}]: {job + 1}; expected a running job, from 1{known}"
            for place, job in enumerate(jobs)
            if not 0 <= job < most
        ]
        reading.note(name, wrong)
        return tuple(sorted(set(jobs)))

    def write(self, value: Any) -> Any:
        return [job + 1 for job in value]

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "integer", "minimum": 1}}


def wrong_jobs(fields: Fields) -> list[str]:
    """Return a mistake for each running job that exceeds its box or the largest cost."""
    labels = fields["running_jobs"] or range(1, len(fields["running"]) + 1)
    nodes_per_router = fields["nodes_per_router"]
    small, dear = [], []
    for place, (box, size, elapsed, label) in enumerate(
        zip(fields["running"], fields["sizes"], fields["elapsed"], labels)
    ):
        held = box.volume * nodes_per_router
        if size > held:
            small.append(
                f"sizes[{place}]: job {label} of {size} nodes has {held} in {box} "
                f"(nodes_per_router: {nodes_per_router})"
            )
        if size * elapsed > LARGEST_FIELD:
            dear.append(
                f"elapsed[{place}]: job {label} costs {size * elapsed} node-seconds; "
                f"expected at most {LARGEST_FIELD}"
            )
    return [*first_few("sizes", small), *first_few("elapsed", dear)]


def wrong_endings(fields: Fields) -> list[str]:
    """Return a mistake for each box of an ending job that overlaps a running job or a hole."""
    grid = Grid(fields["torus"], fields["wrap"])
    others = grid.free_of([*fields["running"], *fields["holes"]])
    wrong = [
        f"ending[{place}]: {box} overlaps a running job or a hole"
        for place, box in enumerate(fields["ending"])
        if not others[grid.routers_of(box)].all()
    ]
    return first_few("ending", wrong)
