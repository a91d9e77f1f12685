from __future__ import annotations

import numpy as np
import pytest

from optsched.errors import InputError
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


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"rows": [{5: 1}]}, "rows[0]: 5; expected 0 to 1"),
        ({"rows": [{0: 0}]}, "rows[0], 0: 0; expected an integer other than 0"),
        ({"rows": [[1, 2]]}, "rows[0]: [1, 2]; expected coefficients by variable"),
        ({"rows": 3}, "rows: expected a list of rows"),
        ({"rows": [], "at_most": [1]}, "at_most: 1 value; expected 0, one for each of rows"),
        ({"rows": [{}], "at_most": ["x"]}, "at_most[0]: 'x'; expected an integer from"),
        ({"rows": [{}], "at_least": [2], "at_most": [1]}, "at_least[0]: 2; expected at most 1"),
        ({"rows": [], "lower": [0, 3]}, "lower[1]: 3; expected at most 1, its upper"),
        ({"rows": [], "variable_names": ["a", "a"]}, "variable_names: 'a' twice"),
        ({"rows": [{0: 10**12}], "upper": [10**12, 1]}, "rows[0]: may exceed 2^53"),
    ],
)
def test_mistakes_are_named(fields, told, mistakes_of):
    fields = {"sense": "max", "coefficients": [1, 2]} | fields
    assert mistakes_of(IntegerProgram, **fields)[0].startswith(told)


def test_rows_on_file_name_variables():
    written = EXAMPLE.to_json()
    assert written["rows"][0] == {"a": 2, "b": 3, "c": 4}
    written["rows"][0]["d"] = 1
    with pytest.raises(InputError, match=r"rows\[0\]: 'd'; expected one of the variable_names"):
        IntegerProgram.from_json(written)


def test_a_solution_shows_what_is_not_0():
    assert EXAMPLE.describe((1, -1, 0)) == [("not 0", "a b=-1")]
    assert EXAMPLE.describe((0, 0, 0)) == [("not 0", "-")]
    assert EXAMPLE.describe()[1] == ("variables", "3, 2 of them binary")
