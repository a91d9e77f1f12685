from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optsched import save, simulate
from optsched.boxes.box import Box
from optsched.metrics.node_time import stays_of
from optsched.report import run_page
from optsched.report.pictures import run_pictures
from optsched.report.pictures.gantt import Gantt
from optsched.report.pictures.nodes import Layers
from optsched.report.style import FAINT


def told(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def headings(figure):
    return [text.get_text() for text in figure.texts[1:]]  # behind the title


def test_stays_follow_the_migrations(boxes_run):
    run = boxes_run()
    stays = stays_of(run.machine, run.schedule, run.end)
    rows = zip(stays.job.tolist(), stays.since.tolist(), stays.until.tolist(), stays.box.tolist())
    end = run.end.tolist()
    assert [(job, begin, until, str(Box(*box))) for job, begin, until, box in rows] == [
        (0, 0, end[0], "1x3x1@0,0,0"),
        (1, 0, 40, "2x2x2@0,0,2"),
        (1, 40, end[1], "2x2x2@2,1,2"),
        (2, 0, 40, "2x2x1@2,1,1"),
        (3, 40, end[3], "4x2x2@0,3,2"),
    ]
    assert set(stays.before(40)) == {0, 1, 2}
    assert set(stays.after(40)) == {0, 1, 3}
    assert stays.fullest(0, 100) == 40
    assert stays.fullest(0, 20) <= 20 <= stays.fullest(20, 30) <= 30


def test_the_torus_before_and_after_the_migration(boxes_run):
    run = boxes_run()
    figure = Layers().figure(run)
    assert len(figure.axes) == 2
    before, after = headings(figure)
    assert before == "40 seconds after the first submission, before 1 job moved"
    assert after == f"after; {27 / 63:.1%} of the nodes are held"
    assert told(figure) == [
        "job 2 to 2x2x2@2,1,2",
        "incoming job",
        "stays",
        "lines: parked on the way",
        "no router for jobs",
    ]
    labels = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    # in two layers each; the box of job 4 goes through the end of Y
    assert [found.count("2") for found in labels] == [2, 2]
    assert labels[1].count("4") == 2


def test_jobs_that_end_at_that_moment_are_not_among_those_before(boxes_run):
    figure = Layers().figure(boxes_run())
    gray = [
        len(patch.get_path().vertices) // 5
        for axes in figure.axes
        for patch in axes.patches
        if patch.get_facecolor()[:3] == pytest.approx((0xD9 / 255,) * 3)
    ]
    assert FAINT == "#D9D9D9"
    assert gray == [3, 3]  # job 1 in its three layers, before and after


def test_without_migrations_the_fullest_moment_is_shown(boxes_run):
    run = boxes_run(migrate=False)
    figure = Layers().figure(run)
    (heading,) = headings(figure)
    assert heading.startswith("0 seconds after the first submission: 3 jobs; 23.8% of the nodes")
    assert told(figure) == ["no router for jobs"]


def test_other_runs_have_no_layers_and_runs_of_boxes_no_gantt(small_run, boxes_run, make_trace):
    assert "no boxes" in Layers().why_not(small_run)
    line = simulate(make_trace((0, 5, 5, 3)), "torus:2x2x2", "fcfs")
    assert "no boxes" in Layers().why_not(line)
    assert not Gantt().why_not(line)
    assert "see layers" in Gantt().why_not(boxes_run())


def test_a_run_in_which_no_job_ran_has_no_layers(boxes_run):
    run = boxes_run(migrate=False)
    never = np.full(4, np.nan)
    waiting = run.schedule._replace(
        start=never, end=never, state=np.array(["WAITING"] * 4), resources=[""] * 4
    )
    assert Layers().why_not(replace(run, schedule=waiting)) == "no job started"


def test_the_pictures_of_a_run_of_boxes(boxes_run, tmp_path):
    names = ["utilization", "waits", "layers", "histogram"]
    folders = [save(boxes_run(), tmp_path / name) for name in ("one", "two")]
    assert sorted(path.stem for path in folders[0].glob("*.svg")) == sorted(names)
    for name in names:
        for suffix in ("svg", "png"):
            one, two = ((folder / f"{name}.{suffix}").read_bytes() for folder in folders)
            assert one == two
    page = run_page.page(folders[0])
    [pictures] = [section.parts for section in page.sections if section.title == "Pictures"]
    assert "before and after the migration" in pictures[2].caption
    assert "running" in pictures[3].alt
    assert [picture.name for picture in run_pictures()] == [
        "gantt",
        "matrix",
        *names[:2],
        "slots",
        *names[2:],
    ]
