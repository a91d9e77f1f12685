from __future__ import annotations

import json
import shlex
import shutil

import pandas as pd
import pytest

from optsched import compare, save
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


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    files = [folder / "a.json", folder / "b<script>.json"]
    for file, problem in zip(files, PROBLEMS):
        save_snapshot(problem, file)
    solvers = ["branch-and-bound", "greedy", "greedy-exchange"]
    return save(compare(files, solvers, budget=Budget(seconds=5), seed=3), folder / "out")


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "out")


def section(page, title):
    sections = [*page.sections, *page.appendix]
    [found] = [section for section in sections if section.title == title]
    return found.parts


def edited(folder, **fields):
    file = folder / "comparison.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))
    return comparison_page.page(folder)


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
    assert [row[:4] for row in snapshots.rows] == [
        ["a", "5x3", 15, 15.0],
        ["b<script>", "5x3", 27, 27.0],
    ]
    assert [row[5:7] for row in snapshots.rows] == [[1, "branch-and-bound"]] * 2


def test_pictures_tell_their_numbers_and_names_are_escaped(folder):
    quality, profile = section(comparison_page.page(folder), "Pictures")
    assert "branch-and-bound 0%" in quality.alt
    assert "window-mkp, greedy: 0% proven, " in profile.alt
    assert "window-mkp, branch-and-bound: 100% proven, 100% best" in profile.alt
    text = (folder / "report.html").read_text()
    assert text.count("<script>") == 1
    assert "b&lt;script&gt;" in text


def test_the_page_of_a_folder_can_be_made_anew(folder):
    before = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    assert report_comparison(folder).read_bytes() == before


def test_contradictions_come_first_and_skipped_pairs_are_said(folder):
    page = edited(folder, contradictions=["a: one claims <13>"], skipped=["two was not asked"])
    assert page.lead.startswith("1 contradiction: a: one claims <13>. ")
    assert page.sections[0].title == "Contradictions"
    assert page.sections[0].parts[1].rows == [["a: one claims <13>"]]
    assert section(page, "The comparison")[-1] == "two was not asked"


def test_snapshots_that_nobody_proved_and_failures_are_said(folder):
    file = folder / "results.parquet"
    results = pd.read_parquet(file)
    results.loc[results["solver"] == "branch-and-bound", "status"] = ["feasible", "error"]
    results.loc[results["status"] == "error", ["message", "objective", "verified"]] = [
        "it broke",
        pd.NA,
        False,
    ]
    results.to_parquet(file)
    page = comparison_page.page(folder)
    assert page.lead.endswith("2 snapshots without a proof.")
    [failures] = section(page, "Failures")
    assert page.sections[0].title == "Failures"
    assert failures.rows == [["b<script>", "branch-and-bound", "it broke"]]
    [snapshots] = section(page, "The snapshots")
    assert [row[5:] for row in snapshots.rows] == [[0, None, None]] * 2


def test_without_answers_there_is_a_page(folder):
    file = folder / "results.parquet"
    results = pd.read_parquet(file)
    results[["objective", "best_objective"]] = pd.NA
    results["status"] = "no-solution"
    results.to_parquet(file)
    page = comparison_page.page(folder)
    assert all(row[2] is None for row in section(page, "The snapshots")[0].rows)
    assert "Proofs: branch-and-bound, greedy and greedy-exchange on no snapshot." in page.lead


def test_the_command_repeats_the_comparison(folder, tmp_path):
    from optsched.cli import run as optsched

    words = shlex.split(comparison_page.page(folder).repeat)
    assert words[:2] == ["optsched", "compare"]
    assert optsched([*words[1:-1], str(tmp_path / "again")]) == 0
    one, two = (
        json.loads((f / "comparison.json").read_text()) for f in (folder, tmp_path / "again")
    )
    assert one == two


def test_what_no_command_repeats_says_so(folder, tmp_path):
    assert comparison_page.page(save(compare(PROBLEMS, ["greedy"]), tmp_path / "x")).repeat is None
    config = json.loads((folder / "comparison.json").read_text())
    config["solvers"][0]["options"] = {"threads": 2}
    assert edited(folder, solvers=config["solvers"]).repeat is None


def test_a_crowded_folder_stands_for_its_snapshots(folder):
    config = json.loads((folder / "comparison.json").read_text())
    first = config["snapshots"][0]
    many = [first | {"path": f"met/{k}.json"} for k in range(comparison_page.MOST_PATHS + 1)]
    words = shlex.split(edited(folder, snapshots=[*many, first]).repeat)
    assert words[2:4] == ["met", first["path"]]


SNAPSHOT = {"name": "a", "path": "a", "kind": "window-mkp", "size": "3x2"}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"solvers": 3}, "solvers: 3; expected a list"),
        ({"solvers": [3]}, "solvers: not an object"),
        ({"wrong_answers": 3}, "wrong_answers: 3; expected a list"),
        ({"snapshots": [{"name": "a"}]}, "snapshots path: missing"),
        ({"snapshots": [SNAPSHOT | {"known": 3}]}, "snapshots known: 3; expected an object"),
        ({"snapshots": [SNAPSHOT | {"known": {"objective": "x"}}]}, "snapshots known objective"),
        ({"snapshots": [SNAPSHOT | {"sense": []}]}, "snapshots sense: []; expected a text"),
        ({"known_values": True}, "known_values: True; expected a list"),
        ({"known_values": [[1]]}, "known_values: not an object"),
        ({"known_values": [{"path": "a"}]}, "known_values snapshots: missing"),
    ],
)
def test_a_damaged_field_is_told(folder, fields, told):
    with pytest.raises(InputError) as raised:
        edited(folder, **fields)
    assert told in str(raised.value)
    assert raised.value.file == str(folder / "comparison.json")


def at_leisure(folder, **seconds):
    """Let each solver take 20 ms for each snapshot, or the given seconds for one of them."""
    file = folder / "results.parquet"
    results = pd.read_parquet(file).assign(seconds=0.02)
    for snapshot, given in seconds.items():
        results.loc[results["snapshot"] == snapshot, "seconds"] = given
    results.to_parquet(file)


def test_trivial_snapshots_are_told_apart(folder):
    file = folder / "results.parquet"
    results = pd.read_parquet(file)
    results["objective"] = results["best_objective"]
    results.to_parquet(file)
    at_leisure(folder, a=0.01)
    table, words, hard = section(comparison_page.page(folder), "The solvers")
    assert words.startswith("Trivial snapshots of window-mkp: 1 of 2. All solvers answer them")
    assert table.caption.startswith("window-mkp, 2 snapshots.")
    assert hard.caption.startswith("window-mkp, 1 snapshot not trivial.")
    at_leisure(folder, a=0.0100001)
    assert len(section(comparison_page.page(folder), "The solvers")) == 1
    results.loc[results["solver"] == "greedy", "objective"] -= 1
    results.assign(seconds=0.001).to_parquet(file)
    assert len(section(comparison_page.page(folder), "The solvers")) == 1
    results.assign(seconds=0.001, objective=results["best_objective"]).to_parquet(file)
    assert len(section(comparison_page.page(folder), "The solvers")) == 2  # nothing is left over
    results.assign(seconds=0.001, status="feasible").to_parquet(file)
    assert len(section(comparison_page.page(folder), "The solvers")) == 1  # without a proof


def test_budgets_are_told_first(folder):
    [words] = comparison_page.page(folder).summary
    assert words == "The budget for one snapshot is 5 s; no result ended at a limit."
    file = folder / "results.parquet"
    results = pd.read_parquet(file)
    results.loc[0, "limit"] = "time"
    results.to_parquet(file)
    solvers = json.loads((folder / "comparison.json").read_text())["solvers"]
    solvers[1]["budget"] = {"seconds": None, "work": 2000}
    [words] = edited(folder, solvers=solvers).summary
    assert words.endswith("differs between the solvers; 1 of 6 results ended at a limit.")


def test_a_long_list_of_snapshots_comes_last_and_is_folded(folder):
    file = folder / "results.parquet"
    results = pd.read_parquet(file)
    many = [results.assign(snapshot=results["snapshot"] + str(k)) for k in range(LONG)]
    pd.concat(many).to_parquet(file)
    page = comparison_page.page(folder)
    assert section(page, "The snapshots")[0].long
    text = render(page)
    assert text.index("How to repeat this</a>") < text.index("The snapshots</a>")
    assert text.index("<pre>") < text.index("100 rows") < text.index("b&lt;script&gt;49")


def test_one_snapshot_is_not_plural(tmp_path):
    save_snapshot(PROBLEMS[0], tmp_path / "a.json")
    found = compare([tmp_path / "a.json"], ["greedy", "greedy-exchange"], budget=Budget(seconds=5))
    page = comparison_page.page(save(found, tmp_path / "out"))
    expected = "objective on the only snapshot. Proofs: greedy and greedy-exchange on no snapshot."
    assert expected in page.lead


def test_a_solver_alone_is_compared_with_bounds_and_known_values(tmp_path):
    for name, problem in zip("abc", (*PROBLEMS, PROBLEMS[0])):
        save_snapshot(problem, tmp_path / f"{name}.json")
    found = compare(tmp_path, ["depth-first"], budget=Budget(seconds=5))
    lead = comparison_page.page(save(found, tmp_path / "out")).lead
    assert lead.startswith(
        "window-mkp: depth-first is the only solver, compared with bounds alone."
        " Mean gap to the best bound: 0%. Proofs:"
    )
    table = "instance,lower_bound,upper_bound\na,15,15\nb,28,28\nelse,,3\nc,,\n"
    (tmp_path / "known_values.csv").write_text(table)
    found = compare(tmp_path, ["greedy"], budget=Budget(seconds=5))
    page = comparison_page.page(save(found, tmp_path / "out"))
    assert "compared with bounds and known values alone" in page.lead
    assert "It reached the known objective on 1 of 2 snapshots with one." in page.lead
    [table] = section(page, "The solvers")
    assert table.cells[0][2].key is None  # shown as a dash
    source = f"{tmp_path / 'known_values.csv'}"
    assert section(page, "The comparison")[1:] == [
        f"Known values of 3 snapshots are those of {source}.",
        f"{source}: 1 name of no instance beside it: else.",
    ]
    assert "best objective" not in section(page, "Pictures")[1].alt


@pytest.mark.parametrize(("sense", "counts"), [("max", True), ("min", False), (None, False)])
def test_a_better_objective_than_known_is_said_to_be(folder, sense, counts):
    config = json.loads((folder / "comparison.json").read_text())
    [first, second] = config["snapshots"]
    best = int(pd.read_parquet(folder / "results.parquet")["best_objective"].iloc[0])
    assert first.pop("sense") == "max"
    first |= {"known": {"objective": best - 1}} | ({"sense": sense} if sense else {})
    second["known"] = {"objective": None}
    (folder / "comparison.json").write_text(json.dumps(config))
    page = comparison_page.page(folder)
    text = f"Better than known: {first['name']} ({best}, known was {best - 1})."
    assert (text in section(page, "The comparison")) is counts
    assert ("1 snapshot with a better objective than known." in page.lead) is counts


def test_an_infeasible_snapshot_is_said_to_be(folder):
    file = folder / "results.parquet"
    results = pd.read_parquet(file)
    results[["objective", "best_objective"]] = pd.NA
    results["status"] = "infeasible"
    results.to_parquet(file)
    [table] = section(comparison_page.page(folder), "The snapshots")
    assert [row[2].text for row in table.cells] == ["infeasible"] * 2
