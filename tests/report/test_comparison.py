"""The page of a comparison of solvers, its curves and pictures."""

import json
import shlex
import shutil
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.looks import change_json, change_table, section, texts

from optsched import compare, save
from optsched.cli import run as optsched
from optsched.errors import InputError
from optsched.models import WindowMKP
from optsched.models.snapshot_file import save_snapshot
from optsched.registry import solvers
from optsched.report import comparison_page, style
from optsched.report import comparison_plots as plots
from optsched.report.page import LONG, render, write_page
from optsched.solvers.comparison.tables import INCUMBENT_COLUMNS, RESULT_COLUMNS, primal_gap
from optsched.solvers.result import Budget

INF = np.inf
TWELVE = [f"solver-{number:02d}" for number in range(12)]
PROBLEMS = [WindowMKP([6, 4, 3, 1, 2], [3, 6, 6]), WindowMKP([9, 7, 6, 5, 3], [12, 10, 8])]
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


def test_the_lead_says_who_was_best_and_the_tables_hold_what_the_files_hold(folder):
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
    assert write_page(comparison_page.page(folder), folder).read_text() == text


def test_contradictions_and_budgets_come_first_and_skipped_pairs_are_said(folder):
    page = stated(folder, contradictions=["a: one claims <13>"], skipped=["two was not asked"])
    assert page.lead.startswith("1 contradiction: a: one claims <13>. ")
    assert page.sections[0].title == "Contradictions"
    assert page.sections[0].parts[1].rows == [["a: one claims <13>"]]
    assert section(page, "The comparison")[-1] == "two was not asked"
    [words] = page.summary
    assert words == "The budget for one snapshot is 5 s; no result ended at a limit."
    answered(folder, lambda results: results.assign(limit=["time", *results["limit"][1:]]))
    other = {"seconds": None, "work": 2000}
    [words] = stated(folder, lambda config: config["solvers"][1].update(budget=other)).summary
    assert words.endswith("differs between the solvers; 1 of 6 results ended at a limit.")


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


def test_the_command_repeats_the_comparison_and_is_missing_where_none_does(folder, tmp_path):
    words = shlex.split(comparison_page.page(folder).repeat)
    assert words[:2] == ["optsched", "compare"]
    assert optsched([*words[1:-1], str(tmp_path / "again")]) == 0
    assert read(folder) == read(tmp_path / "again")
    first = read(folder)["snapshots"][0]  # a crowded folder stands for its snapshots
    many = [first | {"path": f"met/{k}.json"} for k in range(comparison_page.MOST_PATHS + 1)]
    words = shlex.split(stated(folder, snapshots=[*many, first]).repeat)
    assert words[2:4] == ["met", first["path"]]
    assert comparison_page.page(save(compare(PROBLEMS, ["greedy"]), tmp_path / "x")).repeat is None
    changed = stated(folder, lambda config: config["solvers"][0].update(options={"threads": 2}))
    assert changed.repeat is None


SNAPSHOT = {"name": "a", "path": "a", "kind": "window-mkp", "size": "3x2"}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"solvers": 3}, "solvers: 3; expected a list"),
        ({"solvers": [3]}, "solvers: not an object"),
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


def incumbents(*rows):
    frame = pd.DataFrame(rows, columns=["snapshot", "seconds", "objective"])
    return frame.astype({"seconds": "float64", "objective": "Int64"})


def test_primal_gaps_and_their_mean_by_hand():
    pairs = [(10, 10), (5, 10), (20, 10), (0, 0), (0, 7), (-5, 5), (-5, -10)]
    assert [primal_gap(*pair) for pair in pairs] == [0, 0.5, 0.5, 0, 1, 1, 0.5]
    rows = [("a", 1.0, 5), ("a", 3.0, 10), ("b", 2.0, 4), ("b", 3.0, 8), ("other", 0.1, 1)]
    found = plots.mean_primal_gap(incumbents(*rows), {"a": 10, "b": 8, "unsolved": 3})
    assert found[0].tolist() == [1, 2, 3]
    assert found[1].tolist() == pytest.approx([(0.5 + 1 + 1) / 3, (0.5 + 0.5 + 1) / 3, 1 / 3])
    seconds, gap = plots.mean_primal_gap(incumbents(), {"a": 10})
    assert (len(seconds), len(gap)) == (0, 0)


def test_the_performance_profile_by_hand():
    seconds = np.array([[1.0, 2.0], [4.0, 1.0], [3.0, INF], [INF, INF]])
    one, other = plots.performance_profile(seconds)
    assert [curve.tolist() for curve in one] == [[1, 4], [0.5, 0.75]]
    assert [curve.tolist() for curve in other] == [[1, 2], [0.25, 0.5]]


TIME = st.one_of(st.just(INF), st.floats(1e-9, 1e4))


@given(st.lists(st.tuples(TIME, TIME, TIME), min_size=1, max_size=20))
def test_profiles_rise_from_the_share_of_wins_to_the_share_solved(table):
    times = np.maximum(table, plots.SHORTEST)
    solved = np.isfinite(times)
    wins = solved & (times == times.min(axis=1, keepdims=True))
    for number, (factor, share) in enumerate(plots.performance_profile(np.array(table))):
        assert (np.diff(factor) > 0).all()
        assert (np.diff(share) > 0).all()
        assert (factor >= 1).all()
        at_one = share[factor == 1]
        assert (at_one[0] if len(at_one) else 0) == wins[:, number].mean()
        assert (share[-1] if len(share) else 0) == solved[:, number].mean()


def test_times_to_proof_and_to_the_best_objective():
    rows = [("p", "zeta", "optimal", 9.0, 10), ("p", "alpha", "feasible", 1.0, 10)]
    rows += [("q", "zeta", "infeasible", 2.0, None), ("q", "alpha", "no-solution", 5.0, None)]
    columns = ["snapshot", "solver", "status", "seconds", "best_objective"]
    results = pd.DataFrame(rows, columns=columns).astype({"best_objective": "Int64"})
    found = incumbents(("p", 2.0, 10), ("p", 3.0, 10), ("p", 1.0, 9))
    found["solver"] = ["zeta", "zeta", "alpha"]
    proof = plots.seconds_to_proof(results)
    assert proof.columns.tolist() == ["zeta", "alpha"]
    assert proof.to_numpy().tolist() == [[9.0, INF], [2.0, INF]]
    assert plots.seconds_to_best(results, found).to_numpy().tolist() == [[2.0, INF], [2.0, INF]]


def compared(solvers, snapshots=6, kinds=("window-mkp",)):
    """Return a comparison with made-up answers: what the pictures need of one."""
    draw = np.random.default_rng(0)
    results, incumbents = [], []
    for kind in kinds:
        for name in (f"{kind}-{number}" for number in range(snapshots)):
            for rank, solver in enumerate(solvers):
                seconds = float(10.0 ** draw.uniform(-5, 1))
                objective = 100 - int(draw.integers(0, 2 + rank))
                status = "optimal" if objective == 100 and rank % 2 else "feasible"
                row = {"snapshot": name, "kind": kind, "solver": solver, "status": status}
                row |= {"objective": objective, "best_objective": 100, "verified": True}
                results.append(row | {"seconds": seconds})
                for share, value in ((0.2, objective // 2), (0.9, objective)):
                    incumbents.append((name, kind, solver, share * seconds, value, None))
    frame = pd.DataFrame(results).reindex(columns=list(RESULT_COLUMNS))
    return SimpleNamespace(
        results=frame.astype({"objective": "Int64", "best_objective": "Int64"}),
        incumbents=pd.DataFrame(incumbents, columns=list(INCUMBENT_COLUMNS)),
        config={"solvers": [{"name": solver} for solver in solvers]},
    )


def test_both_pictures_are_the_same_to_the_byte_and_name_every_solver(tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        paths = plots.draw(compared(TWELVE), folder)
        names = [f"{name}.{kind}" for name in ("quality", "profile") for kind in ("svg", "png")]
        assert [path.name for path in paths] == names
    for path in paths:
        assert path.read_bytes() == (folders[0] / path.name).read_bytes()
    for path in (paths[0], paths[2]):
        text = "".join(ElementTree.parse(path).getroot().itertext())
        assert all(solver in text for solver in TWELVE)
        assert path.stat().st_size < 500_000


def test_a_solver_keeps_its_stroke_in_all_panels():
    strokes = style.strokes(list(solvers)).items()
    solid = [name for name, stroke in strokes if stroke.dashes == style.DASHES[0]]
    comparison = compared(solid[:5], kinds=("window-mkp", "box-placement"))
    drawn = [
        [(line.get_color(), line.get_linestyle()) for line in axes.lines]
        for figure in (plots.quality(comparison), plots.profile(comparison))
        for axes in figure.axes
    ]
    assert len(drawn) == 2 + 4
    assert all(lines == drawn[0] for lines in drawn)
    assert len(set(drawn[0])) == 5


def test_axes_show_gaps_of_nothing_curves_along_100_percent_and_solvers_that_found_nothing(
    tmp_path,
):
    """A solver that is the fastest everywhere goes up at 1."""
    single = compared(TWELVE[:1])
    [quality], profiles = plots.quality(single).axes, plots.profile(single).axes
    assert quality.get_ylabel().endswith("(linear below 0.01%)")
    assert texts(quality.get_yticklabels())[:2] == ["0%", "0.01%"]
    for axes in profiles:
        assert axes.get_xlim()[0] < 1
        assert axes.get_ylim()[0] < 0 < 1 < axes.get_ylim()[1]
    comparison = compared(TWELVE[:2])
    comparison.results[["objective", "best_objective"]] = pd.NA
    comparison.results["status"] = "no-solution"
    comparison.incumbents = comparison.incumbents.iloc[:0]
    assert len(plots.draw(comparison, tmp_path)) == 4


def test_curves_end_where_the_answers_do():
    comparison = compared(TWELVE[:2], snapshots=20)
    [quality] = plots.quality(comparison).axes
    proof, best = plots.profile(comparison).axes
    for solver, *lines in zip(TWELVE[:2], quality.lines, proof.lines, best.lines):
        own = comparison.results[comparison.results["solver"] == solver]
        gaps, proven, reached = (line.get_ydata() for line in lines)
        assert gaps[0] == 1
        assert gaps[-1] == pytest.approx(float((1 - own["objective"] / 100).mean()))
        assert (np.diff(gaps) <= 1e-12).all()
        assert proven[-1] == pytest.approx((own["status"] == "optimal").mean())
        assert reached[-1] == pytest.approx((own["objective"] == 100).mean())
