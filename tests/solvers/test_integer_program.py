"""Bin packing: against brute force, with limits, and lists of the literature's kinds."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import Budget, solve
from optsched.cli import run as optsched
from optsched.models import IntegerProgram
from optsched.models.integer_program.problem import BinPacking
from optsched.solvers.result import Limit, Status


def program(sizes, capacity, bins=None):
    packing = BinPacking(sizes, capacity, len(sizes) if bins is None else bins)
    return IntegerProgram(**packing.fields(), **packing.names())


def fewest(sizes, capacity, bins):
    """Return the fewest bins by trying all packings, None if there are too few."""

    def pack(left, room):
        if not left:
            return len(room)
        ways = [[*room[:n], free - left[0], *room[n + 1 :]] for n, free in enumerate(room)]
        ways = [*filter(lambda way: min(way) >= 0, ways), [*room, capacity - left[0]]]
        return min(pack(left[1:], way) for way in ways)

    best = pack([size for size in sizes if size], []) if max(sizes) <= capacity else bins + 1
    return best if best <= bins else None


@st.composite
def packings(draw):
    capacity = draw(st.sampled_from([1, 7, 12, 60, 10**6, 10**11]))
    share = st.sampled_from([2, 3, 4]).map(lambda part: capacity // part)
    near = st.tuples(share, st.integers(-1, 1)).map(lambda pair: max(0, sum(pair)))
    size = st.one_of(near, st.integers(0, capacity), st.just(0))
    sizes = draw(st.lists(size, min_size=1, max_size=7))
    if draw(st.booleans()) and draw(st.booleans()):
        sizes[0] = capacity + 1
    return sizes, capacity, draw(st.integers(1, len(sizes)))


@given(packing=packings(), work=st.sampled_from([None, 1, 20_000, 70_000]))
def test_it_agrees_with_brute_force_and_limits_make_it_no_less_true(packing, work):
    problem, best = program(*packing), fewest(*packing)
    result = solve(problem, "bin-search", budget=Budget(work=work))
    assert result.verified
    if result.status is Status.INFEASIBLE:
        assert best is None
    elif result.status is Status.OPTIMAL:
        assert result.objective == result.bound == best
    else:
        assert (work is None, result.limit) == (False, Limit.WORK)
        assert best is None or result.bound <= best
    assert solve(problem, "bin-search", budget=Budget(work=work)).bound == result.bound


def triplets(rng):
    """Return items that fill bins of three without a gap."""
    sizes = []
    for _ in range(20):
        large = rng.randint(380, 490)
        middle = rng.randint(250, (1000 - large) // 2)
        sizes += [large, middle, 1000 - large - middle]
    return sizes, 1000


@pytest.mark.parametrize("draw", [lambda rng: (rng.choices(range(20, 101), k=60), 150), triplets])
def test_lists_as_in_or_library_are_proven_by_default(draw):
    sizes, capacity = draw(random.Random(1))
    result = solve(program(sizes, capacity, len(sizes) // 2), budget=Budget(work=10**9))
    assert (result.solver, result.status, result.limit) == ("bin-search", Status.OPTIMAL, None)


def test_the_default_proves_what_sums_leave_open():
    """Three items fit only if two of them are 33, and the sum of 918 leaves room for 10 bins.

    So four bins of three at most, and pairs for the other 15.
    """
    result = solve(program([33, 34, 35] * 9, 100, 14))
    answer = (result.solver, result.status, result.objective)
    assert answer == ("bin-search", "optimal", 12)


def test_an_answer_names_the_items_in_each_bin(tmp_path, capsys):
    file = tmp_path / "few.txt"
    file.write_text("1\n few\n 10 4 2\n6\n5\n5\n4\n")
    assert optsched(["solve", str(file)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[-2:] == ["bin 1 item1 (6) item4 (4)", "bin 2 item2 (5) item3 (5)"]


def test_it_is_recognized_in_a_snapshot_whatever_its_names():
    problem = program([4, 3, 3], 7, 2)
    assert problem.packing == ([4, 3, 3], 7, 2)
    again = IntegerProgram.from_json(json.loads(json.dumps(problem.to_json())))
    assert again.packing == problem.packing
    renamed = IntegerProgram(**problem.packing.fields())
    assert (renamed.solver, renamed.packing) == ("bin-search", problem.packing)


@pytest.mark.parametrize(
    "change",
    [
        {"sense": "max"},
        {"offset": 1},
        {"upper": [2] + [1] * 7},
        {"lower": [1] + [0] * 7},
        {"at_most": [0, 1, 1, 1, 1, None]},
        {"coefficients": [1] * 6 + [0] * 2},
        {"rows": [{0: 4, 6: -7}, *program([4, 3, 3], 7, 2).rows[1:]]},
    ],
)
def test_another_program_is_none(change):
    other = IntegerProgram(**program([4, 3, 3], 7, 2).packing.fields() | change)
    assert (other.packing, other.solver) == (None, "cp-sat")
    refused = solve(other, "bin-search")
    assert (refused.status, refused.verified) == (Status.NO_SOLUTION, True)
    assert "not one of bin packing" in refused.message
