import numpy as np

from optsched.models.export import lp_text
from optsched.models.program import UNBOUNDED, ProgramBuilder


def rows_of(builder):
    """Return the rows as LP has them."""
    return lp_text(builder.build()).partition("subject to\n ")[2].partition("\nbounds")[0]


def test_families_of_rows_sum_terms_over_the_last_axis_and_single_rows_take_any():
    builder = ProgramBuilder("max")
    x = builder.variables("x{}{}", 2, 3)
    y = builder.variables("y{}", 2)
    z = builder.variables("z{}{}{}", 2, 2, 2)
    total = builder.variable("t")
    builder.rows("used_{}", ([1, 2, 3], x), (-7, y[:, None]), at_most=0)
    builder.rows("all_{}", (1, x), (-1, total), over=(["a", "b"],), equal=[0, 4])
    builder.rows("pair_{}_{}", (1, z), at_least=np.array([[1, 2], [3, 4]]))
    builder.row("one", (2, int(x[0, 0])), (3, [1, 2]), ([-4], x[1, 2:]), at_least=1, at_most=8)
    assert rows_of(builder).split("\n ") == [
        "used_1: +1 x11 +2 x12 +3 x13 -7 y1 <= 0",
        "used_2: +1 x21 +2 x22 +3 x23 -7 y2 <= 0",
        "all_a: +1 x11 +1 x12 +1 x13 -1 t = 0",
        "all_b: +1 x21 +1 x22 +1 x23 -1 t = 4",
        "pair_1_1: +1 z111 +1 z112 >= 1",
        "pair_1_2: +1 z121 +1 z122 >= 2",
        "pair_2_1: +1 z211 +1 z212 >= 3",
        "pair_2_2: +1 z221 +1 z222 >= 4",
        "one_low: +2 x11 +3 x12 +3 x13 -4 x23 >= 1",
        "one_high: +2 x11 +3 x12 +3 x13 -4 x23 <= 8",
    ]


def test_blocks_and_families_may_be_empty():
    builder = ProgramBuilder("max")
    empty = builder.variables("x{}_{}", 2, 0)
    builder.rows("none_{}", (1, empty.T), at_most=1)
    builder.rows("blank_{}", (1, empty), at_most=1)
    y = builder.variables("y{}", 1)
    builder.ragged_rows("never_{}", (3,), (1, y[:0], y[:0]), at_most=1)
    builder.row("last", (1, y), equal=1)
    assert rows_of(builder) == "blank_1: 0 y1 <= 1\n blank_2: 0 y1 <= 1\n last: +1 y1 = 1"
    program = ProgramBuilder("max").build()
    assert (program.num_variables, program.num_rows) == (0, 0)
    assert program.row_start.tolist() == [0]
    assert {array.dtype for array in (program.objective, program.columns)} == {np.dtype(np.int64)}


def test_common_divisors_are_taken_out_and_rows_rounded_inwards():
    builder = ProgramBuilder("max")
    x = builder.variables("x{}", 2, lower=[0, -3], upper=[1, 2], objective=[30, -45])
    builder.row("a", ([2048, -1024], x), at_least=-5000, at_most=3000)
    builder.row("b", at_least=-1, at_most=1)
    builder.row("c", (-7, x[1:]), at_most=20)
    program = builder.build(offset=10**12)
    divided, divisor = program.divided(offset=False)
    assert (divisor, divided.offset) == (15, 0)
    assert divided.objective.tolist() == [2, -3]
    assert divided.values.tolist() == [2, -1, -1]
    assert divided.row_lower.tolist() == [-4, -1, -UNBOUNDED]
    assert divided.row_upper.tolist() == [2, 1, 2]
    assert divided.terms.tolist() == [2, 3 * 3, 0]
    kept, divisor = program.divided(offset=True)
    assert (divisor, kept.terms.tolist()) == (5, [6, 27, 2 * 10**11])
