from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from optsched import save, simulate
from optsched.errors import InputError
from optsched.report import run_page
from optsched.report.page import MISSING, Facts, Figure, Fold, Heading, Table, render
from optsched.report.saved import report_run

pytestmark = pytest.mark.usefixtures("without_png")


def section(page, title):
    [found] = [section for section in page.sections if section.title == title]
    return found.parts


def tables(page, title):
    return [part for part in section(page, title) if isinstance(part, Table)]


@pytest.fixture
def window_run(make_trace):
    rows = [(30 * k, 100 + 7 * k, 200 + 7 * k, 1 + (5 * k) % 7) for k in range(40)]
    return simulate(make_trace(*rows, (2000, 5, 5, 99), name="many"), "nodes:10", "window")


def test_a_run_that_is_repeated_has_the_same_page(window_run, tmp_path):
    folders = [
        save(replace(window_run, timing={"simulation_seconds": seconds}), tmp_path / name)
        for name, seconds in (("one", 1.0), ("two", 2.0))
    ]
    one, two = ((folder / "report.html").read_bytes() for folder in folders)
    assert one == two
    assert str(tmp_path).encode() not in one
    report_run(folders[0])
    assert (folders[0] / "report.html").read_bytes() == one


def test_the_page_says_what_the_files_say(window_run, tmp_path):
    folder = save(window_run, tmp_path / "run")
    summary = json.loads((folder / "summary.json").read_text())
    page = run_page.page(folder)
    assert page.title == "many: window with branch-and-bound on nodes:10"
    assert page.lead.startswith("40 of 41 jobs finished, after a mean wait of ")
    assert f"{summary['utilization']:.1%} of the machine" in page.lead
    assert (
        f"{summary['problems']} of {summary['problems']} problems solved with a proof" in page.lead
    )
    assert "1 rejected, as they can never start" in page.lead
    told, *_, table = section(page, "Decisions")
    assert told.startswith(f"{summary['problems']} problems posed to branch-and-bound: all ")
    assert sum(row[2] for row in table.rows) == summary["problems"]
    assert page.repeat is None  # the trace is not on file
    assert section(page, "Cleaning")[0].startswith("41 jobs read;")


def test_the_worst_jobs_are_the_worst(window_run, tmp_path):
    page = run_page.page(save(window_run, tmp_path / "run", plots=False))
    waited, slowed = tables(page, "The jobs that fared worst")
    for table, column, place, least in (
        (waited, "waiting_time", 6, 0),
        (slowed, "bounded_slowdown", 7, 1),
    ):
        shown = [row[place].key for row in table.cells]
        everything = window_run.jobs[column].dropna().astype(float)
        behind = everything[everything > least]
        assert shown == sorted(behind, reverse=True)[: run_page.ROWS]
    named = {row[0].text: row[6].key for row in waited.cells}
    own = window_run.jobs.set_index("job_id")["waiting_time"]
    assert all(own[int(job)] == wait for job, wait in named.items())
    assert waited.cells[0][1].key is None  # nobody knows whose it is


def test_pictures_tell_their_numbers(small_run, tmp_path):
    page = run_page.page(save(small_run, tmp_path / "run"))
    gantt, load, waits, slots = section(page, "Pictures")
    assert all(isinstance(picture, Figure) for picture in (gantt, load, waits, slots))
    assert "3 of 3 jobs started on nodes:10" in gantt.alt
    assert "at most 8 processors in use" in load.alt
    assert "at most 1 job waiting" in load.alt
    assert "66.7% of the jobs started at once" in waits.alt
    assert "slots on average, loss of capacity" in slots.alt
    assert waits.svg == (tmp_path / "run" / "waits.svg").read_text()


def test_without_pictures_or_problems_there_is_no_such_section(small_run, tmp_path):
    folder = save(small_run, tmp_path / "run", plots=False)
    assert not (folder / "report.html").exists()
    titles = [section.title for section in run_page.page(folder).sections]
    assert "Pictures" not in titles
    assert "Decisions" not in titles
    assert report_run(folder) == folder / "report.html"
    save(small_run, folder)  # a page belongs to a run, and is replaced with it
    assert "<img" in (folder / "report.html").read_text()


@pytest.mark.parametrize("state", ["REJECTED", "WAITING"])
def test_a_run_in_which_nothing_starts_has_a_page(small_run, tmp_path, state):
    never = np.full(3, np.nan)
    schedule = small_run.schedule._replace(
        start=never, end=never, state=np.array([state] * 3), resources=["", "", ""]
    )
    page = run_page.page(save(replace(small_run, schedule=schedule), tmp_path / "run"))
    assert page.lead.startswith("0 of 3 jobs finished")
    assert "at most 0 processors in use" in section(page, "Pictures")[1].alt
    assert render(page)


def test_an_interrupted_run_has_a_page(interrupted_run, tmp_path):
    page = run_page.page(save(interrupted_run, tmp_path / "run"))
    assert "1 rejected, as they can never start, 1 never started" in page.lead
    found = tables(page, "The jobs that never started")
    assert [
        (table.caption.split(". ")[0], [row[0].text for row in table.cells]) for table in found
    ] == [
        ("It is larger than the machine: 1 of 1 job", ["2"]),
        ("The policy never starts it: 1 of 1 job", ["4"]),
    ]


def test_the_policy_is_described_without_marks_of_code(make_trace, tmp_path):
    trace = make_trace((0, 5, 5, 1)).changed(annotations={"priority": np.array([3])})
    folder = save(simulate(trace, "nodes:10", "priority"), tmp_path / "run", plots=False)
    assert "as the column priority of the trace states it" in render(run_page.page(folder))


def test_of_many_jobs_that_never_started_the_first_are_listed(make_trace, tmp_path):
    rows = [(k, 5, 5, 99 if k else 1) for k in range(run_page.OF_REASON + 4)]
    run = simulate(make_trace(*rows), "nodes:10", "easy")
    folder = save(run, tmp_path / "run", plots=False)
    words, table = section(run_page.page(folder), "The jobs that never started")
    assert [row[0].key for row in table.cells] == list(range(2, run_page.OF_REASON + 2))
    assert "larger than the machine: 10 of 13 jobs." in table.caption
    assert words.endswith("with the column reason.")
    jobs = run.jobs.assign(reason=[f"number {k}" for k in range(len(rows))])
    jobs.to_parquet(folder / "jobs.parquet")
    words, *listed = section(run_page.page(folder), "The jobs that never started")
    assert len(listed) == run_page.MOST_REASONS
    assert words.endswith("the 10 most frequent of 13 reasons.")


def test_a_run_without_reasons_on_file_has_a_page(make_trace, tmp_path):
    run = simulate(make_trace((0, 5, 5, 1), (1, 5, 5, 99)), "nodes:10", "easy")
    folder = save(run, tmp_path / "run", plots=False)
    run.jobs.drop(columns="reason").to_parquet(folder / "jobs.parquet")
    [table] = tables(run_page.page(folder), "The jobs that never started")
    assert table.caption.startswith("No reason on file: 1 of 1 job.")


HOSTILE = '</td><script>"\n\u202e\x1b[2J\U0001f680'


def test_owners_are_named_where_the_trace_has_names(make_trace, tmp_path):
    names = {
        "user_name": ["", "anna", HOSTILE, "bert"],
        "account": ["", "", "", ""],
        "partition_name": ["", "gpu,batch", "gpu", "b"],
    }
    texts = {name: np.array(of, dtype=object) for name, of in names.items()}
    trace = make_trace(*((k, 60, 60, 4 + 99 * (k == 3)) for k in range(4)))
    trace = trace.changed(texts=texts, user=np.array([7, 1, 2, 3]))
    folder = save(simulate(trace, "nodes:4", "fcfs"), tmp_path / "run")
    waited, _ = tables(run_page.page(folder), "The jobs that fared worst")
    assert waited.columns[:4] == ["job", "user", "partition", "submitted"]
    shown = {row[0].text: (row[1].text, row[2].text) for row in waited.cells}
    told = '</td><script>"\\n\\u202e\\x1b[2J\U0001f680'
    assert shown == {"2": ("anna", "gpu,batch"), "3": (told, "gpu")}
    [never] = tables(run_page.page(folder), "The jobs that never started")
    assert [cell.text for cell in never.cells[0][:3]] == ["4", "bert", "b"]
    text = (folder / "report.html").read_text()
    assert text.count("<script>") == 1
    assert "&lt;/td&gt;&lt;script&gt;" in text


def test_a_user_without_a_name_is_shown_by_number(make_trace, tmp_path):
    trace = make_trace(*((0, 60, 60, 4) for _ in range(3)))
    texts = {"user_name": np.array(["anna", "", ""], dtype=object)}
    trace = trace.changed(texts=texts, user=np.array([1, 7, -1]))
    folder = save(simulate(trace, "nodes:4", "fcfs"), tmp_path / "run", plots=False)
    [waited, _] = tables(run_page.page(folder), "The jobs that fared worst")
    assert {row[0].text: row[1].text for row in waited.cells} == {"2": "7", "3": MISSING}


def test_figures_that_a_system_adds_are_shown(small_run, tmp_path):
    folder = save(small_run, tmp_path / "run", plots=False)
    summary = json.loads((folder / "summary.json").read_text())
    added = {
        "migrations": 7,
        "mean_pause": 90.0,
        "node_time": {"running": 0.25},
        "large": {"mean_wait": 12.5},
    }
    (folder / "summary.json").write_text(json.dumps(summary | added))
    shown = figures(folder)
    assert shown["Waits and slowdowns"]["mean pause"] == "1.5 minutes"
    assert shown["Other figures"] == {"migrations": "7", "mean_wait": "12.5"}
    assert shown["Placement and fragmentation"]["running"] == "25%"


def figures(folder):
    """Return the figures that the page shows, by group and name."""
    found, group = {}, ""
    for part in section(run_page.page(folder), "Result"):
        if isinstance(part, Heading):
            group = part.title
        elif isinstance(part, Facts):
            found.setdefault(group, {}).update((name, cell.text) for name, cell in part.cells)
        elif isinstance(part, Table):
            found.setdefault(group, {}).update((row[0].text, row[1].text) for row in part.cells)
    return found


def test_figures_have_names_and_units_in_groups(window_run, tmp_path):
    shown = figures(save(window_run, tmp_path / "run", plots=False))
    assert [*shown] == [
        *("Jobs", "Waits and slowdowns", "Use of the machine"),
        *("Large jobs", "Placement and fragmentation", "Policy"),
    ]
    assert shown["Jobs"]["rejected"] == "1 job"
    assert shown["Large jobs"]["least size of a large job"] == "7 processors"
    texts = [text for group in shown.values() for text in group.values()]
    assert MISSING not in texts
    assert not any("None" in text for text in texts)


def test_definitions_can_be_unfolded(window_run, tmp_path):
    parts = section(run_page.page(save(window_run, tmp_path / "run", plots=False)), "Result")
    folds = [part for part in parts if isinstance(part, Fold)]
    defined = dict(facts for fold in folds for facts in fold.parts[0].items)
    assert "divisor of at least 10 s" in defined["mean bounded slowdown"]


def test_a_heuristic_is_not_said_to_prove_nothing(window_run, make_trace, tmp_path):
    rows = [(30 * k, 100, 200, 1 + (5 * k) % 7) for k in range(9)]
    run = simulate(make_trace(*rows), "nodes:10", "window", solver="greedy")
    assert run.summary["unproven"] == run.summary["problems"] > 0
    text = render(run_page.page(save(run, tmp_path / "run", plots=False)))
    assert "proof" not in text
    assert "in its place" not in text


def test_fallbacks_are_told_first(window_run, tmp_path):
    folder = save(window_run, tmp_path / "run", plots=False)
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {"fallbacks": 2}))
    told = "branch-and-bound failed or ran out of budget on 2 of "
    assert run_page.page(folder).lead.startswith(told)


def test_the_scenario_names_execution_model_and_settings(make_trace, tmp_path):
    run = simulate(
        make_trace((0, 60, 60, 4)),
        "matrix:10",
        "gang",
        execution="paging",
        settings={"mpl": 2, "job_memory": 400},
    )
    page = run_page.page(save(run, tmp_path / "run", plots=False))
    _, scenario, _, of_policy, _, _, of_execution, defined = section(page, "Scenario")
    assert dict(scenario.items)["execution model"] == "paging"
    assert dict(of_execution.items)["job_memory"] == "400"
    meaning = dict(defined.parts[0].items)["job_memory"]
    assert meaning.startswith("Memory of a job on each of its nodes, in MB,")
    assert dict(of_policy.items)["compact"] == "yes"
    posed, *_ = section(page, "Decisions")
    assert posed.endswith("posed to first-fit.")


def test_a_metric_says_how_its_figures_are_shown(small_run, tmp_path):
    folder = save(small_run, tmp_path / "run", plots=False)
    summary = json.loads((folder / "summary.json").read_text())
    added = {"loss_of_capacity": 0.125, "node_time": {"running": 0.5}, "large_mean_drain": 7200.0}
    (folder / "summary.json").write_text(json.dumps(summary | added))
    shown = figures(folder)
    placement = shown["Placement and fragmentation"]
    assert (placement["loss of capacity"], placement["running"]) == ("12.5%", "50%")
    assert shown["Large jobs"]["mean time as queue head"] == "2 hours"


DAMAGES = [
    ("run.json", lambda fields: fields.pop("policy"), "policy: missing; expected a text"),
    ("run.json", lambda fields: fields.update(jobs=["a"]), "expected two integers or null"),
    ("run.json", lambda fields: fields.update(versions=3), "versions: 3; expected an object"),
    (
        "run.json",
        lambda fields: fields["solvers"]["window-mkp"]["budget"].pop("work"),
        "solvers window-mkp budget work: missing",
    ),
    ("summary.json", lambda fields: fields.update(jobs="x"), "jobs: 'x'; expected an integer"),
    ("summary.json", lambda fields: fields["cleaning"].pop("jobs_read"), "cleaning jobs_read"),
]


@pytest.mark.parametrize(("name", "damage", "told"), DAMAGES)
def test_a_damaged_field_is_told(window_run, tmp_path, name, damage, told):
    folder = save(window_run, tmp_path / "run", plots=False)
    fields = json.loads((folder / name).read_text())
    damage(fields)
    (folder / name).write_text(json.dumps(fields))
    with pytest.raises(InputError) as raised:
        run_page.page(folder)
    assert raised.value.file == str(folder / name)
    assert told in str(raised.value)


@pytest.mark.parametrize("size", [0, 1000])
def test_a_picture_that_was_cut_is_told(small_run, tmp_path, size):
    folder = save(small_run, tmp_path / "run")
    os.truncate(folder / "waits.svg", size)
    with pytest.raises(InputError, match=r"waits\.svg: damaged; expected SVG to its end"):
        run_page.page(folder)


@pytest.mark.parametrize("name", ["run.json", "summary.json", "jobs.parquet", "decisions.parquet"])
@pytest.mark.parametrize("data", [None, b"", b"\xff[1, 2]", b"[]"])
def test_a_damaged_file_is_told(small_run, tmp_path, name, data):
    folder = save(small_run, tmp_path / "run", plots=False)
    (folder / name).unlink()
    if data is not None:
        (folder / name).write_bytes(data)
    with pytest.raises(InputError) as raised:
        run_page.page(folder)
    assert raised.value.file == str(folder / name)
    assert "\n" not in str(raised.value)


def test_a_table_without_a_column_is_told(small_run, tmp_path):
    folder = save(small_run, tmp_path / "run", plots=False)
    small_run.jobs.drop(columns="user").to_parquet(folder / "jobs.parquet")
    with pytest.raises(InputError, match=r"jobs\.parquet: .*user"):
        run_page.page(folder)
    small_run.jobs.assign(run_time="long").to_parquet(folder / "jobs.parquet")
    with pytest.raises(InputError, match=r"jobs\.parquet: a column has values of another type"):
        run_page.page(folder)
