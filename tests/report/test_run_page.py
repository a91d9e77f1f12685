"""The page of a run."""

import json

import numpy as np
import pytest
from report.looks import change_json, change_table, section, tables, unstarted

from optsched import save, simulate
from optsched.errors import InputError
from optsched.report import run_page
from optsched.report.page import MISSING, Facts, Fold, Heading, Table, render, write_page

pytestmark = pytest.mark.usefixtures("without_png")

NEVER, WORST = "The jobs that never started", "The jobs that fared worst"
HOSTILE = '</td><script>"\n\u202e\x1b[2J\U0001f680'


@pytest.fixture(scope="module")
def window_run(make_trace):
    rows = [(30 * k, 100 + 7 * k, 200 + 7 * k, 1 + (5 * k) % 7) for k in range(40)]
    return simulate(make_trace(*rows, (2000, 5, 5, 99), name="many"), "nodes:10", "window")


@pytest.fixture
def folder(window_run, tmp_path):
    """Return the folder of the run, for a test to change."""
    return save(window_run, tmp_path / "of-window", plots=False)


@pytest.fixture
def page_of(tmp_path):
    """Return the function that saves a run and returns its page."""

    def make(run, *, plots=False):
        return run_page.page(save(run, tmp_path / "run", plots=plots))

    return make


def test_the_page_says_what_the_files_say(folder):
    summary, page = json.loads((folder / "summary.json").read_text()), run_page.page(folder)
    problems = summary["problems"]
    assert page.title == "many: window with branch-and-bound on nodes:10"
    assert page.lead.startswith("40 of 41 jobs finished, after a mean wait of ")
    assert f"{summary['utilization']:.1%} of the machine" in page.lead
    assert f"{problems} of {problems} problems solved with a proof" in page.lead
    assert "1 rejected, as they can never start" in page.lead
    told, *_, table = section(page, "Decisions")
    assert told.startswith(f"{problems} problems posed to branch-and-bound: all ")
    assert sum(row[2] for row in table.rows) == problems
    assert page.repeat is None  # the trace is not on file
    assert section(page, "Cleaning")[0].startswith("41 jobs read;")


def test_the_worst_jobs_are_the_worst(window_run, folder):
    own = window_run.jobs.set_index("job_id")
    waited, slowed = tables(run_page.page(folder), WORST)
    for table, column, place in ((waited, "waiting_time", 6), (slowed, "bounded_slowdown", 7)):
        worst = own[column].dropna().astype(float).sort_values(ascending=False)
        assert [row[place].key for row in table.cells] == [*worst[: run_page.ROWS]]
    assert all(own["waiting_time"][int(row[0].text)] == row[6].key for row in waited.cells)
    assert waited.cells[0][1].key is None  # nobody knows whose it is


def test_pictures_tell_their_numbers_and_without_any_there_is_no_such_section(small_run, tmp_path):
    folder = save(small_run, tmp_path / "run", plots=False)
    assert not (folder / "report.html").exists()
    titles = {section.title for section in run_page.page(folder).sections}
    assert not {"Pictures", "Decisions"} & titles
    assert write_page(run_page.page(folder), folder) == folder / "report.html"
    save(small_run, folder)  # a page belongs to a run, and is replaced with it
    assert "<img" in (folder / "report.html").read_text()
    gantt, load, waits, slots = section(run_page.page(folder), "Pictures")
    assert "3 of 3 jobs started on nodes:10" in gantt.alt
    assert "at most 8 processors in use" in load.alt
    assert "at most 1 job waiting" in load.alt
    assert "66.7% of the jobs started at once" in waits.alt
    assert "slots on average, loss of capacity" in slots.alt
    assert waits.svg == (folder / "waits.svg").read_text()


@pytest.mark.parametrize("state", ["REJECTED", "WAITING"])
def test_a_run_in_which_nothing_starts_has_a_page(state, small_run, page_of):
    page = page_of(unstarted(small_run, 0, 1, 2, state=state), plots=True)
    assert page.lead.startswith("0 of 3 jobs finished")
    drawn = {picture.name: picture.alt for picture in section(page, "Pictures")}
    # where no job ever waits there are no two instants, and no slots to follow
    slots = ["slots"] if state == "WAITING" else []
    assert [*drawn] == ["gantt", "utilization", "waits", *slots]
    assert "at most 0 processors in use" in drawn["utilization"]
    assert render(page)


def test_jobs_that_never_started_are_listed_by_reason_the_first_of_many(
    interrupted_run, make_trace, page_of, tmp_path
):
    page = page_of(interrupted_run, plots=True)
    assert "1 rejected, as they can never start, 1 never started" in page.lead
    found = {table.caption.split(". ")[0]: table.cells for table in tables(page, NEVER)}
    assert {told: [row[0].text for row in cells] for told, cells in found.items()} == {
        "It is larger than the machine: 1 of 1 job": ["2"],
        "The policy never starts it: 1 of 1 job": ["4"],
    }
    rows = [(k, 5, 5, 99 if k else 1) for k in range(run_page.OF_REASON + 4)]
    words, table = section(page_of(simulate(make_trace(*rows), "nodes:10", "easy")), NEVER)
    assert [row[0].key for row in table.cells] == list(range(2, run_page.OF_REASON + 2))
    assert "larger than the machine: 10 of 13 jobs." in table.caption
    assert words.endswith("with the column reason.")
    file, reasons = tmp_path / "run" / "jobs.parquet", [f"number {k}" for k in range(len(rows))]
    change_table(file, lambda jobs: jobs.assign(reason=reasons))
    words, *listed = section(run_page.page(file.parent), NEVER)
    assert len(listed) == run_page.MOST_REASONS
    assert words.endswith("the 10 most frequent of 13 reasons.")
    change_table(file, lambda jobs: jobs.drop(columns="reason"))  # of an older version
    [table] = tables(run_page.page(file.parent), NEVER)
    assert table.caption.startswith("No reason on file: 10 of 13 jobs.")


def test_owners_are_named_where_the_trace_has_names(make_trace, page_of, tmp_path):
    names = {
        "user_name": ["", "anna", HOSTILE, "bert", "", ""],
        "account": [""] * 6,
        "partition_name": ["", "gpu,batch", "gpu", "b", "", ""],
    }
    texts = {name: np.array(of, dtype=object) for name, of in names.items()}
    trace = make_trace(*((k, 60, 60, 4 + 99 * (k == 3)) for k in range(6)))
    trace = trace.changed(texts=texts, user=np.array([7, 1, 2, 3, 9, -1]))
    page = page_of(simulate(trace, "nodes:4", "fcfs"), plots=True)
    waited, _ = tables(page, WORST)
    assert waited.columns[:4] == ["job", "user", "partition", "submitted"]
    shown = {row[0].text: (row[1].text, row[2].text) for row in waited.cells}
    told = '</td><script>"\\n\\u202e\\x1b[2J\U0001f680'
    unnamed = {"5": ("9", MISSING), "6": (MISSING, MISSING)}  # by number, if that is known
    assert shown == {"2": ("anna", "gpu,batch"), "3": (told, "gpu")} | unnamed
    [never] = tables(page, NEVER)
    assert [cell.text for cell in never.cells[0][:3]] == ["4", "bert", "b"]
    text = (tmp_path / "run" / "report.html").read_text()
    assert text.count("<script>") == 1
    assert "&lt;/td&gt;&lt;script&gt;" in text


def figures(page):
    """Return the figures that the page shows, by group and name."""
    found, group = {}, ""
    for part in section(page, "Result"):
        if isinstance(part, Heading):
            group = part.title
        elif isinstance(part, Facts):
            found.setdefault(group, {}).update((name, cell.text) for name, cell in part.cells)
        elif isinstance(part, Table):
            found.setdefault(group, {}).update((row[0].text, row[1].text) for row in part.cells)
    return found


def test_figures_have_names_and_units_in_groups_and_definitions_to_unfold(folder):
    page = run_page.page(folder)
    shown = figures(page)
    assert [*shown] == [
        *("Jobs", "Waits and slowdowns", "Use of the machine"),
        *("Large jobs", "Placement and fragmentation", "Policy"),
    ]
    assert shown["Jobs"]["rejected"] == "1 job"
    assert shown["Large jobs"]["least size of a large job"] == "7 processors"
    texts = [text for group in shown.values() for text in group.values()]
    assert MISSING not in texts
    assert not any("None" in text for text in texts)
    folds = [part for part in section(page, "Result") if isinstance(part, Fold)]
    defined = dict(facts for fold in folds for facts in fold.parts[0].items)
    assert "divisor of at least 10 s" in defined["mean bounded slowdown"]
    of_groups = {"node_time": {"running": 0.25}, "large": {"mean_wait": 12.5}}
    added = {"migrations": 7, "mean_pause": 90.0, "loss_of_capacity": 0.125} | of_groups
    change_json(folder / "summary.json", large_mean_drain=7200.0, **added)  # by a system
    shown = figures(run_page.page(folder))
    placement = shown["Placement and fragmentation"]
    assert (placement["loss of capacity"], placement["running"]) == ("12.5%", "25%")
    assert shown["Waits and slowdowns"]["mean pause"] == "1.5 minutes"
    assert shown["Large jobs"]["mean time as queue head"] == "2 hours"
    assert shown["Other figures"] == {"migrations": "7", "mean_wait": "12.5"}


def test_fallbacks_are_told_first_and_a_heuristic_is_not_said_to_prove_nothing(
    folder, make_trace, page_of
):
    change_json(folder / "summary.json", fallbacks=2)
    told = "branch-and-bound failed or ran out of budget on 2 of "
    assert run_page.page(folder).lead.startswith(told)
    rows = [(30 * k, 100, 200, 1 + (5 * k) % 7) for k in range(9)]
    run = simulate(make_trace(*rows), "nodes:10", "window", solver="greedy")
    assert run.summary["unproven"] == run.summary["problems"] > 0
    text = render(page_of(run))
    assert "proof" not in text
    assert "in its place" not in text


def test_the_scenario_names_execution_model_and_settings(make_trace, page_of):
    settings = {"mpl": 2, "job_memory": 400}
    asked = {"execution": "paging", "settings": settings}
    page = page_of(simulate(make_trace((0, 60, 60, 4)), "matrix:10", "gang", **asked))
    _, scenario, _, of_policy, _, _, of_execution, defined = section(page, "Scenario")
    assert dict(scenario.items)["execution model"] == "paging"
    assert dict(of_execution.items)["job_memory"] == "400"
    meaning = dict(defined.parts[0].items)["job_memory"]
    assert meaning.startswith("Memory of a job on each of its nodes, in MB,")
    assert dict(of_policy.items)["compact"] == "yes"
    posed, *_ = section(page, "Decisions")
    assert posed.endswith("posed to first-fit.")


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("run.json", None, ""),
        ("run.json", lambda run: run.pop("policy"), "policy: missing; expected a text"),
        ("run.json", lambda run: run.update(jobs=["a"]), "expected two integers or null"),
        ("run.json", lambda run: run["solvers"]["window-mkp"]["budget"].pop("work"), "work: missi"),
        ("summary.json", b"\xff[1, 2]", ""),
        ("summary.json", lambda summary: summary["cleaning"].pop("jobs_read"), "cleaning jobs_rea"),
        ("jobs.parquet", None, ""),
        ("jobs.parquet", lambda jobs: jobs.drop(columns="user"), "user"),
        ("jobs.parquet", lambda jobs: jobs.assign(run_time="long"), "values of another type"),
        ("decisions.parquet", b"[]", ""),
        ("waits.svg", b"", "damaged; expected SVG to its end"),
        ("waits.svg", b"<svg>" + b" " * 999, "damaged; expected SVG to its end"),
    ],
)
def test_what_is_damaged_is_told_with_its_file(folder, name, change, told):
    file = folder / name
    if change is None:
        file.unlink()
    elif isinstance(change, bytes):
        file.write_bytes(change)
    else:
        (change_json if file.suffix == ".json" else change_table)(file, change)
    with pytest.raises(InputError) as raised:
        run_page.page(folder)
    assert raised.value.file == str(file)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
