"""Places of jobs in a partition knapsack, and the boxes of these places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Grid, Triple
from optsched.boxes.layer_shapes import layer_shape
from optsched.models.fields import first_few
from optsched.models.problem import Violation


class Place(NamedTuple):
    """The place of a job: a bin, a layer of the bin, and a shelf of the layer.

    Parameters
    ----------
    bin : int
        The bin, from 0.
    layer : int
        The leader of the layer, a job from 0: the leader of the first of the highest shelves. A job
        that holds whole layers leads these.
    shelf : int
        The leader of the shelf, a job from 0: the first of the highest jobs of the shelf.
    """

    bin: int
    layer: int
    shelf: int


Placement = tuple[Place | None, ...]
"""The place of each job in order; None for a job that is not placed."""


def stacked(
    grid: Grid, bins: Sequence[Box], routers: Sequence[int], places: Placement
) -> tuple[Box | None, ...]:
    """Return the box of each job, None for a job that is not placed or does not fit into its bin.

    From the first layer of a bin upwards come jobs with whole layers, by number, then shared
    layers, by the number of their leader. In a layer, shelves follow each other along Z, the
    highest first, and of equal shelves that of the lowest leader; on a shelf, jobs follow each
    other along X by number.
    """
    inside: dict[int, list[_Job]] = {}
    for job, (need, place) in enumerate(zip(routers, places)):
        if place is not None and 0 <= place.bin < len(bins):
            shape = layer_shape(need, bins[place.bin].extent)
            if shape is not None:
                inside.setdefault(place.bin, []).append(_Job(job, place, shape))
    boxes: list[Box | None] = [None] * len(places)
    for number, jobs in inside.items():
        for job, corner, shape in _corners(jobs):
            x, y, z = (
                (at + offset) % side
                for at, offset, side in zip(bins[number].anchor, corner, grid.shape)
            )
            boxes[job] = Box(x, y, z, *shape)
    return tuple(boxes)


class _Job(NamedTuple):
    number: int
    place: Place
    shape: Triple


def _corners(jobs: Sequence[_Job]) -> Iterator[tuple[int, Triple, Triple]]:
    """Yield the jobs of a bin, the offsets of their boxes from its anchor, and their shapes."""
    floor = 0
    layers: dict[int, dict[int, list[_Job]]] = {}
    for job in jobs:
        if job.shape[1] > 1:
            yield job.number, (0, floor, 0), job.shape
            floor += job.shape[1]
        else:
            shelves = layers.setdefault(job.place.layer, {})
            shelves.setdefault(job.place.shelf, []).append(job)
    for layer in sorted(layers):
        z = 0
        for height, _, shelf in sorted(
            (-max(job.shape[2] for job in shelf), leader, shelf)
            for leader, shelf in layers[layer].items()
        ):
            x = 0
            for job in shelf:
                yield job.number, (x, floor, z), job.shape
                x += job.shape[0]
            z -= height
        floor += 1


def ill_led(places: Placement, boxes: Sequence[Box | None]) -> list[Violation]:
    """Return the violations of the rule for leaders of layers and shelves."""
    found = []
    for job, (place, box) in enumerate(zip(places, boxes)):
        if place is None or box is None:
            continue
        for noun, leader, expected in (
            ("shelf", place.shelf, place),
            ("layer", place.layer, (place.bin, place.layer, place.layer)),
        ):
            leads = boxes[leader] if 0 <= leader < len(places) else None
            if leads is None or places[leader] != expected:
                wrong = "leads none there"
            elif max(box.ny, leads.ny) > 1 and leader != job:
                wrong = "cannot share it: one of them has layers of its own"
            elif (leads.nz, -leader) < (box.nz, -job):
                wrong = "is lower, or behind it and not higher"
            else:
                continue
            detail = f"job {job + 1} is in the {noun} of job {leader + 1}, which {wrong}"
            found.append(Violation("leader", detail))
    return found


def misplaced(
    grid: Grid,
    bins: Sequence[Box],
    routers: Sequence[int],
    places: Placement,
    boxes: Sequence[Box | None],
) -> list[Violation]:
    """Return the violations of the boxes of jobs.

    A box must lie inside its bin, as whole layers or inside one layer, have enough routers for the
    job, and share no router with another box.
    """
    found = []
    placed = [
        (job, bins[place.bin], box)
        for job, (place, box) in enumerate(zip(places, boxes))
        if place is not None and box is not None
    ]
    for job, home, box in placed:
        named = f"job {job + 1} in {box}"
        beyond = any(
            (at - b) % side + n > m
            for at, b, side, n, m in zip(box, home, grid.shape, box.extent, home.extent)
        )
        if beyond or grid.mistake(box):
            found.append(Violation("inside", f"{named} is not inside its bin {home}"))
        if box.ny > 1 and (box.nx, box.nz) != (home.nx, home.nz):
            found.append(Violation("layers", f"{named} takes parts of several layers of {home}"))
        if box.volume < routers[job]:
            found.append(Violation("size", f"{named} takes {routers[job]} routers"))
    given = [box for _, _, box in placed]
    for one, other in sharing(grid, given, given):
        if one < other:
            both = [f"job {placed[number][0] + 1} in {given[number]}" for number in (one, other)]
            found.append(Violation("overlap", f"{both[0]} shares routers with {both[1]}"))
    return found


def overlapping_bins(bins: Sequence[Box], holes: Sequence[Box], grid: Grid) -> list[str]:
    """Return a mistake for each bin that overlaps another bin or a hole."""
    taken: dict[int, list[str]] = {}
    for one, other in sharing(grid, bins, [*bins, *holes]):
        if other < one:
            taken.setdefault(one, []).append(f"bin {other + 1} in {bins[other]}")
        elif other >= len(bins):
            taken.setdefault(one, []).append(f"a hole in {holes[other - len(bins)]}")
    wrong = [
        f"bins[{one}]: bin {one + 1} in {bins[one]} overlaps {' and '.join(others)}"
        for one, others in taken.items()
    ]
    return first_few("bins", wrong, "bins")


def sharing(grid: Grid, boxes: Sequence[Box], others: Sequence[Box]) -> list[tuple[int, int]]:
    """Return the pairs of a box and another box, by number, that share a router."""
    one, other = _table(boxes)[:, None], _table(others)[None]
    side = np.array(grid.shape)
    ahead = (other[..., :3] - one[..., :3]) % side < one[..., 3:]
    behind = (one[..., :3] - other[..., :3]) % side < other[..., 3:]
    pairs = np.argwhere((ahead | behind).all(axis=2))
    return [(a, b) for a, b in pairs.tolist()]


def _table(boxes: Sequence[Box]) -> NDArray[np.int64]:
    return np.array(boxes, dtype=np.int64).reshape(-1, 6)
