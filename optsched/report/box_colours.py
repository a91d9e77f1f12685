"""Fills of jobs in boxes, so that neighbours are told apart."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from optsched.boxes.box import Box, Grid
from optsched.report import style

Label = TypeVar("Label", bound=Hashable)


def colours(grid: Grid, *arrangements: Mapping[Label, Box]) -> dict[Label, str]:
    """Return a fill for each job, the same in all arrangements.

    Jobs are coloured in the order in which they are met. Each gets the fill of `style.FILLS` that
    has the fewest links to it so far, and of those the one that was given longest ago.

    Parameters
    ----------
    grid : Grid
        The routers and their links.
    *arrangements : mapping of labels to Box
        The jobs at several moments; those of one moment do not overlap.
    """
    jobs = list(dict.fromkeys(job for boxes in arrangements for job in boxes))
    number = {job: place for place, job in enumerate(jobs)}
    links: list[dict[int, int]] = [{} for _ in jobs]
    for boxes in arrangements:
        holder = np.full(grid.shape, -1)
        for job, box in boxes.items():
            holder[grid.routers_of(box)] = number[job]
        for axis, wraps in enumerate(grid.wrap):
            pairs = np.stack((holder, np.roll(holder, -1, axis)), axis=-1)
            if not wraps:
                pairs = np.delete(pairs, -1, axis)
            pairs = pairs.reshape(-1, 2)
            apart = (pairs.min(axis=1) >= 0) & (pairs[:, 0] != pairs[:, 1])
            met, counts = np.unique(pairs[apart], axis=0, return_counts=True)
            for (a, b), count in zip(met.tolist(), counts.tolist()):
                links[a][b] = links[a].get(b, 0) + count
                links[b][a] = links[b].get(a, 0) + count
    chosen: list[int] = []
    given = list(range(len(style.FILLS)))
    for near in links:
        border = [0] * len(style.FILLS)
        for other, count in near.items():
            if other < len(chosen):
                border[chosen[other]] += count
        fill = min(given, key=border.__getitem__)
        given.remove(fill)
        given.append(fill)
        chosen.append(fill)
    return {job: style.FILLS[fill] for job, fill in zip(jobs, chosen)}
