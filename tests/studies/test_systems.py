"""The functions of the study of all systems, on small tables, on logs, and on its stored runs."""

from dataclasses import replace
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from optsched import registry
from optsched.cli import run as optsched
from optsched.content import bundled
from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.schedule import State
from optsched.studies.folder import StudyFolder, read_results
from optsched.studies.running import StudyRun, looked_at, study_runs
from optsched.sweeps.sweep_file import read_sweep
from optsched.traces.reading import write_trace
from optsched.traces.trace import Header

STUDIED = "systems"
STUDY = StudyFolder(bundled("studies") / STUDIED)
PLAIN, BOXES = "plain nodes", "boxes of a torus"


def rows(*runs):
    """Runs of a world: system, seed of the shaking (-1: as logged), mean response."""
    return pd.DataFrame(
        {"world": world, "system": system, "shake_seed": seed, "ties": None, "jobs": 9}
        | {"finished": 9, "large_jobs": 1, "utilization": 0.5, "mean_response": time}
        | dict.fromkeys(("mean_wait", "mean_bounded_slowdown", "p95_wait", "large_mean_wait"), time)
        for world, system, seed, time in runs
    )


def test_each_run_is_compared_with_its_baseline_on_the_same_jobs():
    frame = rows(
        (PLAIN, "easy", -1, 100.0), (PLAIN, "sjf", -1, 80.0),
        (PLAIN, "easy", 3, 200.0), (PLAIN, "sjf", 3, 100.0),
        ("time slices", "gang, 2 rows", -1, 50.0),
        (BOXES, "exact", -1, 400.0), (BOXES, "exact, migrating", -1, 300.0),
    )  # fmt: skip
    runs = STUDY.call("load", frame)
    assert runs["gain.mean_response"].tolist() == pytest.approx([0, 20, 0, 50, 50, 0, 25])
    assert runs["over"].tolist() == [*["easy"] * 5, "exact", "exact"]
    with pytest.raises(InputError, match="no run of the baseline of sjf, plain nodes"):
        STUDY.call("load", frame.iloc[[1, 2, 3]])
    gains = STUDY.call("gain", [200, 200, 100, 0], [150, 300, 100, 5])
    np.testing.assert_allclose(gains, [0.25, -0.5, 0, np.nan])


def test_of_killed_jobs_a_gain_on_the_same_jobs_counts_and_of_random_ties_that_over_logged_ones():
    systems = (("easy", 100.0), ("rua", 80.0), ("sjbf", 50.0))
    frame = rows(*(("shared bandwidth", system, -1, time) for system, time in systems))
    frame = frame.assign(finished=[8, 9, 9], mean_response_gain_same_jobs=[np.nan, 0.1, np.nan])
    gains = STUDY.call("load", frame)["gain.mean_response"]
    np.testing.assert_allclose(gains, [np.nan, 10, np.nan])
    both = [(PLAIN, "window", -1, 90.0), (PLAIN, "window", -1, 70.0)]
    frame = rows((PLAIN, "easy", -1, 100.0), *both).assign(ties=[None, None, "random"])
    runs = STUDY.call("load", frame)
    assert runs["gain.mean_response"].tolist() == pytest.approx([0, 10, 30])
    assert STUDY.call("draws", runs, PLAIN, "window")["mean_response"].tolist() == [90]


def test_the_interval_is_over_draws_and_a_single_run_has_its_floor():
    times = [80.0, 90.0, 95.0, 70.0]
    easy = [(PLAIN, "easy", seed, 100.0) for seed in range(-1, 3)]
    frame = rows(*easy, *[(PLAIN, "sjf", seed - 1, time) for seed, time in enumerate(times)])
    runs = STUDY.call("load", frame)
    gains = 100 - np.array(times)

    def shorter(reading, **than):
        return STUDY.call("shorter", runs, reading, world=PLAIN, system="sjf", **than)

    expected = stats.t.interval(0.95, 3, gains.mean(), stats.sem(gains))
    assert shorter("response")[:3] == pytest.approx((gains.mean(), *expected))
    deviation = gains[1:].std(ddof=1)
    assert shorter("single").mean == pytest.approx(20)
    half = stats.t.ppf(0.975, 2) * deviation * (4 / 3) ** 0.5
    assert shorter("single").half == pytest.approx(half)
    turned = np.mean(100 * (1 - 100 / np.array(times)))
    assert shorter("response", than="system").mean == pytest.approx(turned)


def test_gains_on_the_same_jobs_leave_out_what_one_of_the_two_kills():
    def jobs(killed, last_wait):
        states = [State.KILLED if job == killed else State.FINISHED for job in range(4)]
        waits = {"waiting_time": [10, 900, 900, last_wait], "turnaround_time": [100] * 4}
        return pd.DataFrame({"final_state": pd.Categorical(states)} | waits)

    means = STUDY.call("means_of_both", jobs(2, 30), jobs(1, 20))
    np.testing.assert_allclose(means, [[100, 20], [100, 15]])


def test_every_policy_is_run_or_left_out_and_each_for_nodes_with_every_backfilling():
    run = {one["policy"] for one in STUDY.plan["axes"]["system"].values()}
    left_out, policies = set(STUDY.plan["own"]["left_out"]), registry.policies
    own = {name for name in policies if policies[name].__module__.startswith("optsched.")}
    assert own == run | left_out
    assert not run & left_out
    blocks = [one for one in STUDY.plan["runs"] if one["world"] == PLAIN]
    axis = STUDY.plan["axes"]["system"]
    run = {(axis[name]["policy"], axis[name].get("settings", {}).get("backfill"))
           for block in blocks for name in block["system"]}  # fmt: skip
    for policy in {name for name, _ in run}:
        wanted = get_type_hints(registry.policies[policy]).get("backfill")
        choices = get_args(wanted) if get_origin(wanted) is Literal else [None]
        assert {(policy, choice) for choice in choices} <= run


@pytest.mark.parametrize("quick", [False, True])
def test_what_is_planned_can_be_run_and_no_two_runs_are_the_same(quick, tmp_path, shared):
    plan = looked_at(STUDY.plan, quick=quick)
    folders = [] if quick else [shared("traces/SDSC-BLUE-2000-4.2-cln.swf.gz").parent]
    for name, trace in STUDY.call("inputs", plan, folders).items():
        write_trace(trace, tmp_path / name)
    plan["runs"] = STUDY.call("runs", plan, folders)
    table, labels = study_runs(plan, folders, STUDY.path, tmp_path)
    sweep = read_sweep(table, base=STUDY.path)
    seeds = len(plan["lists"]["seeds"])
    assert len(sweep.runs) == 54 * (1 + seeds) + 4 * seeds
    assert sweep.duplicates == 0
    sizes = {label["world"]: read_machine(block["machine"]).size
             for label, block in zip(labels, table["runs"])}  # fmt: skip
    assert set(sizes.values()) == {plan["own"]["site"]["processors"]}
    large = {block.get("settings", {}).get("large") for block in table["runs"]} - {None}
    assert large == {9 if quick else 42}


def test_pieces_of_a_job_stay_together_and_keep_their_file():
    made = STUDY.call("inputs", looked_at(STUDY.plan, quick=True), [])
    pieces, shaken = (made[f"sample-256-pieces{end}.rackham.gz"] for end in ("", "-shaken-0"))
    before, after = (
        pd.DataFrame({"file": one.annotations["file"], "submit": one.submit}, one.job_id)
        for one in (pieces, shaken)
    )
    later = after["submit"].loc[before.index] - before["submit"]
    assert later.between(0, 60).all()
    assert later.nunique() > 30
    assert (after["file"].loc[before.index] == before["file"]).all()
    jobs = before.index // 10 ** len(str(max(np.unique(before.index % 100))))
    assert len(pieces) > len(set(jobs))
    together = later.groupby([before["submit"], pieces.user, pieces.runtime, before["file"]])
    assert (together.nunique() == 1).mean() > 0.9


def test_stored_runs_are_compared_with_the_baseline_and_the_best_of_their_world(frame, found):
    assert len(frame) == 634
    own = frame[frame["ties"].isna() & (frame["world"] == PLAIN)]
    wide = own.pivot(index="shake_seed", columns="system", values="mean_response")
    gains = 100 * (1 - wide["conservative"] / wide["easy"])
    assert len(gains) == 11
    expected = stats.t.interval(0.95, 10, gains.mean(), stats.sem(gains))
    assert found.values["conservative±"] == pytest.approx((gains.mean(), *expected))
    assert found.values["conservative@single"] == pytest.approx(gains.loc[-1])
    share = 100 * (1 - wide.div(wide["easy"], axis=0))
    first = share.mean().idxmax()
    others = share.drop(columns=first)
    alike = {one for one in others if stats.ttest_rel(share[first], others[one]).pvalue > 0.05}
    [row] = [one for one in found.tables["best"].to_dict("records") if one["world"] == PLAIN]
    assert row["shortest responses"] == first
    assert set(row["not told from it"].split("; ")) == alike


@pytest.fixture
def log(make_trace, tmp_path):
    """The path of a trace of 40 jobs of three users for ten processors."""
    rows = [(60 * k, 100 + 37 * k % 900, 1000, 1 + 5 * k % 9) for k in range(40)]
    header, users = Header((("MaxProcs", "10"),)), np.arange(40) // 4 % 3
    trace = replace(make_trace(*rows, name="mine"), header=header, user=users)
    write_trace(trace, tmp_path / "my own.swf")
    return str(tmp_path / "my own.swf")


def test_a_trace_of_the_user_takes_the_place_of_the_log(log, tmp_path):
    folder = tmp_path / "out"
    planned = StudyRun(STUDY, folder, trace=log).work.plan
    assert planned.duplicates == 0
    machines = {"nodes:10", "matrix:10", "torus:2x2x3", "smp:3x4", "cluster:2x8"}
    assert {run.values["machine"] for run in planned.runs} == machines
    made = {path.name for path in (folder / "inputs").iterdir()}
    assert {"my own.swf.gz", "my own-demands.swf.gz", "my own-pieces.rackham.gz"} < made
    again = StudyRun(STUDY, folder, trace=log).work.plan
    assert [run.name for run in again.runs] == [run.name for run in planned.runs]
    with pytest.raises(InputError, match="holds another study; expected a folder of its own"):
        StudyRun(STUDY, folder, quick=True)


@pytest.mark.long
def test_a_trace_of_the_user_has_tables_and_no_page(log, tmp_path, capsys):
    folder = tmp_path / "out"
    command = ["study", "systems", "--trace", log, "--workers", "1", "-o", str(folder)]
    assert optsched([*command, "--write"]) == 1
    assert "expected no --trace" in capsys.readouterr().err
    assert optsched(command) == 0
    out, err = capsys.readouterr()
    assert "data.md" in out
    assert "differs" not in err
    assert optsched(["report", str(folder)]) == 0
    assert not (folder / "page.md").exists()
    assert "nodes:10" in (folder / "results" / "data.md").read_text()


@pytest.mark.long
def test_the_quick_study_from_the_command_line(tmp_path):
    folder = tmp_path / "quick"
    assert optsched(["study", "systems", "--quick", "--workers", "1", "-o", str(folder)]) == 0
    rows = read_results(folder / "results")
    assert len(rows) == 2 * 54 + 4
    assert rows["finished"].add(rows["killed"]).eq(rows["jobs"]).all()
