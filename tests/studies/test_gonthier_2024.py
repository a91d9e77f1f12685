from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

from optsched.cli import run as optsched
from optsched.errors import InputError
from optsched.metrics.sessions import consecutive_sessions, session_stretches
from optsched.registry import studies
from optsched.report.page import Verdict
from optsched.studies.gonthier_2024.claims import (
    WHOLE,
    WITH_BACKFILLING,
    WITH_FILES,
    claims,
    compared,
)
from optsched.studies.gonthier_2024.evaluation import (
    DAY_RESULTS,
    FILE_TIME,
    METRICS,
    PER_JOB,
    QUEUE,
    REDUCTIONS,
    SINGLE,
    TIME,
    all_runs,
    describe,
    prepare,
    ratios,
    read_as,
    reduction,
    single_mean,
)
from optsched.studies.gonthier_2024.figures import figures
from optsched.studies.gonthier_2024.page import (
    compare_with_authors,
    differences_table,
    queue_table,
    reduction_tables,
    session_table,
    shared_files_table,
    turned,
)
from optsched.studies.gonthier_2024.plan import (
    AS_WRITTEN,
    AUTHORS,
    DAY,
    FILES,
    HIGH,
    INTERLEAVED,
    LOADS,
    LOGS,
    LOW,
    MAIN,
    OF_LOG,
    OVER_TIME,
    READINGS,
    SAMPLE,
    SCHEDULERS,
    WORKLOADS,
    inputs,
    log_file,
    offered,
    plan,
    week_of,
)
from optsched.studies.study_folder import write_inputs
from optsched.sweeps.sweep_file import read_sweep
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

pytestmark = pytest.mark.long

GAINING = ("EFT", "LEA", "LEO", "LEM")


def of_authors(name):
    return name.replace("-", "_")


@pytest.mark.parametrize("week", PER_JOB)
def test_our_sessions_give_what_the_authors_results_of_single_jobs_say(shared, week):
    jobs = pd.read_csv(shared(f"traces/rackham/week{week}_published_per_job.csv.gz"))
    session = consecutive_sessions(jobs["session"].to_numpy())
    assert session.max() + 1 == jobs["session"].nunique()
    for name, found in PER_JOB[week].items():
        before, after = (
            session_stretches(jobs[f"{of_authors(one)}_stretch"].to_numpy(), session)
            for one in (SCHEDULERS[name].base, name)
        )
        assert describe(before / after) == pytest.approx(tuple(found), abs=6e-4)


def test_tables_i_to_iii_follow_from_the_weekly_results(shared):
    weeks = pd.read_csv(shared("traces/rackham/published_weekly_results.csv"), dtype={"week": str})
    files, cores = (
        weeks.pivot(index="week", columns="scheduler", values=metric)
        for metric in ("transfer_plus_waiting", "core_time")
    )

    def saved(table, ending=""):
        known = [table[["FCFS" + ending, name + ending]].dropna().sum() for name in GAINING]
        return [1 - sums.iloc[1] / sums.iloc[0] for sums in known]

    assert saved(files) == pytest.approx(REDUCTIONS["table_ii"], abs=6e-4)
    assert saved(cores) == pytest.approx(REDUCTIONS["table_iii"], abs=6e-5)
    assert saved(files.loc[["40"]]) == pytest.approx(REDUCTIONS["table_i"], abs=2e-3)
    assert saved(files.loc[["43"]])[1:] == pytest.approx(REDUCTIONS["saturated"][1:], abs=6e-3)
    assert saved(files, "_BF") == pytest.approx(REDUCTIONS["backfilled_transfer"], abs=6e-5)
    assert saved(cores, "_BF") == pytest.approx(REDUCTIONS["backfilled_core_time"], abs=6e-5)


def test_the_results_of_the_day_are_those_of_the_authors_files(shared):
    found = {}
    for file, ending in (("every_event", ""), ("final_code_unthrottled", ", final code")):
        with shared(f"traces/rackham/2022-09-10_results_{file}.csv").open(newline="") as stream:
            for row in csv.DictReader(stream):
                name = row["scheduler"].replace("_", "-")
                if name == "LEM" and row.get("lem_threshold", "80") == "80":
                    name = "LEM (80 %)"
                row |= {"mean_queue_time": row["mean_queue"]}
                found[name + ending] = row
    for name, result in DAY_RESULTS.items():
        assert name in SCHEDULERS
        assert {metric: found[name][metric] for metric in result} == result


def test_a_run_equals_the_authors_up_to_single_precision():
    published = DAY_RESULTS["FCFS"]
    run = {metric: float(value) for metric, value in published.items()}
    same = run | {"mean_stretch": 2.2934820, "core_time": 133_422_551.0}
    assert compare_with_authors(same, published) == (Verdict.HELD, "")
    other = same | {"transfer_time": 1.1 * run["transfer_time"], "data_reuse": 789.0}
    assert compare_with_authors(other, published) == (
        Verdict.NOT_HELD,
        "transfer time 0.1 apart",
    )


def test_means_are_of_sums_in_single_precision():
    assert single_mean(np.array([2.0**24, 1.0, 1.0])) == np.float32(2**24 / 3)


def prepared(stretches, saved, names=tuple(one.name for one in WORKLOADS if one != SAMPLE)):
    """What `prepare` returns, of runs whose stretches are those of FCFS over an improvement.

    `stretches` gives the improvements of ten sessions by scheduler and load, `saved` the transfer
    time that is saved.
    """
    rows = []
    for workload in WORKLOADS:
        if workload.name not in names:
            continue
        for name, scheduler in ((name, SCHEDULERS[name]) for name in workload.schedulers):
            plain = name.split(",")[0].split(" ")[0].replace("-CB", "-BF")
            row = dict.fromkeys((*METRICS, *SINGLE), 1.0) | {
                "workload": workload.name,
                "scheduler": name,
                "machine": workload.machine + scheduler.kept,
                **dict.fromkeys(("submitted", "evaluated", "files"), 20),
                "load": workload.load,
                "jobs": 20,
                "session_stretch": 100.0 / np.array(stretches(plain, workload.load)),
                "session_jobs": np.full(10, 2),
                "mean_queue_time": 100.0 * (1 - waits_less(name, workload.load)),
                FILE_TIME: 100.0 * (1 - saved(plain)),
                "core_time": 1000.0 * (1 - saved(plain) / 50),
            }
            shown = name == "FCFS" and workload in OVER_TIME
            rows.append(row | (drawn_over_time() if shown else {}))
    frame = pd.DataFrame(rows)
    return frame.join(pd.DataFrame([queues_of_the_day()], [0])) if DAY.name in names else frame


def drawn_over_time():
    """Four bins of half a day, of ten sessions."""
    uses = ("running", "evaluated_running", "loading", "queued", "evaluated_queued")
    arrays = {name: np.arange(4.0) for name in uses}
    arrays |= {"days": np.arange(-2, 3) / 2, "session_day": np.full(10, 0.1)}
    arrays |= {"session_hours": np.arange(1.0, 11.0)}
    return {TIME + name: array for name, array in arrays.items()}


def queues_of_the_day():
    """Two short queues, of which one is proven, and a long one; loads count once."""
    columns = {
        "jobs": [1, 12, 500],
        "load_weight": [1, 1, 1],
        "fcfs": [10, 40, 900],
        "eft": [10, 30, 900],
        "lea": [20, 60, 600],
        "leo": [10, 40, 900],
        "lem": [20, 60, 900],
        "best": [10, 30, 600],
        "bound": [10.0, 20.0, 300.0],
        "seconds": [0.1, 0.3, 0.0],
    }
    return {QUEUE + name: np.array(values) for name, values in columns.items()}


def like_the_paper(name, load):
    if load == LOW and name == "EFT":
        return [1.0] * 10
    if load == LOW and name in ("LEO", "LEM"):
        return [1.0] * 8 + [1.05, 2.0]
    by_name = {
        "FCFS": [1.0] * 10,
        "EFT": [1.0] * 9 + [1.01],
        "LEA": [1.0, 1.0, 1.5, 1.6, 1.7, 2.0, 2.1, 4.5, 5.0, 6.0],
        "LEO": [1.0, 1.0, 1.0, 1.05, 1.06, 1.07, 1.08, 1.5, 2.0, 3.0],
        "LEM": [0.99, 1.0, 1.1, 1.15, 1.2, 1.2, 1.3, 1.5, 3.0, 5.0],
        "FCFS-BF": [4.0] * 10,
        "EFT-BF": [4.0] * 9 + [4.1],
        "LEA-BF": [3.0] * 4 + [4.0] * 4 + [6.0, 10.0],
        "LEO-BF": [3.9] + [4.0] * 8 + [5.0],
        "LEM-BF": [3.9] + [4.0] * 6 + [7.4, 7.5, 8.0],
    }
    found = by_name[name]
    if load == LOW and name == "LEA":
        return [0.9] * 4 + [1.0] * 3 + [1.1, 4.5, 5.0]
    return found


def saved_in_the_paper(name):
    known = dict(zip(GAINING, REDUCTIONS["table_ii"])) | {"EFT": 0.008}
    return known.get(name.removesuffix("-BF"), 0.0)


def waits_less(name, load):
    """The share of the queue time that a scheduler saves."""
    saved = saved_in_the_paper(name.split(",")[0].split(" ")[0])
    return saved * (0.5 if load == LOW else 1.0) * (0.5 if "-BF" in name else 1.0)


def verdicts(frame):
    found = defaultdict(dict)
    for claim in claims(frame):
        for name, judged in claim.judgements.items():
            found[claim.text][claim.where, name] = judged.verdict
    return found


def test_what_the_paper_says_holds_in_results_that_look_like_it():
    found = verdicts(prepared(like_the_paper, saved_in_the_paper))
    assert len(found) == 42
    likely = {text: v for text, v in found.items() if "read as faster" not in text}
    assert len(likely) == 36
    others = {text: v for text, v in likely.items() if {*v.values()} != {Verdict.HELD}}
    # on underused clusters, the only ones with backfilling as written, LEM gains more here
    assert all("backfilling" in text for text in others)
    readings = [(WITH_BACKFILLING, name) for name in (AUTHORS, AS_WRITTEN)]
    assert {one[name] for one in others.values() for name in readings} == {Verdict.IN_PART}
    [text] = [text for text, one in others.items() if one[WHOLE, AUTHORS] != Verdict.HELD]
    assert text.startswith("FCFS and EFT gain more by backfilling")


def test_what_is_not_so_is_not_held():
    def reverse(name, load):
        return 1 / np.array(like_the_paper(name, load))

    found = verdicts(prepared(reverse, lambda name: -saved_in_the_paper(name)))
    for text in found:
        if any(word in text for word in ("LEM is better", "saves most", "All save")):
            assert set(found[text].values()) == {Verdict.NOT_HELD}, text


def test_both_clusters_of_a_log_count_as_one():
    """LEM is better in all sessions of two logs and on the day, in none of the other two logs."""
    better = {DAY.name, *(one.name for log in ("RICC", "Gaia") for one in OF_LOG[log])}
    frame = prepared(lambda name, load: [1.0] * 10, lambda name: 0.0)
    lem = frame["scheduler"].isin(["LEM", "LEM, as written"])
    worse = lem & ~frame["workload"].isin(better)
    frame.loc[worse, "session_stretch"] = frame.loc[worse, "session_stretch"].map(lambda a: 2 * a)
    [claim] = [
        one
        for one in claims(frame)
        if one.text.startswith("LEM is better than FCFS in 75%")
        and "not worse" in one.text
        and one.where == WHOLE
    ]
    assert claim.judgements[AUTHORS].verdict is Verdict.NOT_DECIDED
    assert claim.judgements[AUTHORS].why.startswith("LEM 60.0%")


def test_a_reading_has_the_schedulers_of_the_paper():
    frame = prepared(like_the_paper, saved_in_the_paper)
    for name, reading in READINGS.items():
        own = read_as(frame, reading)
        assert set(own["scheduler"]) <= set(MAIN), name
    written = read_as(frame, READINGS[AS_WRITTEN])
    with_backfilling = written[written["scheduler"] == "LEA-BF"]["workload"]
    assert [name for name in with_backfilling if name.startswith("RICC")] == []
    assert len(with_backfilling) == 4


def test_readings_are_compared_on_the_same_workloads():
    frame = prepared(like_the_paper, saved_in_the_paper)
    for where, read in compared(frame).items():
        own = [set(one["workload"].str.removesuffix(", interleaved")) for one in read.values()]
        assert own[0] == own[1], where
    assert len(own[0]) == 6
    found = claims(frame)
    assert {one.where for one in found} == {WHOLE, WITH_BACKFILLING, WITH_FILES}
    backfilled = [one for one in found if one.where == WITH_BACKFILLING]
    assert [{*one.judgements} for one in backfilled] == [{AUTHORS, AS_WRITTEN}] * 12
    assert not any("-BF" in one.text for one in found if one.where == WITH_FILES)


def test_a_reading_is_not_judged_by_the_workloads_it_was_run_on():
    """LEM is worse on the day and RICC alone, which have no runs with files as written."""
    frame = prepared(like_the_paper, saved_in_the_paper)
    worse = frame["workload"].str.startswith((DAY.name, "RICC"))
    worse &= frame["scheduler"].str.startswith("LEM")
    frame.loc[worse, "session_stretch"] = frame.loc[worse, "session_stretch"].map(lambda a: 9 * a)
    better = verdicts(frame)[
        "LEM is better than FCFS in 75% of the sessions, read as not worse (section VI)"
    ]
    assert better[WHOLE, AUTHORS] is not Verdict.HELD
    assert better[WITH_FILES, AUTHORS] is better[WITH_FILES, FILES] is Verdict.HELD
    assert turned(claims(frame), FILES)["differ"] == 0


def test_verdicts_that_turn_are_counted():
    def otherwise(name, load):
        return 1 / np.array(like_the_paper(name, load))

    frame = prepared(like_the_paper, saved_in_the_paper)
    other = prepared(otherwise, saved_in_the_paper)
    written = frame["scheduler"].str.endswith("as written")
    frame.loc[written, "session_stretch"] = other.loc[written, "session_stretch"]
    found = turned(claims(frame))
    assert found["claims"] == 42
    texts = list(found["opposite"])
    assert any(text.startswith("LEM is better than FCFS in 87.5%") for text in texts)
    assert all(pair == [Verdict.HELD, Verdict.NOT_HELD] for pair in found["opposite"].values())
    assert len(texts) <= found["differ"] < found["claims"]


def test_each_difference_of_the_paper_is_beside_the_program():
    frame = prepared(like_the_paper, saved_in_the_paper)
    at = (frame["workload"] == DAY.name) & (frame["scheduler"] == "LEO, opportune=node")
    frame.loc[at, "mean_stretch"] = 1.25
    records = {record["scheduler"]: record for record in differences_table(frame, DAY.name)}
    assert records["LEO"]["opportune=node"].note == "+25.0%"
    assert records["LEO"]["kept=next"].note == "+0.0%"
    assert records["LEA"]["opportune=node"] is None
    assert records["FCFS"]["loads=start"] is None


def test_queues_are_compared_with_the_best_plans_and_bounds():
    short, long = queue_table(prepared(like_the_paper, saved_in_the_paper))
    assert (short["queues"], short["proven"].text, short["bound / best known"]) == (2, "50%", 0.75)
    assert short["above the best known", "FCFS"].text == "25%"
    assert short["as good", "EFT"].text == "100%"
    assert (long["jobs of a queue"], long["above the best known", "LEA"].text) == (
        "more than 100",
        "0%",
    )


def test_files_that_are_shared_across_jobs_of_others_stand_beside_the_others():
    frame = prepared(like_the_paper, saved_in_the_paper)
    records = shared_files_table(frame)
    assert len(records) == 2 * sum(map(len, INTERLEAVED.values()))
    assert [one["a file is shared"] for one in records[:4]] == 2 * ["consecutive"] + 2 * [
        "interleaved"
    ]
    assert records[0]["LEA", "transfer time saved"].text == "17.1%"


def test_sums_over_workloads_are_compared_with_the_same_backfilling():
    frame = prepared(like_the_paper, saved_in_the_paper)
    assert reduction(frame, "LEA", FILE_TIME) == pytest.approx(0.171)
    assert reduction(frame, "LEM-BF", FILE_TIME) == pytest.approx(0.071)
    assert len(ratios(read_as(frame), "LEM")) == 90
    assert ratios(frame, "LEM-BF")[:10] == pytest.approx(
        np.array(like_the_paper("LEM-BF", None)) / 4
    )
    tables = reduction_tables(read_as(frame))
    assert [table["records"][-1]["workload"] for table in tables] == ["published"] * 4
    assert tables[1]["records"][0]["without backfilling", "LEA"].text == "17.1%"
    for name, one in SCHEDULERS.items():
        assert SCHEDULERS[one.base].base == one.base, name
        assert SCHEDULERS[one.base].solver == "fcfs", name
    assert set(all_runs(frame)["base"]) == {SCHEDULERS[name].base for name in SCHEDULERS}


def test_the_page_has_all_parts_and_says_what_was_absent():
    absent = {one.name for one in OF_LOG["CTC"]} | {SAMPLE.name}
    names = [one.name for one in WORKLOADS if one.name not in absent]
    frame = prepared(like_the_paper, saved_in_the_paper, names)
    drawn = dict.fromkeys(figures(frame), "<svg/>")
    assert set(drawn) == {f"figure-{name}" for name in ("2-7", "3-6", "4-5", 8, 9, 10, 11)}
    made = studies["gonthier-2024"]().page(frame, claims(frame), drawn, {}, quick=False)
    assert made.sections[0].title == "The claims"
    assert "CTC-SP2-1996-3.1-cln.swf.gz" in str(made)
    assert "UniLu-Gaia-2014-1.swf.gz" not in str(made)
    summary = " ".join([made.lead, *made.summary])
    assert "nan" not in summary
    assert "Of 42 claims" in summary
    published = [one["workload"] for one in session_table(frame, "") if "week" in one["workload"]]
    assert len(published) == 12


def test_a_failed_run_ends_the_evaluation(tmp_path):
    with pytest.raises(InputError, match=r"1 run of the study failed; the first: no memory"):
        prepare(pd.DataFrame({"error": [None, "no memory"]}), tmp_path)


def test_no_two_schedulers_are_the_same_and_the_policy_takes_them(shared, tmp_path):
    files = {one.file for one in WORKLOADS}
    write_inputs({file: inputs([], quick=True)[SAMPLE.file] for file in files}, tmp_path)
    study = read_sweep(plan([shared("traces")], tmp_path / "inputs", quick=False))
    planned = [one for one in WORKLOADS if one != SAMPLE]
    # the same trace for all, so runs with files as written are those of the weeks
    assert len(study.runs) == sum(len(one.schedulers) for one in planned if one.sharing[0] == "c")
    assert study.keep == "jobs"
    assert list(SCHEDULERS)[: len(MAIN)] == list(MAIN)


def test_logs_that_are_not_there_are_left_out(shared, tmp_path):
    with pytest.raises(InputError, match="rackham"):
        plan([tmp_path], tmp_path, quick=False)
    file = LOGS["CTC"]["file"]
    (tmp_path / file).symlink_to(shared(f"traces/{file}"))
    made = inputs([tmp_path], quick=False)
    assert set(made) == {log_file("CTC"), log_file("CTC", "interleaved")}
    shared_files, others = (made[log_file("CTC", how)] for how in ("interleaved", "consecutive"))
    assert np.array_equal(shared_files.submit, others.submit)
    files = (len(np.unique(one.annotations["file"])) for one in (shared_files, others))
    assert next(files) < next(files)
    runs = plan([tmp_path], tmp_path / "inputs", quick=False)["runs"]
    forms = {LOW: 4, HIGH: 3}  # with full profiles on the underused cluster only
    interleaved = 2 * len(MAIN) // 2
    assert len(runs) == sum(forms.values()) * len(MAIN) // 2 + interleaved


@pytest.mark.parametrize("log", LOGS)
def test_clusters_have_the_loads_that_they_are_named_for(shared, log):
    trace = week_of(read_trace(shared(f"traces/{LOGS[log]['file']}")), LOGS[log]["week"])
    for load, nodes in zip(LOADS, LOGS[log]["nodes"]):
        assert offered(trace, nodes) == pytest.approx(load, abs=0.02)
    assert trace.processors.max() <= 20


def test_the_day_is_written_as_it_was_read(shared, tmp_path):
    [trace] = [inputs([_only_the_day(shared, tmp_path)], quick=False)[DAY.file]]
    assert isinstance(trace, Trace)
    assert np.bincount(trace.annotations["category"] + 2).tolist() == [2041, 865, 10201, 1511, 7201]


def _only_the_day(shared, tmp_path):
    folder = tmp_path / "rackham"
    folder.mkdir()
    name = "2022-09-10_V10000_anonymous.txt.gz"
    folder.joinpath(name).symlink_to(shared(f"traces/rackham/{name}"))
    with gzip.open(folder / name) as stream:
        assert stream.readline().startswith(b"{ id:")
    return tmp_path


def test_the_quick_study_from_the_command_line(tmp_path, capsys):
    folder = tmp_path / "quick"
    assert optsched(["study", "gonthier-2024", "--quick", "--workers", "1", "-o", str(folder)]) == 0
    about = json.loads((folder / "study.json").read_text())
    assert (about["study"], about["quick"]) == ("gonthier-2024", True)
    written = (folder / "report.html").read_text()
    assert "A quick look at a generated workload" in written
    assert "The claims" not in written
    rows = pd.read_csv(folder / "schedulers.csv")
    assert rows["scheduler"].tolist() == list(SCHEDULERS)
    assert (rows["evaluated"] == 161).all()
    fcfs = rows.set_index("scheduler").loc["FCFS"]
    assert (fcfs["median"], fcfs["mean"], fcfs["faster"]) == (1, 1, 0)

    (folder / "report.html").unlink()
    assert optsched(["report", str(folder)]) == 0
    assert (folder / "report.html").read_text() == written
    capsys.readouterr()
