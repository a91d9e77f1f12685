"""The study in studies/gonthier-2024: published numbers, runs, traces, and the means over logs."""

import csv
import gzip
import sys

import numpy as np
import pandas as pd
import pytest

from optsched.cli import run as optsched
from optsched.content import bundled
from optsched.errors import InputError
from optsched.metrics.stretch import session_stretches, window_sessions
from optsched.studies.folder import StudyFolder
from optsched.studies.running import looked_at, study_runs
from optsched.sweeps.sweep_file import read_sweep
from optsched.traces.reading import read_trace, write_trace

pytestmark = pytest.mark.long

STUDY = StudyFolder(bundled("studies") / "gonthier-2024")
OWN = STUDY._module
PREPARED, WORK = (sys.modules[f"{OWN.__name__}.{name}"] for name in ("prepared", "workloads"))
PUBLISHED = OWN.PUBLISHED
PLAN = looked_at(STUDY.plan, quick=False)
QUICK = looked_at(STUDY.plan, quick=True)
GAINING = ["EFT", "LEA", "LEO", "LEM"]
LOW, HIGH = WORK.LOADS


def consecutive_sessions(user):
    """Return the session of each job by the rule of the authors' plots: consecutive jobs of one."""
    same = (user[1:] == user[:-1]) & (user[1:] != -1)
    return np.cumsum(np.concatenate(([True], ~same))[: len(user)]) - 1


@pytest.mark.parametrize("week", PUBLISHED["per_job"])
def test_our_sessions_give_what_the_authors_results_of_single_jobs_say(shared, week):
    jobs = pd.read_csv(shared(f"traces/rackham/week{week}_published_per_job.csv.gz"))
    session = consecutive_sessions(jobs["session"].to_numpy())
    assert session.max() + 1 == jobs["session"].nunique()
    for name, found in PUBLISHED["per_job"][week].items():
        before, after = (
            session_stretches(jobs[f"{one.replace('-', '_')}_stretch"].to_numpy(), session)
            for one in (WORK.SCHEDULERS[name].base, name)
        )
        assert OWN.described(before / after) == pytest.approx(found, abs=6e-4)


def test_tables_i_to_iii_follow_from_the_weekly_results(shared):
    weeks = pd.read_csv(shared("traces/rackham/published_weekly_results.csv"), dtype={"week": str})
    files, cores = (
        weeks.pivot(index="week", columns="scheduler", values=metric)
        for metric in ("transfer_plus_waiting", "core_time")
    )

    def saved(table, ending=""):
        known = [table[["FCFS" + ending, name + ending]].dropna().sum() for name in GAINING]
        return [1 - sums.iloc[1] / sums.iloc[0] for sums in known]

    table = PUBLISHED["reductions"]
    assert saved(files) == pytest.approx(table["table_ii"], abs=6e-4)
    assert saved(cores) == pytest.approx(table["table_iii"], abs=6e-5)
    assert saved(files.loc[["40"]]) == pytest.approx(table["table_i"], abs=2e-3)
    assert saved(files.loc[["43"]])[1:] == pytest.approx(table["saturated"][1:], abs=6e-3)
    assert saved(files, "_BF") == pytest.approx(table["backfilled_transfer"], abs=6e-5)
    assert saved(cores, "_BF") == pytest.approx(table["backfilled_core_time"], abs=6e-5)


def test_the_results_of_the_day_are_those_of_the_authors_files(shared):
    found = {}
    for file, ending in (("every_event", ""), ("final_code_unthrottled", ", final code")):
        text = shared(f"traces/rackham/2022-09-10_results_{file}.csv").read_text()
        for row in csv.DictReader(text.splitlines()):
            name = row["scheduler"].replace("_", "-")
            if name == "LEM" and row.get("lem_threshold", "80") == "80":
                name = "LEM (80 %)"
            found[name + ending] = row | {"mean_queue_time": row["mean_queue"]}
    for name, result in PUBLISHED["day"].items():
        assert name in WORK.SCHEDULERS
        assert {metric: found[name][metric] for metric in result} == result


def made(improvement, saved=lambda name, load: 0.0):
    """Runs on all workloads; the two sessions of each are faster than with FCFS by a factor."""

    def run(name, one):
        faster, name = improvement(name.removesuffix(", as written"), one), name.split(",")[0]
        sums = dict.fromkeys(OWN.SUMS, 100.0 * (1 - saved(name, one)))
        return {"session_stretch": np.full(2, 100.0 / faster), "evaluated": 2, **sums}

    loads = (WORK.DAY, *WORK.WEEKS)
    return {one.name: {name: run(name, one) for name in one.schedulers} for one in loads}


def test_gains_are_averaged_as_logarithms_and_means_are_of_sums_in_single_precision():
    assert PREPARED.single_mean(np.array([2.0**24, 1.0, 1.0])) == np.float32(2**24 / 3)

    def gain(name, one):
        return {"LEM": 4.0 if one.load == HIGH else 1.0, "LEA": 8.0}.get(name, 1.0)

    runs = made(gain)

    def number(reading, names, **more):
        return OWN.number(runs, reading, what=0.5, names=names, **more)

    found = number("weeks", ["LEM"])
    assert (found.mean, found.low) == (pytest.approx(100), pytest.approx(100))  # 1 and 4 times
    assert OWN.as_times(runs, "weeks", what=0.5, names=["LEM"]).mean == pytest.approx(2)
    found = number("weeks", ["LEA"], over=["LEO", "LEM"])
    assert (found.mean, found.n) == (pytest.approx(300), 4)  # over LEM, the better of the two
    found = number("program", ["LEA", "LEM"], saturated=True)
    assert (found.mean, found.n) == (pytest.approx(0), 4)  # LEA's, the lower of the two
    assert number("program", ["LEM"], load=HIGH).mean == pytest.approx(300)


def test_sums_weigh_logs_by_what_they_have():
    def saved(name, one):
        return 0.5 if name == "LEM" and one.log == "CTC" else 0.0

    runs = made(lambda name, one: 1.0, saved)
    for name, own in runs.items():
        for run in own.values():
            run["file_time"] *= 10 if name.startswith("CTC") else 1
    assert OWN.number(runs, "program", what="file_time", names=["LEM"]).mean == pytest.approx(10)
    left = OWN.as_times(runs, "program", what="file_time", names=["LEM"])
    assert left.mean == pytest.approx(0.9)
    assert left.low >= 0
    found = OWN.number(runs, "sums", what="file_time", names=["LEM"])
    assert found.mean == pytest.approx(100 * (1 - (10 + 3 * 2 + 1) / (20 + 3 * 2 + 1)))


def test_no_two_schedulers_are_the_same_and_the_policy_takes_them(shared, tmp_path):
    files = {one.file for one in WORK.WORKLOADS.values()}
    sample = WORK.inputs(QUICK, [])[WORK.SAMPLE.file]
    for file in files:
        write_trace(sample, tmp_path / file)
    logs = [shared("traces")]
    stated = PLAN | {"runs": WORK.runs(PLAN, logs)}
    table, _ = study_runs(stated, logs, STUDY.path, tmp_path)
    plan = read_sweep(table)
    planned = [one for one in WORK.WORKLOADS.values() if one != WORK.SAMPLE]
    assert len(stated["runs"]) == sum(len(one.schedulers) for one in planned) == 333
    # the same trace for all, so runs with other files or submissions are those of the weeks
    plain = [one for one in planned if one.sharing == "consecutive" and one.seed is None]
    assert len(plan.runs) == sum(len(one.schedulers) for one in plain)
    for one in WORK.SCHEDULERS.values():
        assert WORK.SCHEDULERS[one.base].base == one.base
        assert WORK.SCHEDULERS[one.base].solver == "fcfs"


def test_logs_that_are_not_there_are_left_out(shared, tmp_path):
    with pytest.raises(InputError, match="rackham"):
        WORK.runs(PLAN, [tmp_path])
    file = WORK.LOGS["CTC"]["file"]
    (tmp_path / file).symlink_to(shared(f"traces/{file}"))
    traces = WORK.inputs(PLAN, [tmp_path])
    seeds = WORK.SHAKEN["seeds"]
    assert set(traces) == {
        "CTC.rackham.gz", "CTC-interleaved.rackham.gz",
        *(f"CTC-shaken-{seed}.rackham.gz" for seed in seeds),
    }  # fmt: skip
    any_job, in_a_row = (traces[f"CTC{how}.rackham.gz"] for how in ("-interleaved", ""))
    assert np.array_equal(any_job.submit, in_a_row.submit)
    files = (len(np.unique(one.annotations["file"])) for one in (any_job, in_a_row))
    assert next(files) < next(files)
    forms = 4 + 3  # with full profiles on the underused cluster only
    assert len(WORK.runs(PLAN, [tmp_path])) == 5 * forms + 2 * 5 + 2 * 3 * len(seeds)


def test_what_is_submitted_together_is_shaken_together(shared):
    file = WORK.LOGS["CTC"]["file"]
    trace = WORK.week_of(read_trace(shared(f"traces/{file}")), WORK.LOGS["CTC"]["week"])
    trace = trace.changed(runtime=np.arange(len(trace)))  # by which jobs are found again
    one = WORK.shaken_of(WORK.OF_LOG["CTC"][0], 0)
    moved = WORK.shaken(trace, one)
    delay = moved.submit[np.argsort(moved.runtime)] - trace.submit
    session = window_sessions(trace.user, trace.submit)
    of_session = pd.Series(delay).groupby(session)
    assert (of_session.nunique() == 1).all()
    assert of_session.first().agg(["min", "max"]).tolist() == [0, WORK.SHAKEN["shake"]]
    assert np.array_equal(WORK.shaken(trace, one).submit, moved.submit)
    other = WORK.shaken(trace, WORK.shaken_of(WORK.OF_LOG["CTC"][0], 1))
    assert not np.array_equal(other.submit, moved.submit)


@pytest.mark.parametrize("log", WORK.LOGS)
def test_clusters_have_the_loads_that_they_are_named_for(shared, log):
    own = WORK.LOGS[log]
    trace = WORK.week_of(read_trace(shared(f"traces/{own['file']}")), own["week"])
    for load, nodes in zip(WORK.LOADS, own["nodes"]):
        assert WORK.offered(trace, nodes) == pytest.approx(load, abs=0.02)
    assert trace.processors.max() <= 20


def test_the_day_is_written_as_it_was_read(shared, tmp_path):
    day = "rackham/2022-09-10_V10000_anonymous.txt.gz"
    (tmp_path / "rackham").mkdir()
    (tmp_path / day).symlink_to(shared(f"traces/{day}"))
    with gzip.open(tmp_path / day) as stream:
        assert stream.readline().startswith(b"{ id:")
    trace = WORK.inputs(PLAN, [tmp_path])[WORK.DAY.file]
    counts = np.bincount(trace.annotations["category"] + 2).tolist()
    assert counts == [2041, 865, 10201, 1511, 7201]
    user = trace.user[trace.annotations["category"] == 1]
    assert np.array_equal(WORK.sessions_of(WORK.DAY, user, user), consecutive_sessions(user))


def test_the_quick_study_from_the_command_line(tmp_path):
    words = ["study", str(STUDY.path), "--quick", "--workers", "1", "-o", str(tmp_path)]
    assert optsched(words) == 0
    rows = pd.read_parquet(tmp_path / "results" / "results.parquet")
    assert rows["scheduler"].tolist() == list(WORK.SCHEDULERS)
    assert (rows["evaluated"] == 161).all()
    runs = OWN.load(rows)["sample"]
    assert (OWN.times(runs, "FCFS") == 1).all()
    assert OWN.described(OWN.times(runs, "LEA"))[0] == len(runs["LEA"]["session_stretch"])
