"""Comparison of solvers, and its tables."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from optsched import Budget, compare, registry, save, save_snapshot, solve
from optsched.errors import InputError
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

PROBLEMS = [EXAMPLE, WindowMKP([5, 4, 3], [7]), WindowMKP([5, 4, 3], [7], [9, 1, 1])]
OPTIMA = [15, 7, 9]


class OtherKind(WindowMKP):
    """A kind of problem that no solver of the window knapsack knows."""

    name = "other-kind"


def saying(name, status, solution=None, bound=None, models=frozenset({"window-mkp"})):
    """Return a solver that always gives this answer."""

    class Fixed(Solver):
        def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
            return Result(self.name, status, solution, bound=bound, seed=seed)

    Fixed.name = name
    Fixed.models = models
    return Fixed()


def finds(solution, name="finder"):
    return saying(name, Status.FEASIBLE, solution)


def rows(comparison, *columns):
    return comparison.results[list(columns)].to_numpy(dtype=object).tolist()


def test_all_that_are_installed_are_compared_by_default_and_exact_ones_prove_the_optima():
    every = {name: registry.solvers[name] for name in registry.solvers}
    own = [
        name
        for name, cls in every.items()
        if cls.installed_version() is not None and cls.supports(EXAMPLE.name)
    ]
    comparison = compare(PROBLEMS, budget=Budget(seconds=10))
    assert comparison.contradictions == comparison.skipped == ()
    assert comparison.results["solver"].tolist() == own * 3
    for column in ("best_objective", "best_bound"):
        assert comparison.results[column].tolist() == np.repeat(OPTIMA, len(own)).tolist()
    table = comparison.table.set_index("solver")
    for name in own:
        solved, *shares = table.loc[name, ["solved", "best", "proven", "max_gap", "errors"]]
        assert solved == 3
        assert not every[name].exact or shares == [1.0, 1.0, 0.0, 0]
    assert table.loc["greedy", "proven"] == 0


def test_gaps_are_to_the_tightest_bound_of_any_solver():
    tight = saying("tight", Status.FEASIBLE, WORSE, bound=16)
    loose = saying("loose", Status.FEASIBLE, BEST, bound=20)
    comparison = compare([EXAMPLE], [tight, loose, finds(BEST)])
    assert rows(comparison, "solver", "objective", "best_objective", "best_bound") == [
        ["tight", 13, 15, 16.0],
        ["loose", 15, 15, 16.0],
        ["finder", 15, 15, 16.0],
    ]
    gaps = comparison.results[["gap", "gap_to_best_bound"]].to_numpy(dtype=float)
    expected = np.array([[3 / 13, 3 / 13], [5 / 15, 1 / 15], [np.nan, 1 / 15]])
    assert gaps == pytest.approx(expected, nan_ok=True)


def test_known_values_join_the_best_ones():
    known = Snapshot(EXAMPLE, known={"objective": 15, "bound": 15})
    comparison = compare([known], [finds(WORSE)])
    assert rows(comparison, "best_objective", "best_bound", "gap_to_best_bound") == [
        [15, 15.0, pytest.approx(2 / 13)]
    ]
    assert comparison.table["best"].isna().tolist() == [True]  # compared with no other


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"status": Status.FEASIBLE, "solution": WORSE, "bound": 14.5}, "claims the bound 14.5"),
        ({"status": Status.NO_SOLUTION, "bound": 14}, "claims the bound 14"),
        ({"status": Status.INFEASIBLE}, "claims that there is no solution"),
        ({"status": Status.OPTIMAL, "solution": WORSE, "bound": 13}, "claims that 13 is optimal"),
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
    assert comparison.table.set_index("solver")["errors"].to_dict() == {"liar": 1, "finder": 0}
    assert words in comparison._repr_html_()


def test_a_bound_within_rounding_is_no_contradiction():
    almost = saying("almost", Status.FEASIBLE, WORSE, bound=15 - 1e-7)
    assert compare([EXAMPLE], [almost, finds(BEST)]).contradictions == ()


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (Known(infeasible=True), "that there is no solution; finder has a verified solution"),
        (Known(bound=14), "snapshot states the bound 14; finder has a verified solution of 15"),
        (Known(objective=16), "states the objective 16; prover claims the bound 15"),
        (Known(objective=16, solution=BEST), "reports 16 for a solution of 15"),
        (Known(objective=16, solution=(1, 1, 1, 1, 1)), "infeasible solution"),
    ],
)
def test_known_values_that_cannot_be_are_named_and_not_used(known, words):
    prover = saying("prover", Status.FEASIBLE, WORSE, bound=15)
    reconciled = reconcile(EXAMPLE, known, [solve(EXAMPLE, one) for one in (finds(BEST), prover)])
    [contradiction] = reconciled.contradictions
    assert words in contradiction
    assert (reconciled.objective, reconciled.bound) == (15, 15)
    assert [result.status for result in reconciled.results] == [Status.FEASIBLE] * 2


def test_a_known_solution_refutes_a_solver():
    wrong = solve(EXAMPLE, saying("wrong", Status.OPTIMAL, WORSE, bound=13))
    reconciled = reconcile(EXAMPLE, Known(solution=BEST), [wrong])
    assert reconciled.results[0].status is Status.ERROR
    assert reconciled.objective == 15
    assert "wrong claims that 13 is optimal" in reconciled.contradictions[0]


def test_an_answer_that_is_refused_is_kept_and_does_not_count():
    wrong = (1, 1, 1, 1, 1)
    comparison = compare([EXAMPLE], [finds(wrong, "overfull"), finds(BEST)])
    assert comparison.results["best_objective"].tolist() == [15] * 2
    assert [(answer["verified"], answer["solution"]) for answer in comparison.answers] == [
        (False, str(wrong)),
        (True, EXAMPLE.solution_to_json(BEST)),
    ]
    assert comparison.incumbents["solver"].tolist() == ["finder"]


def test_pairs_that_are_not_supported_are_left_out_and_said():
    other = OtherKind(weights=[3, 4], capacities=[5])
    everything = saying("everything", Status.INFEASIBLE, models=None)
    comparison = compare([EXAMPLE, other, other], [finds(BEST), everything])
    pairs = [["window-mkp", "finder"], ["window-mkp", "everything"], ["other-kind", "everything"]]
    assert rows(comparison, "kind", "solver") == [*pairs, pairs[-1]]
    assert comparison.skipped == (
        "solver 'finder' does not answer 'other-kind' problems: 2 skipped",
    )
    table = comparison.table
    assert table[["kind", "solver"]].to_numpy().tolist() == pairs
    assert table["snapshots"].tolist() == [1, 1, 2]
    assert table[["solved", "proven"]].to_numpy().tolist()[-1] == [2, 1.0]


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
    answers = [
        ("optimal", 10, 10, 0.0, 1.0, True),
        ("feasible", 8, 10, 0.25, 2.0, True),
        ("no-solution", None, 10, None, 3.0, True),
        ("error", 9, 9, None, 4.0, False),
        ("infeasible", None, None, None, 5.0, True),
    ]
    results = pd.DataFrame(answers, columns=columns).assign(kind="k", solver="s")
    results["primal_integral"] = [0.5, 1.5, 3.0, 4.0, None]
    results = results.astype({"objective": "Int64", "best_objective": "Int64"})
    row, _ = summarize(pd.concat([results, results.assign(solver="t")])).to_dict(orient="records")
    assert (row.pop("kind"), row.pop("solver")) == ("k", "s")
    counts = {"snapshots": 5, "solved": 3, "errors": 1}
    shares = {"best": 2 / 5, "proven": 2 / 5, "primal_integral": 2.25}
    gaps = {"mean_gap": 0.125, "median_gap": 0.125, "max_gap": 0.25}
    seconds = {"mean": 720 ** (1 / 5) - 1, "median": 3.0, "p95": 4.8, "total": 15.0}
    times = {f"{name}_seconds": value for name, value in seconds.items()}
    assert row == pytest.approx(counts | shares | gaps | times)


def test_the_folder_holds_it_all(tmp_path):
    files = [tmp_path / "a.json", tmp_path / "b.json.gz"]
    for file, problem in zip(files, PROBLEMS):
        save_snapshot(problem, file)
    comparison = compare(files, [finds(BEST), "greedy"], seed=1)
    folder = save(comparison, tmp_path / "out")
    pictures = [f"{name}.{suffix}" for name in ("quality", "profile") for suffix in ("svg", "png")]
    tables = ["results.csv", "results.parquet", "table.csv", "incumbents.parquet"]
    others = ["comparison.json", "answers.jsonl", "report.html"]
    assert {file.name for file in folder.iterdir()} == {*pictures, *tables, *others}
    config = json.loads((folder / "comparison.json").read_text())
    assert [snapshot["name"] for snapshot in config["snapshots"]] == ["a", "b"]
    assert [solver["seed"] for solver in config["solvers"]] == [1, 1]
    assert config["contradictions"] == []
    for table in ("results", "incumbents"):
        read = pd.read_parquet(folder / f"{table}.parquet")
        pd.testing.assert_frame_equal(read, getattr(comparison, table))
    read = pd.read_csv(folder / "results.csv", keep_default_na=False)
    assert read.columns.tolist() == comparison.results.columns.tolist()
    assert read["objective"].tolist()[0] == "15"
    answers = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    assert [answer["snapshot"] + " " + answer["solver"] for answer in answers] == [
        *("a finder", "a greedy", "b finder", "b greedy")
    ]
    save(comparison, folder, plots=False)
    assert not (folder / "quality.svg").exists()
    assert not (folder / "report.html").exists()


def test_a_snapshot_has_one_fingerprint_in_memory_and_on_file(tmp_path):
    file = tmp_path / "example.json"
    save_snapshot(EXAMPLE, file)
    configs = [compare([given], [finds(BEST)]).config for given in (file, EXAMPLE)]
    assert len({config["snapshots"][0]["sha256"] for config in configs}) == 1


def test_files_of_one_name_are_told_apart_by_their_paths_and_one_file_twice_is_refused(tmp_path):
    files = []
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        files.append(tmp_path / folder / "s.json")
        save_snapshot(EXAMPLE, files[-1])
    names = compare(files, [finds(BEST)]).results["snapshot"].tolist()
    assert names == ["s", str(files[1])]
    with pytest.raises(InputError, match="is named twice"):
        compare(files[:1] * 2, [finds(BEST)])


def test_profiles_have_their_own_name_budget_and_options(tmp_path):
    file = tmp_path / "brief.toml"
    file.write_text('solver = "greedy"\nseed = 5\n[budget]\nseconds = 2.0\n')
    comparison = compare([EXAMPLE], [str(file), CpSat(relative_gap=0.05)])
    assert comparison.results["solver"].tolist() == ["brief", "cp-sat"]
    brief, own = comparison.config["solvers"]
    assert (brief["solver"], brief["seed"], brief["budget"]["seconds"]) == ("greedy", 5, 2.0)
    assert (own["name"], own["options"]) == ("cp-sat", {"relative_gap": 0.05})


@pytest.mark.parametrize(
    ("problems", "solvers", "words"),
    [
        ([], None, "at least one snapshot"),
        ([EXAMPLE], ["greedy", "greedy"], "'greedy' is named twice"),
        ([EXAMPLE], ["gredy"], "did you mean greedy"),
        ([EXAMPLE], [], "nothing to solve; no solver for window-mkp problems"),
        ([EXAMPLE], ["lea"], "lea solves no window-mkp problems; expected one of b"),
        ([EXAMPLE], ["xpress"], "unknown solver 'xpress' of window-mkp .* for another program th"),
        ([OtherKind([1], [1])], ["greedy"], "greedy solves no other-kind problems"),
        (["missing.json"], ["greedy"], "missing.json"),
        (
            [Snapshot(EXAMPLE, known={"objective": "15"})],
            ["greedy"],
            "window-mkp-1, known objective: '15'; expected an integer",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(problems, solvers, words):
    with pytest.raises(InputError, match=words):
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


def test_a_folder_stands_for_the_snapshots_and_instances_in_it(tmp_path):
    for name in ("b.json", "a.json.gz"):
        save_snapshot(EXAMPLE, tmp_path / name)
    (tmp_path / "capture.json").write_text("{}")
    (tmp_path / "c.txt").write_text("\n1\n1\n5\n3 4\n")
    (tmp_path / "README.txt").write_text("Knapsacks are in c.txt.")
    comparison = compare(tmp_path, ["greedy"])
    assert comparison.results["snapshot"].tolist() == ["a", "b", "c.txt"]
    assert len(compare([tmp_path, EXAMPLE], ["greedy"]).results) == 4


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("c.txt", "1\n1\n5\n3 x\n", r"c\.txt: line 4, profit: 'x'"),
        ("README.txt", "Nothing here.", r"holds no snapshot \(\*\.json, .*\*\.txt"),
    ],
)
def test_a_folder_with_a_mistake_in_an_instance_or_with_prose_alone(tmp_path, name, text, told):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=told):
        compare(tmp_path, ["greedy"])


def result(*found):
    incumbents = tuple(Incumbent(at, objective, None) for at, objective in found)
    return Result("mine", Status.FEASIBLE, incumbents=incumbents, verified=True)


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


def test_solutions_that_are_refused_do_not_count():
    wrong = Result("mine", Status.ERROR, incumbents=(Incumbent(0.0, 10, None),))
    assert primal_integral(wrong, 10, 3.0) == 3.0
    assert math.isnan(primal_integral(result(), None, 3.0))  # nobody has an objective
