"""The fields that the models of a torus share: its routers, and the boxes that are taken."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from optsched.boxes.box import Box, Grid, box_of_text
from optsched.models.fields import SHOWN, FieldChecks

LONGEST = 64
"""Most routers along a dimension: a row of them is a machine word."""

ANYWHERE = Grid((1, 1, 1), (True, True, True))
"""Stands for a grid that could not be read."""


class TorusFields(NamedTuple):
    """A torus on file and in a problem.

    Parameters
    ----------
    torus : (int, int, int)
        Routers in each dimension.
    wrap : (bool, bool, bool)
        Whether each dimension wraps around.
    nodes_per_router : int
        Nodes on each router; a job takes whole routers.
    holes : tuple of Box
        Routers that no job can have: service nodes, failed ones, those kept for a reservation.
    links : (int, int, int)
        Speed of a link of each dimension; the bisection of a shape depends on them.
    """

    torus: Any
    wrap: Any = (True, True, True)
    nodes_per_router: Any = 1
    holes: Any = ()
    links: Any = (1, 1, 1)

    @property
    def grid(self) -> Grid:
        """The routers and their links."""
        return Grid(self.torus, self.wrap)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as they are on file."""
        written: dict[str, Any] = {"torus": list(self.torus)}
        if not all(self.wrap):
            written["wrap"] = list(self.wrap)
        if self.nodes_per_router != 1:
            written["nodes_per_router"] = self.nodes_per_router
        if self.holes:
            written["holes"] = [str(box) for box in self.holes]
        if self.links != (1, 1, 1):
            written["links"] = list(self.links)
        return written


OPTIONAL = TorusFields._fields[1:]
"""Names of the fields that may be left out."""


def check_torus(check: FieldChecks, fields: TorusFields) -> TorusFields:
    """Return the fields as plain values; note every mistake in them.

    Holes may overlap each other. Boxes may be given as text, ``2x24x4@3,0,22`` for instance.
    """
    torus, wrap, nodes, holes, links = (_plain(value) for value in fields)
    if not _are(torus, int) or not all(1 <= side <= LONGEST for side in torus):
        check.mistakes.append(f"torus: {torus!r}; expected three integers from 1 to {LONGEST}")
        torus = None
    if not _are(wrap, bool):
        check.mistakes.append(f"wrap: {wrap!r}; expected three times true or false")
        wrap = None
    if type(nodes) is not int or not 1 <= nodes <= 10**6:
        check.mistakes.append(f"nodes_per_router: {nodes!r}; expected an integer from 1")
        nodes = 1
    if not _are(links, int) or not all(1 <= speed <= 10**6 for speed in links):
        check.mistakes.append(f"links: {links!r}; expected three integers from 1")
        links = (1, 1, 1)
    grid = None if torus is None or wrap is None else Grid(tuple(torus), tuple(wrap))
    read = check_boxes(check, "holes", holes, grid)
    known = grid or ANYWHERE
    return TorusFields(known.shape, known.wrap, nodes, read, tuple(links))


def check_boxes(check: FieldChecks, name: str, values: Any, grid: Grid | None) -> tuple[Box, ...]:
    """Return boxes as such; note those that are none of the grid (any will do without one)."""
    if not isinstance(values, list | tuple):
        check.mistakes.append(f"{name}: expected a list of boxes such as '2x4x4@3,0,22'")
        return ()
    boxes, wrong = [], []
    for place, value in enumerate(values):
        box = _box(value)
        mistake = "expected a box such as '2x4x4@3,0,22'"
        if box is not None:
            mistake = "" if grid is None else grid.mistake(box)
        if box is None or mistake:
            wrong.append(f"{name}[{place}]: {value!r}; {mistake}")
            box = None
        boxes.append(box or Box(0, 0, 0, 1, 1, 1))
    check.mistakes += wrong[:SHOWN]
    if len(wrong) > SHOWN:
        check.mistakes.append(f"{name}: {len(wrong) - SHOWN} more such values")
    return tuple(boxes)


def check_apart(
    check: FieldChecks,
    name: str,
    boxes: Sequence[Box],
    labels: Sequence[str | int] | None,
    torus: TorusFields,
) -> None:
    """Note running jobs whose boxes overlap each other or a hole, by their labels."""
    grid = torus.grid
    left = np.count_nonzero(grid.free_of((*torus.holes, *boxes)))
    if left == np.count_nonzero(grid.free_of(torus.holes)) - sum(box.volume for box in boxes):
        return  # their routers add up
    holder: dict[int, str] = {}
    for hole in torus.holes:
        holder.update(dict.fromkeys(grid.cells(hole).tolist(), "a hole"))
    wrong = []
    for place, box in enumerate(boxes):
        label = f"job {labels[place] if labels is not None else place + 1}"
        cells = grid.cells(box).tolist()
        others = sorted({holder[cell] for cell in cells if cell in holder})
        if others:
            wrong.append(f"{name}[{place}]: {label} in {box} overlaps {' and '.join(others)}")
        holder.update(dict.fromkeys(cells, label))
    check.mistakes += wrong[:SHOWN]
    if len(wrong) > SHOWN:
        check.mistakes.append(f"{name}: {len(wrong) - SHOWN} more such jobs")


def routers_for(nodes: int, nodes_per_router: int) -> int:
    """Return how many whole routers so many nodes take."""
    return math.ceil(nodes / nodes_per_router)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _are(values: Any, kind: type) -> bool:
    if not isinstance(values, list | tuple) or len(values) != 3:
        return False
    return all(type(value) is kind for value in values)


def _box(value: Any) -> Box | None:
    if type(value) is Box and {*map(type, value)} == {int}:
        return value
    value = _plain(value)
    if isinstance(value, str):
        return box_of_text(value)
    if isinstance(value, list | tuple) and len(value) == 6:
        numbers = [_plain(number) for number in value]
        if all(type(number) is int for number in numbers):
            return Box(*numbers)
    return None
