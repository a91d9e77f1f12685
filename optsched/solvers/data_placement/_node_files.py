"""Which files are on which node when, as far as a plan is made: compiled.

Every node has a list of files, every file of a node a list of visits: (start, loaded, end), in
seconds from now. A visit begins with a job that uses the file, and ends with the job's walltime.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Integers = NDArray[np.int64]
NONE = -1


class NodeFiles(NamedTuple):
    """Linked lists in arrays; an entry or a visit is its row.

    Parameters
    ----------
    head : int64 array, shape (nodes,)
        The first entry of each node.
    entries : int64 array, shape (entries, 5)
        File, seconds to load it, first visit, last visit, next entry of the node.
    visits : int64 array, shape (visits, 4)
        Start, loaded, end, next visit of the entry.
    used : int64 array, shape (2,)
        How many rows of the two are in use.
    """

    head: Integers
    entries: Integers
    visits: Integers
    used: Integers


FILE, LOAD, FIRST, LAST, NEXT = 0, 1, 2, 3, 4
START, LOADED, END, LATER = 0, 1, 2, 3


@kernel
def files_on(nodes: int, resident: Integers, jobs: int) -> NodeFiles:
    """Return what is on the nodes now, with room for the files of so many jobs."""
    rows = len(resident) + jobs
    files = NodeFiles(
        np.full(nodes, NONE, dtype=np.int64),
        np.empty((rows, 5), dtype=np.int64),
        np.empty((rows, 4), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )
    for row in range(len(resident)):
        node, file, load, loaded, until = resident[row]
        visit(files, node, file, load, 0, max(loaded, 0), until)
    return files


@kernel
def visit(
    files: NodeFiles, node: int, file: int, load: int, start: int, loaded: int, end: int
) -> None:
    """Note that a file will be on a node."""
    entry = files.head[node]
    while entry != NONE and files.entries[entry, FILE] != file:
        entry = files.entries[entry, NEXT]
    new = files.used[1]
    files.used[1] += 1
    files.visits[new] = (start, loaded, end, NONE)
    if entry == NONE:
        entry = files.used[0]
        files.used[0] += 1
        files.entries[entry] = (file, load, new, new, files.head[node])
        files.head[node] = entry
    else:
        files.visits[files.entries[entry, LAST], LATER] = new
        files.entries[entry, LAST] = new


@kernel
def loading_time(files: NodeFiles, node: int, file: int, load: int, at: int) -> int:
    """Return the seconds a job that starts at a time waits for its file.

    What is left of a load is counted from now, as the authors do.
    """
    if file == NONE:
        return 0
    entry = files.head[node]
    while entry != NONE and files.entries[entry, FILE] != file:
        entry = files.entries[entry, NEXT]
    if entry == NONE:
        return load
    seen = files.entries[entry, FIRST]
    while seen != NONE:
        start, loaded, end, later = files.visits[seen]
        if start <= at <= end:
            return 0 if loaded <= at else loaded
        seen = later
    return load


@kernel
def reloading_time(
    files: NodeFiles, node: int, file: int, load: int, at: int, capacity: int
) -> int:
    """Return the seconds to load again what a job evicts: its share of the files not in use."""
    idle = 0
    entry = files.head[node]
    while entry != NONE:
        last = files.entries[entry, LAST]
        if files.entries[entry, FILE] != file and files.visits[last, END] <= at:
            idle += files.entries[entry, LOAD]
        entry = files.entries[entry, NEXT]
    return idle * load // capacity
