"""The fields of a data placement, and a quick check that all is well with them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.data_placement.solution import WIDEST
from optsched.models.fields import LARGEST

BACKFILLS = ("none", "holes", "conservative")
STOPS = ("full", "short")
KEPT = ("users", "next")

RESIDENT = ("node", "file", "load", "loaded", "until")
"""What is told of a file in the memory of a node, in the order of the columns."""

NO_FILE = -1

DENSE = 10**6
"""Files with numbers below this are compared through a table, others by sorting."""

Ints = NDArray[np.int64]


class Fields(NamedTuple):
    """What `DataPlacement` is made of, see there."""

    available: Any
    processors: Any
    walltimes: Any
    files: Any
    loads: Any
    resident: Any = None
    reserved: Any = None
    occupied: Any = None
    priorities: Any = None
    load_weight: Any = 1
    capacity: Any = 1280
    backfill: Any = "none"
    weight: Any = 500
    threshold: Any = 100
    partial: Any = False
    stop: Any = "full"
    noticed: Any = None
    kept: Any = "users"
    started: Any = None
    jobs: Any = None


REQUIRED = Fields._fields[:5]

HEAVIEST = 10**6
"""Largest weight, and longest load in seconds: scores with them still fit into 64 bits."""

SINGLES = {
    "load_weight": (0, HEAVIEST),
    "capacity": (1, LARGEST),
    "weight": (0, HEAVIEST),
    "threshold": (0, HEAVIEST),
}
"""The single numbers, and the least and the most that each may be."""


def with_defaults(fields: Fields) -> Fields:
    """Return sound fields as read-only arrays, with those filled in that were left out."""
    nodes = len(fields.available)
    jobs = len(fields.processors)
    filled = fields._replace(
        resident=no_residents() if fields.resident is None else fields.resident,
        occupied=(fields.available > 0).any(axis=1) if fields.occupied is None else fields.occupied,
        priorities=np.ones(jobs, np.int64) if fields.priorities is None else fields.priorities,
        reserved=None if _is_blank(fields.reserved) else fields.reserved,
        started=np.zeros(nodes, np.bool_) if fields.started is None else fields.started,
    )
    assert len(filled.occupied) == nodes
    return Fields(*(_kept(value) if isinstance(value, np.ndarray) else value for value in filled))


def is_fine(fields: Fields) -> bool:
    """Return whether the fields are arrays of int64 and sound, so as to be kept as they are.

    Almost every problem of a simulation is, and this takes a tenth of a millisecond for thousands
    of jobs.
    """
    available = fields.available
    if not _is_table(available, 2, -LARGEST) or not 0 < available.shape[1] <= WIDEST:
        return False
    nodes, cores = available.shape
    lists = (
        (fields.processors, 1, cores),
        (fields.walltimes, 1, LARGEST),
        (fields.files, NO_FILE, LARGEST),
        (fields.loads, 0, HEAVIEST),
    )
    if not nodes or not all(_is_table(values, 1, least, most) for values, least, most in lists):
        return False
    jobs = len(fields.processors)
    if {len(values) for values, _, _ in lists} != {jobs}:
        return False
    reserved, occupied, priorities = fields.reserved, fields.occupied, fields.priorities
    if reserved is not None and not (
        _is_table(reserved, 2, 0)
        and reserved.shape == available.shape
        and not ((reserved > available) & (reserved > 0)).any()
    ):
        return False
    if not _are_flags(occupied, nodes) or not _are_flags(fields.started, nodes):
        return False
    if priorities is not None and not (_is_table(priorities, 1, 1) and len(priorities) == jobs):
        return False
    singles = all(
        type(getattr(fields, name)) is int and least <= getattr(fields, name) <= most
        for name, (least, most) in SINGLES.items()
    )
    if not singles or fields.backfill not in BACKFILLS or type(fields.partial) is not bool:
        return False
    if fields.stop not in STOPS or fields.kept not in KEPT:
        return False
    if fields.noticed is not None and not is_hole(fields.noticed, nodes, cores):
        return False
    labels = fields.jobs
    if labels is not None and not (
        type(labels) is tuple and len(labels) == jobs and {*map(type, labels)} <= {int, str}
    ):
        return False
    resident = no_residents() if fields.resident is None else fields.resident
    if not _is_table(resident, 2, 0) or resident.shape[1] != len(RESIDENT):
        return False
    node, file, _, loaded, _ = resident.T
    load = resident[:, 2]
    if len(resident) and (node.max() >= nodes or load.max() > HEAVIEST or (loaded > load).any()):
        return False
    return _are_apart(node, file) and _have_one_size(fields.files, fields.loads, resident)


def no_residents() -> Ints:
    """Return a table of no files in memory."""
    return np.empty((0, len(RESIDENT)), dtype=np.int64)


def is_hole(hole: Any, nodes: int, cores: int) -> bool:
    """Return whether it is a number of cores and a node."""
    return (
        isinstance(hole, list | tuple)
        and [type(number) for number in hole] == [int, int]
        and 0 <= hole[0] <= cores
        and 0 <= hole[1] < nodes
    )


def _is_blank(reserved: Ints | None) -> bool:
    return reserved is None or not reserved.any()


def _kept(array: NDArray[Any]) -> NDArray[Any]:
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def _is_table(values: Any, dimensions: int, least: int, most: int = LARGEST) -> bool:
    """Return whether it is an int64 array of so many dimensions within these bounds."""
    return (
        isinstance(values, np.ndarray)
        and values.dtype == np.int64
        and values.ndim == dimensions
        and (not values.size or bool(values.min() >= least and values.max() <= most))
    )


def _are_flags(values: Any, nodes: int) -> bool:
    """Return whether it is left out, or a bool array with a value for each node."""
    return values is None or (
        isinstance(values, np.ndarray) and values.dtype == bool and values.shape == (nodes,)
    )


def _are_apart(node: Ints, file: Ints) -> bool:
    """Return whether no two entries are of the same file on the same node."""
    if len(node) < 2:
        return True
    order = np.lexsort((file, node))
    node, file = node[order], file[order]
    return not ((node[1:] == node[:-1]) & (file[1:] == file[:-1])).any()


def _have_one_size(files: Ints, loads: Ints, resident: Ints) -> bool:
    """Return whether equal files have equal loads, and a job without a file has none."""
    all_files = np.concatenate((files, resident[:, 1]))
    all_loads = np.concatenate((loads, resident[:, 2]))
    if not len(all_files):
        return True
    if all_files.max() < DENSE:
        load_of = np.empty(all_files.max() + 2, dtype=np.int64)
        load_of[all_files] = all_loads
        load_of[NO_FILE] = 0
        return np.array_equal(load_of[all_files], all_loads)
    _, first, which = np.unique(all_files, return_index=True, return_inverse=True)
    return np.array_equal(all_loads[first][which], all_loads) and not loads[files == NO_FILE].any()
