"""Solvers of windows: optimal, bounded, warm-started, deterministic, or as their rule is stated."""

import csv
import itertools
import math
import tarfile
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from optsched import Budget, registry
from optsched.models import WindowMKP
from optsched.models.snapshot_file import load_snapshot
from optsched.solvers.result import Limit, Status
from optsched.solvers.solving import solve
from optsched.solvers.window_mkp import best_first
from optsched.solvers.window_mkp._lagrangian import strategy
from optsched.solvers.window_mkp._lagrangian.strategy import CardinalitySearch, DestructiveSearch
from optsched.solvers.window_mkp._lagrangian.tree_search import CELLS_PER_WORK
from optsched.solvers.window_mkp._reduction import reduce
from optsched.solvers.window_mkp.best_first import WindowSearch
from optsched.testing import check_answer

from . import reference
from .conftest import optimum_of, windows

NAMES = ("branch-and-bound", "best-first")


def random_window(jobs, slots, seed, *, share=0.6, spread=3):
    """Draw powers of two and odd sizes; `slots` hold `share` of them together."""
    rng = np.random.default_rng(seed)
    powers, odd = 2 ** rng.integers(0, 8, jobs), 2 * rng.integers(0, 100, jobs) + 1
    weights = np.where(rng.random(jobs) < 0.5, powers, odd)
    cuts = np.sort(rng.integers(1, int(share * weights.sum()), slots - 1))
    capacities = np.diff([0, *cuts, int(share * weights.sum())])
    profits = np.rint(weights * rng.uniform(1, spread, jobs)).astype(np.int64)
    return WindowMKP(weights=weights, capacities=capacities, profits=profits)


def checked(name, window, optimum=None, *, work=None):
    """Return an answer whose value, bound, status and limit agree."""
    return check_answer(registry.solvers[name](), window, optimum, Budget(work=work))


@pytest.mark.parametrize("name", NAMES)
@given(window=windows())
def test_the_answer_is_that_of_brute_force(name, window):
    assert checked(name, window, optimum_of(window)).status is Status.OPTIMAL


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("window", "optimum"),
    [
        (WindowMKP([3] * 9, [7] * 4), 24),
        (WindowMKP([2] * 40, [9] * 5, [2] * 39 + [3]), 41),
    ],
)
def test_many_equal_jobs_are_no_obstacle(name, window, optimum):
    assert checked(name, window, optimum).status is Status.OPTIMAL


def is_exact(search, window, optimum, unit=1, then=None):
    """Return whether the optimum is proven, by feasible placements and bounds that get better."""
    last = (0, unit * int(window.profits.sum()))
    for _ in search.run():
        placement = search.placement.tolist()
        assert window.violations(placement) == []
        assert window.objective(placement) == search.best
        best, bound = search.best * unit, search.bound * unit
        assert last[0] <= best <= optimum <= bound <= last[1]
        last = best, bound
        if then is not None:
            search.allowance = then()
    return last == (optimum, optimum)


def with_cardinality(window, seed=0):
    """Return the search that also counts jobs, before its start."""
    start = np.full(len(window.weights), -1)
    return CardinalitySearch(window.weights, window.profits, window.capacities, start, seed)


@settings(max_examples=50)
@given(window=windows(jobs=6), seed=st.integers(0, 3))
def test_destructive_search_alone_is_exact(window, seed):
    assume(optimum := optimum_of(window))
    *_, weights, profits, residual, unit = reduce(window.weights, window.profits, window.capacities)
    search = DestructiveSearch(weights, profits, residual, np.full(len(weights), -1), seed)
    assert is_exact(search, WindowMKP(weights, residual, profits), optimum, unit)


@given(window=windows(jobs=6), each=st.integers(0, 60), seed=st.integers(0, 3))
def test_the_search_that_counts_jobs_is_exact(window, each, seed):
    window = WindowMKP(window.weights, window.capacities, window.weights + each)
    assume(optimum := optimum_of(window))
    with patch(f"{CardinalitySearch.__module__}.HEAD_START", 0):
        assert is_exact(with_cardinality(window, seed), window, optimum)


def drawn(rng):
    """Draw a window with profits of any kind."""
    jobs, slots = rng.integers(2, 15), rng.integers(1, 6)
    weights = rng.integers(1, rng.choice([10, 200]), jobs)
    profits = (
        rng.integers(1, 200, jobs),
        weights + rng.integers(0, 20, jobs),
        weights + 50,
        weights,
        10**9 * weights + rng.integers(0, 3, jobs),
    )[rng.integers(5)]
    largest = max(2, int(weights.sum() * rng.uniform(0.3, 1.2) / slots) + 2)
    return WindowMKP(weights, rng.integers(1, largest, slots), profits)


@pytest.mark.parametrize("seed", range(80))
def test_a_search_cut_short_at_random_is_wrong_at_no_point(seed):
    """Beside the plain search, on windows whose optimum that soon proves."""
    rng = np.random.default_rng(seed)
    window = drawn(rng)
    plain = solve(window, "depth-first", budget=Budget(work=300_000))
    if plain.limit is not None or plain.objective == 0:
        return
    allowances = [0.0, 0.1, 1.0, 5.0, 50.0, 500.0, 2e4, 1e5, math.inf][: rng.integers(4, 10)]
    search = with_cardinality(window, seed)
    with (
        patch.object(strategy, "LEAD_OF_MAIN", rng.choice([0, 100, 10**6])),
        patch.object(strategy, "HEAD_START", rng.choice([0, 1000, 1 << 25])),
        patch.object(strategy, "FEW_COLUMNS", int(rng.choice([1, 16, 512]))),
    ):
        assert is_exact(search, window, plain.objective, then=lambda: rng.choice(allowances))


def test_a_multiplier_on_the_number_of_jobs_proves_more_than_destructive_search():
    rng = np.random.default_rng(8)
    weights, shares = rng.integers(100, 1000, 40), rng.integers(100, 1000, 16)
    capacities = shares * (weights.sum() // 2) // shares.sum()
    search = with_cardinality(WindowMKP(weights, capacities, weights + 400))
    for _ in search.run():
        assert search.work < 2e7
    assert search.best == search.bound


@pytest.mark.parametrize("seed", range(3))
def test_windows_of_middle_size_agree_with_cp_sat(seed):
    window = random_window(24, 8, seed)
    result = checked("branch-and-bound", window, work=3e7)
    assert result.status is Status.OPTIMAL
    other = solve(window, "cp-sat", budget=Budget(work=2))
    assert other.objective <= result.objective <= other.bound


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_jobs_of_size_0_cost_nothing_where_the_plain_search_does_not_suffice(seed):
    window = random_window(30, 6, seed)
    weights, profits = [0, 0, 0, *window.weights], [0, 5, 70, *window.profits]
    more = WindowMKP(weights, window.capacities, profits)
    alone, together = (checked("branch-and-bound", one, work=2e7) for one in (window, more))
    assert (together.status, together.objective) == (Status.OPTIMAL, alone.objective + 75)


@pytest.mark.parametrize("name", NAMES)
def test_large_numbers_without_a_common_divisor(name):
    rng = np.random.default_rng(8)
    weights, capacities, profits = (rng.integers(10**11, 10**12, size) for size in (9, 3, 9))
    window = WindowMKP(weights, capacities, profits)
    optimum = solve(window, "cp-sat", budget=Budget(work=2)).objective
    assert checked(name, window, optimum).status is Status.OPTIMAL


@pytest.mark.parametrize(("largest", "slots"), [(10**7, 10), (10**11, 4)])
def test_slots_beyond_every_table_are_bounded_by_coarser_weights(largest, slots):
    rng = np.random.default_rng(3)
    weights = rng.integers(largest // 10, largest, 40)
    capacity = int(weights.sum()) // (2 * slots)
    window = WindowMKP(weights, [capacity] * slots, weights + rng.integers(0, largest // 10, 40))
    assert checked("branch-and-bound", window, work=2e7).bound <= window.profits.sum()


@pytest.mark.parametrize("work", [1000, 50_000, 400_000])
def test_little_more_than_the_budget_is_spent(work):
    window = random_window(135, 45, 1, share=0.4)
    result = checked("branch-and-bound", window, work=work)
    evaluation = len(window.weights) * int(window.capacities.sum()) / CELLS_PER_WORK
    assert result.work <= work + 30 * evaluation


def test_a_tree_that_finds_no_more_memory_ends_the_search(monkeypatch):
    window = random_window(30, 6, 1)
    assert solve(window, "best-first", budget=Budget(work=1024)).limit is Limit.WORK

    def full(_):
        raise MemoryError

    monkeypatch.setattr(best_first.np, "concatenate", full)
    assert checked("best-first", window).limit is Limit.MEMORY


@given(window=windows())
def test_depth_first_finds_the_first_optimum_in_the_order_of_the_window(window):
    choices = [*range(len(window.capacities)), -1]
    every = itertools.product(choices, repeat=len(window.weights))
    feasible = (solution for solution in every if not window.violations(solution))
    first = max(feasible, key=window.objective)  # of equals, the first
    result = solve(window, "depth-first")
    paid = window.profits > 0
    assert np.array_equal(np.array(result.solution)[paid], np.array(first)[paid])


@pytest.mark.parametrize(
    ("weights", "capacities", "visited", "solution"),
    [
        ([2, 2, 3], [5, 2], "j1:1 j2:1 j3:- j2:2 j3:1", (0, 1, 0)),
        # the example of the paper
        ([6, 4, 3, 1, 2], [3, 6, 6], "j1:2 j2:3 j3:1 j4:3 j5:- j4:- j5:3", (1, 2, 0, -1, 2)),
        # with 3 from the first leaf, the second and the third way to treat j2 end at once
        ([2, 1, 4], [5, 2], "j1:1 j2:1 j3:- j2:2 j2:- j1:2 j2:1 j3:1", (1, 0, 0)),
    ],
)
def test_depth_first_visits_the_tree_as_the_text_describes_it(
    weights, capacities, visited, solution
):
    """First Figure 3: two knapsacks, three jobs; only j1 = 2 and k1 = 5 are in the text.

    "Two candidate solutions are found in the left bottom of the search tree when at first we put
    job j1 to knapsack k1", and in the better one "all jobs get allocated and no space in the
    knapsack is left idle". So "we can discard other possible decisions such as allocating j1 to
    knapsack k2 or not selecting job j2". With these other numbers, all of that is so.
    """
    search = WindowSearch(window := WindowMKP(weights, capacities))
    labels = [*map(str, range(1, 1 + len(capacities))), "-"]
    _, *nodes = [tuple(chosen) for chosen in search.run()]
    assert " ".join(f"j{len(node)}:{labels[node[-1]]}" for node in nodes) == visited
    assert search.best == solution
    result = solve(window, "depth-first")
    assert (result.solution, result.objective) == (search.best, search.value)
    assert result.work == 1 + len(nodes)


def answer(name, window, **kwargs):
    return registry.solvers[name]().solve(window, budget=Budget(), **kwargs)


@pytest.mark.parametrize("name", ["greedy", "greedy-exchange"])
def test_the_example_of_the_paper(name):
    """Section III.C of Yang et al. 2014."""
    window = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
    assert answer(name, window).solution == (1, 2, 0, -1, 2)


large = st.builds(
    WindowMKP, st.lists(st.integers(1, 40), max_size=40), st.lists(st.integers(0, 90), max_size=8)
)


def check_rule(result, window, rule):
    arrays = window.weights, window.profits, window.capacities
    stated = rule(*(array.tolist() for array in arrays))
    assert list(result.solution) == stated
    assert window.violations(stated) == []
    assert (result.objective, result.bound) == (window.objective(stated), None)


@given(window=windows(jobs=30, slots=8) | large)
def test_greedy_is_as_stated(window):
    check_rule(answer("greedy", window), window, reference.greedy)


@given(window=windows(jobs=30, slots=8) | large)
def test_greedy_exchange_is_as_stated(window):
    check_rule(answer("greedy-exchange", window), window, reference.greedy_exchange)


def test_heuristics_keep_a_better_hint():
    window = WindowMKP(weights=[8, 9, 5, 2, 7], capacities=[9, 12])
    best = (-1, 0, 1, -1, 1)
    assert answer("greedy", window).objective < window.objective(best) == 21
    assert answer("greedy", window, hint=best).solution == best


INSTANCES = Path(__file__).parents[3] / "../shared/instances/mkp"


@cache
def known():
    with (INSTANCES / "known_values.csv").open(newline="") as stream:
        return {row["instance"]: row for row in csv.DictReader(stream)}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("instances")
    for name in ("SMALL", "FK_1", "FK_3"):
        with tarfile.open(INSTANCES / f"{name}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return folder


def solved(path, work):
    """Solve within a budget; value and bound must not contradict what is known."""
    window = load_snapshot(path)
    result = solve(window, "branch-and-bound", budget=Budget(work=work))
    assert result.verified
    row = known()[path.stem]
    if row["upper_bound"]:
        assert result.objective <= float(row["upper_bound"])
    if row["lower_bound"]:
        assert result.bound >= float(row["lower_bound"])
    if result.status is Status.OPTIMAL and row["optimal"] == "yes":
        assert result.objective == float(row["lower_bound"])
    return result


@pytest.mark.skipif(not INSTANCES.is_dir(), reason="needs ../shared/instances/mkp")
@pytest.mark.parametrize(
    ("name", "number", "every", "least"),
    [
        ("SMALL", 180, 3, 30),  # of Kataoka and Yamada
        pytest.param("SMALL", 180, 1, 90, marks=pytest.mark.long),
        ("FK_1", 480, 24, 0),  # of Fukunaga
        ("FK_3", 480, 24, 0),
    ],
)
def test_known_values_hold_and_some_are_proven(unpacked, name, number, every, least):
    paths = sorted((unpacked / name).glob("*.txt"))
    assert len(paths) == number
    assert sum(solved(path, 1e6).status is Status.OPTIMAL for path in paths[::every]) >= least
