"""A torus before and after jobs on it are migrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from optsched.boxes.box import Box, Grid
from optsched.report.box_colours import Label, colours
from optsched.report.layer_maps import (
    BUSY,
    HOLES,
    THICK,
    THIN,
    UPRIGHT,
    WIDELY,
    Entry,
    Panel,
    Part,
    figure_of,
    holes_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_TOLD = 30
"""Moves that the legend tells; a longer one would be taller than the maps."""

COMING = "#FFFFFF"
"""Fill of jobs that come in."""


class Move(NamedTuple):
    """How the move of a job is shown.

    Parameters
    ----------
    before, after : str
        Labels of its box before and after.
    text : str
        What the legend says of it.
    parked : bool
        Whether it has to leave its box before it can have the other.
    """

    before: str
    after: str
    text: str
    parked: bool


def figure(
    title: str,
    headings: tuple[str, str],
    grid: Grid,
    holes: Sequence[Box],
    before: Mapping[Label, Box],
    after: Mapping[Label, Box],
    moves: Mapping[Label, Move],
    coming: Mapping[Label, str],
) -> Figure:
    """Return the torus before and after.

    Jobs that move have the same colour in both, with upright lines if they are parked on the way.
    The boxes of jobs that come in are outlined before, and hatched after. All others are grey.

    Parameters
    ----------
    title : str
        Of the picture.
    headings : (str, str)
        Of the torus before and after.
    grid, holes
        The routers, and those that no job can have.
    before, after : mapping of jobs to Box
        Where the jobs are.
    moves : mapping of jobs to Move
        Those that move, in the order in which the legend tells them.
    coming : mapping of jobs to str
        Labels of the jobs of `after` that come in.
    """
    fills = colours(grid, {job: before[job] for job in moves}, {job: after[job] for job in moves})
    places = [Part(after[job], None, outline=THICK) for job in coming]
    panels = []
    for heading, boxes, is_before in zip(headings, (before, after), (True, False)):
        parts = holes_of(holes)
        for job, box in boxes.items():
            if job in moves:
                move = moves[job]
                label = move.before if is_before else move.after
                parts.append(Part(box, fills[job], label, UPRIGHT if move.parked else ""))
            elif job in coming:
                parts.append(Part(box, COMING, coming[job], WIDELY, THICK))
            else:
                parts.append(Part(box, BUSY))
        panels.append(Panel(heading, parts + (places if is_before else [])))
    told = list(moves)[:MOST_TOLD]
    legend = [
        Entry(moves[job].text, fills[job], UPRIGHT if moves[job].parked else "") for job in told
    ]
    if len(moves) > len(told):
        legend.append(Entry(f"and {len(moves) - len(told)} more", None, outline=0.0))
    if coming:
        noun = "job that comes in" if len(coming) == 1 else "jobs that come in"
        legend.append(Entry(noun, COMING, WIDELY, THICK))
    if set(before) - set(moves):
        legend.append(Entry("stays", BUSY, outline=THIN))
    if any(move.parked for move in moves.values()):
        legend.append(Entry("lines: parked on the way", None, UPRIGHT))
    return figure_of(title, grid, panels, [*legend, *([HOLES] if holes else [])])
