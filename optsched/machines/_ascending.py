"""Arrays in ascending order: search, insertion and removal of entries, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Ints
from optsched.compiled import kernel


@kernel(allocates=False)
def position(values: NDArray[Any], count: int, at: float, after: float = 0.0) -> int:
    """Return the last of `count` entries that, or some seconds after it, is at most `at`, or -1."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if values[middle] + after <= at:
            low = middle + 1
        else:
            high = middle
    return low - 1


@kernel(allocates=False)
def insert(array: NDArray[Any], count: int, position: int, value: float) -> None:
    """Insert a value into the first `count` entries, which need not ascend.

    Indices are unsigned in loops that shift entries: signed ones can be negative, and what handles
    that keeps the compiler from moving several entries at a time.
    """
    for entry in range(np.uint64(position), np.uint64(count + 1)):
        array[entry], value = value, array[entry]


@kernel(allocates=False)
def delete(array: NDArray[Any], count: int, position: int) -> None:
    """Delete an entry of the first `count`."""
    one = np.uint64(1)
    for entry in range(np.uint64(position), np.uint64(count - 1)):
        array[entry] = array[entry + one]


@kernel(allocates=False)
def add(values: NDArray[Any], count: int, value: float) -> None:
    """Insert a value behind those that are at most as large."""
    insert(values, count, position(values, count, value) + 1, value)


@kernel(allocates=False)
def remove(numbers: Ints, count: int, number: int) -> None:
    """Delete a number, which is there, in any order."""
    place = 0
    while numbers[place] != number:
        place += 1
    delete(numbers, count, place)


@kernel(allocates=False)
def place_for(jobs: Ints, first: int, stop: int, key: NDArray[Any], at: float, job: int) -> int:
    """Return the place of a number with a key, from `first` to `stop`; equal keys are by number."""
    while first < stop:
        middle = (first + stop) >> 1
        other = jobs[middle]
        if at > key[other] or (at == key[other] and job > other):
            first = middle + 1
        else:
            stop = middle
    return first


@kernel(allocates=False)
def place_of(jobs: Ints, first: int, stop: int, key: NDArray[Any], job: int) -> int:
    """Return the place of a job in the order of a key, from `first` to `stop`."""
    return int(place_for(jobs, first, stop, key, key[job], job))


@kernel(allocates=False)
def enter(jobs: Ints, count: int, key: NDArray[Any], job: int) -> None:
    """Insert a job into jobs in the order of a key."""
    insert(jobs, count, place_of(jobs, 0, count, key, job), job)
