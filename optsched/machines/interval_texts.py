"""Interval sets of many jobs as one text, without an object per job."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def joined(resources: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the ASCII texts of all allocations, one behind the other, and their offsets.

    The text of allocation j is ``text[offset[j]:offset[j + 1]]``. Texts that Arrow holds are not
    copied.
    """
    if isinstance(resources, list):
        offset = np.zeros(len(resources) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, resources), np.int64, len(resources)), out=offset[1:])
        text = np.frombuffer("".join(resources).encode("ascii"), np.uint8)
    else:
        import pyarrow as pa

        strings = pa.array(resources, pa.large_string())
        if isinstance(strings, pa.ChunkedArray):
            strings = pa.concat_arrays(strings.chunks)
        _, offsets, stored = strings.buffers()
        offset = np.frombuffer(offsets, np.int64, len(strings) + 1, 8 * strings.offset)
        text = np.frombuffer(stored or b"", np.uint8)
    for array in (text, offset):
        array.flags.writeable = False  # one type for kernels, wherever the texts are from
    return text, offset
