"""Gang packing: rules as stated and no better than the optimum, and row search, which is exact."""

import itertools
import random
from dataclasses import replace
from itertools import combinations

import networkx
import pytest
from hypothesis import example, given, settings

from optsched import Budget, load_snapshot
from optsched.models import GangPacking
from optsched.solvers.finding import find_solver
from optsched.solvers.gang_packing import _row_tree
from optsched.solvers.gang_packing._root_bound import step_bound
from optsched.solvers.gang_packing.fit_rules import compacted
from optsched.solvers.gang_packing.row_search import RowSearch, Subproblems
from optsched.solvers.result import Status
from optsched.solvers.solving import solve
from optsched.testing import check_solver, gang_packings


def optimum_of(problem):
    """Try every row for every job."""
    rows = range(problem.rows)
    for_running = [problem.rows_of_running]
    if problem.rerow:
        for_running = itertools.product(rows, repeat=len(problem.running))
    solutions = (
        problem.packing(of_running, of_waiting)
        for of_running in for_running
        for of_waiting in itertools.product((-1, *rows), repeat=len(problem.waiting))
    )
    return max(problem.objective(s) for s in solutions if not problem.violations(s))


def random_matrix(seed, *, columns=64, rows=4, jobs=34, waiting=14, **options):
    """Draw jobs that arrived and left for a while: their columns are in pieces."""
    rng = random.Random(seed)
    free, running = [(1 << columns) - 1] * rows, []
    for _ in range(4 * jobs):
        row, size = rng.randrange(rows), int(columns ** rng.uniform(0, 5 / 6))
        there = [column for column in range(columns) if free[row] >> column & 1]
        if len(there) >= size:
            mask = sum(1 << column for column in sorted(rng.sample(there, size)))
            free[row] ^= mask
            running.append((mask, row))
        while len(running) > jobs:
            mask, row = running.pop(rng.randrange(len(running)))
            free[row] |= mask
    masks, in_rows = zip(*running)
    sizes = [int(columns ** rng.uniform(1 / 3, 1)) for _ in range(waiting)]
    return GangPacking(columns, rows, masks, in_rows, sizes, **options)


NAMES = ("first-fit", "best-fit", "greedy-colouring")


def place(name, problem):
    return find_solver(name, problem.name)[0].place(problem)


@pytest.mark.parametrize("name", NAMES)
@given(problem=gang_packings(max_running=4, max_waiting=3))
def test_answers_of_rules_are_feasible_and_no_better_than_the_optimum(name, problem):
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


VARIANTS = [
    {"admission": admission, "rerow": rerow}
    for admission in ("fcfs", "skip")
    for rerow in (False, True)
]


@settings(max_examples=200)
@given(gang_packings(max_running=4, max_waiting=4))
def test_the_answer_of_row_search_is_that_of_brute_force(problem):
    result = solve(problem, "row-search")
    assert (result.status, result.objective) == (Status.OPTIMAL, optimum_of(problem))


@pytest.mark.parametrize("options", VARIANTS)
def test_larger_ones_agree_with_cp_sat(options):
    problem = random_matrix(1, rows=3, jobs=18, waiting=8, **options)
    result, other = solve(problem, "row-search"), solve(problem, "cp-sat", budget=Budget(work=5))
    assert result.status is other.status is Status.OPTIMAL
    assert result.objective == other.objective


@example(GangPacking(4, 1, [], [], [2, 2], "skip"))
@given(gang_packings(max_running=4, max_waiting=4))
def test_the_bounds_of_the_root_hold(problem):
    best = solve(problem, "row-search").solution
    placed = [size for size, row in zip(problem.waiting, best.rows_of_waiting) if row >= 0]
    rows = len({*best.rows_of_running, *best.rows_of_waiting} - {-1})
    subproblems = Subproblems(problem, best, lambda: None)
    assert subproblems.bound() >= problem.objective(best)
    queue, _, fewest, _ = subproblems.given
    assert fewest <= rows
    steps = len(placed) if problem.admission == "fcfs" else sum(placed)
    assert step_bound(*subproblems.given, rows) >= steps
    most = queue.most[: rows + 1]
    by_row = [
        sum(size for size, at in zip(problem.waiting, best.rows_of_waiting) if at == row)
        for row in range(problem.rows)
    ]
    fullest = itertools.accumulate(sorted(by_row, reverse=True)[:rows], initial=0)
    assert all(taken <= room for taken, room in zip(fullest, most, strict=True))


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize("most", [0, 10])
def test_a_search_that_outgrows_the_kernel_gives_the_same_answer(options, most, monkeypatch):
    def answers():
        for seed in range(6):
            result = solve(random_matrix(seed, **options), "row-search")
            yield result.solution, result.bound, result.work

    compiled = list(answers())
    monkeypatch.setattr(_row_tree, "MOST_ITEMS", most)
    assert list(answers()) == compiled


@pytest.mark.parametrize("options", VARIANTS)
def test_the_contract_holds_when_the_budget_runs_out(options):
    for seed in range(6):
        problem = random_matrix(seed, **options)
        optimum = solve(problem, "row-search").objective
        for work in (1, 40, 200):
            check_solver(RowSearch(), problem, optimum=optimum, budget=Budget(work=work))


def test_long_queues_need_no_deep_recursion():
    problem = GangPacking(10**4, 3, [], [], [1, 2] * 3000, admission="skip")
    assert solve(problem, "row-search").objective == 4 * 9000 - 1
