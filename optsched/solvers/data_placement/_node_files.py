"""Which files are on which node when, as far as a plan is made: compiled.

Every node has a list of files, every file of a node a list of visits: (start, loaded, end), in
seconds from now. A visit begins with a job that uses the file, and ends with the job's walltime.
The nodes that have one file are marked: the users of a file come together in a queue. Where files
are kept until the next start, every node has a list of starts, too.
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
    head : int64 array, shape (nodes, 2)
        The first entry of each node, and its last start in the order of planning.
    entries : int64 array, shape (entries, 7)
        File, seconds to load it, first visit, last visit, next entry of the node, node, next entry
        of the bucket.
    buckets : int64 array, shape (buckets,)
        The first entry of the files whose numbers are the bucket's, modulo the buckets.
    marked : int64 array, shape (nodes,)
        The entry of the marked file on each node.
    visits : int64 array, shape (visits, 4)
        Start, loaded, end, next visit of the entry. Of a mere start, the start, and the one of the
        node that was planned before.
    used : int64 array, shape (3,)
        How many entries and visits are in use; the marked file.
    until_next : bool
        Whether files are kept until the next start, so that starts are noted.
    """

    head: Integers
    entries: Integers
    buckets: Integers
    marked: Integers
    visits: Integers
    used: Integers
    until_next: bool


FILE, LOAD, FIRST, LAST, NEXT, NODE, ALIKE = 0, 1, 2, 3, 4, 5, 6
START, LOADED, END, LATER = 0, 1, 2, 3
FILES, STARTS = 0, 1
ENTRIES, VISITS, MARKED = 0, 1, 2


@kernel
def files_on(
    resident: Integers, started: NDArray[np.bool_], until_next: bool, jobs: int
) -> NodeFiles:
    """Return what is on the nodes now, with room for the files of so many jobs."""
    nodes = len(started)
    rows = len(resident) + jobs
    files = NodeFiles(
        np.full((nodes, 2), NONE, dtype=np.int64),
        np.empty((rows, 7), dtype=np.int64),
        np.full(2 * rows + 1, NONE, dtype=np.int64),
        np.full(nodes, NONE, dtype=np.int64),
        np.empty((rows + (nodes + jobs if until_next else 0), 4), dtype=np.int64),
        np.array([0, 0, NONE]),
        until_next,
    )
    for row in range(len(resident)):
        node, file, load, loaded, until = resident[row]
        visit(files, node, file, load, 0, max(loaded, 0), until)
    for node in range(nodes):
        if started[node]:
            begin(files, node, 0)
    return files


@kernel
def begin(files: NodeFiles, node: int, start: int) -> None:
    """Note that a job will start on a node, with or without a file."""
    if not files.until_next:
        return
    new = files.used[VISITS]
    files.used[VISITS] += 1
    files.visits[new] = (start, NONE, NONE, files.head[node, STARTS])
    files.head[node, STARTS] = new


@kernel
def mark(files: NodeFiles, file: int) -> None:
    """Mark the nodes that have a file, and no others."""
    before = files.used[MARKED]
    if file == before:
        return
    buckets = len(files.buckets)
    files.used[MARKED] = file
    if before != NONE:
        entry = files.buckets[before % buckets]
        while entry != NONE:
            files.marked[files.entries[entry, NODE]] = NONE
            entry = files.entries[entry, ALIKE]
    if file != NONE:
        entry = files.buckets[file % buckets]
        while entry != NONE:
            if files.entries[entry, FILE] == file:
                files.marked[files.entries[entry, NODE]] = entry
            entry = files.entries[entry, ALIKE]


@kernel
def visit(
    files: NodeFiles, node: int, file: int, load: int, start: int, loaded: int, end: int
) -> None:
    """Note that a file will be on a node; it is the marked one if it has been there before."""
    if file == NONE:
        return
    new = files.used[VISITS]
    files.used[VISITS] += 1
    files.visits[new] = (start, loaded, end, NONE)
    entry = files.marked[node]
    if entry == NONE or files.entries[entry, FILE] != file:
        entry = files.used[ENTRIES]
        files.used[ENTRIES] += 1
        bucket = file % len(files.buckets)
        files.entries[entry] = (
            file, load, new, new, files.head[node, FILES], node, files.buckets[bucket],
        )  # fmt: skip
        files.head[node, FILES] = files.buckets[bucket] = entry
        if file == files.used[MARKED]:
            files.marked[node] = entry
    else:
        files.visits[files.entries[entry, LAST], LATER] = new
        files.entries[entry, LAST] = new


@kernel
def loading_time(files: NodeFiles, node: int, at: int) -> int:
    """Return the seconds a job that starts at a time waits for its file, the marked one.

    What is left of a load is counted from now, as the authors do; NONE if no job uses the file.
    """
    entry = files.marked[node]
    if entry == NONE:
        return NONE
    seen = files.entries[entry, FIRST]
    while seen != NONE:
        start, loaded, end, later = files.visits[seen]
        if start <= at <= end:
            return 0 if loaded <= at else loaded
        seen = later
    return NONE


@kernel
def left_loading_time(files: NodeFiles, node: int, load: int, at: int) -> int:
    """Return the same where no job uses the file; it is there until the next start, or loaded."""
    entry = files.marked[node]
    if entry == NONE:
        return load
    last_start = NONE
    seen = files.head[node, STARTS]
    while seen != NONE:
        start, _, _, seen = files.visits[seen]
        if start < at:
            last_start = max(last_start, start)
    seen = files.entries[entry, FIRST]
    while seen != NONE:
        _, loaded, end, later = files.visits[seen]
        if last_start < end < at:
            return 0 if loaded <= at else loaded
        seen = later
    return load


@kernel
def reloading_time(
    files: NodeFiles, node: int, file: int, load: int, at: int, capacity: int
) -> int:
    """Return the seconds to load again what a job evicts: its share of the files not in use."""
    idle = 0
    entry = files.head[node, FILES]
    while entry != NONE:
        last = files.entries[entry, LAST]
        if files.entries[entry, FILE] != file and files.visits[last, END] <= at:
            idle += files.entries[entry, LOAD]
        entry = files.entries[entry, NEXT]
    return idle * load // capacity
