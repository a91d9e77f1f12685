"""Gantt charts of compared runs below each other."""

from __future__ import annotations

import numpy as np
import pytest

from optsched import save, simulate
from optsched.errors import InputError
from optsched.machines.texts import Texts
from optsched.report.load import DAY
from optsched.report.pictures.gantt import Schedule
from optsched.report.run_comparison import read_runs
from optsched.report.runs_plots import MOST_CHARTS, gantt, window


@pytest.fixture
def compare(make_trace, tmp_path):
    """Return the function that runs a trace under named policies, and compares the runs."""

    def run(rows, machine="nodes:10", **policies):
        trace = make_trace(*rows, name="t")
        runs = {name: simulate(trace, machine, policy) for name, policy in policies.items()}
        return read_runs({n: save(run, tmp_path / n, plots=False) for n, run in runs.items()})

    return run


ROWS = [(0, 60, 60, 6), (5, 20, 20, 8), (9, 30, 30, 3), (12, 5, 40, 2)]
BOTH = {"a": "fcfs", "b": "easy"}


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


def test_a_stated_period_is_shown(compare):
    comparison = compare(daily(6), **BOTH)
    figure = gantt(comparison, (1.0, 2.5)).figure()
    assert {axes.get_xlim() for axes in figure.axes} == {(1.0, 2.5)}
    assert gantt(comparison, (4.0, 99.0)).figure().axes[0].get_xlim() == (4.0, 5.5)
    with pytest.raises(InputError, match=r"days: 6:7; expected a part of 5.5 days"):
        gantt(comparison, (6.0, 7.0))


def test_too_many_jobs_for_a_picture_are_refused(compare, monkeypatch):
    comparison = compare(ROWS, **BOTH)
    monkeypatch.setattr("optsched.report.runs_plots.MOST_ASKED", 3)
    with pytest.raises(InputError, match=r"days: 4 rectangles in one chart; expected .* at most 3"):
        gantt(comparison, (0.0, 1.0))


def test_more_runs_than_charts_are_said_to_be_left_out(compare):
    names = [f"r{place}" for place in range(MOST_CHARTS + 1)]
    figure = gantt(compare(ROWS, **dict.fromkeys(names, "fcfs"))).figure()
    assert len(figure.axes) == MOST_CHARTS
    assert figure.get_suptitle() == f"The first {MOST_CHARTS} schedules"


def test_jobs_that_share_processors_or_hold_boxes_have_no_charts(compare):
    assert gantt(compare(ROWS, "torus:2x2x3", a="torus", b="torus")) is None
    slices = compare(ROWS, "matrix:10", c="gang", d="gang")
    assert gantt(slices) is None
    with pytest.raises(InputError, match="days: these runs have no Gantt chart"):
        gantt(slices, (0.0, 1.0))


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
