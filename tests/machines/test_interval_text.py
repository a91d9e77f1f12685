from hypothesis import given
from hypothesis import strategies as st

from optsched import column_sets
from optsched.machines.matrix import runs_of, words_of
from optsched.machines.nodes import Nodes
from optsched.machines.texts import Texts, interval_runs

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


sets = st.integers(0, 2**192 - 1) | st.tuples(st.integers(0, 192), st.integers(0, 192)).map(
    lambda ends: abs((1 << ends[0]) - (1 << ends[1]))
)


@given(st.lists(sets, max_size=4))
def test_the_runs_of_sets_of_columns_are_those_of_their_masks(masks):
    first, last, found = runs_of(words_of(masks, 3))
    read = [[tuple(run) for run in found[a:b].tolist()] for a, b in zip(first, last)]
    assert read == [list(column_sets.runs_of(mask)) for mask in masks]


@given(st.lists(runs.map(lambda runs: " ".join(f"{i}-{j}" for i, j in runs))))
def test_texts_in_one_array_are_the_texts(texts):
    stored = Texts.of(texts)
    assert [*stored] == texts
    assert Texts.of(stored) is stored
    assert stored.filled.tolist() == [text != "" for text in texts]
    assert [*stored.without_empty()] == [text for text in texts if text]
    assert stored.occurrences(" ").tolist() == [text.count(" ") for text in texts]
    assert [*Nodes(9).job_measures(stored)["runs"]] == [1 + text.count(" ") for text in texts]


texts_of_few_kinds = st.lists(st.sampled_from(["", "0", "0-1", "0 1"]), max_size=3)


@given(texts_of_few_kinds, texts_of_few_kinds)
def test_texts_equal_the_sequences_of_the_same_texts(texts, others):
    stored, same = Texts.of(texts), texts == others
    longer = Texts.of([*others, "2"])
    begun = Texts(longer.text, longer.offset[:-1])
    for other in (others, tuple(others), Texts.of(others), begun):
        assert (stored == other) == (other == stored) == same
        assert (stored != other) == (other != stored) == (not same)


def test_texts_equal_nothing_else():
    for other in ("01", {"0", "1"}, ["0", 1], ["0", "é"], None, iter(["0", "1"])):
        assert Texts.of(["0", "1"]) != other
