from __future__ import annotations

import numpy as np

from optsched.models.program import UNBOUNDED, ProgramBuilder


def rows_of(program):
    """Return the rows by name: coefficients by the names of variables, and bounds."""
    found = {}
    for row in range(program.num_rows):
        entries = range(program.row_start[row], program.row_start[row + 1])
        terms = {program.variable_name(program.columns[k]): int(program.values[k]) for k in entries}
        assert len(terms) == len(entries)
        bounds = int(program.row_lower[row]), int(program.row_upper[row])
        found[program.row_name(row)] = (terms, *bounds)
    return found


def names_of(program):
    return [program.variable_name(number) for number in range(program.num_variables)]


def test_variables_are_named_by_their_labels_and_broadcast_their_bounds():
    builder = ProgramBuilder("min")
    x = builder.variables("x_{}_{}", ["a", "b"], 3, upper=[[4], [5]], objective=[1, 2, 3])
    y = builder.variable("y", lower=-2, upper=7, objective=9)
    z = builder.variables(lambda place: f"z{place * 10}", range(2))
    program = builder.build(offset=100)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (y, z.tolist(), builder.num_variables) == (6, [7, 8], 9)
    expected = ["x_a_1", "x_a_2", "x_a_3", "x_b_1", "x_b_2", "x_b_3", "y", "z0", "z10"]
    assert names_of(program) == expected
    assert program.lower.tolist() == [0, 0, 0, 0, 0, 0, -2, 0, 0]
    assert program.upper.tolist() == [4, 4, 4, 5, 5, 5, 7, 1, 1]
    assert program.objective.tolist() == [1, 2, 3, 1, 2, 3, 9, 0, 0]
    assert (program.sense, program.offset) == ("min", 100)


def test_a_family_sums_terms_of_several_blocks():
    builder = ProgramBuilder("max")
    x = builder.variables("x{}{}", 2, 3)
    y = builder.variables("y{}", 2)
    total = builder.variable("t")
    builder.rows("used_{}", ([1, 2, 3], x), (-7, y[:, None]), at_most=0)
    builder.rows("all_{}", (1, x), (-1, total), over=(["a", "b"],), equal=[0, 4])
    rows = rows_of(builder.build())
    assert rows == {
        "used_1": ({"x11": 1, "x12": 2, "x13": 3, "y1": -7}, -UNBOUNDED, 0),
        "used_2": ({"x21": 1, "x22": 2, "x23": 3, "y2": -7}, -UNBOUNDED, 0),
        "all_a": ({"x11": 1, "x12": 1, "x13": 1, "t": -1}, 0, 0),
        "all_b": ({"x21": 1, "x22": 1, "x23": 1, "t": -1}, 4, 4),
    }


def test_a_family_may_have_several_axes():
    builder = ProgramBuilder("max")
    x = builder.variables("x{}{}{}", 2, 2, 2)
    builder.rows("pair_{}_{}", (1, x), at_least=np.array([[1, 2], [3, 4]]))
    rows = rows_of(builder.build())
    assert list(rows) == ["pair_1_1", "pair_1_2", "pair_2_1", "pair_2_2"]
    assert rows["pair_2_1"] == ({"x211": 1, "x212": 1}, 3, UNBOUNDED)


def test_one_row_takes_numbers_lists_and_arrays():
    builder = ProgramBuilder("max")
    x = builder.variables("x{}{}", 2, 2)
    builder.row("r{}", (2, int(x[0, 0])), (3, [1, 2]), ([-4], x[1, 1:]), at_least=1, at_most=8)
    assert rows_of(builder.build()) == {"r{}": ({"x11": 2, "x12": 3, "x21": 3, "x22": -4}, 1, 8)}


def test_ragged_rows_are_those_with_entries():
    builder = ProgramBuilder("max")
    x = builder.variables("x{}", 5)
    at = np.array([3, 0, 3, 5])
    one, two = (1, x[:4], at), (np.array([7]), x[4:], np.array([0]))
    builder.ragged_rows("r_{}_{}", (2, ["a", "b", "c"]), one, two, at_most=[[9], [8]])
    assert rows_of(builder.build()) == {
        "r_1_a": ({"x2": 1, "x5": 7}, -UNBOUNDED, 9),
        "r_2_a": ({"x1": 1, "x3": 1}, -UNBOUNDED, 8),
        "r_2_c": ({"x4": 1}, -UNBOUNDED, 8),
    }


def test_blocks_and_families_may_be_empty():
    builder = ProgramBuilder("max")
    empty = builder.variables("x{}_{}", 2, 0)
    builder.rows("none_{}", (1, empty.T), at_most=1)
    builder.rows("blank_{}", (1, empty), at_most=1)
    y = builder.variables("y{}", 1)
    builder.ragged_rows("never_{}", (3,), (1, y[:0], y[:0]), at_most=1)
    builder.row("last", (1, y), equal=1)
    program = builder.build()
    assert names_of(program) == ["y1"]
    expected = {"blank_1": ({}, -UNBOUNDED, 1), "blank_2": ({}, -UNBOUNDED, 1)}
    assert rows_of(program) == expected | {"last": ({"y1": 1}, 1, 1)}


def test_a_program_without_anything_is_one():
    program = ProgramBuilder("max").build()
    assert (program.num_variables, program.num_rows) == (0, 0)
    assert program.row_start.tolist() == [0]
    assert {array.dtype for array in (program.objective, program.columns)} == {np.dtype(np.int64)}
