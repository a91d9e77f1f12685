"""Runs of the same jobs: what is compared, and which runs are refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import save, simulate
from optsched.errors import InputError
from optsched.report.run_comparison import MOST_RUNS, pair, read_runs
from report.looks import change_json

ROWS = [(0, 60, 60, 6), (5, 20, 20, 8), (9, 30, 30, 3), (12, 5, 40, 2)]

waits = st.none() | st.integers(0, 5)


@pytest.fixture
def saved(make_trace, tmp_path):
    """Return the function that simulates jobs on ten nodes, and saves the run without pictures."""

    def make(name, policy="easy", rows=ROWS, trace="t", **options):
        run = simulate(make_trace(*rows, name=trace), "nodes:10", policy, **options)
        return save(run, tmp_path / name, plots=False)

    return make


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


def test_the_table_has_the_figures_of_the_summaries(saved):
    folders = {name: saved(name, name) for name in ("fcfs", "easy")}
    comparison = read_runs(folders)
    assert list(comparison.table["run"]) == ["fcfs", "easy"]
    for row in comparison.table.to_dict("records"):
        summary = json.loads((folders[row["run"]] / "summary.json").read_text())
        for name in ("mean_wait", "p95_wait", "utilization", "rejected"):
            assert row[name] == summary[name]
    easy = comparison.table.iloc[1]
    assert (easy["paired_less"], easy["paired_equal"], easy["paired_more"]) == (0.5, 0.5, 0.0)
    assert comparison.table["mean_wait"][0] + easy["paired_difference"] == easy["mean_wait"]


PART = {"jobs": (1, 2)}


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


def test_the_same_jobs_under_another_name_are_compared(saved):
    one, other = saved("one"), saved("other", "fcfs", trace="copy")
    assert len(read_runs({"one": one, "other": other}).runs) == 2


def test_the_number_of_runs_is_limited(saved):
    run = saved("one")
    for number, told in ((1, "one run"), (MOST_RUNS + 1, f"{MOST_RUNS + 1} runs")):
        with pytest.raises(InputError, match=f"^{told} to compare; expected 2 to {MOST_RUNS}$"):
            read_runs({str(place): run for place in range(number)})


def test_a_run_without_its_jobs_is_refused(saved):
    one, other = saved("one"), saved("other")
    (other / "jobs.parquet").unlink()
    with pytest.raises(InputError, match=r"other: holds no jobs\.parquet"):
        read_runs({"one": one, "other": other})


def test_jobs_that_only_one_run_starts_are_counted(saved, make_trace, tmp_path):
    run = simulate(make_trace(*ROWS, name="t"), "nodes:10", "easy")
    start, end, state = run.start.copy(), run.end.copy(), run.state.astype("<U30")
    start[3], end[3], state[3] = np.nan, np.nan, "WAITING"
    resources = [*run.resources[:3], ""]
    schedule = run.schedule._replace(start=start, end=end, state=state, resources=resources)
    other = save(replace(run, schedule=schedule), tmp_path / "other", plots=False)
    row = read_runs({"one": saved("one"), "other": other}).table.iloc[1]
    assert (row["paired_jobs"], row["paired_only_baseline"], row["paired_only_here"]) == (3, 1, 0)
