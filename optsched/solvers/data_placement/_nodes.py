"""Cores and resident files of nodes over time in a partial plan, compiled.

*Cores.* Each has a time from which it is free: its key is ``free from * 64 + core``, so that
sorting the keys of a node sorts its cores by time, then by number. A hole is made of cores that are
free now and reserved for a later job.

*Files.* Each node has a list of files, and each file of a node a list of visits: (start, loaded,
end), in seconds from now. A visit spans the walltime of a job that uses the file. The nodes with
one particular file are marked, because users of a file are often neighbors in the queue. If files
are kept until the next start, each node has a list of starts, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.compiled import kernel
from optsched.models.data_placement._check import Arrays


@kernel(allocates=False)
def sort_cores(keys: Ints, available: Ints) -> None:
    """Update the keys of each node, nearly in order, and sort them; past times count as now."""
    nodes, cores = available.shape
    for node in range(nodes):
        for i in range(cores):
            core = keys[node, i] & 63
            keys[node, i] = max(available[node, core], 0) * 64 + core
        sort(keys[node])


@kernel(allocates=False)
def sort(keys: Ints) -> None:
    """Sort the nearly sorted keys of a node by insertion."""
    for i in range(1, len(keys)):
        key = keys[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@kernel(allocates=False)
def free_now(keys: Ints) -> int:
    """Return the number of cores of a node that are free now."""
    count = 0
    for key in keys:
        if key >= 64:
            break
        count += 1
    return count


@kernel(allocates=False)
def take_first(keys: Ints, count: int, until: int) -> int:
    """Allocate the first cores of a node until a time, and return a bit mask of them."""
    bits = 0
    for i in range(count):
        core = keys[i] & 63
        bits |= 1 << core
        keys[i] = until * 64 + core
    sort(keys)
    return bits


@kernel(allocates=False)
def in_holes(reserved: Ints, walltime: int) -> int:
    """Return the number of cores of a node in holes that last at least a walltime."""
    count = 0
    for until in reserved:
        if until > 0 and until >= walltime:
            count += 1
    return count


@kernel(allocates=False)
def from_holes(keys: Ints, reserved: Ints, processors: int, walltime: int) -> int:
    """Return the number of cores from holes that a job uses now; -1 if the job does not fit."""
    count: int = min(processors, in_holes(reserved, walltime))
    missing = processors - count
    if missing and keys[missing - 1] >= 64:
        return -1
    return count


@kernel(allocates=False)
def update_widest(reserved: Ints, widest: Ints) -> None:
    """Update the core count and the first node of the widest hole."""
    widest[0] = -1
    for node in range(len(reserved)):
        count = 0
        for until in reserved[node]:
            if until > 0:
                count += 1
        if count > widest[0]:
            widest[0], widest[1] = count, node


@kernel(allocates=False)
def take_from_holes(keys: Ints, reserved: Ints, processors: int, holes: int, walltime: int) -> int:
    """Start a job now on the holes that end first, and return a bit mask of its cores."""
    bits = 0
    for _ in range(holes):
        chosen = -1
        for core in range(len(reserved)):
            if reserved[core] >= walltime and (chosen < 0 or reserved[core] < reserved[chosen]):
                chosen = core
        bits |= 1 << chosen
        reserved[chosen] = 0
    if processors > holes:
        bits |= take_first(keys, processors - holes, walltime)
    return bits


@kernel(allocates=False)
def take_by_number(
    keys: Ints, reserved: Ints, at: Ints, processors: int, start: int, walltime: int
) -> int:
    """Allocate the lowest cores free at a start, and return a mask; those free now become holes."""
    width = len(keys)
    for i in range(width):
        at[keys[i] & 63] = i
    bits = 0
    taken = 0
    for core in range(width):
        i = at[core]
        free_from = keys[i] >> 6
        if free_from <= start:
            bits |= 1 << core
            if free_from == 0 and start > 0:
                reserved[core] = start
            keys[i] = (start + walltime) * 64 + core
            taken += 1
            if taken == processors:
                break
    sort(keys)
    return bits


NONE = -1


class NodeFiles(NamedTuple):
    """Linked lists in arrays, in which an entry or a visit is a row number."""

    head: Ints  # first entry of each node, and the start planned last, shape (nodes, 2)
    entries: Ints  # columns `FILE` to `ALIKE`, load time in seconds
    buckets: Ints  # first entry of each hash bucket of file numbers, shape (buckets,)
    marked: Ints  # entry of the marked file on each node, shape (nodes,)
    # Columns `START` to `LATER`; for a start without a visit, the start and the one before it
    visits: Ints
    used: Ints  # number of entries, number of visits, and the marked file
    until_next: bool  # whether files are kept until the next start, so that starts are recorded


FILE, LOAD, FIRST, LAST, NEXT, NODE, ALIKE = range(7)
"""Columns of entries: the first and the last visit, the next entries of the node and the bucket."""

START, LOADED, END, LATER = range(4)
"""Columns of visits: the last one is the next visit of the entry."""

FILES, STARTS = 0, 1
ENTRIES, VISITS, MARKED = 0, 1, 2


@kernel
def files_on(arrays: Arrays) -> NodeFiles:
    """Return the resident files of nodes, with space for the files of the jobs."""
    resident, started, until_next = arrays.resident, arrays.started, arrays.until_next
    nodes, jobs = len(started), len(arrays.jobs)
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
    fill_files(files, resident, started)
    return files


@kernel(allocates=False)
def fill_files(files: NodeFiles, resident: Ints, started: Flags) -> None:
    """Record the resident files, and the starts of this second."""
    for row in range(len(resident)):
        node, file, load, loaded, until = resident[row]
        visit(files, node, file, load, 0, max(loaded, 0), until)
    for node in range(len(started)):
        if started[node]:
            begin(files, node, 0)


@kernel(allocates=False)
def begin(files: NodeFiles, node: int, start: int) -> None:
    """Record the start of a job on a node, with or without a file."""
    if not files.until_next:
        return
    new = files.used[VISITS]
    files.used[VISITS] += 1
    files.visits[new] = (start, NONE, NONE, files.head[node, STARTS])
    files.head[node, STARTS] = new


@kernel(allocates=False)
def mark(files: NodeFiles, file: int) -> None:
    """Mark exactly the nodes that have a file."""
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


@kernel(allocates=False)
def visit(
    files: NodeFiles, node: int, file: int, load: int, start: int, loaded: int, end: int
) -> None:
    """Record a visit of a file to a node; a file that was there before must be marked."""
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


@kernel(allocates=False)
def loading_time(files: NodeFiles, node: int, load: int, at: int, from_start: bool) -> int:
    """Return the seconds that a job waits for the marked file, with a load time of `load`."""
    entry = files.marked[node]
    if entry == NONE:
        return load
    seen = files.entries[entry, FIRST]
    while seen != NONE:
        start, loaded, end, seen = files.visits[seen]
        if start <= at <= end:
            return int(rest_of_load(loaded, at, from_start))
    if not files.until_next:
        return load
    last_start: int = start_before(files, node, at)
    seen = files.entries[entry, FIRST]
    while seen != NONE:
        _, loaded, end, seen = files.visits[seen]
        if last_start < end < at:
            return int(rest_of_load(loaded, at, from_start))
    return load


@kernel(allocates=False)
def rest_of_load(loaded: int, at: int, from_start: bool) -> int:
    """Return the rest of a load that another began, from now as the authors do, or the start."""
    if loaded <= at:
        return 0
    return loaded - at if from_start else loaded


@kernel(allocates=False)
def start_before(files: NodeFiles, node: int, at: int) -> int:
    """Return the last start on a node before a time, or NONE."""
    last_start = NONE
    seen = files.head[node, STARTS]
    while seen != NONE:
        start, _, _, seen = files.visits[seen]
        if start < at:
            last_start = max(last_start, start)
    return last_start


@kernel(allocates=False)
def reloading_time(
    files: NodeFiles, kept: int, node: int, load: int, at: int, capacity: int, in_memory: bool
) -> int:
    """Return the seconds to reload what a job evicts, its share of `kept_time` without its file."""
    own = files.marked[node]
    if not in_memory and own != NONE and files.visits[files.entries[own, LAST], END] <= at:
        kept -= files.entries[own, LOAD]
    return kept * load // capacity


@kernel(allocates=False)
def kept_time(files: NodeFiles, node: int, at: int, in_memory: bool) -> int:
    """Return the seconds to load the files of a node that are in memory, or unused, at a time."""
    if in_memory:
        return int(time_in_memory(files, node, at))
    idle = 0
    entry = files.head[node, FILES]
    while entry != NONE:
        if files.visits[files.entries[entry, LAST], END] <= at:
            idle += files.entries[entry, LOAD]
        entry = files.entries[entry, NEXT]
    return idle


@kernel(allocates=False)
def time_in_memory(files: NodeFiles, node: int, at: int) -> int:
    """Return the seconds to load all files that are in the memory of a node at a time."""
    total = 0
    last_start: int = start_before(files, node, at) if files.until_next else at
    entry = files.head[node, FILES]
    while entry != NONE:
        seen = files.entries[entry, FIRST]
        while seen != NONE:
            start, _, end, seen = files.visits[seen]
            if start <= at <= end or last_start < end < at:
                total += files.entries[entry, LOAD]
                break
        entry = files.entries[entry, NEXT]
    return total
