"""Who answers to a name, for which model, with which limits and options; rules of last resort."""

import json
import sys
import time
from dataclasses import dataclass

import pytest
from hypothesis import given, settings

from optsched import Budget, compare, registry, simulate, solve
from optsched.content import bundled
from optsched.errors import InputError, MissingDependencyError, UnknownNameError
from optsched.extend import Integer, Integers
from optsched.models import DataPlacement, GangPacking, PartitionMKP, WindowMKP
from optsched.models.hold import Hold, Release
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import read_snapshot, save_snapshot
from optsched.models.stated import model
from optsched.registry import solvers
from optsched.simulator.policy import Answers
from optsched.simulator.problem_solver import choose_solvers
from optsched.solvers.finding import Dispatch, classes_of, find_solver
from optsched.solvers.gang_packing.fit_rules import FirstFit
from optsched.solvers.hold import CheapestFirst
from optsched.solvers.result import Incumbent, Result, Status
from optsched.solvers.solver import Solver
from optsched.testing import check_solver, holds

PROBLEM = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
GOOD = (1, 2, 0, -1, 2)


def test_a_solver_that_is_not_installed_is_named_with_what_it_needs(monkeypatch):
    fields = {"solve": None, "name": "absent", "requires": "no-such-distribution"}
    monkeypatch.setitem(registry.solvers._classes, "absent", type("Fake", (Solver,), fields))
    with pytest.raises(MissingDependencyError, match=r"'absent' needs .*'no-such-distribution'"):
        solve(PROBLEM, "absent")
    assert registry.solvers["scip"].install_command() == "pip install 'optsched[scip]'"
    assert registry.solvers["absent"].install_command() == "pip install no-such-distribution"


def test_a_solver_in_a_file_fails_with_the_line(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from optsched.extend import Solver\n"
        "class Mine(Solver):\n"
        "    models = frozenset({'window-mkp'})\n"
        "    def solve(self, problem, **others):\n"
        "        return [self.place(job) for job in range(3)]\n"
        "    def place(self, job):\n"
        "        return romo[job]\n"
    )
    place = "(mine.py, line 5 in solve, line 5 in <listcomp>, line 7 in place)"
    if sys.version_info >= (3, 12):
        place = place.replace("line 5 in <listcomp>, ", "")
    message = solve(PROBLEM, str(file)).message
    assert message.endswith(f"Mine raised NameError: name 'romo' is not defined {place}")


@pytest.mark.parametrize(("name", "close"), [("cpsat", "cp-sat"), ("high-quick", "highs-quick")])
def test_unknown_names_come_with_close_ones_from_solvers_and_profiles(name, close):
    with pytest.raises(UnknownNameError, match=f"did you mean {close}"):
        find_solver(name)


def test_a_hint_may_be_the_name_of_a_solver_and_must_be_feasible():
    assert solve(PROBLEM, "highs", hint="greedy").objective == 15
    for hint, why in (((0, 0, 0, 0, 0), "capacity"), (5, "form")):
        with pytest.raises(InputError, match=f"hint is not a feasible solution: {why}"):
            solve(PROBLEM, "highs", hint=hint)


def test_a_result_says_who_answered_under_which_seed():
    result = solve(PROBLEM, "highs-quick", seed=7)
    assert (result.solver, result.seed) == ("highs-quick", 7)
    assert result.version == registry.solvers["highs"].installed_version()
    default = solve(PROBLEM)
    assert default.version
    assert default.solver == PROBLEM.default_solver


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), "1", True])
def test_a_limit_is_a_positive_number(limit):
    with pytest.raises(InputError, match="time limit"):
        Budget(seconds=limit)
    with pytest.raises(InputError, match="work limit"):
        Budget(work=limit)


class Slow(Solver):
    """Needs a third of its time limit, and keeps the budgets it was given."""

    given: list[Budget]

    def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
        self.given.append(budget)
        time.sleep((budget.seconds or 0) / 3)
        found = Incumbent(0.0, 15, None)
        if on_incumbent:
            on_incumbent(found)
        return Result(self.name, Status.FEASIBLE, GOOD, incumbents=(found,))


@pytest.fixture
def slow(monkeypatch):
    Slow.given = []
    Slow.name = "slow"
    monkeypatch.setitem(registry.solvers._classes, "slow", Slow)
    return Slow


def test_the_time_limit_is_for_the_hint_and_the_answer_together(slow):
    told = []
    result = solve(PROBLEM, "slow", hint="slow", budget=Budget(0.3, 7.0), on_incumbent=told.append)
    first, second = slow.given
    assert first == Budget(0.15)
    assert (second.seconds <= 0.3 - 0.05, second.work) == (True, 7.0)
    assert result.seconds >= 0.05 + second.seconds / 3
    assert told == list(result.incumbents)
    assert told[0].seconds >= 0.05


def test_a_hint_under_a_work_limit_has_work_of_its_own(slow):
    solve(PROBLEM, "slow", hint="slow", budget=Budget(work=7.0))
    assert slow.given == [Budget(work=slow.default_work), Budget(work=7.0)]
    slow.given.clear()
    solve(PROBLEM, "slow", hint="slow")
    assert slow.given == [Budget(), Budget()]


WINDOW = WindowMKP(weights=[6, 4, 3], capacities=[3, 6])
OTHER = PartitionMKP((8, 2, 1), ["4x2x1@0,0,0"], waiting=[6])
GANG = GangPacking(4, 2, running=[0b0011], rows_of_running=[0], waiting=[1, 2])


def window_solver(models=frozenset({"window-mkp"})):
    """Return the class of a solver that leaves all jobs out, with an option."""

    @dataclass(frozen=True)
    class LeaveOut(Solver):
        """Leave all jobs out."""

        patience: int = 1

        exact = False
        work_unit = "looks"
        default_work = 7e7

        def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
            solution = (-1,) * len(problem.weights) if hint is None else hint
            return Result(self.name, Status.FEASIBLE, solution, work=float(self.patience))

    LeaveOut.models = models
    return LeaveOut


@pytest.fixture
def first_fit_of_windows(monkeypatch):
    """Register a solver of window knapsacks as a further first fit."""
    assert "first-fit" in registry.solvers
    monkeypatch.setitem(registry.solvers._classes, "first-fit", registry.solvers["first-fit"])
    cls = window_solver()
    registry.solvers.register("first-fit")(cls)
    return cls


def test_each_problem_goes_to_the_solver_of_its_model(first_fit_of_windows):
    assert solve(WINDOW, "first-fit").solution == (-1, -1, -1)
    assert solve(GANG, "first-fit").solution.rows_of_waiting == (0, 1)
    assert isinstance(find_solver("first-fit", "gang-packing")[0], FirstFit)
    assert isinstance(find_solver("first-fit", "window-mkp")[0], first_fit_of_windows)
    assert find_solver("greedy", "window-mkp")[0].name == "greedy"
    told = "'first-fit' does not answer 'partition-mkp' problems; expected one of [a-z-]+, "
    with pytest.raises(InputError, match=told):
        solve(OTHER, "first-fit")


def test_a_solver_without_a_model_yet_answers_for_all_of_them(first_fit_of_windows):
    solver = registry.solvers["first-fit"]()
    assert isinstance(solver, Dispatch)
    models = {"gang-packing", "node-placement", "threshold-allocation", "window-mkp"}
    assert solver.models == models
    assert (solver.exact, solver.is_rule, solver.default_work) == (False, False, 7e7)
    assert solver.installed_version() is not None
    assert len(classes_of("first-fit")) == 4
    assert classes_of("greedy") == (registry.solvers["greedy"],)
    solver.prepare()
    for problem in (WINDOW, GANG):
        check_solver(solver, problem)
    assert solve(WINDOW, solver, budget=Budget(work=1)).solver == "first-fit"
    with pytest.raises(InputError, match="'first-fit' does not answer 'partition-mkp' problems"):
        solver.solve(OTHER, budget=Budget())


def test_a_simulation_has_the_solver_of_each_model():
    models = ("gang-packing", "threshold-allocation")
    chosen = choose_solvers(dict.fromkeys(models, Answers("first-fit", "first-fit")), "first-fit")
    assert {one.solver.models for one in chosen.values()} == {frozenset({m}) for m in models}
    assert all(one.solver is one.fallback for one in chosen.values())


def test_options_are_those_of_the_solver_of_the_model(first_fit_of_windows, tmp_path):
    profile = tmp_path / "patient.toml"
    profile.write_text('solver = "first-fit"\n[options]\npatience = 5\n')
    assert solve(WINDOW, str(profile)).work == 5
    assert solve(WINDOW, find_solver(str(profile))[0]).work == 5
    with pytest.raises(InputError, match="unknown setting 'patience' of solver 'first-fit'"):
        solve(GANG, str(profile))


@pytest.mark.parametrize("models", [frozenset({"window-mkp", "gang-packing"}), None])
def test_a_model_has_a_name_once(models):
    namesake = type("FirstFit", (FirstFit,), {"__module__": "theirs"})
    for name, cls in (
        ("first-fit", window_solver(models)),
        ("first-fit", namesake),
        ("greedy", window_solver()),
    ):
        taken = registry.solvers[name].__qualname__
        with pytest.raises(ValueError, match=f"solver '{name}' is already {taken}"):
            registry.solvers.register(name)(cls)


def test_a_class_takes_the_place_of_its_earlier_version(first_fit_of_windows):
    registry.solvers.register("first-fit")(again := window_solver())
    assert len(classes_of("first-fit")) == 4
    assert isinstance(find_solver("first-fit", "window-mkp")[0], again)


BEHIND_A_WIDE_JOB = DataPlacement([[0, 50]], [2, 1, 1], [10, 50, 51], [-1] * 3, [0] * 3)
IN_ORDER, BACKFILLED = [50, 60, 60], [50, 0, 60]


def starts(result):
    assert result.status == "feasible", result.message
    return result.solution.start.tolist()


@pytest.fixture
def snapshot(tmp_path):
    path = tmp_path / "queue.json"
    options = {"backfill": "holes", "weight": 3, "threshold": 7}
    save_snapshot(Snapshot(BEHIND_A_WIDE_JOB, options=options), path)
    return path


def test_a_rule_takes_the_options_that_it_has(snapshot):
    assert starts(solve(BEHIND_A_WIDE_JOB, "fcfs")) == IN_ORDER
    assert starts(solve(snapshot, "fcfs")) == BACKFILLED
    assert starts(solve(read_snapshot(snapshot), "fcfs")) == BACKFILLED
    assert solve(snapshot, "interval-search").status == "optimal"


def test_the_solver_of_a_hint_takes_them_too(snapshot, monkeypatch):
    hints = []
    original = solvers["eft"].solve

    def noting(self, problem, **given):
        hints.append(given["hint"])
        return original(self, problem, **given)

    monkeypatch.setattr(solvers["eft"], "solve", noting)
    solve(snapshot, "eft", hint="fcfs")
    assert [hint.start.tolist() for hint in hints] == [BACKFILLED]


def test_a_solver_object_and_a_profile_keep_their_own_options(snapshot, tmp_path):
    assert starts(solve(snapshot, solvers["fcfs"]())) == IN_ORDER
    profile = tmp_path / "plain.toml"
    profile.write_text('solver = "fcfs"\n[options]\nbackfill = "none"\n')
    assert starts(solve(snapshot, str(profile))) == IN_ORDER


def test_each_snapshot_of_a_comparison_has_its_own(snapshot):
    found = compare([Snapshot(BEHIND_A_WIDE_JOB), snapshot], ["fcfs"])
    answers = [answer["solution"]["place_of_job"] for answer in found.answers]
    assert [[place["start"] for place in one] for one in answers] == [IN_ORDER, BACKFILLED]


def test_fields_of_earlier_versions_become_options(snapshot):
    written = json.loads(snapshot.read_text())
    earlier = {**written, **written.pop("options")}
    del earlier["options"]
    read = Snapshot.from_json(earlier)
    assert read.options == {"backfill": "holes", "weight": 3, "threshold": 7}
    assert read.to_json() == {**written, "options": read.options}
    both = earlier | {"options": {"weight": 4}}
    with pytest.raises(InputError, match="weight: also among the options; expected once"):
        Snapshot.from_json(both)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"weigth": 1}, "options: unknown option 'weigth'; did you mean weight"),
        ({"weight": "W"}, "options: weight of solver 'lea': 'W'; expected a whole number"),
        ({"backfill": "easy"}, "options: backfill of solver '.*': 'easy'; expected one of none, "),
        ([1], "options: expected an object"),
    ],
)
@pytest.mark.parametrize("use", [solve, compare])
def test_wrong_options_are_refused_with_the_file(snapshot, options, expected, use):
    written = json.loads(snapshot.read_text()) | {"options": options}
    snapshot.write_text(json.dumps(written))
    with pytest.raises(InputError, match=f"queue.json.*{expected}"):
        use(snapshot)


def test_an_option_of_solvers_of_other_models_is_unknown():
    problem = WindowMKP(weights=[3, 2], capacities=[4])
    with pytest.raises(InputError, match="options: unknown option 'backfill'; known: "):
        solve(Snapshot(problem, options={"backfill": "holes"}))


@pytest.mark.parametrize("rule", ["lea", "leo", "lem"])
def test_a_captured_decision_is_repeated_with_the_settings_of_its_run(tmp_path, rule):
    settings = {"backfill": "holes", "weight": 3, "threshold": 20, "stop": "short"}
    settings |= {"loads": "start", "evicted": "memory", "opportune": "node"}
    trace = bundled("traces") / "samples" / "sample-8x20.rackham"
    (tmp_path / "captured").mkdir()
    captured = {"capture": tmp_path / "captured", "capture_every": 20, "jobs": "1:400"}
    simulate(trace, "cluster:8x20", "locality", solver=rule, settings=settings, **captured)
    files = sorted((tmp_path / "captured").glob("decision-*.json"))
    assert len(files) > 5
    for file in files:
        read = read_snapshot(file)
        assert read.options == settings
        assert solve(file, rule).objective == read.origin["objective"]


@settings(max_examples=150, deadline=None)
@given(holds(moves=0))
def test_cheapest_first_finds_a_release_wherever_there_is_one_with_no_claim_too_many(problem):
    best = solve(problem, "highs")
    found = CheapestFirst().place(problem)
    assert (found is None) == (best.solution is None)
    if found is None:
        return
    assert problem.violations(found) == []
    assert problem.objective(found) >= best.objective
    for claim in found.lifted:
        fewer = tuple(other for other in found.lifted if other != claim)
        assert problem.violations(found._replace(lifted=fewer))
    for node in found.drained:
        fewer = tuple(other for other in found.drained if other != node)
        assert problem.violations(found._replace(drained=fewer))


@pytest.mark.parametrize(
    ("fields", "release"),
    [
        ({}, Release((0, 1), (0, 1))),
        ({"drain_costs": [2, 3]}, Release((), (0, 1), (0, 1))),
        ({"drain_costs": [2, 5]}, Release((0, 1), (0, 1))),
        ({"drain_costs": [2, 5], "fixed": [1]}, Release((), (0, 1), (0, 1))),
        ({"fixed": [1]}, None),
    ],
)
def test_all_nodes_are_drained_or_none(fields, release):
    held = [[[0, 2]], [[0, 2]]]
    problem = Hold(["cores"], [[0], [4]], 2, [4], [3, 3], held, pending=[0, 1], **fields)
    assert CheapestFirst().place(problem) == release


def knapsack(m, nodes: Integers(1), free: Integer(0)):
    """Jobs that fit."""
    start = m.binary("start", len(nodes))
    m.maximize(nodes @ start)
    m.require("free", nodes @ start <= free)


def cover(m, need: Integer(0), most: Integers(0)):
    """Few nodes that have enough room."""
    taken = m.integer("taken", len(most), upper=most)
    used = m.some("used", taken)
    m.minimize(used.sum())
    m.require("need", taken.sum() >= need)


@pytest.mark.usefixtures("own_models")
@pytest.mark.parametrize(
    ("nodes", "free", "start"),
    [
        ([4, 3, 2, 1], 6, [1, 0, 1, 0]),  # 4, then 2: 3 does not fit
        ([7, 3, 9, 2], 6, [0, 1, 0, 1]),
        ([], 6, []),
    ],
)
def test_decisions_are_taken_in_order_while_nothing_is_violated(nodes, free, start):
    problem = model("stated-jobs")(knapsack)(nodes, free)
    result = check_solver(registry.solvers["in-order"](), problem)
    assert result.solution["start"].tolist() == start
    assert (result.status, result.bound, result.verified) == ("feasible", None, True)


@pytest.mark.usefixtures("own_models")
def test_what_is_violated_at_first_is_mended_as_far_as_needed():
    cls = model("stated-cover")(cover)
    result = solve(cls(5, [3, 4, 4]), "in-order")
    assert (result.status, result.objective) == ("feasible", 2)
    assert result.solution["taken"].sum() >= 5
    assert solve(cls(12, [3, 4, 4]), "in-order").status == "no-solution"
    assert solve(cls(12, [3, 4, 4]), "cp-sat").status == "infeasible"


def test_in_order_is_for_statements_alone():
    with pytest.raises(InputError, match="does not answer 'window-mkp' problems"):
        solve(WindowMKP([2], [3]), "in-order")
