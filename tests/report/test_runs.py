"""Runs of the same jobs side by side: which are compared, and their pictures, folder and page."""

import json
import math
import shlex
import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.looks import change_json, contents, section, tables

from optsched import save, simulate
from optsched.errors import InputError
from optsched.folders import RUNS
from optsched.machines.texts import Texts
from optsched.report import run_comparison, run_page, runs_plots, style
from optsched.report.load import DAY
from optsched.report.page import MISSING, write_page
from optsched.report.pictures.gantt import Schedule
from optsched.report.run_comparison import MOST_RUNS, pair, read_runs
from optsched.report.runs_plots import MOST_CHARTS, gantt, window
from optsched.report.saved import fill_runs

ROWS = [(0, 60, 60, 6), (5, 20, 20, 8), (9, 30, 30, 3), (12, 5, 40, 2)]
HOSTILE = "_</title><script>$\\frac{1$\n\x1b"
BOTH = {"a": "fcfs", "b": "easy"}
PART = {"jobs": (1, 2)}

pytestmark = pytest.mark.usefixtures("without_png")


@pytest.fixture
def saved(make_trace, tmp_path):
    """Return the function that simulates jobs on ten nodes, and saves the run without pictures."""

    def make(name, policy="easy", rows=ROWS, trace="t", machine="nodes:10", **options):
        run = simulate(make_trace(*rows, name=trace), machine, policy, **options)
        return save(run, tmp_path / name, plots=False)

    return make


@pytest.fixture
def compare(saved):
    """Return the function that runs jobs under named policies, and compares the runs."""
    return lambda rows, machine="nodes:10", **policies: read_runs(
        {name: saved(name, of, rows, machine=machine) for name, of in policies.items()}
    )


waits = st.none() | st.integers(0, 5)


@given(st.lists(st.tuples(waits, waits), max_size=12))
def test_pairs_are_counted_job_by_job(jobs):
    base, here = (np.array([math.nan if t[k] is None else t[k] for t in jobs]) for k in (0, 1))
    found = pair(base.astype(float), here.astype(float))
    both = [(b, h) for b, h in jobs if b is not None and h is not None]
    assert found.jobs == len(both)
    assert found.only_baseline == sum(b is not None and h is None for b, h in jobs)
    assert found.only_here == sum(b is None and h is not None for b, h in jobs)
    figures = (found.less, found.equal, found.more, found.difference)
    if not both:
        assert all(map(math.isnan, figures))
        return
    sums = [sum(of) for of in zip(*((h < b, h == b, h > b, h - b) for b, h in both))]
    assert figures == pytest.approx([each / len(both) for each in sums])


@pytest.mark.parametrize(
    ("options", "fields", "told"),
    [
        ({"rows": ROWS[:3]}, {}, "has 3 jobs; expected 4, as in {}"),
        ({"rows": [*ROWS[:3], (12, 6, 40, 2)]}, {}, "run_time of job 4 is 6; expected 5, as in {}"),
        (PART, {}, "is of the jobs 1 to 2 of the trace; expected all jobs, as in {}"),
        (PART, {"trace": "u", "trace_sha256": "0"}, "is of the trace u; expected t, as in {}"),
        (PART, {"trace_sha256": "0"}, "is of the trace t; expected another file of that name"),
        ({}, {"demands_sha256": "0"}, "the jobs have other demands; expected the same"),
    ],
)
def test_runs_of_other_jobs_are_refused(saved, options, fields, told):
    one, other = saved("one"), saved("other", **options)
    change_json(other / "run.json", **fields)
    with pytest.raises(InputError) as raised:
        read_runs({"one": one, "other": other})
    assert str(raised.value).startswith(f"{other}: {told.format(one)}")


def test_the_number_of_runs_is_limited_and_each_has_its_jobs(saved):
    run, other = saved("one"), saved("other")
    (other / "jobs.parquet").unlink()
    with pytest.raises(InputError, match=r"other: holds no jobs\.parquet"):
        read_runs({"one": run, "other": other})
    for number, told in ((1, "one run"), (MOST_RUNS + 1, f"{MOST_RUNS + 1} runs")):
        with pytest.raises(InputError, match=f"^{told} to compare; expected 2 to {MOST_RUNS}$"):
            read_runs({str(place): run for place in range(number)})
    same = {"one": run, "other": saved("same", trace="another name")}
    assert list(read_runs(same).table["run"]) == [*same]


@pytest.fixture(scope="module")
def runs(make_trace, tmp_path_factory):
    """Return the folders of three runs of four jobs, one of them under a hostile name."""
    trace = make_trace(*ROWS, name="t")
    policies = {"fcfs": "fcfs", HOSTILE: "easy", "long": "fcfs"}
    folders = {name: tmp_path_factory.mktemp("run") for name in policies}
    for name, policy in policies.items():
        machine = "nodes:20" if name == "long" else "nodes:10"
        save(simulate(trace, machine, policy), folders[name], plots=False)
    return folders


@pytest.fixture
def compared(runs):
    return read_runs(runs)


@pytest.fixture(scope="module")
def filled(runs, tmp_path_factory):
    made = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(style.METADATA, ".png")
        fill_runs(read_runs(runs), made, ["a b", "c"])
    return made


@pytest.fixture
def folder(filled, tmp_path):
    """Return a copy of the folder of the comparison, for a test to change."""
    return shutil.copytree(filled, tmp_path / "out")


@pytest.fixture
def page_of(tmp_path):
    """Return the function that saves and compares runs, and returns the page."""

    def make(**runs):
        folders = {n: save(run, tmp_path / n, plots=False) for n, run in runs.items()}
        fill_runs(read_runs(folders), tmp_path, list(folders))
        return run_comparison.page(tmp_path)

    return make


def test_the_figures_of_the_summaries_are_beside_those_of_the_baseline(folder, compared, runs):
    for row in compared.table.to_dict("records"):
        summary = json.loads((runs[row["run"]] / "summary.json").read_text())
        for name in ("mean_wait", "p95_wait", "utilization", "rejected"):
            assert row[name] == summary[name]
    page = run_comparison.page(folder)
    [table] = tables(page, "Result")
    means = compared.table["mean_wait"].tolist()
    assert [row[1].key for row in table.cells] == means
    assert [row[0].note for row in table.cells] == ["baseline", "", ""]
    changes = [f"{mean / means[0] - 1:+,.1%}" for mean in means]
    assert [row[1].note for row in table.cells] == ["", *changes[1:]]
    assert page.title == "3 runs of 4 jobs of t"
    assert page.lead.startswith("The mean wait is lowest under long: 0 seconds, compared with ")
    assert page.lead.endswith("75.0% of the jobs wait less, 0.0% wait more.")
    assert "dropped" not in page.lead
    machines, chance = page.summary
    assert machines == "The runs are on different machines, see the last table."
    assert chance.startswith("Each run is of one trace, once, so a difference may be due to chan")
    assert shlex.split(page.repeat) == ["optsched", "compare", "a b", "c", "-o", "DIR"]


def test_gains_and_losses_are_those_of_the_jobs(folder, compared):
    page = run_comparison.page(folder)
    base, easy, _ = (run.outcome["waiting_time"] for run in compared.runs)
    gains = sorted((h - b, job) for job, (b, h) in enumerate(zip(base, easy), 1) if h < b)
    assert len(gains) == 2
    [table] = tables(page, f"{HOSTILE} beside fcfs")
    assert [(row[-1].key, row[0].key) for row in table.cells] == gains
    assert table.cells[0][-1].text.startswith("-")
    told = section(page, f"{HOSTILE} beside fcfs")[-1]
    assert told == "No job waits more than under the baseline."
    paired, different = tables(page, "Job by job")
    assert [cell.text for cell in paired.cells[0][1:5]] == ["4", "50%", "50%", "0%"]
    waits = np.array([run.waits for run in compared.runs])
    apart = sorted(((-of, job) for job, of in enumerate(np.ptp(waits, axis=0), 1) if of), key=min)
    assert sorted((-row[-1].key, row[0].key) for row in different.cells) == sorted(apart)
    assert [cell.key for cell in different.cells[0][-4:-1]] == waits[:, apart[0][1] - 1].tolist()


def test_a_hostile_name_stays_text(folder):
    text = (folder / "report.html").read_text()
    assert text.count("<script>") == 1
    assert text.count("</title>") == 1
    assert "_&lt;/title&gt;&lt;script&gt;" in text
    for picture in ("waits", "load", "gantt"):
        drawn = (folder / f"{picture}.svg").read_text()
        assert "<script>" not in drawn
        assert "_&lt;/title&gt;&lt;script&gt;$\\frac{1$" in drawn


def test_the_load_is_that_of_the_schedule_and_waits_are_means_by_submission(compared):
    [axes] = runs_plots.waits(compared).axes
    assert [line.get_color() for line in axes.lines] == list(style.LINES[:3])
    panels = runs_plots.load(compared).axes
    assert all(len(panel.patches or panel.artists) == 3 for panel in panels)
    *loads, (means, edges, _) = ((own.artists or own.patches)[0].get_data() for own in panels)
    jobs, waits = compared.jobs, compared.runs[0].waits
    work = jobs["requested_number_of_resources"] * jobs["run_time"]
    areas = [(load.values * np.diff(load.edges)).sum() for load in loads]
    assert areas == pytest.approx([work.sum(), waits.sum()])
    submit = jobs["submission_time"]
    expected = [
        waits[here].mean() if (here := (low <= submit) & (submit < high)).any() else np.nan
        for low, high in pairwise(edges)
    ]
    np.testing.assert_allclose(means, expected)
    assert np.isfinite(means).sum() == 4


def test_users_are_those_with_the_most_work_and_their_waits_are_means(make_trace, page_of):
    owned = replace(make_trace(*ROWS, name="t"), user=np.array([7, 3, 7, -1]))
    runs = {policy: simulate(owned, "nodes:10", policy) for policy in ("fcfs", "easy")}
    page = page_of(**runs)
    [table] = tables(page, "Users")
    fcfs, easy = (run.start - owned.submit for run in runs.values())
    # work: 60 x 6 + 30 x 3 of user 7, 20 x 8 of user 3, 5 x 2 of nobody known
    assert [[cell.key for cell in row] for row in table.cells] == [
        [7, 2, 450 / 620, fcfs[[0, 2]].mean(), easy[[0, 2]].mean()],
        [3, 1, 160 / 620, fcfs[1], easy[1]],
    ]
    [paired] = tables(page, "Job by job")
    changes = np.array([easy[[0, 2]].mean() - fcfs[[0, 2]].mean(), easy[1] - fcfs[1]])
    assert [cell.key for cell in paired.cells[0][6:8]] == [sum(changes < 0), sum(changes > 0)]
    assert changes.any()


def test_the_folder_is_the_same_to_the_byte_and_its_page_can_be_made_anew(
    folder, compared, tmp_path
):
    again = tmp_path / "again"
    again.mkdir()
    fill_runs(compared, again, ["a b", "c"])
    assert contents(folder) == contents(again)
    assert all(map(RUNS.has, contents(folder)))
    before = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    assert write_page(run_comparison.page(folder), folder).read_bytes() == before


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda about: about["runs"][-1].update(name="absent"), "no such column"),
        (lambda about: about.update(runs=about["runs"][:1]), "expected two runs or more"),
        (lambda about: about["runs"][1].update(name="fcfs"), "with different names"),
        (lambda about: about["runs"][1]["summary"].update(large_from="x"), "large_from: 'x'"),
        (lambda about: about["runs"][1]["config"].pop("machine"), "config machine: missing"),
    ],
)
def test_damage_is_told(folder, change, told):
    change_json(folder / "runs.json", change)
    with pytest.raises(InputError, match=told):
        run_comparison.page(folder)


def test_gantt_charts_are_shown_to_zoom_where_the_folder_has_their_data(folder):
    def charts():
        pictures = section(run_comparison.page(folder), "Pictures")
        return {figure.name: len(figure.charts) for figure in pictures}

    assert charts() == {"waits": 0, "load": 0, "gantt": 3}
    file = folder / "gantt.json"
    file.write_text(file.read_text().replace('"view"', '"sight"'))
    with pytest.raises(InputError, match="charts view: missing; expected a list"):
        run_comparison.page(folder)
    file.unlink()
    assert charts()["gantt"] == 0


def test_a_run_that_rejects_jobs_is_said_to_run_others(make_trace, page_of):
    trace = make_trace(*ROWS, name="t")
    ten, seven = (simulate(trace, f"nodes:{size}", "easy") for size in (10, 7))
    page = page_of(ten=ten, seven=seven)
    [table] = tables(page, "Result")
    assert [(row[7].text, row[7].note) for row in table.cells] == [("0", ""), ("1", "+1")]
    assert page.summary[0].startswith("Not all runs ran the same jobs")
    [paired] = tables(page, "Job by job")
    assert [cell.text for cell in (paired.cells[0][1], *paired.cells[0][8:])] == ["3", "1", "0"]


def test_owners_are_named_where_a_run_has_names(make_trace, page_of):
    trace = make_trace(*ROWS, name="t")
    names = {"user_name": ["anna", HOSTILE, "", "bert"], "qos": ["high"] * 4}
    named = trace.changed(texts={name: np.array(of, dtype=object) for name, of in names.items()})
    older = simulate(trace, "nodes:10", "fcfs")  # has no names
    [gains] = tables(
        page_of(fcfs=older, easy=simulate(named, "nodes:10", "easy")), "easy beside fcfs"
    )
    assert gains.columns[:4] == ["job", "user", "QOS", "submitted"]
    shown = {row[0].text: (row[1].text, row[2].text) for row in gains.cells}
    assert shown == {"3": (MISSING, "high"), "4": ("bert", "high")}


def test_what_was_dropped_and_what_is_not_heeded_is_said_first(page_of, tmp_path):
    lines = ["submit,runtime,processors,wait,dependency", "0,100,1,5,", "0,10,1,7,afterok:1"]
    (tmp_path / "log.csv").write_text("\n".join([*lines, "1,-1,1,-1,", "1,-1,1,-1,", ""]))
    logged, easy = (
        simulate(tmp_path / "log.csv", "nodes:8", policy) for policy in ("as-logged", "easy")
    )
    ignored = "dependencies of 1 job ignored: nodes:8 does not model them, a site does"
    assert logged.notes[0] == easy.notes[0] == ignored
    page = page_of(logged=logged, easy=easy)
    lost = "2 of the 4 jobs of the trace were dropped by cleaning: run time unknown or less than 1"
    assert lost in page.lead
    assert page.lead.endswith("fuller machine, and other policies look better than they are.")
    assert f"{ignored}." in page.summary
    single = run_page.page(tmp_path / "easy")
    assert lost in single.lead
    assert section(single, "Cleaning")[-1] == f"{ignored}."


def daily(days):
    return [(DAY * day, 0.5 * DAY, DAY, 3) for day in range(days)]


def painted(axes):
    """Return the corner points of a chart by color."""
    return {
        patch.get_facecolor(): {tuple(at) for at in path.vertices[path.codes != path.CLOSEPOLY]}
        for patch in axes.patches or axes.artists
        for path in [patch.get_path()]
    }


def test_a_job_has_one_place_in_each_schedule_and_one_color_in_all(compare):
    comparison = compare(ROWS, **BOTH, c="fcfs")
    figure = gantt(comparison).figure()
    assert [axes.get_title(loc="left").split(",")[0] for axes in figure.axes] == ["a", "b", "c"]
    limits = {(axes.get_xlim(), axes.get_ylim()) for axes in figure.axes}
    assert limits == {((0.0, comparison.span[1]), (0.0, 10.0))}
    first, second, third = map(painted, figure.axes)
    assert first == third != second
    assert set(first) == set(second)
    for run, charts in zip(comparison.runs, (first, second)):
        lefts = sorted(min(x for x, _ in corners) for corners in charts.values())
        assert lefts == sorted(run.outcome["starting_time"])


def test_the_time_that_is_shown_is_one_in_which_the_schedules_differ():
    starts = np.arange(0, 400 * DAY, DAY)
    changed = starts + np.where((starts >= 200 * DAY) & (starts < 203 * DAY), 0.5 * DAY, 0.0)
    places = Texts.of(["0-3", "4-7"] * 200)
    schedules = [Schedule(own, own + 0.4 * DAY, places) for own in (starts, changed)]
    whole, processors = (0.0, 400 * DAY), np.full(len(starts), 4)
    part = window(processors, schedules, 8, whole, most=20)
    assert part.begin <= 200 * DAY < 203 * DAY <= part.end <= part.begin + 20 * DAY
    every = window(processors, schedules, 8, whole, most=400)
    assert (every.begin, every.end, every.processors) == (*whole, 8)
    same = window(processors, [schedules[0], schedules[0]], 8, whole, most=20)
    assert 0 < same.end - same.begin <= 20 * DAY


def test_a_stated_period_is_shown_unless_it_has_too_many_jobs(compare, monkeypatch):
    comparison = compare(daily(6), **BOTH)
    figure = gantt(comparison, (1.0, 2.5)).figure()
    assert {axes.get_xlim() for axes in figure.axes} == {(1.0, 2.5)}
    assert gantt(comparison, (4.0, 99.0)).figure().axes[0].get_xlim() == (4.0, 5.5)
    with pytest.raises(InputError, match=r"days: 6:7; expected a part of 5.5 days"):
        gantt(comparison, (6.0, 7.0))
    monkeypatch.setattr("optsched.report.runs_plots.MOST_ASKED", 3)
    with pytest.raises(InputError, match=r"days: 4 rectangles in one chart; expected .* at most 3"):
        gantt(comparison, (0.0, 3.7))


def test_more_runs_than_charts_are_said_to_be_left_out(compare):
    names = [f"r{place}" for place in range(MOST_CHARTS + 1)]
    figure = gantt(compare(ROWS, **dict.fromkeys(names, "fcfs"))).figure()
    assert len(figure.axes) == MOST_CHARTS
    assert figure.get_suptitle() == f"The first {MOST_CHARTS} schedules"


@pytest.mark.parametrize(("machine", "policy"), [("torus:2x2x3", "torus"), ("matrix:10", "gang")])
def test_jobs_that_share_processors_or_hold_boxes_have_no_charts(compare, machine, policy):
    comparison = compare(ROWS, machine, a=policy, b=policy)
    assert gantt(comparison) is None
    with pytest.raises(InputError, match="days: these runs have no Gantt chart"):
        gantt(comparison, (0.0, 1.0))


def test_charts_to_zoom_begin_with_the_part_of_the_picture_and_have_more_around_it(compare):
    charts = gantt(compare(daily(20), **BOTH), (6.0, 7.0))
    first, second = charts.data()
    assert (first["name"], second["name"]) == ("a", "b")
    assert first["view"] == second["view"] == [6 * DAY, 7 * DAY]
    assert first["period"] == second["period"] == [0, 19.5 * DAY]
    assert first["about"] == "All 20 jobs"
    # around the day: 3 days with 3 jobs, 7 with 7, 15 with more
    first, second = charts.data(most=14)
    assert first["period"] == second["period"] == [3 * DAY, 10 * DAY]
    assert first["job"] == second["job"] == list(range(4, 11))
    assert first["about"] == "A part of the time: 7 of 20 jobs"
