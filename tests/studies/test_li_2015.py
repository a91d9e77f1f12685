from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from optsched.cli import run as optsched
from optsched.errors import InputError
from optsched.metrics.node_time import PARTS
from optsched.registry import studies
from optsched.report import style
from optsched.report.page import Verdict
from optsched.studies.li_2015.claims import claims
from optsched.studies.li_2015.evaluation import (
    METRICS,
    all_runs,
    of,
    prepare,
    read_as,
    run_as,
    variants,
)
from optsched.studies.li_2015.figures import figures
from optsched.studies.li_2015.page import (
    change_table,
    migration_table,
    proven_share,
    same_schedules,
    search_table,
)
from optsched.studies.li_2015.plan import (
    CEILING,
    FULL,
    LOAD,
    LOADS,
    LOGS,
    MAIN,
    OWN,
    READINGS,
    SEEDS,
    SINGLE,
    SMALL,
    SYSTEM,
    VARIANTS,
    Modeled,
    inputs,
    jobs_of,
    plan,
    workload_of,
)
from optsched.studies.offered import offered_by
from optsched.studies.results import ALL, by_workload, with_parts
from optsched.studies.study_folder import write_inputs
from optsched.sweeps.sweep_file import read_sweep
from optsched.traces.reading import write_trace
from optsched.traces.trace import Trace

ONLY_BACKFILLING, ONLY_MIGRATION = "no migration", "at start, no backfilling"
ONLY_PROACTIVE = "proactive, no backfilling"
NEITHER = "no migration, no backfilling"
PROACTIVE = "proactive, window 100"
EASY, EASY_MIGRATION = "EASY on boxes", "EASY on boxes, migration"

FILES = [Modeled(load, seed).file for load, seed in itertools.product(LOADS, SEEDS)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A folder with a small trace for every modeled workload."""
    folder = tmp_path_factory.mktemp("inputs")
    trace = Trace(
        job_id=np.array([1, 2]),
        submit=np.array([0, 100_000]),
        runtime=np.array([90_000, 100]),
        requested_time=np.array([90_000, 100]),
        processors=np.array([27_648, 1]),
    )
    for file in FILES:
        write_trace(trace, folder / file)
    return folder


def results(figures_of):
    """Results in which a run has the held, running and fragmented shares that `figures_of` says.

    It takes the variant, and returns these three, the mean wait and the nominal seconds.
    """
    settings = sorted({name for variant in VARIANTS.values() for name in variant.settings})
    rows = []
    for file, name in itertools.product(FILES, [*VARIANTS, CEILING]):
        held, running, fragmented, wait, seconds = figures_of(name)
        row = dict.fromkeys(METRICS, 1.0) | dict.fromkeys(f"settings.{s}" for s in settings)
        row |= {
            "run": f"{file} {name}",
            "trace": f"elsewhere/{file}",
            "policy": "easy" if name == CEILING else "torus",
            "machine": f"nodes:{FULL.nodes}" if name == CEILING else FULL.spec,
            "solver": None,
            "error": None,
            "jobs": 2,
            "mean_wait": wait,
            "nominal_seconds": seconds,
        }
        if name == CEILING:
            row |= dict.fromkeys(("occupied", "useful", "recorded_from"))
        else:
            variant = VARIANTS[name]
            row |= {f"settings.{s}": value for s, value in variant.settings.items()}
            row["machine"] = FULL.spec_of(variant)
            row |= {"solver": variant.solver.get("solver"), "occupied": held, "useful": running}
            row |= {
                "recorded_node_time.running": running,
                "recorded_node_time.internal": held - running,
                "recorded_node_time.fragmented": fragmented,
                "recorded_node_time.drained": 1 - held - fragmented,
                "recorded_held.90": 0.75,
                "recorded_held.85": 0.25,
                "recorded_running.85": 1.0,
            }
        rows.append(row)
    return pd.DataFrame(rows)


LIKE_THE_PAPER = dict.fromkeys(VARIANTS, (0.90, 0.88, 0.02, 100.0, 1.0)) | {
    name: (0.90 + 0.005 * more, 0.88 + 0.005 * more, 0.02, 100.0, 1.0 + more)
    for windows in (OWN, [READINGS["proactive"][name] for name in OWN])
    for more, name in enumerate(windows)
}
LIKE_THE_PAPER |= {
    ONLY_BACKFILLING: (0.8, 0.78, 0.1, 400.0, 0.5),
    **dict.fromkeys((ONLY_MIGRATION, ONLY_PROACTIVE), (0.7, 0.68, 0.1, 800.0, 0.5)),
    NEITHER: (0.6, 0.58, 0.2, 1600.0, 0.5),
    EASY: (0.85, 0.84, 0.1, 50.0, 0.5),
    CEILING: (0, 0, 0, 25.0, 0.0),
}


def verdicts(frame):
    return [[judged.verdict for judged in claim.judgements.values()] for claim in claims(frame)]


def test_what_the_paper_says_holds_in_results_that_look_like_it(tiny):
    frame = prepare(results(LIKE_THE_PAPER.__getitem__), tiny)
    assert list(by_workload(frame)) == ["modeled, load 0.9", "modeled, load 1.1"]
    judged = [[Verdict.HELD]] * 7 + [[Verdict.NOT_JUDGED]] * 2
    assert verdicts(frame) == judged * 2
    assert [claim.where for claim in claims(frame)] == ["as it starts"] * 9 + ["proactive"] * 9


def test_each_reading_is_judged_by_its_own_variants(tiny):
    worse = dict.fromkeys(READINGS["proactive"].values(), (0.5, 0.4, 0.3, 1.0, 1.0))
    frame = prepare(results((LIKE_THE_PAPER | worse).__getitem__), tiny)
    read = read_as(frame, "proactive")
    assert of(read, SYSTEM, "useful").tolist() == of(frame, PROACTIVE, "useful").tolist()
    assert of(read, EASY, "useful").tolist() == of(frame, EASY, "useful").tolist()
    assert PROACTIVE not in set(read["variant"])
    assert read_as(frame, "as it starts")["variant"].equals(frame["variant"])
    assert (run_as(read, SYSTEM), run_as(read, EASY)) == (PROACTIVE, EASY)
    [first, second] = [c for c in claims(frame) if "Figure 5" in c.text]
    assert [j.verdict for j in first.judgements.values()] == [Verdict.HELD]
    assert [j.verdict for j in second.judgements.values()] == [Verdict.NOT_HELD]


def test_what_is_not_so_is_not_held(tiny):
    windows = {*READINGS["proactive"], *READINGS["proactive"].values()} - {SYSTEM, PROACTIVE}
    reverse = {
        **dict.fromkeys(VARIANTS, (0.6, 0.5, 0.3, 100.0, 1.0)),
        **dict.fromkeys(windows, (0.7, 0.6, 0.2, 100.0, 1.0)),
        ONLY_BACKFILLING: (0.7, 0.6, 0.3, 90.0, 1.0),
        **dict.fromkeys((ONLY_MIGRATION, ONLY_PROACTIVE), (0.8, 0.7, 0.1, 80.0, 1.0)),
        CEILING: (0, 0, 0, 25.0, 0.0),
    }
    frame = prepare(results(reverse.__getitem__), tiny)
    judged = [[Verdict.NOT_HELD]] * 7 + [[Verdict.NOT_JUDGED]] * 2
    assert verdicts(frame) == judged * 2


@pytest.mark.parametrize(
    ("unrecorded", "claim", "verdict"),
    [
        (SYSTEM, "around 90%", Verdict.NOT_DECIDED),
        ("at start, window 500", "similar", Verdict.IN_PART),
    ],
)
def test_runs_that_record_nothing_decide_nothing(tiny, unrecorded, claim, verdict):
    table = results(LIKE_THE_PAPER.__getitem__)
    nothing = table["trace"].str.contains("load0.9") & table["run"].str.endswith(f" {unrecorded}")
    table.loc[nothing, ["occupied", "useful"]] = np.nan
    [found] = [
        c.judgements[ALL].verdict
        for c in claims(prepare(table, tiny))
        if c.where == "as it starts" and claim in c.text
    ]
    assert found == verdict


def test_each_run_is_known_by_its_settings_and_solver(tiny):
    table = results(LIKE_THE_PAPER.__getitem__)
    frame = prepare(table.sample(frac=1, random_state=0, ignore_index=True), tiny)
    assert all(
        run == f"{file} {name}" for run, file, name in frame[["run", "file", "variant"]].values
    )
    assert variants(frame) == [*MAIN, CEILING]
    assert of(frame, SYSTEM, "recorded_held.90").tolist() == [0.75] * 6
    assert of(frame, SYSTEM, "recorded_held.40").tolist() == [0] * 6
    assert of(frame, CEILING, "recorded_held.90").isna().all()
    assert frame["offered"].iloc[0] == pytest.approx(0.9 + 100 / 27_648 / 1e5)
    rows = all_runs(frame)
    assert rows["variant"].iloc[: len(MAIN)].tolist() == list(MAIN)
    assert len(rows) == 6 * (len(VARIANTS) + 1)


def test_what_migration_and_changes_are_worth_is_shown(tiny):
    frame = prepare(results(LIKE_THE_PAPER.__getitem__), tiny)
    [row] = [r for r in migration_table({"all": frame}) if EASY in r["variant"]]
    assert [one.text for one in list(row.values())[2:5]] == ["+4.0", "-8.0", "-100.0%"]
    by_change = {r["change"]: r for r in change_table(frame, SYSTEM)}
    assert by_change[ONLY_BACKFILLING]["ratio of the", "wait"].text == "4.00"
    assert by_change["(EASY on nodes)"]["ratio of the", "wait"].text == "0.25"
    found = {r["variant"]: r for r in search_table({"all": frame})}
    assert found["at start, CP-SAT placement, budget 0.05"]["points, running"].text == "+0.0"
    assert same_schedules(frame, "proactive, one victim", "at start, one victim")
    assert not same_schedules(frame, SYSTEM, NEITHER)


@pytest.mark.parametrize(
    ("variant", "shown"),
    [
        ("at start, position search, budget 2,000", "at most 25%"),
        ("EASY, position search, budget 2,000", "at most 25%"),
        ("at start, CP-SAT placement, budget 0.05", "at least 16.67%"),
        ("EASY, CP-SAT placement, budget 0.05", "16.67%"),
        ("at start, exact detection", "\N{EN DASH}"),
    ],
)
def test_what_is_known_of_the_share_of_proofs_is_shown(variant, shown):
    """Of 100 problems, 10 are proven and 40 have no answer: at least as many are migrations."""
    runs = pd.DataFrame({"problems": [60, 40], "unproven": [55, 35], "unanswered": [40, None]})
    assert proven_share(runs, VARIANTS[variant]).text == shown


@pytest.mark.long
def test_the_page_has_all_parts_also_of_runs_that_record_nothing(tiny):
    table = results(LIKE_THE_PAPER.__getitem__)
    table.loc[table["settings.depth"] == 500, ["occupied", "useful", "recorded_from"]] = np.nan
    frame = prepare(table, tiny)
    drawn = dict.fromkeys(figures(frame), "<svg/>")
    assert set(drawn) == {"figure-5", "figure-6", "figure-7", "node-time", "waits"}
    made = studies["li-2015"]().page(frame, claims(frame), drawn, {}, quick=False)
    assert made.sections[0].title == "The claims"
    assert all(log["file"] in str(made) for log in LOGS.values())  # they are not there
    assert "nan" not in made.lead


def test_a_failed_run_ends_the_evaluation(tmp_path):
    with pytest.raises(InputError, match=r"1 run of the study failed; the first: no memory"):
        prepare(pd.DataFrame({"error": [None, "no memory"]}), tmp_path)


def test_all_runs_are_there(shared, tmp_path):
    files = (*FILES, *(f"{name}.swf.gz" for name in LOGS))
    write_inputs(dict.fromkeys(files, _two_jobs()), tmp_path)
    table = plan([shared("traces")], tmp_path / "inputs", quick=False)
    rows = pd.DataFrame(
        [
            {"file": trace.rpartition("/")[2], "variant": name}
            for name, run in zip([*VARIANTS, CEILING], table["runs"], strict=True)
            for trace in run["trace"]
        ]
    )
    counts = rows.groupby("variant").size()
    assert set(counts[[*MAIN, CEILING]]) == {len(FILES) + len(LOGS)}
    assert set(counts[list(SINGLE)]) == {len(SEEDS) + 1 + len(LOGS)}
    # no two variants are the same, and each is one that the policy takes
    sample = [run | {"trace": run["trace"][:1]} for run in table["runs"]]
    study = read_sweep(table | {"runs": sample})
    assert (len(study.runs), study.duplicates) == (len(VARIANTS) + 1, 0)


def _two_jobs():
    return Trace(
        job_id=np.array([1, 2]),
        submit=np.array([0, 10]),
        runtime=np.array([10, 10]),
        requested_time=np.array([10, 10]),
        processors=np.array([1, 2]),
    )


def test_logs_that_are_not_there_are_left_out(tmp_path):
    assert set(inputs([tmp_path], quick=True)) == {Modeled(LOADS[-1], SEEDS[0]).file}
    table = plan([tmp_path], tmp_path / "inputs", quick=False)
    assert {workload_of(trace.rpartition("/")[2]) for trace in table["runs"][0]["trace"]} == {
        f"modeled, load {load:g}" for load in LOADS
    }


def test_workloads_offer_what_they_are_named_for(shared):
    made = inputs([shared("traces")], quick=True)
    for file, trace in made.items():
        wanted = LOADS[-1] if file.startswith("modelled") else LOAD
        assert offered_by(trace, SMALL.nodes).load == pytest.approx(wanted, rel=0.01)
        assert trace.processors.max() <= SMALL.nodes
    assert [jobs_of(file) for file in made] == ["seed 1", "Mira.swf.gz"]


def test_parts_of_metrics_become_columns(tmp_path):
    for run, summary in {"a": {"held": {"80": 1.0}}, "b": {"held": {"85": 0.5, "90": 0.5}}}.items():
        (tmp_path / run).mkdir()
        (tmp_path / run / "summary.json").write_text(json.dumps(summary))
    table = pd.DataFrame({"run": ["a", "b", "failed"], "error": [None, None, "why"]})
    found = with_parts(table, ("held", "none"), tmp_path)
    assert found.columns.tolist() == ["run", "error", "held.80", "held.85", "held.90"]
    assert found["held.85"].fillna(-1).tolist() == [-1, 0.5, -1]


@pytest.mark.long
def test_the_quick_study_from_the_command_line(shared, tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(style.METADATA, ".png")  # as long in drawing as the others
    folder = tmp_path / "quick"
    quick = ["study", "li-2015", "--traces", str(shared("traces")), "--quick", "--workers", "1"]
    assert optsched([*quick, "-o", str(folder)]) == 0
    about = json.loads((folder / "study.json").read_text())
    assert (about["study"], about["quick"]) == ("li-2015", True)
    written = (folder / "report.html").read_text()
    assert "A quick look at a small torus" in written
    assert "The claims" not in written
    rows = pd.read_csv(folder / "variants.csv")
    assert set(rows["variant"]) == {*VARIANTS, CEILING}
    torus = rows[rows["variant"] != CEILING]
    parts = torus[[f"recorded_node_time.{part}" for part in PARTS]].sum(axis=1)
    assert parts.to_numpy() == pytest.approx(1)
    assert (torus.loc[torus["variant"] == EASY_MIGRATION, "migrations"] > 0).any()
    capsys.readouterr()
