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

    def run(rows, policies, machine="nodes:10", **options):
        trace = make_trace(*rows, name="t")
        return read_runs(
            {
                name: save(
                    simulate(trace, machine, policy, **options), tmp_path / name, plots=False
                )
                for name, policy in policies.items()
            }
        )

    return run


ROWS = [(0, 60, 60, 6), (5, 20, 20, 8), (9, 30, 30, 3), (12, 5, 40, 2)]


def painted(axes):
    """Return the corner points of a chart by color."""
    return {
        patch.get_facecolor(): {tuple(at) for at in path.vertices[path.codes != path.CLOSEPOLY]}
        for patch in axes.patches or axes.artists
        for path in [patch.get_path()]
    }


def test_a_job_has_one_place_in_each_schedule_and_one_color_in_all(compare):
    comparison = compare(ROWS, {"a": "fcfs", "b": "easy", "c": "fcfs"})
    figure = gantt(comparison).figure()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title.split(",")[0] for title in titles] == ["a", "b", "c"]
    limits = {(axes.get_xlim(), axes.get_ylim()) for axes in figure.axes}
    assert limits == {((0.0, comparison.span[1]), (0.0, 10.0))}
    first, second, third = map(painted, figure.axes)
    assert first == third != second
    assert set(first) == set(second)
    for run, charts in zip(comparison.runs, (first, second)):
        starts = run.outcome["starting_time"]
        lefts = sorted(min(x for x, _ in corners) for corners in charts.values())
        assert lefts == sorted(starts)


def schedule(starts, runtime, processors):
    starts = np.array(starts, dtype=float)
    texts = [f"{low}-{low + processors - 1}" for low in np.arange(len(starts)) % 2 * processors]
    return Schedule(starts, starts + runtime, Texts.of(texts))


def test_the_time_that_is_shown_is_one_in_which_the_schedules_differ():
    starts = np.arange(0, 400 * DAY, DAY)
    changed = starts + np.where((starts >= 200 * DAY) & (starts < 203 * DAY), 0.5 * DAY, 0.0)
    processors = np.full(len(starts), 4)
    schedules = [schedule(own, 0.4 * DAY, 4) for own in (starts, changed)]
    span = 0.0, 400 * DAY
    part = window(processors, schedules, 8, span, most=20)
    assert part.begin <= 200 * DAY
    assert part.end >= 203 * DAY
    assert part.end - part.begin <= 20 * DAY
    whole = window(processors, schedules, 8, span, most=400)
    assert (whole.begin, whole.end, whole.processors) == (*span, 8)
    same = window(processors, [schedules[0], schedules[0]], 8, span, most=20)
    assert 0 < same.end - same.begin <= 20 * DAY


def test_a_stated_period_is_shown(compare):
    rows = [(DAY * day, 0.5 * DAY, DAY, 3) for day in range(6)]
    comparison = compare(rows, {"a": "fcfs", "b": "easy"})
    figure = gantt(comparison, (1.0, 2.5)).figure()
    assert {axes.get_xlim() for axes in figure.axes} == {(1.0, 2.5)}
    assert gantt(comparison, (4.0, 99.0)).figure().axes[0].get_xlim() == (4.0, 5.5)
    with pytest.raises(InputError, match=r"days: 6:7; expected a part of 5.5 days"):
        gantt(comparison, (6.0, 7.0))


def test_too_many_jobs_for_a_picture_are_refused(compare, monkeypatch):
    comparison = compare(ROWS, {"a": "fcfs", "b": "easy"})
    monkeypatch.setattr("optsched.report.runs_plots.MOST_ASKED", 3)
    with pytest.raises(InputError, match=r"days: 4 rectangles in one chart; expected .* at most 3"):
        gantt(comparison, (0.0, 1.0))


def test_more_runs_than_charts_are_said_to_be_left_out(compare):
    figure = gantt(
        compare(ROWS, {f"r{place}": "fcfs" for place in range(MOST_CHARTS + 1)})
    ).figure()
    assert len(figure.axes) == MOST_CHARTS
    assert figure.get_suptitle() == f"The first {MOST_CHARTS} schedules"


def test_jobs_that_share_processors_or_hold_boxes_have_no_charts(compare):
    torus = compare(ROWS, {"a": "torus", "b": "torus"}, "torus:2x2x3")
    assert gantt(torus) is None
    slices = compare(ROWS, {"c": "gang", "d": "gang"}, "matrix:10")
    assert gantt(slices) is None
    with pytest.raises(InputError, match="days: these runs have no Gantt chart"):
        gantt(slices, (0.0, 1.0))


def test_charts_to_zoom_begin_with_the_part_of_the_picture_and_have_more_around_it(compare):
    rows = [(DAY * day, 0.5 * DAY, DAY, 3) for day in range(20)]
    charts = gantt(compare(rows, {"a": "fcfs", "b": "easy"}), (6.0, 7.0))
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
