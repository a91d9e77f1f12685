"""The texts of many interval sets in one array, without an object per text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray


class Texts(Sequence[str]):
    """A sequence of texts in ASCII, stored in one array.

    Parameters
    ----------
    text : uint8 array
        The texts, one behind the other.
    offset : int64 array, shape (texts + 1,)
        Begin of each text, and the end of the last.
    """

    def __init__(self, text: NDArray[np.uint8], offset: NDArray[np.int64]) -> None:
        self.text = text
        self.offset = offset

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


def joined(resources: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the ASCII texts of all allocations, one behind the other, and their offsets.

    The text of allocation j is ``text[offset[j]:offset[j + 1]]``. Those of `Texts` are not copied.
    """
    if isinstance(resources, Texts):
        text, offset = resources.text.view(), resources.offset.view()
    else:
        offset = np.zeros(len(resources) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, resources), np.int64, len(resources)), out=offset[1:])
        text = np.frombuffer("".join(resources).encode("ascii"), np.uint8)
    for array in (text, offset):
        array.flags.writeable = False  # one type for kernels, wherever the texts are from
    return text, offset
