"""Models of one statement: both readings, and programs of existing models stated again."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import pairwise
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optsched
from optsched import registry
from optsched.errors import InputError
from optsched.fields import Integer
from optsched.models.export import export
from optsched.models.fields import Integers, Labels
from optsched.models.linear import Expression
from optsched.models.program import Program, formulations
from optsched.models.schema import field
from optsched.models.snapshot import Snapshot
from optsched.models.stated import Data, Values, model
from optsched.models.verification import Numbers as PlainNumbers
from optsched.testing import check_problem, window_mkps
from optsched.testing.contract import _check_program


def power_cap(m, nodes: Integers(1), watts: Integers(0, like="nodes"), cap: Integer(0)):
    """Start as many nodes as possible under a power cap."""
    start = m.binary("start", len(nodes))
    m.maximize(nodes @ start)
    m.require("power", watts @ start <= cap)


def window(
    m,
    weights: Integers(0),
    capacities: Integers(0),
    profits: field(
        Integers(0, like="weights"), "profit", default=None, filled=lambda f: f["weights"]
    ),
    jobs: Labels("weights") = None,
    slots: Labels("capacities") = None,
):
    """Contiguous free slots for the jobs of a window (Yang et al. 2014, equations 1 to 4)."""
    x = m.binary("x", len(weights), len(capacities), upper=weights[:, None] <= capacities)
    m.maximize((profits[:, None] * x).sum())
    m.require("capacity", weights @ x <= capacities)
    m.require("once", x.sum(axis=1) <= 1)


STATEMENTS = {"stated-power-cap": power_cap, "stated-window": window}


@pytest.fixture(autouse=True, scope="module")
def _registered():
    """Register the models for these tests alone."""
    holders = registry.models._classes, formulations
    kept = [*map(dict, holders)]
    for name, statement in STATEMENTS.items():
        model(name)(statement)
    yield
    for classes, before in zip(holders, kept):
        classes.clear()
        classes.update(before)


def stated(name: str):
    """Return the decorator that makes a statement within a test a model."""

    def register(statement):
        statement.__qualname__ = "statement"
        return model(name)(statement)

    return register


def rows_of(program: Program) -> Counter:
    """Return the rows as a multiset, without entries of 0 and without empty rows that hold."""
    found = Counter()
    bounds = zip(program.row_lower.tolist(), program.row_upper.tolist())
    for (first, end), (lower, upper) in zip(pairwise(program.row_start), bounds):
        entries = zip(program.columns[first:end].tolist(), program.values[first:end].tolist())
        kept = frozenset((column, value) for column, value in entries if value)
        if kept or not lower <= 0 <= upper:
            found[kept, lower, upper] += 1
    return found


@settings(max_examples=60, deadline=None)
@given(window_mkps(max_jobs=3, max_slots=3))
def test_a_window_stated_again_keeps_the_contract_and_has_the_same_rows(problem):
    cls = registry.models["stated-window"]
    again = cls(**{field.name: getattr(problem, field.name) for field in cls.schema.fields})
    check_problem(again)
    assert again.size == problem.size
    one, other = again.formulate().program, problem.formulate().program
    for name in ("objective", "lower", "upper"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.sense, one.offset) == (other.sense, other.offset)
    assert rows_of(one) == rows_of(other)


def test_every_generic_solver_solves_it_and_compare_and_files_work(tmp_path):
    cls = registry.models["stated-power-cap"]
    problem = cls(nodes=[64, 32, 32, 8], watts=[300, 150, 140, 10], cap=310)
    check_problem(problem)
    for solver in ("cp-sat", "highs", "cbc"):
        result = optsched.solve(problem, solver)
        assert (result.status, result.objective, result.verified) == ("optimal", 72, True)
    table = optsched.compare([problem], ["cp-sat", "highs"]).results
    assert table.objective.tolist() == [72, 72]
    optsched.save_snapshot(problem, tmp_path / "power.json")
    assert optsched.load_snapshot(tmp_path / "power.json").to_json() == problem.to_json()
    for suffix in ("lp", "mps", "mzn", "pb.txt"):
        export(problem, tmp_path / f"power.{suffix}")
    assert " power: +300 start_1 +150 start_2 " in (tmp_path / "power.lp").read_text()
    assert problem.describe({"start": [1, 0, 0, 1]}) == [("start", "1 4")]
    assert Snapshot(problem).problem.copy().to_json() == problem.to_json()
    with pytest.raises(InputError, match=r"watts: 3 values; expected 4, one for each of nodes"):
        cls(nodes=[64, 32, 32, 8], watts=[300, 150, 140], cap=310)


def test_what_is_wrong_with_an_answer_is_said():
    problem = registry.models["stated-window"]([6, 4, 3], [3, 6])
    ones = problem.violations({"x": np.ones((3, 2), dtype=int)})
    slots = ["x[1,1]: 1; at most 0", "x[2,1]: 1; at most 0"]
    capacities = ["capacity[1]: 13; at most 3", "capacity[2]: 13; at most 6"]
    once = [f"once[{job}]: 2; at most 1" for job in (1, 2, 3)]
    assert [str(found) for found in ones] == slots + capacities + once
    no_values = [None, 5, {}, {"x": 1}, {"x": "abc"}, {"x": [[0, 0]] * 3, "y": 1}]
    wrong = [[[1, 0]] * 2, [[0.5, 0]] * 3, [[True, False]] * 3, [[10**30, 0]] * 3, [[0], [0, 0]]]
    forms = [*no_values, *({"x": values} for values in wrong)]
    for form in forms:
        assert {found.constraint for found in problem.violations(form)} == {"form"}, form


EXPRESSIONS = [
    lambda x, a: a - x,
    lambda x, a: 3 * x - x * a + x,
    lambda x, a: (a * x).sum(axis=0) - 2,
    lambda x, a: (a - x).sum(axis=-1),
    lambda x, a: np.sum(x + a),
    lambda x, a: sum(x) + sum(row.sum() for row in x),
    lambda x, a: a.T @ x,
    lambda x, a: x @ a.T,
    lambda x, a: a[0] @ x.T,
    lambda x, a: (a[:, 0] @ (x + x[::-1]))[1:],
    lambda x, a: x[:, None, [0, 0, 2]] - x[None, ..., :1] + a.sum(),
    lambda x, a: x[a > 1].sum() + x[-1, -1],
    lambda x, a: (x - a).sum_by(a[:, 0] % 2, 2),
    lambda x, a: (x - a).sum_by(a[:, 0] % 2, 3)[[2, 0, 0]].T * 2 + 1,
    lambda x, a: x.sum_by(a[:, 1] % 2, 2).sum(axis=0) - x.T.sum_by(a[0] % 4, 4).sum(),
    lambda x, a: x.sum_by(a[:, 1] % 2, 2)[:, None] + a,
    lambda x, a: x[:0].sum(axis=0) + x[:, :0].sum() + x,
    lambda x, a: x[::-1, ::2].T.sum(axis=0) - x[:, :1].sum(axis=1),
    lambda x, a: (a[:, :, None] * x[:, None, :]).sum(axis=0) @ a.T,
    lambda x, a: (a > 2) @ x.T,
    lambda x, a: np.int64(2) * x - np.array(3) + True,
]


@pytest.mark.parametrize("number", range(len(EXPRESSIONS)))
def test_both_readings_compute_what_numpy_computes(number):
    make, rng = EXPRESSIONS[number], np.random.default_rng(number)
    a = rng.integers(0, 4, (4, 3))
    symbols = make(Expression.of_variables(np.arange(12).reshape(4, 3), "x"), a)
    for _ in range(20):
        values = rng.integers(-5, 6, (4, 3))
        by_numbers = make(PlainNumbers(values), a)
        assert symbols.shape == by_numbers.shape
        for index in np.ndindex(symbols.shape):
            coefficients, constant = symbols[index].coefficients(12)
            value = int(coefficients @ values.ravel()) + constant
            assert value == by_numbers.values[index]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_rows_are_what_verification_checks(data):
    """Random chains of two expressions, compared both ways, in a model of their own."""
    numbers = [data.draw(st.sampled_from(range(len(EXPRESSIONS)))) for _ in range(2)]
    kind = data.draw(st.sampled_from(["<=", ">=", "=="]))

    @stated("stated-power-cap-of-the-test")
    def two_expressions(m):
        """Compare two expressions."""
        x = m.integer("x", 4, 3, lower=-1, upper=2)
        a = np.arange(12).reshape(4, 3) % 5
        one, other = (EXPRESSIONS[number](x, a) for number in numbers)
        one, other = (e.sum(axis=0) if e.shape else e for e in (one, other))
        one, other = (e.sum() if len(e.shape) > 1 or e.shape != one.shape else e
                      for e in (one, other))  # fmt: skip
        m.minimize(one.sum())
        m.require("r", {"<=": one <= other, ">=": one >= other, "==": one == other}[kind])

    problem = two_expressions()
    formulation, rng = problem.formulate(), np.random.default_rng(1)
    program = formulation.program
    _check_program(program)
    for _ in range(40):
        x = rng.integers(program.lower, program.upper, endpoint=True)
        x = np.where(rng.random(len(x)) < rng.random(), x, program.lower)
        answer = formulation.decode(x)
        assert (problem.violations(answer) == []) == program.admits(x)
        assert problem.objective(answer) == program.value(x)


def test_what_no_program_can_state_is_refused():
    x = Expression.of_variables(np.arange(3), "x")
    for wrong in (
        *(lambda: x * x, lambda: 0.5 * x, lambda: x / 2, lambda: x + 0.5, lambda: x**2),
        *(lambda: x < 3, lambda: 0 <= x <= 2, lambda: bool(x == 1), lambda: x != 1),
        *(lambda: x if x else 0, lambda: max(x), lambda: sum(x.sum())),
        *(lambda: sum(PlainNumbers(5)), lambda: 0 <= PlainNumbers([1]) <= 2),
        *(lambda: PlainNumbers([1]) != 1, lambda: PlainNumbers([1]) and 1),
    ):
        with pytest.raises(TypeError):
            wrong()
    for wrong in (
        *(lambda: 10**9 * (10**9 * x), lambda: 10**15 * x.sum() * 1000, lambda: 2**63 * x),
        *(lambda: x <= 10**30, lambda: x >= -(2**63)),
    ):
        with pytest.raises(InputError, match="exceeds"):
            wrong()
    with pytest.raises(TypeError, match="nodes: expected a kind of field"):
        model("stated-wrong")(lambda m, nodes: None)


def test_a_wrong_declaration_is_refused():
    def depends(m, nodes: Integers(1), watts: Integers(0, like="node")): ...

    def is_taken(m, objective: Integer()): ...

    def fine(m, nodes: Integers(1)): ...

    for name, statement, words in (
        ("stated-wrong", depends, "unknown earlier field 'node' of watts; did you mean nodes"),
        ("stated-wrong", is_taken, "is_taken: objective is taken"),
        ("window-mkp", fine, "model 'window-mkp' is already"),
        ("Bad_Name!", fine, "'Bad_Name!' as the name of a model; expected lower-case words"),
    ):
        with pytest.raises((InputError, ValueError), match=words):
            stated(name)(statement)
    with pytest.raises(InputError, match="model of-the-test: name 'NoSuchKind' is not defined"):

        @stated("of-the-test")
        def unknown(m, jobs: NoSuchKind()): ...  # noqa: F821


def test_what_a_statement_prints_goes_to_stderr(capsys):
    @stated("stated-prints")
    def printing(m, n: Integer(1)):
        print("seen", n)
        m.maximize(m.binary("x"))

    assert printing(2).objective({"x": 1}) == 1
    assert capsys.readouterr() == ("", "seen 2\n")


WRONG = {
    "x: bounds of another shape": lambda m: m.binary("x", 2, upper=[[1, 1]] * 3),
    "x: a lower bound is above": lambda m: m.integer("x", 2, lower=[0, 3], upper=2),
    "'x' is stated twice": lambda m: (m.binary("x"), m.binary("x")),
    "'r' is stated twice": lambda m: [m.require("r", m.binary(n) <= 1) for n in "xy"],
    "the objective is stated twice": lambda m: (m.maximize(0), m.minimize(0)),
    "'x_1' cannot be the name": lambda m: m.binary("x_1"),
    "'e1' cannot be the name": lambda m: m.binary("e1"),
    "an objective of 2 values; expected one": lambda m: m.maximize(m.binary("x", 2)),
    "r: no comparison; expected <=": lambda m: m.require("r", m.binary("x")),
    "r: several requirements": lambda m: m.require("r", [m.binary("x") <= 1]),
    "a statement returns nothing": lambda m: m.binary("x") <= 1,
    "expected no other operation": lambda m: m.maximize(m.binary("x") / 2),
    r"expected 2 groups from 0 to 1": lambda m: m.binary("x", 2).sum_by([0, 2], 2),
    r"product of the shapes \(2, 2\) and \(3,\)": lambda m: np.ones((2, 2), int) @ m.binary("x", 3),
}  # fmt: skip


@pytest.mark.parametrize("words", WRONG)
def test_mistakes_in_a_statement_are_said(words):
    with pytest.raises((InputError, ValueError), match=words):
        _ = stated("stated-mistake")(WRONG[words])().formulate().program


def test_some_is_one_where_an_amount_is_above_zero():
    @stated("stated-some")
    def few_used(m, most: Integer(1, 9)):
        """Used nodes, of which few."""
        x = m.integer("x", 2, 2, lower=[[0, -2], [0, 0]], upper=[[0, 2], [1, most]])
        used = m.some("used", x.sum(axis=1))
        m.minimize(3 * used.sum() - x.sum())
        m.require("few", used.sum() <= 1)

    problem = few_used(2)
    check_problem(problem)
    assert problem.violations({"x": [[0, 1], [0, 1]]}) == [("few", "2; at most 1")]
    # the first row of x is (0, 0); the second (0, 0) or, used, (1, 2)
    assert optsched.solve(problem).objective == 3 - 3
    assert [*optsched.solve(problem).solution] == ["x"]


def test_a_requirement_of_data_alone_and_rows_without_entries():
    @stated("stated-data")
    def data_alone(m, need: Integers(0), free: Integers(0)):
        """Rows without variables, of which one does not hold."""
        m.binary("x", len(free))
        m.require("data", need.sum() <= free.sum())

    for need, status in ((1, "optimal"), (9, "infeasible")):
        problem = data_alone([need], [2, 2])
        for solver in ("cp-sat", "highs", "cbc"):
            assert optsched.solve(problem, solver).status == status
    assert [found.constraint for found in problem.violations({"x": [0, 0]})] == ["data"]


def test_numbers_of_64_bits_and_of_python_give_the_same():
    @stated("stated-factor")
    def scaled_sums(m, a: Integers(0), factor: Integer(1)):
        """A product of a matrix, sums by group, and a difference."""
        x = m.integer("x", 3, upper=9)
        scaled = factor * (a * x)
        m.maximize(scaled.sum())
        m.require("each", factor * ((x - 1) * a) <= 0)
        m.require("group", scaled.sum_by([0, 1, 0], 2) >= factor)

    for factor in (1, 10**12):  # within 2^62, and beyond it
        problem, answer = scaled_sums([3, 10**7, 2], factor), {"x": [2, 0, 1]}
        assert problem.objective(answer) == 8 * factor
        wrong = [("each[1]", f"{3 * factor}; at most 0"), ("group[2]", f"0; at least {factor}")]
        assert problem.violations(answer) == wrong


def test_arithmetic_of_data_that_would_overflow_is_refused():
    @stated("stated-product")
    def product(m, a: Integers(0), b: Integers(1)):
        """Products and quotients of two fields."""
        m.maximize((a * b) @ m.binary("x", len(a)))
        m.require("cap", (b // a) * m.binary("y", len(a)) <= 10**9)

    assert optsched.solve(product([10**6] * 2, [10**9] * 2)).objective == 2 * 10**15
    for data, words in (([10**11] * 2, "the data make a number"), ([1, 0], "FloatingPointError")):
        problem = product(data, [10**10] * 2)
        with pytest.raises(InputError, match=rf"test_stated.py, line \d+: {words}"):
            _ = problem.formulate().program
        with pytest.raises(InputError, match=words):
            problem.violations({"x": [0, 0], "y": [0, 0]})
    data = np.array([10**12, 5]).view(Data)
    assert [type(value) for value in (data[1], data.sum(), data @ [1, 1])] == [int] * 3
    assert (data[0] * data[0], data[:1].sum() * 10**12) == (10**24, 10**24)


def test_a_mistake_in_a_statement_is_one_line_with_its_place():
    @stated("stated-mistake")
    def squares(m, n: Integer(1)):
        """A product of decisions."""
        x, y = m.binary("x", n), m.binary("y", n)
        m.require("both", x * y <= 1)

    problem = squares(2)
    answer = {"x": [0] * 2, "y": [0] * 2}
    for wrong in (lambda: problem.formulate().program, lambda: problem.objective(answer)):
        with pytest.raises(InputError, match=r"test_stated.py, line \d+: TypeError: a product of"):
            wrong()
    with pytest.raises(InputError, match="the decisions x and y"):
        _ = problem.sense
    result = optsched.solve(problem, "highs")
    assert (result.status, result.solution) == ("error", None)
    assert "a product of the decisions x and y" in result.message


def test_words_of_lp_files_may_be_names(tmp_path):
    @stated("stated-words")
    def words(m, n: Integer(1)):
        """Names that an LP file has other uses for."""
        free = m.binary("free", n)
        m.maximize(free.sum() + m.binary("e"))
        m.require("bounds", free.sum() <= 1)
        m.require("end", free[0] <= 0)

    problem = words(2)
    check_problem(problem)
    program = problem.formulate().program
    assert [program.row_name(row) for row in range(2)] == ["bounds_", "end_"]
    assert [program.variable_name(n) for n in range(3)] == ["free_1", "free_2", "e_"]
    export(problem, tmp_path / "words.lp")


def test_many_violations_of_a_requirement_are_counted():
    problem = registry.models["stated-window"]([1] * 30, [30, 30])
    found = problem.violations({"x": np.ones((30, 2), dtype=int)})
    assert (len(found), found[-1]) == (21, ("once", "10 more such"))


def test_answers_are_equal_if_all_values_are():
    answer = Values({"x": [1, 0], "y": 3})
    assert answer == pickle.loads(pickle.dumps(answer))
    for other in Values({"x": [1, 1], "y": 3}), Values({"x": [1, 0]}), {"x": [1, 0], "y": 3}:
        assert answer != other


def test_annotated_fields_and_scalars():
    @stated("stated-scalar")
    def scalar(m, need: Annotated[int, Integer(0, 9), "nodes wanted"], limit: Integer(0, 9) = 5):
        """One variable of shape ()."""
        x = m.integer("x", upper=limit)
        m.minimize(2 * x + 1)
        m.require("enough", x >= need)

    assert scalar.schema.json_schema()["properties"]["need"]["description"] == "nodes wanted"
    check_problem(scalar(3))
    problem, result = scalar(3), optsched.solve(scalar(3))
    assert (result.objective, problem.solution_to_json(result.solution)) == (7, {"x": 3})
    assert optsched.solve(scalar(6)).status == "infeasible"
