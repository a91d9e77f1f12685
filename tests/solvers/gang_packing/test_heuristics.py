"""First fit, best fit and colouring: as stated, feasible, and never better than the optimum."""

import random
from dataclasses import replace
from itertools import combinations

import networkx
import pytest
from hypothesis import given

from optsched import load_snapshot
from optsched.models import GangPacking
from optsched.solvers.finding import find_solver
from optsched.solvers.gang_packing.fit_rules import compacted
from optsched.testing import gang_packings

from .conftest import optimum_of

NAMES = ("first-fit", "best-fit", "greedy-colouring")


def place(name, problem):
    return find_solver(name, problem.name)[0].place(problem)


@pytest.mark.parametrize("name", NAMES)
@given(problem=gang_packings(max_running=4, max_waiting=3))
def test_answers_are_feasible_and_no_better_than_the_optimum(name, problem):
    solution = place(name, problem)
    assert problem.violations(solution) == []
    assert problem.objective(solution) <= optimum_of(problem)


@given(gang_packings(max_running=8, max_waiting=0, max_rows=5))
def test_compaction_never_takes_more_rows(problem):
    rows = compacted(problem)
    moved = problem.packing(rows, ())
    assert problem.violations(moved) == []
    assert len(set(rows)) <= len(set(problem.rows_of_running))
    full = sorted(mask.bit_count() for mask in problem.occupied(rows))
    before = sorted(mask.bit_count() for mask in problem.occupied(problem.rows_of_running))
    # the fuller rows hold at least what they held
    assert all(sum(full[k:]) >= sum(before[k:]) for k in range(problem.rows))


def test_jobs_of_thin_rows_move_to_full_ones():
    running = [0b0000_0011, 0b1100_0000, 0b0000_0001, 0b0000_1100, 0b0011_1100]
    problem = GangPacking(8, 3, running, [0, 0, 1, 1, 2], [], rerow=True)
    # row 2 (3 columns) gives the fourth job to row 1, which is as full as row 3 and before it
    assert list(compacted(problem)) == [0, 0, 2, 0, 2]
    assert list(compacted(GangPacking(8, 3, running, [0, 0, 1, 1, 2], []))) == [0, 0, 1, 1, 2]


FULL_ROWS = GangPacking(8, 3, [0b1, 0b111], [0, 2], [5, 3, 4, 8], admission="skip")
NO_ROOM = GangPacking(4, 1, [0b1], [0], [4, 1])
SMALL_FIRST = GangPacking(4, 1, [], [], [1, 4])


@pytest.mark.parametrize(
    ("name", "problem", "rows"),
    [
        ("first-fit", load_snapshot("gang-packing/worked-example"), (-1, -1)),
        ("first-fit", FULL_ROWS, (0, 2, 1, -1)),
        ("best-fit", FULL_ROWS, (2, 0, 0, 1)),
        # the first that fits nowhere ends it under FCFS
        ("first-fit", NO_ROOM, (-1, -1)),
        ("first-fit", replace(NO_ROOM, admission="skip"), (-1, 0)),
        # large jobs go first by colour under skip
        ("greedy-colouring", SMALL_FIRST, (0, -1)),
        ("greedy-colouring", replace(SMALL_FIRST, admission="skip"), (-1, 0)),
    ],
)
def test_waiting_jobs_get_their_rows_as_they_do_by_hand(name, problem, rows):
    assert place(name, problem).rows_of_waiting == rows


@pytest.mark.parametrize("seed", range(8))
def test_colours_are_those_of_networkx(seed):
    rng = random.Random(seed)
    running = [rng.getrandbits(24) & rng.getrandbits(24) | 1 << rng.randrange(24) for _ in range(9)]
    problem = GangPacking(24, 9, running, [*range(9)], [], rerow=True)
    graph = networkx.Graph()
    graph.add_nodes_from(range(9))
    pairs = combinations(range(9), 2)
    graph.add_edges_from(pair for pair in pairs if running[pair[0]] & running[pair[1]])
    colors = networkx.greedy_color(graph, strategy="DSATUR")
    rows = place("greedy-colouring", problem).rows_of_running
    assert dict(enumerate(rows)) == colors


def test_present_rows_stay_where_colours_do_not_suffice():
    # seven jobs that three rows hold, and for which DSATUR takes four colours
    running, rows = [11, 176, 261, 6, 88, 608, 896], (1, 0, 0, 2, 2, 1, 2)
    narrow, wide = (GangPacking(10, n, running, rows, [], rerow=True) for n in (3, 4))
    assert place("greedy-colouring", narrow).rows_of_running == rows
    assert len(set(place("greedy-colouring", wide).rows_of_running)) == 4
    # nor do jobs move that may not
    assert place("greedy-colouring", replace(wide, rerow=False)).rows_of_running == rows
