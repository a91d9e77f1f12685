"""Sets of columns of a matrix as rows of words of 64 bits, compiled; see `optsched.column_sets`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]

WORD = 64
NONE, ONE = np.uint64(0), np.uint64(1)
HALVES = np.uint64(0x5555555555555555)
QUARTERS = np.uint64(0x3333333333333333)
EIGHTHS = np.uint64(0x0F0F0F0F0F0F0F0F)
BYTES = np.uint64(0x0101010101010101)
TWO, FOUR, TOP, LAST = np.uint64(2), np.uint64(4), np.uint64(56), np.uint64(63)


def words_of(masks: Iterable[int], words: int) -> Words:
    """Return sets of columns, given as masks, as words, one set in a row."""
    every = bytearray().join([mask.to_bytes(8 * words, "little") for mask in masks])
    return np.frombuffer(every, dtype="<u8").reshape(-1, words)


def masks_of(columns: Words) -> list[int]:
    """Return sets of columns, one in a row, as masks."""
    every, width = columns.astype("<u8").tobytes(), 8 * columns.shape[1]
    return [int.from_bytes(every[at : at + width], "little") for at in range(0, len(every), width)]


@kernel(allocates=False)
def size(columns: Words) -> int:
    """Return the number of columns of a set."""
    total = NONE
    for word in range(len(columns)):
        bits = columns[word]
        bits -= (bits >> ONE) & HALVES
        bits = (bits & QUARTERS) + ((bits >> TWO) & QUARTERS)
        bits = (bits + (bits >> FOUR)) & EIGHTHS
        total += (bits * BYTES) >> TOP
    return int(total)


@kernel(allocates=False)
def overlap(one: Words, other: Words) -> bool:
    """Return whether two sets share a column."""
    both = NONE
    for word in range(len(one)):
        both |= one[word] & other[word]
    return bool(both != NONE)


@kernel(allocates=False)
def copy(columns: Words, copied: Words) -> None:
    """Make a set equal to another."""
    for word in range(len(columns)):
        columns[word] = copied[word]


@kernel(allocates=False)
def add(columns: Words, added: Words) -> None:
    """Add the columns of a set to another."""
    for word in range(len(columns)):
        columns[word] |= added[word]


@kernel(allocates=False)
def remove(columns: Words, removed: Words) -> None:
    """Remove the columns of a set from another."""
    for word in range(len(columns)):
        columns[word] &= ~removed[word]


@kernel(allocates=False)
def move_lowest(left: Words, number: int, taken: Words) -> None:
    """Move the lowest columns of a set, at most `number`, to another set."""
    for word in range(len(left)):
        while number > 0 and left[word]:
            lowest = left[word] & (~left[word] + ONE)
            left[word] ^= lowest
            taken[word] |= lowest
            number -= 1


@kernel(allocates=False)
def total_runs(columns: Words) -> int:
    """Return the number of maximal runs of columns, summed over the jobs."""
    total = NONE
    for job in range(len(columns)):
        carried = NONE
        for word in range(columns.shape[1]):
            bits = columns[job, word]
            starts = bits & ~((bits << ONE) | carried)
            carried = bits >> LAST
            while starts:
                starts &= starts - ONE
                total += ONE
    return int(total)


@kernel
def runs_of(columns: Words) -> tuple[Numbers, Numbers, Numbers]:
    """Return first, last and runs of `interval_text` for the columns of each job."""
    jobs, words = columns.shape
    first = np.zeros(jobs, dtype=np.int64)
    last = np.zeros(jobs, dtype=np.int64)
    runs = np.empty((total_runs(columns), 2), dtype=np.int64)
    found = 0
    for job in range(jobs):
        first[job] = found
        held = False
        for word in range(words):
            bits = columns[job, word]
            if bits or held:
                for bit in range(WORD):
                    before, held = held, (bits >> np.uint64(bit)) & ONE == ONE
                    if held != before:
                        runs[found, int(before)] = word * WORD + bit
                        found += before
        if held:
            runs[found, 1] = words * WORD
            found += 1
        last[job] = found
    return first, last, runs
