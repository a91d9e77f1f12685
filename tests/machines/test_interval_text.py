from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optsched.machines._interval_text import interval_runs
from optsched.machines.nodes import Nodes

runs = st.sets(st.integers(0, 12_000), max_size=6).map(
    lambda ends: list(zip(sorted(ends)[::2], sorted(ends)[1::2]))
)


@given(st.lists(runs, max_size=5))
def test_the_runs_that_are_read_are_those_that_were_written(allocations):
    machine = Nodes(12_001)
    text = "".join(f"{machine.resources(tuple(runs))}\n" for runs in allocations)
    lines = np.frombuffer(text.encode(), dtype=np.uint8)
    first, last, read = interval_runs(lines, len(allocations))
    assert [
        [tuple(run) for run in read[begin:end].tolist()] for begin, end in zip(first, last)
    ] == allocations
