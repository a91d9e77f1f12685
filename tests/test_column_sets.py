"""Sets of processors as numbers, against sets of Python."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from optsched.column_sets import column_set, interval_text, loads, lowest, runs_of

columns = st.frozensets(st.integers(0, 90), max_size=40)


def number(members):
    return sum(1 << member for member in members)


def members(number):
    return {column for column in range(number.bit_length()) if number >> column & 1}


@given(columns)
def test_runs_are_maximal_and_make_up_the_set(these):
    runs = list(runs_of(number(these)))
    assert {column for start, stop in runs for column in range(start, stop)} == these
    assert all(before < after for (_, before), (after, _) in pairwise(runs))
    assert column_set(runs) == number(these)


@given(columns, st.data())
def test_the_lowest_columns_are_the_first_in_order(these, data):
    count = data.draw(st.integers(0, len(these)))
    assert members(lowest(number(these), count)) == set(sorted(these)[:count])


@given(columns)
def test_intervals_name_both_ends(these):
    named = set()
    for word in interval_text(number(these)).split():
        first, _, last = word.partition("-")
        named |= set(range(int(first), int(last or first) + 1))
    assert named == these


@given(st.lists(columns, max_size=6))
def test_loads_count_the_sets_over_each_column(sets):
    levels = loads(map(number, sets))
    for column in range(91):
        load = sum(column in one for one in sets)
        assert [level >> column & 1 for level in levels] == [load > at for at in range(len(levels))]
    assert all(levels)
