from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from optsched.machines._interval_text import interval_runs
from optsched.machines.nodes import Nodes
from optsched.machines.texts import Texts

runs = st.sets(st.integers(0, 12_000), max_size=6).map(
    lambda ends: list(zip(sorted(ends)[::2], sorted(ends)[1::2]))
)


@given(st.lists(runs, max_size=5))
def test_the_runs_that_are_read_are_those_that_were_written(allocations):
    machine = Nodes(12_001)
    stored = Texts.of([machine.resources(tuple(runs)) for runs in allocations])
    first, last, read = interval_runs(stored.text, stored.offset)
    assert [
        [tuple(run) for run in read[begin:end].tolist()] for begin, end in zip(first, last)
    ] == allocations


@given(st.lists(runs.map(lambda runs: " ".join(f"{i}-{j}" for i, j in runs))))
def test_texts_in_one_array_are_the_texts(texts):
    stored = Texts.of(texts)
    assert [*stored] == texts
    assert Texts.of(stored) is stored
    assert stored.filled.tolist() == [text != "" for text in texts]
    assert [*stored.without_empty()] == [text for text in texts if text]
    assert stored.occurrences(" ").tolist() == [text.count(" ") for text in texts]
    assert [*Nodes(9).job_measures(stored)["runs"]] == [1 + text.count(" ") for text in texts]
