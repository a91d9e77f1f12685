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


def runs_of(columns: Words) -> tuple[Numbers, Numbers, Numbers]:
    """Return first, last and runs of `interval_text` for sets of columns, one in a row."""
    before, after = np.zeros_like(columns), np.zeros_like(columns)
    before[:, 1:], after[:, :-1] = columns[:, :-1] >> LAST, columns[:, 1:] << LAST
    starts = _places(columns & ~(columns << ONE | before))
    stops = _places(columns & ~(columns >> ONE | after)) + 1
    row = starts // (WORD * columns.shape[1])
    runs = np.column_stack((starts, stops)) - (WORD * columns.shape[1] * row)[:, np.newaxis]
    number = np.bincount(row, minlength=len(columns))
    last = number.cumsum()
    return last - number, last, runs


def _places(columns: Words) -> Numbers:
    """Return the places of all bits of an array, in order."""
    every = columns.astype("<u8").view(np.uint8).ravel()
    there = np.flatnonzero(every)
    byte, bit = np.nonzero(np.unpackbits(every[there, np.newaxis], axis=1, bitorder="little"))
    found: Numbers = 8 * there[byte] + bit
    return found


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
