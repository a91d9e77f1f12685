"""Numbers up to 10^12: an answer is refused or right, of every solver that answers the model.

For a longer attack, set `OPTSCHED_ATTACKS` to the number of problems for each model.
"""

import os

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from optsched import Budget, registry, solve, testing
from optsched.errors import InputError
from optsched.models import IntegerProgram
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.result import Status
from optsched.testing import brute_force

ATTACKS = int(os.environ.get("OPTSCHED_ATTACKS", "12"))

SIZES = [10**power for power in range(5, 13)]

WORTH = {
    "box-placement": ("profits",),
    "hold": ("costs", "drain_costs"),
    "node-placement": ("weights",),
    "window-mkp": ("profits",),
}
"""Fields of models that make large objectives."""

attacks = settings(max_examples=ATTACKS, deadline=None, suppress_health_check=list(HealthCheck))


def check(problem, best, proven=False):
    """Check what each solver of the model says of a problem with a known optimum."""
    for name in registry.solvers:
        cls = registry.solvers[name]
        if not cls.supports(problem.name) or cls.installed_version() is None:
            continue
        result = solve(problem, name, budget=Budget(seconds=60))
        told = (name, result, result.message)
        assert result.status is not Status.ERROR, told
        if result.status in (Status.OPTIMAL, Status.INFEASIBLE):
            assert result.objective == result.bound == best, told
        elif best is not None and result.bound is not None:
            assert (result.bound >= best) == (problem.sense == "max") or result.bound == best, told
        if name == "cp-sat" or (proven and cls.models is None):
            assert result.status in (Status.OPTIMAL, Status.INFEASIBLE), told


@st.composite
def near(draw, sizes=tuple(SIZES)):
    """Draw a large number, a few units below a power of ten, or a small one."""
    size = draw(st.sampled_from(sizes))
    large = st.integers(0, 60).map(lambda less: size - less)
    return draw(st.one_of(large, large, st.integers(1, size), st.integers(0, 9)))


@st.composite
def programs(draw, in_large):
    """Draw a program with large numbers in its rows, in its objective, or nowhere."""
    count = draw(st.integers(2, 7))
    sizes = (draw(st.sampled_from(SIZES)),)
    small, sign = st.integers(-9, 9), st.sampled_from([-1, 1])
    large = st.tuples(sign, near(sizes)).map(lambda pair: pair[0] * pair[1])
    lower = draw(st.lists(st.integers(-2, 0), min_size=count, max_size=count))
    upper = [low + draw(st.integers(0, 2)) for low in lower]
    rows, at_least, at_most = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        row = {j: draw(large if in_large == "rows" else small) for j in range(count)}
        row = {j: a for j, a in row.items() if a}
        point = [draw(st.integers(low, high)) for low, high in zip(lower, upper)]
        value = sum(a * point[j] for j, a in row.items()) + draw(st.integers(-1, 1))
        assume(abs(value) < 10**12)
        rows.append(row)
        at_least.append(draw(st.sampled_from([None, value])))
        at_most.append(draw(st.sampled_from([None, value, value + 1])))
    coefficients = [draw(large if in_large == "objective" else small) for _ in range(count)]
    return IntegerProgram(
        draw(st.sampled_from(["max", "min"])),
        coefficients,
        lower,
        upper,
        draw(st.sampled_from([0, 0, 7, 10**12])),
        rows=rows,
        at_least=at_least,
        at_most=at_most,
    )


@pytest.mark.parametrize("large", ["rows", "objective", None])
def test_programs(large):
    def attack(problem):
        check(problem, brute_force(problem), proven=large is None)

    attacks(given(programs(large))(attack))()


@pytest.mark.parametrize("model", WORTH)
def test_other_models(model):
    @attacks
    @given(drawn=getattr(testing, model.replace("-", "_") + "s")(), data=st.data())
    def attack(drawn, data):
        fields = drawn.to_json()
        sizes = (data.draw(st.sampled_from(SIZES)),)
        for name in WORTH[model]:
            before = getattr(drawn, name)
            if before is not None:
                fields[name] = [data.draw(near(sizes)) for _ in before]
        try:
            problem = type(drawn).from_json(fields)
            best = brute_force(problem)
        except InputError:  # too large for brute force
            assume(False)
        check(problem, best)

    attack()


def test_large_coefficients_of_booleans_in_a_row():
    # a presolve rule of CP-SAT 9.15, which sums in 32 bits, made -20 of it
    large = {4: -2 * 10**9, 6: 8 * 10**8, 1: 2 * 10**9 - 1, 3: 6 * 10**8, 5: -2 * 10**9 - 1}
    rows = [{4: 1, 6: 1, 2: 1}, {3: 1, 1: 1, 2: 1}, {0: 1, 5: 1}, large | {2: -26 * 10**8}]
    limits = {"at_least": [None, 1, 1, None], "at_most": [1, 1, 1, 10**9 - 1]}
    problem = IntegerProgram("min", [-18, -32, -2, 5, -4, -2, -24], rows=rows, **limits)
    assert brute_force(problem) == -58
    check(problem, -58)


def shifted(more):
    """Return a program whose objective CP-SAT 9.15 shifts by 30 in presolve, with `more` items."""
    large = {0: 2147483645, 1: 1256464161, 2: 2147483644, 4: 2147483648, 5: -946876614}
    equal = {1: 2147483641, 2: -2, 3: -1, 4: 2147483641, 5: 7, 6: -5, 7: -844875358, 8: 2147483641}
    rows, at_least = [large, equal, {0: -2147483641, 1: 1}], [6442450940, 8132201634, None]
    for first in range(0, more, 4):
        rows.append({9 + (first + 3 * j) % more: 2 + (first + 5 * j) % 7 for j in range(more // 2)})
        at_least.append(sum(rows[-1].values()) // 3)
    costs = [-3 * 10**9, 8, 462764913, 2999999996, 2999999996, -2927850037, -2999999992]
    return IntegerProgram(
        "min",
        [*costs, -2999999993, 2999999992, *(1 + 7 * j % 9 for j in range(more))],
        [-1, 0, 0, 0, 0, 0, -1, -2, 0] + [0] * more,
        [2, 1, 1, 1, 2, 1, 2, 3, 3] + [1] * more,
        rows=rows,
        at_least=at_least,
        at_most=[None, 8132201634, 3] + [None] * (len(rows) - 3),
    )


def test_an_objective_that_cp_sat_shifts_in_presolve():
    best = -2465085130  # by trying all 18,432 points
    check(shifted(0), best)
    whole = shifted(40)
    added = IntegerProgram(
        "min",
        whole.coefficients[9:],
        rows=[{j - 9: a for j, a in row.items()} for row in whole.rows[3:]],
        at_least=whole.at_least[3:],
    )
    best += solve(added, "highs").objective
    for solver, budget in ((CpSat(first_solution=True), Budget()), (CpSat(), Budget(work=0.003))):
        told = []
        result = solve(whole, solver, budget=budget, on_incumbent=told.append)
        assert result.status is Status.FEASIBLE
        assert all(said.bound <= best for said in (result, *told, *result.incumbents)), result
    result = solve(whole, "cp-sat")
    assert (result.status, result.objective, result.bound) == (Status.OPTIMAL, best, best)


def test_small_programs_that_cbc_loses_by_probing():
    # -7 + 2 by the fourth item alone: 100 and 3 are within 80 to 113
    row = {0: 75, 1: 3, 2: 2, 3: 100, 4: 3}
    knapsack = IntegerProgram("min", [20, 5, 15, 2, -7], rows=[row], at_least=[80], at_most=[113])
    assert brute_force(knapsack) == -5
    check(knapsack, -5)


def test_programs_that_cbc_loses_by_its_cuts():
    rows = [
        {0: 4, 1: 6, 2: -7, 3: 54194, 4: 99994, 5: -100000, 6: 11171, 7: -99998},
        {0: 8, 2: -99999, 5: -99995, 6: -60858},
    ]
    costs = [8, -999999993, -21261634, 999999992, 999999999, 999999997, -999999997, 999999994]
    limits = {"at_least": [None, -360855], "at_most": [-100000, None]}
    lost = IntegerProgram("min", costs, upper=[2, 2, 3, 1, 1, 3, 1, 1], rows=rows, **limits)
    check(lost, -1063784894)
    costs = [-4, 999999997, 999999997, 228744389, 36902869, -999999998, 999999996, -999999992]
    rows = [{1: -8, 2: 998, 3: 999, 5: 91, 7: -993}]
    bounds = [0, 0, 0, 0, 0, 0, -1, 0], [1, 1, 1, 3, 1, 1, 3, 3]
    check(IntegerProgram("min", costs, *bounds, rows=rows, at_most=[-2889]), -3999999977)
