"""The fields that the models of a torus share: its routers, and boxes on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from optsched.boxes.box import TEXT, Box, Grid, Triple, box_of_text
from optsched.fields import (
    Each,
    Fields,
    Integer,
    Kind,
    WrongValueError,
    first_few,
    flag,
    plain,
    plain_sequence,
)
from optsched.models.problem import Problem, Solution
from optsched.models.schema import declared, field

LONGEST_SIDE = 64
"""Most routers along a dimension, so that a row fits into a machine word."""

FASTEST = 10**6

MOST_NODES = 10**6
"""Largest number of nodes on a router."""


class Three(Kind):
    """An integer from 1, or a flag, for each of three dimensions."""

    def __init__(self, of: type[int] | type[bool], most: int = 1, expected: str = "") -> None:
        self.of, self.most, self.expected = of, most, f"expected {expected}"
        self.on_file = (
            "three times true or false" if of is bool else f"three integers, 1 to {most:,}"
        )
        self.in_python = f"({', '.join([of.__name__] * 3)})"

    def read(self, value: Any, fields: Fields) -> Any:
        value = plain(value)
        sound = type(value) in (list, tuple) and [*map(type, value)] == [self.of] * 3
        if not sound or (self.of is int and not 1 <= min(value) <= max(value) <= self.most):
            raise self.refused(value)
        return tuple(value)

    def json_schema(self) -> dict[str, Any]:
        item: dict[str, Any] = {"type": "boolean"}
        if self.of is int:
            item = {"type": "integer", "minimum": 1, "maximum": self.most}
        return {"type": "array", "items": item, "minItems": 3, "maxItems": 3}


class Boxes(Each):
    """Boxes of a torus, written as texts."""

    on_file = 'list of boxes such as `"2x4x4@3,0,22"`'
    in_python = "sequence of Box or str"
    expected = "expected a list of boxes such as '2x4x4@3,0,22'"
    items: Mapping[str, Any] = {
        "anyOf": [
            {"type": "string", "pattern": f"^{TEXT.pattern}$".replace(r"\d", "[0-9]")},
            {"type": "array", "items": {"type": "integer"}, "minItems": 6, "maxItems": 6},
        ]
    }

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        known = "torus" in fields and "wrap" in fields
        mistake = Grid(fields["torus"], fields["wrap"]).mistake if known else lambda box: ""

        def read(value: Any) -> Box:
            box = _box(value)
            wrong = "expected a box such as '2x4x4@3,0,22'" if box is None else mistake(box)
            if box is None or wrong:
                raise WrongValueError(f"{value!r}; {wrong}")
            return box

        return read

    def write(self, value: Any) -> Any:
        return [str(box) for box in value]


@declared
class TorusProblem(Problem[Solution]):
    """Base class of the problems on a torus."""

    torus: Triple = field(
        Three(int, LONGEST_SIDE, f"three integers from 1 to {LONGEST_SIDE}"),
        "routers in each dimension",
    )
    wrap: tuple[bool, bool, bool] = field(
        Three(bool, expected="three times true or false"),
        "whether each dimension wraps around (a ring) or not (a line)",
        default=(True, True, True),
        kw_only=True,
    )
    nodes_per_router: int = field(
        Integer(1, MOST_NODES, "expected an integer from 1"),
        "nodes on each router; a job holds whole routers",
        default=1,
        kw_only=True,
    )
    holes: tuple[Box, ...] = field(
        Boxes(),
        "unavailable routers, as boxes that may overlap each other: service nodes, failed nodes, "
        "reservations",
        default=(),
        kw_only=True,
    )
    links: Triple = field(
        Three(int, FASTEST, "three integers from 1"),
        "speed of a link of each dimension, for the bisection of shapes",
        default=(1, 1, 1),
        kw_only=True,
    )
    convex: bool = field(
        flag(),
        "whether boxes have to be convex: each side is a whole ring, or at most half of it, "
        "rounded up, so that shortest paths stay inside",
        default=False,
        kw_only=True,
    )

    @property
    def torus_fields(self) -> dict[str, Any]:
        """The fields that all models of a torus share, for another problem on the same torus."""
        return {f.name: getattr(self, f.name) for f in TorusProblem.schema.fields}

    @property
    def grid(self) -> Grid:
        """The routers and their links."""
        return Grid(self.torus, self.wrap, self.convex)


def overlaps(fields: Fields, name: str) -> list[str]:
    """Return a mistake for each running job whose box in field `name` overlaps a job or a hole."""
    grid, holes = Grid(fields["torus"], fields["wrap"]), fields["holes"]
    boxes, labels = fields[name], fields["running_jobs"]
    if grid.are_disjoint(boxes, holes):
        return []
    holder: dict[int, str] = {}
    for hole in holes:
        holder.update(dict.fromkeys(grid.cells(hole).tolist(), "a hole"))
    wrong = []
    for place, box in enumerate(boxes):
        label = f"job {labels[place] if labels is not None else place + 1}"
        cells = grid.cells(box).tolist()
        others = sorted({holder[cell] for cell in cells if cell in holder})
        if others:
            wrong.append(f"{name}[{place}]: {label} in {box} overlaps {' and '.join(others)}")
        holder.update(dict.fromkeys(cells, label))
    return first_few(name, wrong, "jobs")


def routers_for(nodes: int, nodes_per_router: int) -> int:
    """Return the number of routers that hold `nodes` nodes."""
    return math.ceil(nodes / nodes_per_router)


def boxes_of_texts(written: Any) -> tuple[Box | None, ...] | None:
    """Return the boxes of a list of texts or nulls; None for anything else."""
    boxes: list[Box | None] = []
    for text in written if isinstance(written, list) else [0]:
        box = box_of_text(text) if isinstance(text, str) else None
        if box is None and text is not None:
            return None
        boxes.append(box)
    return tuple(boxes)


def _box(value: Any) -> Box | None:
    if type(value) is Box and {*map(type, value)} == {int}:
        return value
    if isinstance(value, str):
        return box_of_text(value)
    numbers = plain_sequence(value)
    if numbers is not None and len(numbers) == 6 and {*map(type, numbers)} == {int}:
        return Box(*numbers)
    return None
