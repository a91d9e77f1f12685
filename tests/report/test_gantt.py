from __future__ import annotations

import numpy as np
import pytest

from optsched import simulate
from optsched.report import style
from optsched.report.load import ROUND
from optsched.report.pictures import gantt
from optsched.report.pictures.gantt import Gantt, Rectangles, Window


def boxes(*rows):
    """Build rectangles from (job, begin, end, low, high)."""
    job, begin, end, low, high = (np.array(column) for column in zip(*rows))
    return Rectangles(job, begin.astype(float), end.astype(float), low, high)


def caption(figure):
    return figure.axes[0].get_title(loc="left")


def test_rectangles_by_hand(small_run):
    found = gantt.rectangles(gantt.schedule_of(small_run), Window(0, 80, 10))
    assert found.job.tolist() == [0, 2, 1]
    assert list(zip(found.begin, found.end, found.low, found.high)) == [
        (0, 60, 0, 4),
        (9, 39, 4, 7),
        (60, 80, 0, 8),
    ]
    assert gantt.rectangles(gantt.schedule_of(small_run), Window(0, 9, 10)).job.tolist() == [0]
    assert gantt.rectangles(gantt.schedule_of(small_run), Window(60, 80, 10)).job.tolist() == [1]
    assert gantt.rectangles(gantt.schedule_of(small_run), Window(0, 80, 4)).job.tolist() == [0, 1]


def test_the_area_of_all_rectangles_is_the_work(random_run):
    run = random_run(300)
    found = gantt.rectangles(gantt.schedule_of(run), Window(-np.inf, np.inf, 64))
    area = ((found.end - found.begin) * (found.high - found.low)).sum()
    assert area == pytest.approx(((run.end - run.start) * run.trace.processors).sum())
    assert len(found) > len(run.trace)


def test_a_short_run_is_shown_whole(small_run):
    part = gantt.window(small_run)
    assert (part.begin, part.end, part.processors) == (0, 80, 10)


def test_of_a_long_run_a_busy_window_of_a_round_length_is_shown(random_run):
    run = random_run(2000)
    part = gantt.window(run, most=200)
    assert part.end - part.begin in ROUND
    assert part.processors == 64
    shown = gantt.rectangles(gantt.schedule_of(run), part)
    assert 0 < len(shown) <= 200
    held = np.minimum(shown.end, part.end) - np.maximum(shown.begin, part.begin)
    used = (held * (shown.high - shown.low)).sum() / (64 * (part.end - part.begin))
    assert used >= 0.9 * run.summary["utilization"]


def test_many_thin_jobs_are_shown_on_the_first_processors_only(make_trace, monkeypatch):
    monkeypatch.setattr(gantt, "ROWS", 8)
    narrow = [(10 * i, 1000, 1000, 2) for i in range(400)]
    run = simulate(make_trace(*narrow, name="narrow"), "nodes:1000", "fcfs")
    part = gantt.window(run, most=100)
    assert part.processors == 16
    shown = gantt.rectangles(gantt.schedule_of(run), part)
    assert 8 < len(shown) <= 100
    assert shown.low.max() < 16
    wide = simulate(make_trace(*narrow, (0, 9000, 9000, 500), name="wide"), "nodes:1000", "fcfs")
    assert gantt.window(wide, most=100).processors == 1000


def test_a_moment_of_a_very_long_run_is_found(make_trace):
    """A year of nothing but 64 jobs in one hour: the window is a part of that hour."""
    crowd = [(10**7 + 10 * i, 300, 300, 1) for i in range(64)]
    trace = make_trace((0, 1, 1, 1), *crowd, (3 * 10**7, 1, 1, 1), name="year")
    run = simulate(trace, "nodes:64", "fcfs")
    part = gantt.window(run, most=40)
    shown = gantt.rectangles(gantt.schedule_of(run), part)
    assert 10 < len(shown) <= 40
    assert part.begin >= 10**7 - 3600
    assert part.end <= 10**7 + 3600


@pytest.mark.parametrize("runtime", [1, 500])
def test_where_an_instant_is_too_much_only_the_first_processors_are_shown(make_trace, runtime):
    trace = make_trace(*((0, runtime, runtime, 1) for _ in range(64)), name="ones")
    run = simulate(trace, "nodes:64", "fcfs")
    assert gantt.window(run, most=20).processors == 16
    assert "16 of 64 jobs on the first 16 of 64 processors" in caption(Gantt().figure(run, most=20))
    assert caption(Gantt().figure(run, most=64)).startswith("all 64 jobs")


def test_neighbors_differ_in_color():
    grid = [(row * 10 + i, i, i + 1, row, row + 1) for i in range(10) for row in range(10)]
    found = boxes(*grid)
    color = gantt.colors(found, 10, 10).reshape(10, 10)
    assert (color[1:] != color[:-1]).all()
    assert (color[:, 1:] != color[:, :-1]).all()
    assert set(color.ravel()) <= set(range(len(style.FILLS)))


def test_a_job_has_one_color():
    found = boxes((0, 0, 5, 0, 2), (1, 0, 5, 2, 4), (0, 0, 5, 4, 6), (2, 5, 9, 0, 6))
    color = gantt.colors(found, 9, 6)
    assert color[0] == color[2]
    assert len({int(color[0]), int(color[1]), int(color[3])}) == 3


def test_the_caption_says_what_is_left_out(random_run, interrupted_run):
    assert caption(Gantt().figure(interrupted_run)) == ("all 2 jobs that started; 2 never started")
    words = caption(Gantt().figure(random_run(2000), most=200))
    assert words.startswith("a busy time of ")
    assert " of 2,000 jobs" in words


def test_jobs_of_a_small_picture_carry_their_numbers(small_run):
    texts = {
        text.get_text(): text.get_position() for text in Gantt().figure(small_run).axes[0].texts
    }
    assert texts == {"1": (30, 2), "3": (24, 5.5), "2": (70, 4)}


def test_a_single_job_is_not_plural(make_trace):
    run = simulate(make_trace((0, 60, 60, 4)), "nodes:10", "easy")
    assert caption(Gantt().figure(run)) == "1 job that started"
