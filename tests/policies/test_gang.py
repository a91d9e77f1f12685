"""Gang scheduling: the matrix over time, and who has how much of it."""

from __future__ import annotations

import pytest

from optsched import simulate
from optsched.errors import InputError


def gang(trace, columns=4, **settings):
    return simulate(trace, f"matrix:{columns}", "gang", settings=settings, check=True, journal=True)


def test_rounding_of_times_in_the_far_future_loses_no_work(make_trace):
    rows = [(86, 19, 38, 2), (107, 106, 212, 1), (113, 70, 140, 2), (153, 3, 6, 4)]
    trace = make_trace(*((2**36 + at, *row) for at, *row in rows), (2**36 + 164, 124, 248, 1))
    run = gang(trace, mpl=5, context_switch=0.1)  # and checks it
    assert run.summary["finished"] == 5


def test_the_matrix_has_no_more_rows_than_the_multiprogramming_level(make_trace):
    trace = make_trace((0, 100, 100, 3), (10, 20, 20, 3), (11, 20, 20, 3), (12, 5, 5, 1))
    run = gang(trace, mpl=2)
    # job 3 waits for the end of job 2, and job 4 behind it though it would fit
    assert run.start.tolist() == [0, 10, 50, 50]
    assert gang(trace, mpl=2, admission="skip").start.tolist() == [0, 10, 50, 12]
    assert gang(trace, mpl=3).start.tolist() == [0, 10, 11, 12]


def test_running_jobs_change_rows_so_that_a_row_becomes_free(make_trace):
    # jobs 1 and 2 fill row 0, job 3 stands under job 1; when that ends it can move beside job 2
    trace = make_trace((0, 20, 20, 2), (0, 100, 100, 2), (1, 100, 100, 2), (2, 10, 10, 4))
    moving = gang(trace, mpl=2)
    staying = gang(trace, mpl=2, compact=False)
    assert moving.journal.frame.query("event == 'move'").job.tolist() in ([1], [2])
    assert "move" not in set(staying.journal.frame.event)
    # rows take turns from 1 on, so job 1 ends at 39
    assert (moving.start[3], staying.start[3]) == (39, pytest.approx(199))


def test_jobs_also_run_where_their_columns_are_idle(make_trace):
    # row 0: job 1 on three columns, job 3; row 1: job 2 on three others, job 4
    trace = make_trace((0, 1000, 1000, 3), (0, 10, 10, 3), (0, 100, 100, 1), (0, 1000, 1000, 1))
    # when job 2 is gone, at 20, the column of job 3 is idle in row 1
    assert gang(trace, mpl=2).end.tolist()[1:3] == [20, 200]
    assert gang(trace, mpl=2, sharing="fill").end.tolist()[1:3] == [20, 110]


def test_a_node_is_shared_by_the_jobs_on_it_alone(make_trace):
    trace = make_trace((0, 30, 30, 3), (0, 30, 30, 1), (0, 30, 30, 2))
    run = gang(trace, mpl=2, sharing="nodes")
    # job 2 is alone on its column; with turns of the rows it would end at 60
    assert list(run.resources) == ["0-2", "3", "0-1"]
    assert run.end.tolist() == [60, 30, 60]


def test_a_context_switch_costs_its_part_of_every_turn(make_trace):
    trace = make_trace((0, 90, 90, 4), (0, 90, 90, 4), (1000, 50, 50, 4))
    run = gang(trace, mpl=2, time_slice=60, context_switch=6)
    assert run.end.tolist() == pytest.approx([200, 200, 1050])  # alone a job is never switched
    assert run.summary["utilization"] == pytest.approx(230 / 1050)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mpl": 0}, "mpl 0; expected a whole number from 1"),
        ({"window": 0}, "window 0; expected"),
        ({"time_slice": "1e10"}, "time slice 10000000000.0; expected seconds above 0"),
        ({"context_switch": 60}, "context switch 60.*below the time slice of 60"),
        ({"sharing": "half"}, "expected one of rows, fill, nodes"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message, make_trace):
    with pytest.raises(InputError, match=message):
        gang(make_trace((0, 10, 10, 1)), **settings)


def test_jobs_wait_for_the_first_turn_of_their_row(make_trace):
    # job 2 gets the second row at 10; when it ends, job 3 has that row, and the rest of the turn
    trace = make_trace((0, 100, 100, 3), (10, 20, 20, 3), (70, 90, 90, 3))
    run = gang(trace, mpl=2, sharing="turns")
    assert run.start.tolist() == [0, 60, 80]
    assert run.end.tolist() == [160, 80, 210]
    assert run.jobs["paused_time"].tolist() == [60, 0, 40]
