"""Texts of many jobs in one array, and their interval sets as texts, compiled.

`Nodes.resources` is the reference of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import eq
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags, Ints
from optsched.compiled import kernel


class Texts(Sequence[str]):
    """A sequence of texts in ASCII, stored in one array.

    It equals the lists and tuples of the same texts, and therefore has no hash.

    `text`: the texts, one behind the other; `offset`: begin of each text, from 0, and the end of
    the last, shape (texts + 1,).

    >>> texts = Texts.of(["0-3", "", "4"])
    >>> texts == ["0-3", "", "4"], texts[2]
    (True, '4')
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, text: NDArray[np.uint8], offset: Ints) -> None:
        self.text, self.offset = text.view(), offset.view()
        for array in (self.text, self.offset):
            array.flags.writeable = False  # one type for kernels, wherever the texts are from

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Return texts in one array; themselves if they are."""
        if isinstance(texts, Texts):
            return texts
        stored = "".join(texts).encode("ascii")
        offset = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offset[1:])
        return cls(np.frombuffer(stored, np.uint8), offset)

    @property
    def filled(self) -> Flags:
        """Mask of the texts that are not empty, shape (texts,)."""
        return np.asarray(self.offset[1:] > self.offset[:-1])

    def without_empty(self) -> Texts:
        """Return the texts that are not empty."""
        return Texts(self.text, np.append(0, self.offset[1:][self.filled]))

    def occurrences(self, sign: str) -> Ints:
        """Return how often a character occurs in each text, shape (texts,)."""
        places = np.flatnonzero(self.text == ord(sign))
        return np.diff(np.searchsorted(places, self.offset))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Texts):
            end = self.offset[-1]
            return np.array_equal(self.offset, other.offset) and np.array_equal(
                self.text[:end], other.text[:end]
            )
        if isinstance(other, list | tuple):
            return len(self) == len(other) and all(map(eq, self, other))
        return NotImplemented

    def __len__(self) -> int:
        return len(self.offset) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return list(self)[index]
        position = range(len(self))[index]
        begin, end = self.offset[position : position + 2]
        return self.text[begin:end].tobytes().decode("ascii")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(list(self), dtype=dtype or object)

    def __iter__(self) -> Iterator[str]:
        whole = self.text[: self.offset[-1]].tobytes().decode("ascii")
        return (whole[begin:end] for begin, end in pairwise(self.offset.tolist()))


FEW = 20_000
"""Number of runs below which plain Python writes them in less time than numba compiles."""

ZERO, BLANK, DASH = np.uint8(ord("0")), np.uint8(ord(" ")), np.uint8(ord("-"))


@kernel(allocates=False)
def digits(number: int) -> int:
    """Return the number of digits of a number."""
    count = 1
    while number >= 10:
        number //= 10
        count += 1
    return count


@kernel(allocates=False)
def put(text: NDArray[np.uint8], at: int, number: int) -> int:
    """Write a number as text; return the offset of its end."""
    end: int = at + digits(number)
    for place in range(end - 1, at - 1, -1):
        text[place] = ZERO + number % 10
        number //= 10
    return end


def interval_text(first: Ints, last: Ints, runs: Ints) -> tuple[NDArray[np.uint8], Ints]:
    """Return the concatenated ASCII texts of all jobs, and the offsets of each.

    Rows ``runs[first[j]:last[j]]``, each a start and a stop, are the runs of job j in order. Its
    text is ``text[offset[j]:offset[j + 1]]``.
    """
    count = int((last - first).sum())
    widest = 2 * len(str(runs.max(initial=0))) + 2
    text = np.empty(widest * count + 1, dtype=np.uint8)
    offset = np.zeros(len(first) + 1, dtype=np.int64)
    write = write_texts.at_once if count < FEW else write_texts
    write(first, last, runs, text, offset)
    return text[: offset[-1]], offset


@kernel(allocates=False)
def write_texts(first: Ints, last: Ints, runs: Ints, text: NDArray[np.uint8], offset: Ints) -> None:
    """Write the texts of `interval_text`, and the end of each to `offset`."""
    at = 0
    for job in range(len(first)):
        for run in range(first[job], last[job]):
            if run > first[job]:
                text[at] = BLANK
                at += 1
            start, stop = runs[run, 0], runs[run, 1]
            at = put(text, at, start)
            if stop > start + 1:
                text[at] = DASH
                at = put(text, at + 1, stop - 1)
        offset[job + 1] = at


@kernel
def text_of_box(position_of: Ints, box: Ints, nodes: int) -> NDArray[np.uint8]:
    """Return the nodes of a box of routers, `nodes` on each, by their positions on a line."""
    sx, sy, side = position_of.shape
    held = np.zeros(position_of.size + 1, dtype=np.bool_)
    for x in range(box[0], box[0] + box[3]):
        for y in range(box[1], box[1] + box[4]):
            for z in range(box[2], box[2] + box[5]):
                held[position_of[x % sx, y % sy, z - side if z >= side else z]] = True
    runs = np.empty((box[3] * box[4] * box[5], 2), dtype=np.int64)
    count = 0
    for position in range(len(held)):
        if held[position] != (position > 0 and held[position - 1]):
            runs[count, 1 - held[position]] = position * nodes
            count += not held[position]
    first, last, offset = np.zeros(1, np.int64), np.full(1, count), np.zeros(2, np.int64)
    text = np.empty((2 * digits(position_of.size * nodes) + 2) * count, dtype=np.uint8)
    write_texts(first, last, runs, text, offset)
    return text[: offset[1]]


@kernel(allocates=False)
def read_run(text: NDArray[np.uint8], at: int, end: int) -> tuple[int, int, int]:
    """Read a run of an interval set that ends at an offset.

    Returns the start and the stop of the run at offset `at`, and the offset of the next run.
    """
    start = stop = 0
    while at < end and text[at] >= ZERO:
        start = 10 * start + text[at] - ZERO
        at += 1
    if at < end and text[at] == DASH:
        at += 1
        while at < end and text[at] >= ZERO:
            stop = 10 * stop + text[at] - ZERO
            at += 1
    else:
        stop = start
    return start, stop + 1, at + 1


def interval_runs(text: NDArray[np.uint8], offset: Ints) -> tuple[Ints, Ints, Ints]:
    """Return first, last and runs of `interval_text` from its text and offsets."""
    jobs = len(offset) - 1
    first, last = np.zeros((2, jobs), dtype=np.int64)
    runs = np.empty((np.count_nonzero(text == BLANK) + jobs, 2), dtype=np.int64)
    return first, last, runs[: read_runs(text, offset, first, last, runs)]


@kernel(allocates=False)
def read_runs(text: NDArray[np.uint8], offset: Ints, first: Ints, last: Ints, runs: Ints) -> int:
    """Read the texts of `interval_runs`; return the number of runs."""
    run = 0
    for job in range(len(first)):
        first[job] = run
        at, end = offset[job], offset[job + 1]
        while at < end:
            runs[run, 0], runs[run, 1], at = read_run(text, at, end)
            run += 1
        last[job] = run
    return run
