from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest

from optsched import registry
from optsched.cli import run as optsched
from optsched.errors import InputError
from optsched.machines.machine import read_machine
from optsched.report.page import MISSING, Figure, cell
from optsched.schedule import State
from optsched.simulator.policy import Policy
from optsched.studies.study_folder import INPUTS, plan_study, write_inputs
from optsched.studies.systems.evaluation import (
    GAIN,
    OF_RUN,
    POINTS,
    SAME,
    SECONDS,
    TIMES,
    all_runs,
    gain,
    is_baseline,
    prepare,
    site_run,
    with_gains,
    with_same_jobs,
)
from optsched.studies.systems.figures import PICTURE, figures
from optsched.studies.systems.page import overall_table, shortest, world_table
from optsched.studies.systems.plan import (
    BLUE,
    PLAIN_EASY,
    SAMPLE,
    Key,
    Site,
    System,
    inputs,
    plan,
    torus_of,
    unplanned,
    worlds,
)
from optsched.sweeps.sweep_file import read_sweep
from optsched.traces.header import Header
from optsched.traces.reading import write_trace

PLAIN, CONTIGUITY, GANG = "plain nodes", "contiguous nodes", "time slices"
BOXES, SHARING = "boxes of a torus", "shared bandwidth"
FIGURES = (*TIMES, *OF_RUN, SECONDS)


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """The folder of a quick study, with its traces."""
    folder = tmp_path_factory.mktemp("systems")
    write_inputs(inputs([], quick=True), folder)
    return folder


def made_up(changed, site=BLUE):
    """What `prepare` returns where all figures are 100, but those that `changed` has by key."""
    rows = []
    for world in worlds(site):
        for name in world.systems:
            own = changed.get(Key(world.name, name), {})
            rows.append(
                {
                    "world": world.name,
                    "system": name,
                    "base_world": world.baselines[name].world,
                    "base": world.baselines[name].system,
                    "trace": world.trace,
                    "machine": world.machine,
                    "large_from": world.large_from,
                    "execution": world.execution,
                    "jobs": 100,
                    "days": 7.0,
                    "offered": 0.8,
                    "mean_runtime": 3600.0,
                    **dict.fromkeys(FIGURES, 100.0),
                    **dict.fromkeys((figure for one in worlds(site) for figure in one.own), 1.0),
                    **dict.fromkeys(("killed", "rejected", "waiting"), 0.0),
                    "utilization": 0.5,
                    **own,
                }
            )
    return with_same_jobs(with_gains(pd.DataFrame(rows)))


def row(frame, world, system):
    return frame[(frame["world"] == world) & (frame["system"] == system)].iloc[0]


def page(frame, pictures, *, quick):
    return registry.studies["systems"]().page(frame, (), pictures, {}, quick=quick)


def said(frame, world):
    """What the page says of a world."""
    sections = page(frame, {}, quick=False).sections
    [own] = [one for one in sections if one.title.lower().endswith(world)]
    return " ".join(part for part in own.parts if isinstance(part, str))


def test_a_gain_is_the_share_by_which_a_time_is_shorter():
    found = gain([200, 200, 100, 0, 0, np.nan], [150, 300, 100, 0, 5, 1])
    np.testing.assert_allclose(found, [0.25, -0.5, 0, 0, np.nan, np.nan])


def test_each_system_is_compared_with_its_own_baseline():
    without = "torus, detect=exact, migrate=no"
    migrating = "torus, detect=exact, migrate=yes"
    gang = "gang, admission=skip, mpl=3"
    frame = made_up(
        {
            PLAIN_EASY: {"mean_wait": 50, "utilization": 0.7},
            Key(GANG, gang): {"mean_wait": 10, "utilization": 0.6},
            Key(BOXES, without): {"mean_wait": 400},
            Key(BOXES, migrating): {"mean_wait": 300},
        }
    )
    assert row(frame, GANG, gang)[GAIN["mean_wait"]] == pytest.approx(0.8)
    assert row(frame, GANG, gang)[POINTS] == pytest.approx(-0.1)
    assert row(frame, BOXES, migrating)[GAIN["mean_wait"]] == pytest.approx(0.25)
    assert row(frame, BOXES, migrating)[GAIN["p95_wait"]] == 0
    assert row(frame, PLAIN, "fcfs")[GAIN["mean_wait"]] == -1
    # the EASY of another world is another baseline
    assert row(frame, SHARING, "rua")[GAIN["mean_wait"]] == 0
    bases = frame[is_baseline(frame)]
    assert (bases[[*GAIN.values(), POINTS]] == 0).all(axis=None)
    assert bases.groupby("world").size().to_dict() == {
        PLAIN: 1,
        CONTIGUITY: 1,
        BOXES: 3,
        SHARING: 1,
        "input files": 1,
    }
    assert "(8 times) with torus, detect=exact, migrate=no" in said(frame, BOXES)


def test_gains_on_the_same_jobs_leave_out_what_one_of_the_two_kills(tmp_path):
    states = {
        "easy": [State.FINISHED, State.FINISHED, State.KILLED, State.FINISHED],
        "rua": [State.FINISHED, State.KILLED, State.FINISHED, State.FINISHED],
    }
    waits = {"easy": [10, 900, 900, 30], "rua": [10, 900, 900, 20]}
    for name, own in states.items():
        jobs = {"final_state": pd.Categorical(own), "waiting_time": waits[name]}
        (tmp_path / name).mkdir()
        pd.DataFrame(jobs | {"turnaround_time": [100, 100, 100, 100]}).to_parquet(
            tmp_path / name / "jobs.parquet"
        )
    common = {"world": SHARING, "base_world": SHARING, "base": "easy", "jobs": 4, "finished": 3}
    frame = pd.DataFrame(
        [common | {"system": name, "folder": str(tmp_path / name)} for name in states]
    ).assign(**dict.fromkeys(GAIN.values(), 0.9))
    found = with_same_jobs(frame)[list(SAME.values())].to_numpy()
    np.testing.assert_allclose(found, [[0, 0], [0.25, 0]])
    # where all jobs finish it is the gain itself, and no jobs are read
    whole = with_same_jobs(frame.assign(finished=4, folder="nowhere"))
    assert (whole[list(SAME.values())] == 0.9).all(axis=None)


def test_remarks_say_what_the_numbers_say():
    frame = made_up(
        {
            Key(SHARING, "rua"): {"mean_wait": 80, "mean_response": 120, "killed": 7.0},
            Key(SHARING, "sjbf, first-fit"): {"mean_wait": 60, "makespan": 130.0},
            Key(SHARING, "sjbf, less-consume"): {"large_mean_wait": 110, "waiting": 3.0},
        }
    )
    text = said(frame, SHARING)
    assert "Mean wait: most with sjbf, first-fit (+40.0%), least with sjbf, first-fit, lim" in text
    assert "and 4 others (0.0%)" in text
    assert "Bounded slowdown: the same with sjbf, first-fit and 6 others (0.0%)" in text
    assert "No time is longer, and some are shorter, with sjbf, first-fit." in text
    assert "No time is shorter, and some are longer, with sjbf, less-consume." in text
    assert "Some times are shorter and others longer with 1 of 7 systems." in text
    assert "Killed jobs: from 0 (easy) to 7 (rua) of 100." in text
    assert "; rua +20.0% and -20.0%;" in text
    assert "sjbf, less-consume (0 rejected, 3 still waiting)" in text
    assert "sjbf, first-fit (30.0%)" in text
    assert "As the baseline in all times: fcfs;" in said(frame, CONTIGUITY)
    assert "Killed" not in said(frame, CONTIGUITY)


def test_the_shortest_times_stand_beside_what_people_know():
    without, migrating = (f"torus, detect=exact, migrate={choice}" for choice in ("no", "yes"))
    frame = made_up(
        {
            Key(SHARING, "rua"): {"mean_response": 80},
            Key(GANG, "gang, admission=skip, mpl=3"): {"mean_response": 50},
            Key(BOXES, without): {"mean_response": 90, "mean_wait": 10},
            Key(BOXES, migrating): {"mean_response": 75},
            PLAIN_EASY: {"mean_response": 60},
            Key(CONTIGUITY, "easy"): {"mean_wait": 50},
        }
    )

    def best(world, metric):
        found = shortest(frame, next(one for one in worlds(BLUE) if one.name == world), metric)
        return found["system"], [(round(100 * share, 1), over) for share, over in found["gains"]]

    assert best(SHARING, "mean_response") == ("rua", [(20.0, "easy")])
    assert best(GANG, "mean_response")[1] == [(16.7, "easy on plain nodes")]
    beside = [(16.7, without), (-25.0, "easy on plain nodes")]
    assert best(BOXES, "mean_response") == (migrating, beside)
    # a baseline is compared with the yardstick alone
    assert best(BOXES, "mean_wait") == (without, [(90.0, "easy on plain nodes")])
    assert best(CONTIGUITY, "mean_wait") == ("easy", [])
    assert best(PLAIN, "mean_response") == ("easy", [])
    nothing = frame.assign(mean_response=np.nan)
    assert shortest(nothing, worlds(BLUE)[0], "mean_response") is None
    table = page(nothing, {}, quick=False).sections[0].parts[0]
    shown = {row[0].text: [one.text for one in row[1:]] for row in table.cells}
    assert shown[CONTIGUITY] == [MISSING, MISSING, "easy", "baseline"]
    assert shown[BOXES] == [MISSING, MISSING, without, "+90.0% over easy on plain nodes"]


def test_tables_show_gains_where_there_is_something_to_compare():
    frame = made_up({Key(CONTIGUITY, "fcfs"): {"mean_wait": 150, "p95_wait": np.nan}})
    rows = {(row["system"], row["world"]): list(row.values()) for row in overall_table(frame)}
    assert len(rows) == len(frame)
    shown = [cell(value).text for value in rows["fcfs", CONTIGUITY]]
    assert shown[2:8] == ["easy", "-50.0", MISSING, "0.0", "0.0", "0.0"]
    own = [cell(value).text for value in rows["easy", CONTIGUITY]]
    assert own[2:5] == ["baseline", MISSING, MISSING]
    assert rows["gang, admission=fcfs, mpl=2", GANG][2] == f"easy on {PLAIN}"
    gang = next(one for one in worlds(BLUE) if one.name == GANG)
    first, *others = world_table(frame, gang)
    assert first["system"] == f"easy, on {PLAIN}"
    assert (first["mean wait"].note, others[0]["mean wait"].note) == ("", "0.0%")
    contiguity = next(one for one in worlds(BLUE) if one.name == CONTIGUITY)
    fcfs = world_table(frame, contiguity)[0]
    found = [(one.text, one.note) for one in (fcfs["mean wait"], fcfs["wait, 95th percentile"])]
    assert found == [("2.5 min", "-50.0%"), (MISSING, "")]


def test_every_policy_of_the_registry_is_run():
    own = {
        name for name in unplanned() if registry.policies[name].__module__.startswith("optsched.")
    }
    assert own == set()


def test_a_new_policy_for_nodes_appears_by_itself_and_another_is_named(monkeypatch):
    class Fresh(Policy):
        backfill: Literal["none", "some"] = "none"

    class Elsewhere(Policy):
        machines = frozenset({"quantum"})

    monkeypatch.setitem(registry.policies._classes, "fresh", Fresh)
    monkeypatch.setitem(registry.policies._classes, "elsewhere", Elsewhere)
    names = list(worlds(BLUE)[0].systems)
    assert {"fresh, backfill=none", "fresh, backfill=some"} <= set(names)
    assert unplanned()["elsewhere"] == {"quantum"}
    assert "fresh" not in unplanned()
    made = page(made_up({}, SAMPLE), {}, quick=True)
    [cautions] = [one.parts for one in made.sections if one.title.startswith("What can be")]
    assert cautions[-1].startswith("elsewhere needs a machine of the kind quantum")


@pytest.mark.parametrize("site", [BLUE, SAMPLE], ids=lambda site: site.name)
def test_worlds_have_machines_of_one_size_and_their_baselines(site):
    every = worlds(site)
    keys = {Key(world.name, name) for world in every for name in world.systems}
    for world in every:
        assert read_machine(world.machine).size == site.processors
        assert set(world.baselines) == set(world.systems)
        assert {*world.baselines.values(), world.beside or PLAIN_EASY} <= keys
    assert site.words["large_boxes"] == {BLUE: 42, SAMPLE: 9}[site]


@pytest.mark.parametrize("processors", [1, 2, 5, 100, 241, 430, 338, 1152, 163_840])
def test_a_torus_has_all_processors_and_is_not_flat(processors):
    sides = torus_of(processors)
    assert processors <= np.prod(sides) <= 1.3 * processors + 3
    assert max(sides) <= 2 * min(sides)
    assert list(sides) == sorted(sides)


def test_names_are_as_they_are_typed():
    assert System("easy").name == "easy"
    named = System("sjbf", "first-fit", {"threshold": 1.5, "fast": True})
    assert named.name == "sjbf, first-fit, threshold=1.5, fast=yes"


def test_what_is_planned_can_be_run_and_no_two_runs_are_the_same(traces):
    read = read_sweep(plan([], Path("inputs"), quick=True), base=traces)
    assert len(read.runs) == sum(len(world.systems) for world in worlds(SAMPLE))
    assert read.duplicates == 0
    assert read.keep == "jobs"


def results(runs):
    """Rows of a sweep of these planned runs, all figures 1."""
    rows = []
    for number, run in enumerate(runs):
        settings = {f"settings.{key}": value for key, value in run.pop("settings", {}).items()}
        run["folder"] = "nowhere"
        rows.append({"run": str(number), **run, **settings, **dict.fromkeys(FIGURES, 1)})
    return pd.DataFrame(rows)


def test_results_of_other_runs_are_refused(tmp_path):
    write_inputs(inputs([], quick=True), tmp_path)
    made = tmp_path / INPUTS
    planned = results(plan([], made, quick=True)["runs"])
    frame = prepare(planned.sample(frac=1, random_state=1), made)
    assert frame["system"].tolist() == [name for one in worlds(SAMPLE) for name in one.systems]
    # all of them are large, so this tells nothing new
    assert frame["large_mean_wait"].isna().all()

    foreign = planned.assign(policy=planned["policy"].replace("fcfs", "another"))
    with pytest.raises(InputError, match="another on nodes:256 is not part of this study"):
        prepare(foreign, made)
    without = planned[planned["policy"] != "easy"]
    with pytest.raises(InputError, match="no run of easy on plain nodes"):
        prepare(without, made)
    # a policy that was registered since has no run, and is not missed
    assert len(prepare(planned[planned["policy"] != "saf"], made)) == len(planned) - 2
    with pytest.raises(InputError, match="1 run of the study failed; the first: no memory"):
        prepare(pd.DataFrame({"error": [None, "no memory"]}), made)


def test_a_log_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="SDSC-BLUE"):
        inputs([tmp_path], quick=False)


def test_the_page_names_each_system():
    frame = made_up({}, SAMPLE)
    assert set(figures(frame)) == {PICTURE}
    made = page(frame, {PICTURE: "<svg/>"}, quick=False)
    [picture] = [part for part in made.sections[0].parts if isinstance(part, Figure)]
    for system in frame["system"][~is_baseline(frame)]:
        assert system in picture.alt
    assert "nan" not in made.lead
    assert len(made.sections) == 3 + len(worlds(SAMPLE))


def test_the_log_fits_the_machine(shared):
    jobs = inputs([shared(f"traces/{BLUE.file}").parent], quick=False)
    whole, pieces = jobs[f"{BLUE.log}.swf.gz"], jobs[f"{BLUE.log}-pieces.rackham.gz"]
    assert len(whole) == BLUE.jobs
    assert whole.processors.max() <= BLUE.processors
    assert pieces.processors.max() <= BLUE.words["cores"]
    assert 0.05 < (whole.processors >= BLUE.large_from).mean() < 0.2


@pytest.mark.long
def test_the_quick_study_from_the_command_line(tmp_path, capsys):
    folder = tmp_path / "quick"
    assert optsched(["study", "systems", "--quick", "--workers", "1", "-o", str(folder)]) == 0
    written = (folder / "report.html").read_text()
    assert "A quick look at a few jobs" in written
    assert json.loads((folder / "study.json").read_text())["study"] == "systems"
    rows = pd.read_csv(folder / "systems.csv")
    assert len(rows) == sum(len(world.systems) for world in worlds(SAMPLE))
    assert rows["finished"].add(rows["killed"]).eq(rows["jobs"]).all()
    for name in [*rows["system"], *rows["world"]]:
        assert name in written
    own = rows.set_index(["world", "system"])
    wait = own["mean_wait"]
    expected = 1 - wait[SHARING, "rua"] / wait[SHARING, "easy"]
    assert own.loc[(SHARING, "rua"), "mean_wait_gain"] == pytest.approx(expected)
    assert own.loc[(PLAIN, "easy"), "execution"] != own.loc[(SHARING, "easy"), "execution"]

    (folder / "report.html").unlink()
    assert optsched(["report", str(folder)]) == 0
    assert (folder / "report.html").read_text() == written
    assert set(all_runs(made_up({}))) == set(rows)
    capsys.readouterr()


def own_log(make_trace, folder):
    """Write a trace of 40 jobs of three users for ten processors, and return its path."""
    rows = [(60 * k, 100 + 37 * k % 900, 1000, 1 + 5 * k % 9) for k in range(40)]
    header, users = Header((("MaxProcs", "10"),)), np.arange(40) // 4 % 3
    trace = replace(make_trace(*rows, name="mine"), header=header, user=users)
    write_trace(trace, folder / "my own.swf")
    return str(folder / "my own.swf")


def test_a_trace_of_the_user_takes_the_place_of_the_log(make_trace, tmp_path):
    log, folder = own_log(make_trace, tmp_path), tmp_path / "out"
    planned = plan_study("systems", folder, trace=log).plan
    assert planned.duplicates == 0
    assert {run.values["machine"] for run in planned.runs} == {
        *("nodes:10", "matrix:10", "torus:2x2x3", "smp:3x4", "cluster:2x8")
    }
    made = {Path(run.values["trace"]).name for run in planned.runs}
    assert made == {"my own.swf.gz", "my own-demands.swf.gz", "my own-pieces.rackham.gz"}
    assert made <= {path.name for path in (folder / INPUTS).iterdir()}
    again = plan_study("systems", folder, trace=log).plan
    assert [run.name for run in again.runs] == [run.name for run in planned.runs]
    with pytest.raises(InputError, match="holds another study; expected a folder of its own"):
        plan_study("systems", folder, quick=True)


def test_the_page_names_the_trace_of_the_user():
    site = Site("mine", "mine.swf.gz", 100, 10, 4)
    frame = made_up({}, site)
    assert site_run(frame) == site
    study = registry.studies["systems"]()
    made = study.page(frame, (), {}, {}, quick=False, trace="my own.csv")
    assert "the same 100 jobs of mine" in made.lead
    assert made.repeat == "optsched study systems --trace 'my own.csv' -o DIR"


def test_a_study_with_traces_of_its_own_takes_no_other(tmp_path, capsys):
    words = ["study", "yang-2014", "--trace", "x.swf", "-o", str(tmp_path / "out")]
    assert optsched(words) == 1
    told = "optsched: --trace: study 'yang-2014' has traces of its own; expected no other\n"
    assert capsys.readouterr().err == told
    assert not (tmp_path / "out").exists()
