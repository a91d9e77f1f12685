from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import load_snapshot
from optsched.models import GangPacking, Packing
from optsched.models.gang_packing import columns_for
from optsched.testing import brute_force, gang_packings

EXAMPLE = load_snapshot("gang-packing/worked-example")
"""The worked example of the model's page."""

BEST = EXAMPLE.packing((0, 2, 2, 1, 1), (0, 2))


def test_the_worked_example_of_the_page():
    assert EXAMPLE.violations(BEST) == []
    assert EXAMPLE.objective(BEST) == 4 * 21 - 3
    assert EXAMPLE.solution_to_json(BEST)["columns_of_waiting"] == ["0 3-7", "0-1 5"]
    assert EXAMPLE.describe(BEST) == [
        ("matrix", "8 columns, at most 3 rows"),
        ("row 1", "A (2) +F (6)"),
        ("row 2", "D (2) E (4)"),
        ("row 3", "B (1) C (3) +G (3)"),
        ("waiting", "-"),
    ]


@settings(max_examples=80, deadline=None)
@given(gang_packings(max_running=2, max_waiting=2, max_rows=2))
def test_the_optimum_by_the_equations_of_the_page(problem):
    """Sets of rows, job by job; columns chosen last, where any free ones will do."""
    n, rows, values = len(problem.running), range(problem.rows), []
    sizes = [mask.bit_count() for mask in problem.running] + list(problem.waiting)
    for choice in product((None, *rows), repeat=len(sizes)):
        placed = [row is not None for row in choice[n:]]
        inside = [[job for job, at in enumerate(choice) if at == row] for row in rows]
        running = [[problem.running[job] for job in jobs if job < n] for jobs in inside]
        if (
            None not in choice[:n]
            and (problem.rerow or choice[:n] == problem.rows_of_running)
            and (problem.admission == "skip" or placed == sorted(placed, reverse=True))
            and all(sum(sizes[job] for job in jobs) <= problem.columns for jobs in inside)
            and not any(one & other for masks in running for one, other in combinations(masks, 2))
        ):
            served = sum(size for size, row in zip(sizes, choice) if row is not None)
            values.append((problem.rows + 1) * served - sum(map(bool, inside)))
    assert brute_force(problem) == max(values, default=None)


@pytest.mark.parametrize(
    ("solution", "expected"),
    [
        (BEST._replace(rows_of_running=(0, 2, 2, 1)), ["once"]),
        (BEST._replace(rows_of_running=(0, 2, 2, 1, 3)), ["row"]),
        (BEST._replace(rows_of_waiting=(0, 3)), ["row"]),
        (BEST._replace(rows_of_running=(0, 2, 1, 1, 1)), ["overlap"]),
        (BEST._replace(columns_of_waiting=(0b1111_1100, 0b0010_0011)), ["overlap"]),
        (BEST._replace(columns_of_waiting=(0b1111_1001, 0b1_0010_0001)), ["column"]),
        (BEST._replace(columns_of_waiting=(0b1111_1001, -1)), ["column", "size", "overlap"]),
        (BEST._replace(columns_of_waiting=(0b1111_1000, 0b0010_0011)), ["size"]),
        (BEST._replace(rows_of_waiting=(0, -1)), ["size"]),
        (Packing((0, 2, 2, 1, 1), (-1, 2), (0, 0b0010_0011)), ["order"]),
    ],
)
def test_violations_are_named(solution, expected):
    assert [violation.constraint for violation in EXAMPLE.violations(solution)] == expected


def test_what_is_allowed_depends_on_rerow_and_admission():
    fixed = GangPacking.from_json(EXAMPLE.to_json() | {"rerow": False})
    assert [v.constraint for v in fixed.violations(BEST)] == ["kept"]
    skipping = GangPacking.from_json(EXAMPLE.to_json() | {"admission": "skip"})
    assert skipping.violations(Packing((0, 2, 2, 1, 1), (-1, 2), (0, 0b0010_0011))) == []


def test_two_waiting_jobs_on_one_column_are_found():
    problem = GangPacking(4, 1, [], [], [2, 2])
    [violation] = problem.violations(Packing((), (0, 0), (0b0011, 0b0110)))
    assert str(violation) == "overlap: waiting job 2 shares columns 1 in row 1"


def test_used_rows_come_first_where_rows_are_alike():
    problem = GangPacking(4, 3, [0b0011], [2], [4, 2], rerow=True)
    odd = Packing((2,), (1, 2), (0b1111, 0b1100))
    assert problem.violations(odd) == []
    formulation = problem.formulate()
    decoded = formulation.decode(formulation.encode(odd))
    assert (decoded.rows_of_running, decoded.rows_of_waiting) == ((1,), (0, 1))
    kept = GangPacking(4, 3, [0b0011], [1], [4, 2]).formulate()
    odd = Packing((1,), (2, 1), (0b1111, 0b1100))
    assert kept.decode(kept.encode(odd)).rows_of_waiting == (0, 1)


def chosen_by_counting(columns, occupied, rows, sizes):
    """State the rule of `columns_for` with a table of 0 and 1."""
    table = np.array([[mask >> c & 1 for c in range(columns)] for mask in occupied])
    chosen = []
    for row, size in zip(rows, sizes):
        mask = 0
        if row >= 0:
            free = [c for c in range(columns) if not table[row, c]]
            free.sort(key=lambda c: (table[:, c].sum(), c))
            table[row, free[:size]] = 1
            mask = sum(1 << c for c in free[:size])
        chosen.append(mask)
    return tuple(chosen)


@given(st.data())
def test_columns_are_chosen_as_stated(data):
    columns, rows = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 5))
    masks = st.integers(0, (1 << columns) - 1)
    occupied = data.draw(st.lists(masks, min_size=rows, max_size=rows))
    jobs = data.draw(
        st.lists(st.tuples(st.integers(-1, rows - 1), st.integers(1, columns)), max_size=6)
    )
    given_rows, sizes = [row for row, _ in jobs], [size for _, size in jobs]
    stated = chosen_by_counting(columns, occupied, given_rows, sizes)
    assert columns_for(columns, occupied, given_rows, sizes) == stated


def test_the_constructor_counts_rows_from_zero(mistakes_of):
    for running, rows, mistake in (
        ([0b1_0000], [0], "running[0]: columns 4; expected a mask"),
        ([0], [0], "running[0]: 0; expected a mask"),
        ([1], [2], "rows_of_running[0]: 2; expected a row from 0"),
        ([1, 3], [1, 1], "running[1]: holds columns 0 of row 1"),
    ):
        assert mistakes_of(GangPacking, 4, 2, running, rows, [])[0].startswith(mistake)


def test_numpy_integers_and_lists_are_kept_as_plain_tuples():
    running, waiting = np.array([3, 12]), np.array([2])
    job = np.array([7])
    problem = GangPacking(np.int64(4), 2, running, [np.int32(0), 1], waiting, waiting_jobs=job)
    assert problem.running == (3, 12)
    assert {type(mask) for mask in problem.running} == {int}
    assert (problem.columns, problem.rows_of_running, problem.waiting_jobs) == (4, (0, 1), (7,))
