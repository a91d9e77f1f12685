"""The page of a comparison of solvers."""

from __future__ import annotations

import json
import shlex
import shutil

import pandas as pd
import pytest
from report.looks import change_json, change_table, section

from optsched import compare, save
from optsched.cli import run as optsched
from optsched.errors import InputError
from optsched.models import WindowMKP
from optsched.models.snapshot_file import save_snapshot
from optsched.report import comparison_page
from optsched.report.page import LONG, render
from optsched.report.saved import report_comparison
from optsched.solvers.result import Budget

PROBLEMS = [
    WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6]),
    WindowMKP(weights=[9, 7, 6, 5, 3], capacities=[12, 10, 8]),
]
BUDGET = Budget(seconds=5)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    files = [folder / "a.json", folder / "b<script>.json"]
    for file, problem in zip(files, PROBLEMS):
        save_snapshot(problem, file)
    solvers = ["branch-and-bound", "greedy", "greedy-exchange"]
    return save(compare(files, solvers, budget=BUDGET, seed=3), folder / "out")


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "out")


def stated(folder, change=None, **fields):
    """Return the page after a change of what the folder says of the comparison."""
    change_json(folder / "comparison.json", change, **fields)
    return comparison_page.page(folder)


def answered(folder, change):
    """Return the page after a change of the table of results."""
    change_table(folder / "results.parquet", change)
    return comparison_page.page(folder)


def read(folder):
    return json.loads((folder / "comparison.json").read_text())


def test_the_lead_says_who_was_best_and_who_proved_what(folder):
    page = comparison_page.page(folder)
    results = pd.read_parquet(folder / "results.parquet")
    best = results[results["objective"] == results["best_objective"]].groupby("solver").size()
    winners = [name for name in results["solver"].unique() if best.get(name) == 2]
    assert "branch-and-bound" in winners
    listed = " and ".join([", ".join(winners[:-1]), winners[-1]] if winners[1:] else winners)
    assert page.title == "Comparison of 3 solvers on 2 snapshots"
    assert page.lead == (
        f"window-mkp: {listed} reached the best known objective on all 2 snapshots."
        " Proofs: branch-and-bound on all 2 snapshots; greedy and greedy-exchange on no snapshot."
    )


def test_the_tables_hold_what_the_files_hold(folder):
    page = comparison_page.page(folder)
    table, *_ = section(page, "The solvers")
    saved = pd.read_csv(folder / "table.csv")
    assert [row[0].text for row in table.cells] == saved["solver"].tolist()
    assert [row[7].key for row in table.cells] == saved["primal_integral"].tolist()
    assert [row[9].key for row in table.cells] == saved["median_seconds"].tolist()
    [snapshots] = section(page, "The snapshots")
    assert [[*row[:4], *row[5:7]] for row in snapshots.rows] == [
        ["a", "5x3", 15, 15.0, 1, "branch-and-bound"],
        ["b<script>", "5x3", 27, 27.0, 1, "branch-and-bound"],
    ]


def test_pictures_tell_their_numbers_and_names_are_escaped_whenever_the_page_is_made(folder):
    quality, profile = section(comparison_page.page(folder), "Pictures")
    assert "branch-and-bound 0%" in quality.alt
    assert "window-mkp, greedy: 0% proven, " in profile.alt
    assert "window-mkp, branch-and-bound: 100% proven, 100% best" in profile.alt
    text = (folder / "report.html").read_text()
    assert text.count("<script>") == 1
    assert "b&lt;script&gt;" in text
    (folder / "report.html").unlink()
    assert report_comparison(folder).read_text() == text


def test_contradictions_come_first_and_skipped_pairs_are_said(folder):
    page = stated(folder, contradictions=["a: one claims <13>"], skipped=["two was not asked"])
    assert page.lead.startswith("1 contradiction: a: one claims <13>. ")
    assert page.sections[0].title == "Contradictions"
    assert page.sections[0].parts[1].rows == [["a: one claims <13>"]]
    assert section(page, "The comparison")[-1] == "two was not asked"


def test_snapshots_that_nobody_proved_and_failures_are_said(folder):
    def fail(results):
        results.loc[results["solver"] == "branch-and-bound", "status"] = ["feasible", "error"]
        failed = results["status"] == "error"
        results.loc[failed, ["message", "objective", "verified"]] = ["it broke", pd.NA, False]
        return results

    page = answered(folder, fail)
    assert page.lead.endswith("2 snapshots without a proof.")
    [failures] = section(page, "Failures")
    assert page.sections[0].title == "Failures"
    assert failures.rows == [["b<script>", "branch-and-bound", "it broke"]]
    [snapshots] = section(page, "The snapshots")
    assert [row[5:] for row in snapshots.rows] == [[0, None, None]] * 2


@pytest.mark.parametrize(("status", "shown"), [("no-solution", None), ("infeasible", "infeasible")])
def test_without_answers_there_is_a_page(folder, status, shown):
    unknown = {"objective": pd.NA, "best_objective": pd.NA, "status": status}
    page = answered(folder, lambda results: results.assign(**unknown))
    [table] = section(page, "The snapshots")
    assert [getattr(row[2], "text", None) for row in table.rows] == [shown] * 2
    if shown is None:
        assert "Proofs: branch-and-bound, greedy and greedy-exchange on no snapshot." in page.lead


def test_the_command_repeats_the_comparison(folder, tmp_path):
    words = shlex.split(comparison_page.page(folder).repeat)
    assert words[:2] == ["optsched", "compare"]
    assert optsched([*words[1:-1], str(tmp_path / "again")]) == 0
    assert read(folder) == read(tmp_path / "again")
    first = read(folder)["snapshots"][0]  # a crowded folder stands for its snapshots
    many = [first | {"path": f"met/{k}.json"} for k in range(comparison_page.MOST_PATHS + 1)]
    words = shlex.split(stated(folder, snapshots=[*many, first]).repeat)
    assert words[2:4] == ["met", first["path"]]


def test_what_no_command_repeats_says_so(folder, tmp_path):
    assert comparison_page.page(save(compare(PROBLEMS, ["greedy"]), tmp_path / "x")).repeat is None
    changed = stated(folder, lambda config: config["solvers"][0].update(options={"threads": 2}))
    assert changed.repeat is None


SNAPSHOT = {"name": "a", "path": "a", "kind": "window-mkp", "size": "3x2"}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"solvers": 3}, "solvers: 3; expected a list"),
        ({"solvers": [3]}, "solvers: not an object"),
        ({"wrong_answers": 3}, "wrong_answers: 3; expected a list"),
        ({"snapshots": [{"name": "a"}]}, "snapshots path: missing"),
        ({"snapshots": [SNAPSHOT | {"known": {"objective": "x"}}]}, "snapshots known objective"),
        ({"snapshots": [SNAPSHOT | {"sense": []}]}, "snapshots sense: []; expected a text"),
        ({"known_values": [{"path": "a"}]}, "known_values snapshots: missing"),
    ],
)
def test_a_damaged_field_is_told(folder, fields, told):
    with pytest.raises(InputError) as raised:
        stated(folder, **fields)
    assert told in str(raised.value)
    assert raised.value.file == str(folder / "comparison.json")


def test_trivial_snapshots_are_told_apart(folder):
    def solvers_when(seconds, others=0.02, behind=0, **columns):
        """Return the parts on the solvers, if snapshot a takes each of them so many seconds."""

        def change(results):
            results = results.assign(seconds=others, objective=results["best_objective"])
            results.loc[results["snapshot"] == "a", "seconds"] = seconds
            results.loc[results["solver"] == "greedy", "objective"] -= behind
            return results.assign(**columns)

        return section(answered(folder, change), "The solvers")

    table, words, hard = solvers_when(0.01)
    assert words.startswith("Trivial snapshots of window-mkp: 1 of 2. All solvers answer them")
    assert table.caption.startswith("window-mkp, 2 snapshots.")
    assert hard.caption.startswith("window-mkp, 1 snapshot not trivial.")
    assert len(solvers_when(0.0100001)) == 1
    assert len(solvers_when(0.01, behind=1)) == 1
    assert len(solvers_when(0.001, others=0.001)) == 2  # nothing is left over
    assert len(solvers_when(0.01, status="feasible")) == 1  # without a proof


def test_budgets_are_told_first(folder):
    [words] = comparison_page.page(folder).summary
    assert words == "The budget for one snapshot is 5 s; no result ended at a limit."
    answered(folder, lambda results: results.assign(limit=["time", *results["limit"][1:]]))
    other = {"seconds": None, "work": 2000}
    [words] = stated(folder, lambda config: config["solvers"][1].update(budget=other)).summary
    assert words.endswith("differs between the solvers; 1 of 6 results ended at a limit.")


def test_a_long_list_of_snapshots_comes_last_and_is_folded(folder):
    def repeat(results):
        names = results["snapshot"]
        return pd.concat([results.assign(snapshot=names + str(k)) for k in range(LONG)])

    page = answered(folder, repeat)
    assert section(page, "The snapshots")[0].long
    text = render(page)
    assert text.index("How to repeat this</a>") < text.index("The snapshots</a>")
    assert text.index("<pre>") < text.index("100 rows") < text.index("b&lt;script&gt;49")


def test_a_solver_alone_is_compared_with_bounds_and_known_values(tmp_path):
    def page_of(solver):
        found = compare(tmp_path, [solver], budget=BUDGET)
        return comparison_page.page(save(found, tmp_path / "out"))

    for name, problem in zip("abc", (*PROBLEMS, PROBLEMS[0])):
        save_snapshot(problem, tmp_path / f"{name}.json")
    assert page_of("depth-first").lead.startswith(
        "window-mkp: depth-first is the only solver, compared with bounds alone."
        " Mean gap to the best bound: 0%. Proofs:"
    )
    source = tmp_path / "known_values.csv"
    source.write_text("instance,lower_bound,upper_bound\na,15,15\nb,28,28\nelse,,3\nc,,\n")
    page = page_of("greedy")
    assert "compared with bounds and known values alone" in page.lead
    assert "It reached the known objective on 1 of 2 snapshots with one." in page.lead
    [table] = section(page, "The solvers")
    assert table.cells[0][2].key is None  # shown as a dash
    assert section(page, "The comparison")[1:] == [
        f"Known values of 3 snapshots are those of {source}.",
        f"{source}: 1 name of no instance beside it: else.",
    ]
    assert "best objective" not in section(page, "Pictures")[1].alt


@pytest.mark.parametrize(("sense", "counts"), [("max", True), ("min", False), (None, False)])
def test_a_better_objective_than_known_is_said_to_be(folder, sense, counts):
    best = int(pd.read_parquet(folder / "results.parquet")["best_objective"].iloc[0])
    [first, second] = read(folder)["snapshots"]
    assert first.pop("sense") == "max"
    first |= {"known": {"objective": best - 1}} | ({"sense": sense} if sense else {})
    page = stated(folder, snapshots=[first, second | {"known": {"objective": None}}])
    text = f"Better than known: {first['name']} ({best}, known was {best - 1})."
    assert (text in section(page, "The comparison")) is counts
    assert ("1 snapshot with a better objective than known." in page.lead) is counts
