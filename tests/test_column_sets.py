"""Sets of processors as numbers, against sets of Python."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from optsched.column_sets import column_set, interval_text, loads, lowest, runs_of

columns = st.frozensets(st.integers(0, 90), max_size=40)


def number(members):
    return sum(1 << member for member in members)


@given(columns, st.data())
def test_runs_and_intervals_make_up_the_set_and_the_lowest_are_the_first(these, data):
    runs = list(runs_of(number(these)))
    assert {column for start, stop in runs for column in range(start, stop)} == these
    assert all(before < after for (_, before), (after, _) in pairwise(runs))
    assert column_set(runs) == number(these)
    ends = [word.split("-") for word in interval_text(number(these)).split()]
    assert [(int(named[0]), int(named[-1]) + 1) for named in ends] == runs
    count = data.draw(st.integers(0, len(these)))
    assert lowest(number(these), count) == number(sorted(these)[:count])


@given(st.lists(columns, max_size=6))
def test_loads_count_the_sets_over_each_column(sets):
    levels = loads(map(number, sets))
    for column in range(91):
        load = sum(column in one for one in sets)
        assert [level >> column & 1 for level in levels] == [load > at for at in range(len(levels))]
    assert all(levels)
