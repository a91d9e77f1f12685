from __future__ import annotations

from itertools import pairwise

import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from optsched.machines._interval_text import interval_runs
from optsched.machines.interval_texts import joined
from optsched.machines.nodes import Nodes

runs = st.sets(st.integers(0, 12_000), max_size=6).map(
    lambda ends: list(zip(sorted(ends)[::2], sorted(ends)[1::2]))
)


@given(st.lists(runs, max_size=5))
def test_the_runs_that_are_read_are_those_that_were_written(allocations):
    machine = Nodes(12_001)
    texts = [machine.resources(tuple(runs)) for runs in allocations]
    text, offset = joined(texts)
    assert [text[i:j].tobytes().decode() for i, j in pairwise(offset)] == texts
    first, last, read = interval_runs(text, offset)
    assert [
        [tuple(run) for run in read[begin:end].tolist()] for begin, end in zip(first, last)
    ] == allocations


@given(st.lists(runs.map(lambda runs: " ".join(f"{i}-{j}" for i, j in runs))), st.integers(0, 3))
def test_texts_that_arrow_holds_are_the_same(texts, skipped):
    for kind in (pa.string(), pa.large_string()):
        held = pd.array(pa.array(texts, kind), dtype="str")
        for some in (held[skipped:], pd.concat([pd.Series(held), pd.Series(held)]).array):
            text, offset = joined(some)
            assert [text[i:j].tobytes().decode() for i, j in pairwise(offset)] == list(some)
            assert Nodes(99).job_measures(some)["runs"].tolist() == [
                text.count(" ") + 1 for text in some
            ]
