"""Pictures of which nodes jobs hold: layers of a torus, levels, slots, rows of a matrix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from report.looks import heading, legend, section, texts, unstarted

from optsched import save, simulate
from optsched.boxes.box import Box
from optsched.report import run_page
from optsched.report.pictures import run_pictures
from optsched.report.pictures.gantt import Gantt
from optsched.report.pictures.nodes import Histogram, Layers, MatrixRows, Slots, Stay, stays
from optsched.report.style import FAINT
from optsched.simulator.policy import Start


def test_the_torus_before_and_after_the_migration(boxes_run):
    figure = Layers().figure(boxes_run())
    assert texts(figure.texts[1:]) == [  # behind the title
        "40 seconds after the first submission, before 1 job moved",
        f"after; {27 / 63:.1%} of the nodes are held",
    ]
    assert legend(figure) == [
        "job 2 to 2x2x2@2,1,2",
        "incoming job",
        "stays",
        "lines: parked on the way",
        "no router for jobs",
    ]
    before, after = (texts(axes.texts) for axes in figure.axes)
    # in two layers each; the box of job 4 goes through the end of Y
    assert (before.count("2"), after.count("2"), after.count("4")) == (2, 2, 2)
    assert FAINT == "#D9D9D9"
    gray = [
        len(patch.get_path().vertices) // 5
        for axes in figure.axes
        for patch in axes.patches
        if patch.get_facecolor()[:3] == pytest.approx((0xD9 / 255,) * 3)
    ]
    # job 1 in its three layers, before and after; job 3 ends at that moment
    assert gray == [3, 3]


def test_without_migrations_the_fullest_moment_is_shown_of_the_run_or_a_period(boxes_run):
    figure = Layers().figure(boxes_run(migrate=False))
    [told] = texts(figure.texts[1:])
    assert told.startswith("0 seconds after the first submission: 3 jobs; 23.8% of the nodes")
    assert legend(figure) == ["no router for jobs"]
    late = boxes_run(migrate=False).plot.layers(days=(100 / 86_400, 200 / 86_400))
    # the third job has ended, and the fourth has no room
    assert late.texts[1].get_text().startswith("1.67 minutes after the first submission: 2 jobs")


def test_a_picture_that_a_run_does_not_have_says_why(small_run, boxes_run, make_trace):
    boxed, trace = boxes_run(migrate=False), make_trace((0, 5, 5, 3))
    line = simulate(trace, "torus:2x2x2", "fcfs")
    slices = simulate(trace, "matrix:4", "gang")
    bare = replace(small_run)
    object.__setattr__(bare, "metrics", {})
    for picture, run, why in (
        (Layers, small_run, "no boxes"),
        (Layers, line, "no boxes"),
        (Layers, unstarted(boxed, 0, 1, 2, 3), "no job started"),
        (Gantt, line, ""),
        (Gantt, boxed, "see layers"),
        (Gantt, slices, "see matrix"),
        (Histogram, small_run, "no boxes"),
        (MatrixRows, slices, "journal"),
        (MatrixRows, simulate(trace, "nodes:4", "fcfs", journal=True), "no Ousterhout matrix"),
        (Slots, bare, "only a line of nodes has slots"),
    ):
        assert why in picture().why_not(run)
        assert why or not picture().why_not(run)


def test_the_pictures_of_a_run_of_boxes(boxes_run, tmp_path):
    names = ["utilization", "waits", "layers", "histogram"]
    folders = [save(boxes_run(), tmp_path / name) for name in ("one", "two")]
    assert sorted(path.stem for path in folders[0].glob("*.svg")) == sorted(names)
    for file in (*folders[0].glob("*.svg"), *folders[0].glob("*.png")):
        assert file.read_bytes() == (folders[1] / file.name).read_bytes()
    pictures = section(run_page.page(folders[0]), "Pictures")
    assert "before and after the migration" in pictures[2].caption
    assert "running" in pictures[3].alt
    every = ["gantt", "matrix", *names[:2], "slots", *names[2:]]
    assert [picture.name for picture in run_pictures()] == every


def test_levels_and_parts_are_those_of_the_node_time(scripted):
    # 9 of 10 nodes held from 0 to 60, 7 run; then 5 held, 4 run, until the last submission at 100
    rows = [(0, 200, 200, 4), (0, 60, 60, 3), (100, 1, 1, 1)]
    boxes = [Box(0, 0, at, 1, 1, length) for at, length in ((0, 5), (5, 4), (5, 2))]
    starts = [Start(job, box) for job, box in enumerate(boxes)]
    run = scripted("torus:1x1x10", rows, {0: starts[:2], 100: starts[2:]})
    levels, parts = Histogram().figure(run).axes
    held, running = (patch.get_data().values for patch in levels.patches)
    assert held.tolist() == pytest.approx(run.metrics["node-time"].histogram(20)[0].tolist())
    assert np.flatnonzero(held).tolist() == [10, 18]
    assert held[18] == pytest.approx(0.6)
    assert np.flatnonzero(running).tolist() == [8, 14]
    assert texts(parts.get_yticklabels()) == ["the whole run", "recorded"]
    widths = np.array([bar.get_width() for bar in parts.patches]).reshape(-1, 2).T
    assert widths.sum(axis=1) == pytest.approx([1, 1])
    assert widths[0] == pytest.approx(list(run.metrics["node-time"].shares.values()))
    assert "from the first 80% of nodes held, after 0 seconds" in levels.get_title(loc="left")


def test_what_never_was_full_has_the_parts_alone(boxes_run):
    figure = Histogram().figure(boxes_run())
    assert heading(figure) == "never 80% of the nodes held while jobs came"
    assert len(figure.axes[0].patches) == 7


def test_the_layers_of_slots_add_up_to_the_free_nodes(make_trace):
    trace = make_trace((0, 50, 50, 3), (0, 100, 100, 2), (10, 10, 10, 9))
    figure = Slots().figure(simulate(trace, "nodes:9", "fcfs"))
    top = max((patch.get_data().values for patch in figure.axes[0].patches), key=np.sum)
    # 4 nodes are free until 50, 7 until 100, then the third job has all of them to the end, at 110
    assert top.mean() == pytest.approx((50 * 4 + 50 * 7) / 110)
    assert legend(figure) == ["1 node", "2 to 3 nodes", "4 to 7 nodes", "8 to 9 nodes"]


@pytest.fixture
def sliced(make_trace):
    """Jobs 1 and 2 in row 0; when job 1 ends, job 3 changes to its place."""
    trace = make_trace((0, 20, 20, 2), (0, 100, 100, 2), (1, 100, 100, 2), (2, 10, 10, 4))
    return simulate(trace, "matrix:4", "gang", settings={"mpl": 2}, journal=True)


def test_stays_in_a_matrix_are_those_of_the_journal(sliced):
    found = list(stays(sliced))
    movers = set(sliced.journal.frame.query("event == 'move'").job)
    moved = [stay for stay in found if stay.job in movers]
    assert len(found) == 4 + len(moved) // 2
    first, second = sorted(moved, key=lambda stay: stay.begin)
    assert (first.row, first.end) == (1 - second.row, second.begin)
    assert first.columns == second.columns
    assert Stay(0, 0, "0-1", 0.0, 39.0) in found
    for one in found:
        for other in found:
            together = one.begin < other.end and other.begin < one.end
            if one is not other and together and one.row == other.row:
                assert one.columns != other.columns


def test_there_is_a_panel_for_each_row_of_a_matrix(sliced):
    assert not MatrixRows().why_not(sliced)
    figure = MatrixRows().figure(sliced)
    assert [axes.get_ylabel() for axes in figure.axes] == ["row 0", "row 1"]
    assert figure.get_supylabel() == "processors"
    assert {"1", "2"} <= set(texts(figure.axes[0].texts))
