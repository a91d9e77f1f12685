"""Texts of many jobs in one array, without an object per job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import eq
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray


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

    def __init__(self, text: NDArray[np.uint8], offset: NDArray[np.int64]) -> None:
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
    def filled(self) -> NDArray[np.bool_]:
        """Mask of the texts that are not empty, shape (texts,)."""
        return np.asarray(self.offset[1:] > self.offset[:-1])

    def without_empty(self) -> Texts:
        """Return the texts that are not empty."""
        return Texts(self.text, np.append(0, self.offset[1:][self.filled]))

    def occurrences(self, sign: str) -> NDArray[np.int64]:
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
