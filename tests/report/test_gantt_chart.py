from __future__ import annotations

import numpy as np
import pytest

from optsched import save, simulate
from optsched.report import run_page
from optsched.report.page import Figure, render
from optsched.report.pictures.gantt import chart_data


def jobs(starts, length=10.0, processors=1, places=None):
    """Return a table of jobs; all are submitted at 5 s."""
    count = len(starts)
    texts = places or ["0"] * count
    start = np.array(starts, dtype=float)
    return {
        "job_id": np.arange(1, count + 1),
        "user": np.arange(count) % 2,
        "submission_time": np.full(count, 5.0),
        "requested_number_of_resources": np.full(count, processors),
        "starting_time": start,
        "finish_time": start + length,
        "allocated_resources": np.array(texts, dtype=object),
    }


def test_a_short_run_is_shown_whole():
    data = chart_data(jobs([25.5, 5, np.nan], places=["0-3 7", "4", ""]))
    assert data["about"] == "All 2 jobs"
    assert data["job"] == [2, 1]
    assert data["begin"] == [0, 20.5]
    assert data["wait"] == [0, 20.5]
    assert data["length"] == [10, 10]
    assert data["places"] == ["4", "0-3 7"]
    assert [data["users"][place] for place in data["user"]] == ["1", "0"]
    assert data["period"] == data["view"] == [0, 30.5]


def test_of_a_long_run_the_busiest_period_is_shown():
    # starts every 100 s; 4 of them, from 1005 s on, every 10 s
    starts = [5 + 100 * k for k in range(10)] + [1005, 1015, 1025, 1035, 1135]
    data = chart_data(jobs(starts), most=3)
    assert data["period"] == [1000, 1030]
    assert data["job"] == [11, 12, 13]
    assert data["about"] == "The busiest period: 3 of 15 jobs"


def test_jobs_that_run_on_into_the_period_are_shown_too():
    table = jobs([5, 1005, 1010, 1015, 1020])
    table["finish_time"][0] = np.nan  # still runs at the end
    data = chart_data(table, most=2)
    assert data["period"][0] == 1000
    assert data["job"][0] == 1
    assert data["length"][0] == 1025


def test_times_that_are_not_finite_are_no_times():
    table = jobs([5, 1005])
    table["finish_time"][0] = np.inf
    table["submission_time"][1] = np.nan
    data = chart_data(table)
    assert (data["job"], data["length"]) == ([1], [0])


def test_intervals_count_like_jobs():
    places = ["0 2 4 6"] * 6
    data = chart_data(jobs([5 + k for k in range(6)], places=places), most=8)
    assert len(data["job"]) < 6


@pytest.mark.parametrize("table", [jobs([np.nan, np.nan]), {"job_id": np.array([1])}])
def test_without_places_there_is_no_chart(table):
    assert chart_data(table) is None


def test_names_of_users_do_not_end_the_data(make_trace, tmp_path):
    trace = make_trace(*((0, 60, 60, 4) for _ in range(2)))
    texts = {"user_name": np.array(["</script><script>alert(1)", "anna\n"], dtype=object)}
    folder = save(simulate(trace.changed(texts=texts), "nodes:4", "fcfs"), tmp_path / "run")
    page = run_page.page(folder)
    [gantt] = [
        part
        for section in page.sections
        for part in section.parts
        if isinstance(part, Figure) and part.charts
    ]
    assert gantt.name == "gantt"
    [chart] = gantt.charts
    assert chart["users"] == ["</script><script>alert(1)", "anna\\n"]
    text = render(page)
    assert text.count("</script>") == 2
    assert "\\u003c/script>\\u003cscript>alert(1)" in text
