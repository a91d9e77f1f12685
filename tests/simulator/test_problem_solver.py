"""Solvers of a policy: which answer, what of their answers is taken, what happens if they fail."""

import itertools
import json
from typing import ClassVar

import pandas as pd
import pytest

from optsched import registry, simulate
from optsched.extend import Answers, Budget, InputError, Policy, Result, Solver, Status
from optsched.metrics.jobs import summarise_problems
from optsched.models import GangPacking
from optsched.models.snapshot_file import read_snapshot, snapshot_files
from optsched.simulator.problem_solver import choose_solvers, text_of
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.finding import find_solver


@pytest.fixture
def busy_trace(make_trace):
    return make_trace(*((20 * k, 300 + 7 * k, 400 + 7 * k, 1 + (5 * k) % 7) for k in range(30)))


@pytest.fixture
def register(monkeypatch):
    """Register a solver for one test."""

    def file_under(name, answer):
        class Fake(Solver):
            models = frozenset({"window-mkp"})

            def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
                return answer(problem)

        monkeypatch.setattr(registry.solvers, "_classes", dict(registry.solvers._classes))
        registry.solvers.register(name)(Fake)

    return file_under


def explodes(problem):
    raise ValueError("liar ran into a wall")


def test_the_fallback_decides_where_its_answer_is_better_and_it_is_counted(busy_trace, register):
    register("liar", lambda it: Result("liar", Status.FEASIBLE, (-1,) * len(it.weights), 0))
    run = simulate(busy_trace, "nodes:10", "window", solver="liar", check=True)
    greedy = simulate(busy_trace, "nodes:10", "window", solver="greedy", check=True)
    assert run.summary["finished"] == len(busy_trace)
    assert 0 < run.fallbacks == run.decisions.fallback.sum() <= run.summary["problems"]
    assert "liar" in run.mishaps[0]
    assert (run.start == greedy.start).all()


@pytest.mark.parametrize("solver", ["greedy", "cp-sat", "highs"])
def test_any_solver_can_stand_behind_a_policy(solver, busy_trace):
    run = simulate(busy_trace, "nodes:10", "window", solver=solver, check=True)
    assert (run.config["solver"], run.summary["finished"], run.fallbacks) == (solver, 30, 0)


def test_a_run_does_not_die_of_its_heuristic(busy_trace, register, monkeypatch):
    register("liar", explodes)
    answers = {"window-mkp": Answers("branch-and-bound", fallback="liar")}
    monkeypatch.setattr(registry.policies["window"], "models", answers)
    run = simulate(busy_trace, "nodes:10", "window", solver="greedy", check=True)
    assert run.summary["finished"] == len(busy_trace)
    assert run.fallbacks == 0
    with pytest.raises(InputError, match="the fallback liar failed: liar raised"):
        simulate(busy_trace, "nodes:10", "window", solver="liar")


def test_of_two_models_only_the_one_with_a_heuristic_beside_it_is_compared():
    columns = {"model": [*"aabb"], "objective": [4, 4, 1, 1], "heuristic": [4, 3, None, None]}
    decisions = pd.DataFrame(columns | {"status": "optimal", "price": 0.0, "choice": ""})
    found = summarise_problems(decisions, {"a"})
    assert (found["heuristic_matched"], found["heuristic_gap"]) == (0.5, 0.25)
    assert "contested" not in found  # neither model says
    # where both are compared the heuristic has found nothing for the second
    assert summarise_problems(decisions, {"a", "b"})["heuristic_matched"] == 0.25
    assert summarise_problems(decisions, ())["heuristic_matched"] is None


def test_problems_are_counted_by_what_there_is_to_choose_and_how_often_rules_match(busy_trace):
    run = simulate(busy_trace, "nodes:10", "window", solver="branch-and-bound")
    posed = run.decisions
    answered = posed[posed["objective"].notna()]
    alike = (answered["heuristic"] == answered["objective"]).mean()
    assert run.summary["heuristic_matched"] == pytest.approx(alike)
    counted = {name: run.summary[name] for name in ("one_job", "all_placed", "contested")}
    assert counted["one_job"]
    assert counted["contested"]
    assert sum(counted.values()) == len(posed)
    assert counted["one_job"] == posed["size"].str.startswith("1x").sum()
    contested = posed[posed["choice"] == "contested"]
    alike = (contested["heuristic"] == contested["objective"]).mean()
    assert run.summary["contested_matched"] == pytest.approx(alike)
    greedy = simulate(busy_trace, "nodes:10", "window", solver="greedy")
    assert "contested" not in greedy.summary  # what GREEDY leaves out may have a place
    # a solver that is its own fallback is not compared with itself
    assert (greedy.summary["heuristic_matched"], greedy.summary["heuristic_gap"]) == (None, None)
    assert greedy.decisions["heuristic"].isna().all()


def test_of_equally_good_answers_that_of_the_heuristic_is_taken(busy_trace, register):
    greedy_solver, _ = find_solver("greedy")
    told = []

    def elsewhere(problem):
        found = greedy_solver.solve(problem, budget=Budget())
        choices = range(-1, len(problem.capacities))
        for solution in itertools.product(choices, repeat=len(problem.weights)):
            if not problem.violations(solution) and problem.objective(solution) == found.objective:
                told.append(solution != found.solution)
                return Result("liar", Status.FEASIBLE, solution, found.objective)
        raise AssertionError("greedy's own answer is one of them")

    register("liar", elsewhere)
    run = simulate(busy_trace, "nodes:10", "window", solver="liar")
    greedy = simulate(busy_trace, "nodes:10", "window", solver="greedy")
    assert any(told)
    assert run.resources == greedy.resources
    assert run.fallbacks == 0


def test_the_solvers_own_answer_is_taken_where_ties_are_its_own(make_trace):
    # slots of 3 and 5 are left when the jobs of 3 and 2 come; GREEDY fills the slot of 3 with the
    # larger one; in the order of the window the job of 2 takes it first
    day = 86_400
    rows = [(0, 50, 50, 3), (0, day, day, 1), (0, 50, 50, 5), (1, 10, 10, 2), (1, 10, 10, 3)]
    given = {"solver": "depth-first", "settings": {"backfill": "none"}, "check": True}
    for ties, nodes in (("heuristic", ["4-5", "0-2"]), ("solver", ["0-1", "4-6"])):
        run = simulate(make_trace(*rows), "nodes:9", "window", ties=ties, **given)
        assert (run.config["ties"], run.resources[3:]) == (ties, nodes)


def test_any_of_the_equally_good_answers_is_drawn_by_the_seed(busy_trace):
    runs = [
        simulate(busy_trace, "nodes:10", "window", ties="random", seed=seed, check=True)
        for seed in (0, 0, 1, 2, 3)
    ]
    held = [run.resources for run in runs]
    assert held[0] == held[1]
    assert len(set(map(tuple, held))) > 1
    for run in runs:
        assert (run.decisions["objective"] == run.decisions["bound"]).all()
        assert run.summary["fallbacks"] == 0


@pytest.mark.parametrize(
    ("options", "of_no_use"),
    [
        ({"solver": "greedy"}, "a solver"),
        ({"budget": Budget(work=5), "seed": 0}, "a limit, a seed"),
        ({"charge_decisions": True}, "charging decisions"),
        ({"ties": "solver"}, "a rule for ties"),
        ({"capture": "folder"}, "a capture folder"),
    ],
)
def test_a_policy_without_problems_has_no_use_for_a_solver(options, of_no_use, busy_trace):
    expected = f"policy 'easy' poses no problems, so it has no use for {of_no_use}"
    with pytest.raises(InputError, match=expected):
        simulate(busy_trace, "nodes:10", "easy", **options)


def test_folders_to_capture_to_are_there_and_empty(busy_trace, tmp_path):
    with pytest.raises(InputError, match="none: no such folder; expected an empty one"):
        simulate(busy_trace, "nodes:10", "window", capture=tmp_path / "none")
    (tmp_path / "note").write_text("mine")
    with pytest.raises(InputError, match="is not empty; expected an empty folder"):
        simulate(busy_trace, "nodes:10", "window", capture=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["note"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capture_every": 0}, "capture every: 0; expected a whole number from 1"),
        ({"capture_every": 2}, "capture every: no folder to capture to"),
        ({"event_order": "x"}, "event order: 'x'; expected batched or one-by-one"),
        ({"ties": "mine"}, "ties: 'mine'; expected heuristic, solver or random"),
        ({"machine": "matrix:9", "policy": "gang", "ties": "random"}, "'gang-packing' cannot list"),
        ({"settings": {"interval": "inf"}}, "'window': 'inf'; expected a number"),
        ({"settings": {"interval": 1e-300}}, "interval of policy 'window': 1e-300; expected 0 or"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message, busy_trace):
    with pytest.raises(InputError, match=message):
        simulate(busy_trace, **{"machine": "nodes:10", "policy": "window"} | options)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (("window-mkp",), r"\('window-mkp',\); expected a model and its "),
        ({"window-mkp": "highs"}, "'highs'; expected a model and its"),
        ({7: Answers("highs", "greedy")}, "7; expected a model and its"),
        ({"window": Answers("highs", "greedy")}, "unknown model 'window' of policy 'Poser'; did"),
        (
            {"window-mkp": Answers("highs", "greedy", options="fast")},
            "options of window-mkp in models of policy 'Poser': 'fast'; expected a mapping",
        ),
    ],
)
def test_models_of_a_policy_name_their_solvers(models, message, busy_trace):
    class Poser(Policy):
        def decide(self, system):
            return []

    Poser.models = models
    with pytest.raises(InputError, match=message):
        simulate(busy_trace, "nodes:10", Poser())


def test_a_policy_poses_problems_of_its_models(busy_trace):
    class Poser(Policy):
        models: ClassVar = {"window-mkp": Answers("greedy", "greedy")}

        def decide(self, system):
            system.pose(self.problem)

    packing = GangPacking(4, 2, [0b0011], [0], [1, 2])
    for Poser.problem, what in ((3, "int"), (packing, "gang-packing")):
        expected = f"cannot pose '{what}'; the models of the policy are window-mkp"
        with pytest.raises(InputError, match=expected):
            simulate(busy_trace, "nodes:10", Poser())


def test_charged_decisions_delay_the_starts_and_leave_no_rounding_behind(busy_trace):
    strict = {"solver": "branch-and-bound", "settings": {"backfill": "none"}}
    free = simulate(busy_trace, "nodes:10", "window", **strict)
    charged = simulate(busy_trace, "nodes:10", "window", charge_decisions=True, **strict)
    assert (charged.start >= free.start).all()
    assert (charged.start[:3] > free.start[:3]).all()
    assert (charged.start[:3] < free.start[:3] + 1).all()
    assert (charged.jobs.execution_time == charged.jobs.run_time).all()
    first = charged.decisions.iloc[0]
    assert charged.start[0] == first.time + first.price
    jobs = charged.jobs
    assert (jobs.waiting_time + jobs.submission_time == jobs.starting_time).all()


def test_captured_snapshots_say_where_they_come_from(busy_trace, tmp_path):
    run = simulate(busy_trace, "nodes:10", "window", capture=tmp_path, capture_every=3)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [name for name in run.decisions.captured if name]
    assert len(files) == -(-run.summary["problems"] // 3)
    row = run.decisions[run.decisions.captured == files[-1].name].iloc[0]
    assert files[-1].name == f"decision-{row.decision:07d}.json"
    snapshot = read_snapshot(files[-1])
    assert (snapshot.problem.name, snapshot.problem.size) == (row.model, row["size"])
    for name in ("decision", "time", "objective"):
        assert snapshot.origin[name] == row[name]
    written = json.loads(files[-1].read_text())
    assert set(written["jobs"]) <= set(busy_trace.job_id.tolist())
    (tmp_path / "capture.json").write_text("{}")  # the record of a capture is no snapshot
    assert not snapshot_files(tmp_path / "capture.json")
    assert all(len(snapshot_files(file)) == 1 for file in files)


def test_a_command_repeats_a_run_unless_the_solver_was_built_with_options():
    class Unregistered(CpSat):
        """A solver that no command can name."""

    named, plain, built, other = (
        simulate("sample-256", policy="window", solver=solver, jobs=(1, 20)).config
        for solver in ("cp-sat", CpSat(), CpSat(relative_gap=0.05), Unregistered())
    )
    assert "--solver cp-sat" in named["repeat"]
    assert plain["repeat"] == named["repeat"]
    assert (built["repeat"], other["repeat"]) == (None, None)
    assert built["solver"] == "cp-sat"
    assert built["solvers"]["window-mkp"]["options"] == {"relative_gap": 0.05}


MODELS = {
    "window-mkp": Answers("branch-and-bound", "greedy"),
    "gang-packing": Answers("first-fit", "first-fit"),
}


@pytest.mark.parametrize(
    ("asked", "of_window", "of_gang"),
    [
        (None, "branch-and-bound", "first-fit"),
        ("cp-sat", "cp-sat", "cp-sat"),
        ("row-search", "branch-and-bound", "row-search"),
        ("gang-packing=cp-sat", "branch-and-bound", "cp-sat"),
        ("window-mkp=greedy,gang-packing=best-fit", "greedy", "best-fit"),
        ({"window-mkp": CpSat()}, "cp-sat", "first-fit"),
        ("highs-quick", "highs-quick", "highs-quick"),
    ],
)
def test_a_solver_answers_what_it_can_and_so_does_the_text_of_it(asked, of_window, of_gang):
    for again in (asked, text_of(choose_solvers(MODELS, asked))):
        chosen = choose_solvers(MODELS, again)
        assert [chosen[model].name for model in MODELS] == [of_window, of_gang]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("window-mkp=", "solver: 'window-mkp='; expected a name, or MODEL=NAME"),
        ("window-mkp=greedy,window-mkp=cp-sat", "with each model once"),
        ("gang=first-fit", "unknown model 'gang' of the policy.*gang-packing"),
        ("gang-packing=greedy", "solver 'greedy' does not answer 'gang-packing' problems"),
        ("gang-packing=nobody", "unknown solver 'nobody'"),
    ],
)
def test_what_cannot_be_asked_for_is_told(asked, message):
    with pytest.raises(InputError, match=message):
        choose_solvers(MODELS, asked)


def test_a_solver_may_exclude_a_model_that_it_could_solve():
    class Choosy(CpSat):
        @classmethod
        def supports(cls, model):
            return model != "window-mkp"

    chosen = choose_solvers(MODELS, Choosy())
    assert [type(one.solver) is Choosy for one in chosen.values()] == [False, True]
    with pytest.raises(InputError, match="does not answer 'window-mkp' problems"):
        choose_solvers(MODELS, {"window-mkp": Choosy()})


def test_budgets_and_seeds_are_the_asked_ones_or_their_own():
    own = choose_solvers(MODELS, "highs-quick")["window-mkp"]
    assert own.budget == own.profile.budget
    default = choose_solvers(MODELS)["window-mkp"]
    assert default.budget == Budget(work=default.solver.default_work)
    asked = choose_solvers(MODELS, budget=Budget(seconds=2), seed=7)["gang-packing"]
    assert (asked.budget, asked.seed) == (Budget(seconds=2), 7)
