"""The picture of the Ousterhout matrix."""

from __future__ import annotations

import pytest

from optsched import simulate
from optsched.report.pictures.gantt import Gantt
from optsched.report.pictures.nodes import MatrixRows, Stay, stays


@pytest.fixture
def run(make_trace):
    """Jobs 1 and 2 in row 0; when job 1 ends, job 3 changes to its place."""
    trace = make_trace((0, 20, 20, 2), (0, 100, 100, 2), (1, 100, 100, 2), (2, 10, 10, 4))
    return simulate(trace, "matrix:4", "gang", settings={"mpl": 2}, journal=True)


def test_stays_are_those_of_the_journal(run):
    found = list(stays(run))
    moved = [
        stay for stay in found if stay.job in set(run.journal.frame.query("event == 'move'").job)
    ]
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


def test_there_is_a_panel_for_each_row(run):
    figure = MatrixRows().figure(run)
    assert [axes.get_ylabel() for axes in figure.axes] == ["row 0", "row 1"]
    assert figure.get_supylabel() == "processors"
    labels = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert {"1", "2"} <= set(labels[0])


def test_jobs_that_share_processors_are_shown_by_rows_alone(run):
    assert "see matrix" in Gantt().why_not(run)
    assert not MatrixRows().why_not(run)


def test_without_a_journal_there_are_no_rows(run, make_trace):
    trace = make_trace((0, 20, 20, 2))
    assert "journal" in MatrixRows().why_not(simulate(trace, "matrix:4", "gang"))
    line = simulate(trace, "nodes:4", "fcfs", journal=True)
    assert "no Ousterhout matrix" in MatrixRows().why_not(line)
