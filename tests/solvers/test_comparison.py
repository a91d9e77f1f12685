"""Comparison of solvers, and its tables."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import optsched
from optsched import Budget, compare, registry, save, save_snapshot, solve
from optsched.errors import InputError, UnknownNameError
from optsched.models import WindowMKP
from optsched.models.snapshot import Snapshot
from optsched.solvers.comparison.claims import Known, reconcile
from optsched.solvers.comparison.tables import primal_integral, summarize
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.result import Incumbent, Result, Status
from optsched.solvers.solver import Solver

EXAMPLE = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
BEST = (1, 2, 0, -1, 2)
"""Profit 15: all of the room."""

WORSE = (1, 2, 0, -1, -1)
"""Profit 13."""

PROBLEMS = [
    EXAMPLE,
    WindowMKP(weights=[5, 4, 3], capacities=[7]),
    WindowMKP(weights=[5, 4, 3], capacities=[7], profits=[9, 1, 1]),
]
OPTIMA = [15, 7, 9]


class OtherKind(WindowMKP):
    """A kind of problem that no solver of the window knapsack knows."""

    name = "other-kind"


def saying(name, status, solution=None, bound=None, models=frozenset({"window-mkp"}), raises=None):
    """Return a solver that always gives this answer."""

    class Fixed(Solver):
        def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
            if raises is not None:
                raise raises
            return Result(self.name, status, solution, bound=bound, seed=seed)

    Fixed.name = name
    Fixed.models = models
    return Fixed()


def finds(solution, name="finder"):
    return saying(name, Status.FEASIBLE, solution)


def rows(comparison, *columns):
    return comparison.results[list(columns)].to_numpy(dtype=object).tolist()


def exact_solvers():
    """Every installed exact solver, with work that is plenty for these sizes."""
    return [
        name
        for name in registry.solvers
        if registry.solvers[name].exact
        and registry.solvers[name].installed_version() is not None
        and registry.solvers[name].supports(EXAMPLE.name)
    ]


@pytest.mark.parametrize("name", exact_solvers())
def test_each_exact_solver_reaches_and_proves_the_optima_beside_greedy(name):
    comparison = compare(PROBLEMS, ["greedy", name], budget=Budget(seconds=10))
    assert comparison.contradictions == ()
    own = comparison.results[comparison.results["solver"] == name]
    assert own["status"].tolist() == ["optimal"] * 3
    assert own["objective"].tolist() == OPTIMA
    assert comparison.results["best_objective"].tolist() == np.repeat(OPTIMA, 2).tolist()
    assert comparison.results["best_bound"].tolist() == np.repeat(OPTIMA, 2).tolist()
    table = comparison.table.set_index("solver")
    assert table.loc[name, ["solved", "best", "proven", "max_gap", "errors"]].tolist() == [
        *(3, 1.0, 1.0, 0.0, 0)
    ]
    assert table.loc["greedy", "proven"] == 0


def test_gaps_are_to_the_tightest_bound_of_any_solver():
    tight = saying("tight", Status.FEASIBLE, WORSE, bound=16)
    loose = saying("loose", Status.FEASIBLE, BEST, bound=20)
    comparison = compare([EXAMPLE], [tight, loose, finds(BEST)])
    assert rows(comparison, "solver", "objective", "gap", "best_objective", "best_bound") == [
        ["tight", 13, pytest.approx(3 / 13), 15, 16.0],
        ["loose", 15, pytest.approx(5 / 15), 15, 16.0],
        ["finder", 15, pytest.approx(np.nan, nan_ok=True), 15, 16.0],
    ]
    assert comparison.results["gap_to_best_bound"].tolist() == [
        pytest.approx(3 / 13),
        pytest.approx(1 / 15),
        pytest.approx(1 / 15),
    ]


def test_known_values_join_the_best_ones():
    known = Snapshot(EXAMPLE, known={"objective": 15, "bound": 15})
    comparison = compare([known], [finds(WORSE)])
    assert rows(comparison, "best_objective", "best_bound", "gap_to_best_bound") == [
        [15, 15.0, pytest.approx(2 / 13)]
    ]
    assert comparison.table["best"].isna().tolist() == [True]  # compared with no other


def test_two_optima_of_different_value_are_a_contradiction():
    comparison = compare(
        [EXAMPLE],
        [
            saying("wrong", Status.OPTIMAL, WORSE, bound=13),
            saying("right", Status.OPTIMAL, BEST, bound=15),
        ],
    )
    [contradiction] = comparison.contradictions
    assert contradiction == (
        "window-mkp-1: wrong claims that 13 is optimal; right has a verified solution of 15"
    )
    assert rows(comparison, "solver", "status", "verified") == [
        ["wrong", "error", False],
        ["right", "optimal", True],
    ]
    assert comparison.results["best_bound"].tolist() == [15.0, 15.0]
    assert comparison.table.set_index("solver")["errors"].to_dict() == {"wrong": 1, "right": 0}
    assert "wrong claims" in comparison._repr_html_()


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"status": Status.OPTIMAL, "solution": WORSE, "bound": 13}, "claims that 13 is optimal"),
        ({"status": Status.FEASIBLE, "solution": WORSE, "bound": 14.5}, "claims the bound 14.5"),
        ({"status": Status.NO_SOLUTION, "bound": 14}, "claims the bound 14"),
        ({"status": Status.INFEASIBLE}, "claims that there is no solution"),
    ],
)
def test_a_claim_that_a_verified_solution_refutes_is_named_and_not_used(claim, words):
    comparison = compare([EXAMPLE], [saying("liar", **claim), finds(BEST)])
    [contradiction] = comparison.contradictions
    assert words in contradiction
    assert "finder has a verified solution of 15" in contradiction
    assert rows(comparison, "status", "message")[0] == [
        "error",
        contradiction.removeprefix("window-mkp-1: "),
    ]
    assert comparison.results["best_bound"].isna().all()


def test_a_bound_within_rounding_is_no_contradiction():
    almost = saying("almost", Status.FEASIBLE, WORSE, bound=15 - 1e-7)
    assert compare([EXAMPLE], [almost, finds(BEST)]).contradictions == ()


@pytest.mark.parametrize(
    ("known", "words", "best"),
    [
        (
            Known(infeasible=True),
            "that there is no solution; finder has a verified solution",
            (15, 15),
        ),
        (
            Known(bound=14),
            "snapshot states the bound 14; finder has a verified solution of 15",
            (15, 15),
        ),
        (Known(objective=16), "states the objective 16; prover claims the bound 15", (15, 15)),
        (Known(objective=16, solution=BEST), "reports 16 for a solution of 15", (15, 15)),
        (Known(objective=16, solution=(1, 1, 1, 1, 1)), "infeasible solution", (15, 15)),
    ],
)
def test_known_values_that_cannot_be_are_named_and_not_used(known, words, best):
    results = [
        solve(EXAMPLE, finds(BEST)),
        solve(EXAMPLE, saying("prover", Status.FEASIBLE, WORSE, bound=15)),
    ]
    reconciled = reconcile(EXAMPLE, known, results)
    [contradiction] = reconciled.contradictions
    assert words in contradiction
    assert (reconciled.objective, reconciled.bound) == best
    assert [result.status for result in reconciled.results] == [Status.FEASIBLE] * 2


def test_a_known_solution_refutes_a_solver():
    wrong = solve(EXAMPLE, saying("wrong", Status.OPTIMAL, WORSE, bound=13))
    reconciled = reconcile(EXAMPLE, Known(solution=BEST), [wrong])
    assert reconciled.results[0].status is Status.ERROR
    assert reconciled.objective == 15
    assert "wrong claims that 13 is optimal" in reconciled.contradictions[0]


def test_a_solver_that_fails_or_answers_wrongly_does_not_end_the_comparison():
    comparison = compare(
        [EXAMPLE],
        [
            saying("raises", Status.ERROR, raises=RuntimeError("out of licences")),
            saying("overfull", Status.FEASIBLE, (1, 1, 1, 1, 1)),
            saying("nonsense", Status.FEASIBLE, "nonsense"),
            finds(BEST),
        ],
    )
    assert comparison.results["status"].tolist() == ["error"] * 3 + ["feasible"]
    message = "raises raised RuntimeError: out of licences (test_comparison.py, line "
    assert comparison.results["message"][0].startswith(message)
    assert comparison.results["best_objective"].tolist() == [15] * 4
    assert [answer["verified"] for answer in comparison.answers] == [False, False, True]
    assert comparison.answers[0]["solution"] == "(1, 1, 1, 1, 1)"
    assert comparison.answers[2]["solution"] == EXAMPLE.solution_to_json(BEST)
    assert comparison.incumbents["solver"].tolist() == ["finder"]


def test_pairs_that_are_not_supported_are_left_out_and_said():
    other = OtherKind(weights=[3, 4], capacities=[5])
    everything = saying("everything", Status.INFEASIBLE, models=None)
    comparison = compare([EXAMPLE, other, other], [finds(BEST), everything])
    assert rows(comparison, "kind", "solver") == [
        ["window-mkp", "finder"],
        ["window-mkp", "everything"],
        ["other-kind", "everything"],
        ["other-kind", "everything"],
    ]
    assert comparison.skipped == (
        "solver 'finder' does not answer 'other-kind' problems: 2 skipped",
    )
    assert comparison.table[["kind", "solver", "snapshots"]].to_numpy().tolist() == [
        ["window-mkp", "finder", 1],
        ["window-mkp", "everything", 1],
        ["other-kind", "everything", 2],
    ]
    proven = comparison.table.set_index(["kind", "solver"]).loc[("other-kind", "everything")]
    assert (proven["solved"], proven["proven"]) == (2, 1.0)


def test_every_installed_solver_is_taken_by_default():
    comparison = compare(PROBLEMS[1], budget=Budget(seconds=5))
    expected = [
        name
        for name in registry.solvers
        if registry.solvers[name].installed_version() is not None
        and registry.solvers[name].supports(EXAMPLE.name)
    ]
    assert comparison.results["solver"].tolist() == expected
    assert comparison.skipped == ()


def test_solvers_are_warmed_up_on_the_smallest_problem_and_progress_is_told():
    calls = []

    class Counting(Solver):
        name = "counting"
        models = None

        def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
            calls.append((problem.size, budget, seed))
            return Result(self.name, Status.NO_SOLUTION)

    done = []
    compare(PROBLEMS[:2], [Counting()], budget=Budget(seconds=7), seed=3, progress=done.append)
    warm_up, *timed = calls
    assert warm_up[0] == "3x1"
    assert warm_up[1].seconds <= 1
    assert timed == [("5x3", Budget(seconds=7), 3), ("3x1", Budget(seconds=7), 3)]
    assert done == [1, 2]


def test_incumbents_end_with_the_verified_answer():
    class Improving(Solver):
        name = "improving"

        def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
            return Result(self.name, Status.FEASIBLE, BEST, incumbents=(Incumbent(0.0, 13, 20.0),))

    incumbents = compare([EXAMPLE], [Improving()]).incumbents
    assert incumbents["objective"].tolist() == [13, 15]
    assert incumbents["bound"].isna().tolist() == [False, True]


def test_the_table_by_hand():
    columns = ("status", "objective", "best_objective", "gap_to_best_bound", "seconds", "verified")
    integrals = [0.5, 1.5, 3.0, 4.0, None]
    answers = [
        ("optimal", 10, 10, 0.0, 1.0, True),
        ("feasible", 8, 10, 0.25, 2.0, True),
        ("no-solution", None, 10, None, 3.0, True),
        ("error", 9, 9, None, 4.0, False),
        ("infeasible", None, None, None, 5.0, True),
    ]
    results = pd.DataFrame(answers, columns=columns).assign(kind="k", solver="s")
    results["primal_integral"] = integrals
    results = results.astype({"objective": "Int64", "best_objective": "Int64"})
    row, _ = summarize(pd.concat([results, results.assign(solver="t")])).to_dict(orient="records")
    assert row == {
        "kind": "k",
        "solver": "s",
        "snapshots": 5,
        "solved": 3,
        "best": pytest.approx(2 / 5),
        "proven": pytest.approx(2 / 5),
        "mean_gap": pytest.approx(0.125),
        "median_gap": pytest.approx(0.125),
        "max_gap": 0.25,
        "primal_integral": pytest.approx(2.25),
        "mean_seconds": pytest.approx(720 ** (1 / 5) - 1),
        "median_seconds": 3.0,
        "p95_seconds": pytest.approx(4.8),
        "total_seconds": 15.0,
        "errors": 1,
    }


def test_the_folder_holds_it_all(tmp_path):
    files = [tmp_path / "a.json", tmp_path / "b.json.gz"]
    for file, problem in zip(files, PROBLEMS):
        save_snapshot(problem, file)
    comparison = compare(files, [finds(BEST[:5]), "greedy"], seed=1)
    folder = save(comparison, tmp_path / "out")
    assert {file.name for file in folder.iterdir()} == {
        "comparison.json",
        "results.csv",
        "results.parquet",
        "table.csv",
        "incumbents.parquet",
        "answers.jsonl",
        "report.html",
        *(f"{name}.{suffix}" for name in ("quality", "profile") for suffix in ("svg", "png")),
    }
    config = json.loads((folder / "comparison.json").read_text())
    assert [snapshot["name"] for snapshot in config["snapshots"]] == ["a", "b"]
    assert [solver["seed"] for solver in config["solvers"]] == [1, 1]
    assert config["contradictions"] == []
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "results.parquet"), comparison.results)
    pd.testing.assert_frame_equal(
        pd.read_parquet(folder / "incumbents.parquet"), comparison.incumbents
    )
    read = pd.read_csv(folder / "results.csv", keep_default_na=False)
    assert read.columns.tolist() == comparison.results.columns.tolist()
    assert read["objective"].tolist()[0] == "15"
    answers = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    assert [(answer["snapshot"], answer["solver"]) for answer in answers] == [
        ("a", "finder"),
        ("a", "greedy"),
        ("b", "finder"),
        ("b", "greedy"),
    ]
    save(comparison, folder, plots=False)
    assert not (folder / "quality.svg").exists()
    assert not (folder / "report.html").exists()


def test_a_snapshot_has_one_fingerprint_in_memory_and_on_file(tmp_path):
    file = tmp_path / "example.json"
    save_snapshot(EXAMPLE, file)
    configs = [compare([given], [finds(BEST)]).config for given in (file, EXAMPLE)]
    hashes = [config["snapshots"][0]["sha256"] for config in configs]
    assert hashes[0] == hashes[1]


def test_a_folder_of_something_else_is_not_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="other things"):
        save(compare([EXAMPLE], [finds(BEST)]), tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_files_of_one_name_are_told_apart_by_their_paths(tmp_path):
    files = []
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        files.append(tmp_path / folder / "s.json")
        save_snapshot(EXAMPLE, files[-1])
    names = compare(files, [finds(BEST)]).results["snapshot"].tolist()
    assert names == ["s", str(files[1])]


def test_profiles_have_their_own_name_budget_and_options(tmp_path):
    file = tmp_path / "brief.toml"
    file.write_text('solver = "greedy"\nseed = 5\n[budget]\nseconds = 2.0\n')
    comparison = compare([EXAMPLE], [str(file), "greedy"])
    assert comparison.results["solver"].tolist() == ["brief", "greedy"]
    brief = comparison.config["solvers"][0]
    assert (brief["solver"], brief["seed"], brief["budget"]["seconds"]) == ("greedy", 5, 2.0)


@pytest.mark.parametrize(
    ("problems", "solvers", "error", "words"),
    [
        ([], None, InputError, "at least one snapshot"),
        ([EXAMPLE], ["greedy", "greedy"], InputError, "'greedy' is named twice"),
        ([EXAMPLE], ["gredy"], UnknownNameError, "did you mean greedy"),
        ([EXAMPLE], [], InputError, "nothing to solve; no solver for window-mkp problems"),
        ([EXAMPLE], ["lea"], InputError, "lea solves no window-mkp problems; expected one of b"),
        ([EXAMPLE], ["xpress"], InputError, "unknown solver 'xpress' of window-mkp problems; k"),
        ([EXAMPLE], ["xpress"], InputError, "FILE.py:CLASS, and for another program there is `opt"),
        (
            [OtherKind(weights=[1], capacities=[1])],
            ["greedy"],
            InputError,
            "greedy solves no other-kind problems",
        ),
        (["missing.json"], ["greedy"], InputError, "missing.json"),
        (
            [Snapshot(EXAMPLE, known={"objective": "15"})],
            ["greedy"],
            InputError,
            "window-mkp-1, known objective: '15'; expected an integer",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(problems, solvers, error, words):
    with pytest.raises(error, match=words):
        compare(problems, solvers)


def test_every_file_that_cannot_be_read_is_named(tmp_path):
    for name, text in (("a", '{"kind": "window-mkp"}'), ("b", "{"), ("c", "")):
        (tmp_path / f"{name}.json").write_text(text)
    save_snapshot(EXAMPLE, tmp_path / "good.json")
    with pytest.raises(InputError) as raised:
        compare(sorted(tmp_path.iterdir()), ["greedy"])
    assert [mistake.split(": ")[0] for mistake in raised.value.mistakes] == [
        f"{tmp_path}/a.json",
        f"{tmp_path}/a.json",
        f"{tmp_path}/b.json, line 1",
        f"{tmp_path}/c.json, line 1",
    ]


def test_one_file_twice_is_refused(tmp_path):
    file = tmp_path / "s.json"
    save_snapshot(EXAMPLE, file)
    with pytest.raises(InputError, match="is named twice"):
        compare([file, file], [finds(BEST)])


def test_settling_keeps_errors_as_they_are():
    failed = Result("failed", Status.ERROR, message="why")
    reconciled = reconcile(EXAMPLE, Known(), [failed])
    assert reconciled.results == (failed,)
    assert reconciled == replace(reconciled, objective=None, bound=None, contradictions=())


def test_a_folder_stands_for_the_snapshots_and_instances_in_it(tmp_path):
    for name in ("b.json", "a.json.gz"):
        save_snapshot(EXAMPLE, tmp_path / name)
    (tmp_path / "capture.json").write_text("{}")
    (tmp_path / "c.txt").write_text("\n1\n1\n5\n3 4\n")
    (tmp_path / "README.txt").write_text("Knapsacks are in c.txt.")
    comparison = compare(tmp_path, ["greedy"])
    assert comparison.results["snapshot"].tolist() == ["a", "b", "c.txt"]
    assert len(compare([tmp_path, EXAMPLE], ["greedy"]).results) == 4


def test_a_mistake_in_an_instance_of_a_folder_is_told(tmp_path):
    (tmp_path / "c.txt").write_text("1\n1\n5\n3 x\n")
    with pytest.raises(InputError, match=r"c\.txt: line 4, profit: 'x'"):
        compare(tmp_path, ["greedy"])


def test_a_folder_of_prose_holds_no_snapshot(tmp_path):
    (tmp_path / "README.txt").write_text("Nothing here.")
    with pytest.raises(InputError, match=r"holds no snapshot \(\*\.json, .*\*\.txt"):
        compare(tmp_path, ["greedy"])


def test_the_options_of_a_solver_are_recorded():
    (solver,) = compare(EXAMPLE, CpSat(relative_gap=0.05)).config["solvers"]
    assert (solver["name"], solver["options"]) == ("cp-sat", {"relative_gap": 0.05})


def result(*found, **fields):
    incumbents = tuple(Incumbent(at, objective, None) for at, objective in found)
    return Result("mine", Status.FEASIBLE, incumbents=incumbents, verified=True, **fields)


@pytest.mark.parametrize(
    ("found", "best", "until", "integral"),
    [
        ([(2.0, 5), (4.0, 10)], 10, 8.0, 2 + 2 * 0.5),
        ([(0.0, 10)], 10, 8.0, 0.0),
        ([(2.0, 5)], 10, 8.0, 2 + 6 * 0.5),
        ([(9.0, 5)], 10, 8.0, 8.0),  # too late
        ([], 10, 3.0, 3.0),
        ([(1.0, -5)], 10, 2.0, 2.0),
    ],
)
def test_the_primal_integral(found, best, until, integral):
    assert primal_integral(result(*found), best, until) == pytest.approx(integral)


def test_without_an_objective_there_is_no_primal_integral():
    assert math.isnan(primal_integral(result(), None, 3.0))


def test_solutions_that_are_refused_do_not_count():
    wrong = Result("mine", Status.ERROR, incumbents=(Incumbent(0.0, 10, None),))
    assert primal_integral(wrong, 10, 3.0) == 3.0


def test_the_table_has_the_shifted_geometric_mean():
    problems = [WindowMKP(weights=[n, 4, 3], capacities=[6, 5]) for n in (2, 3, 5)]
    comparison = optsched.compare(problems, ["greedy", "branch-and-bound"])
    for name, own in comparison.results.groupby("solver"):
        row = comparison.table.set_index("solver").loc[name]
        product = math.prod(1 + seconds for seconds in own["seconds"])
        assert row["mean_seconds"] == pytest.approx(product ** (1 / 3) - 1)
        assert 0 <= row["primal_integral"] <= own["seconds"].max() * 3
