from __future__ import annotations

import numpy as np

from optsched.models import IntegerProgram

EXAMPLE = IntegerProgram(
    "min", [3, -4, 6], [0, -1, 0], [1, 2, 1], 7, ["a", "b", "c"],
    rows=[{0: 2, 1: 3, 2: 4}, {0: 1, 2: -1}, {}], at_least=[0, 0, None], at_most=[6, None, 0],
    row_names=["sum", "order", "empty"],
)  # fmt: skip


def test_every_broken_constraint_is_named():
    assert EXAMPLE.violations((1, 0, 1)) == []
    assert [str(v) for v in EXAMPLE.violations((0, 3, 1))] == [
        "bounds: b is 3; expected -1 to 2",
        "row: sum is 13; expected at most 6",
        "row: order is -1; expected at least 0",
    ]
    for wrong in ((1, 0), (1, 0, 0.5), (1, 0, True), None, "101", {"a": 1}):
        [violation] = EXAMPLE.violations(wrong)
        assert violation.constraint == "form"
    assert EXAMPLE.violations(np.array([1, 0, 1])) == []


def test_the_objective_has_its_constant():
    assert EXAMPLE.objective((1, 2, 1)) == 3 - 8 + 6 + 7


def test_a_solution_shows_what_is_not_0():
    assert EXAMPLE.describe((1, -1, 0)) == [("not 0", "a b=-1")]
    assert EXAMPLE.describe((0, 0, 0)) == [("not 0", "-")]
    assert EXAMPLE.describe()[1] == ("variables", "3, 2 of them binary")
