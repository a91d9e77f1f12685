"""Gang scheduling: the matrix over time, and who has how much of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies.gang_textbook import SHARINGS, TextbookGang

from optsched import simulate
from optsched.errors import InputError
from optsched.machines.matrix import Slice
from optsched.policies.gang import Gang
from optsched.simulator.run import Run
from optsched.traces.cleaning import clean
from optsched.traces.trace import Trace


def gang(trace, columns=4, **settings) -> Run:
    return simulate(trace, f"matrix:{columns}", "gang", settings=settings, check=True, journal=True)


def starts(run):
    return run.start.tolist()


def rows_of(run):
    """Return the row of each job at its start."""
    begun = run.journal.frame.query("event == 'start'")
    return {job: int(text.split()[1][:-1]) for job, text in zip(begun.job, begun.detail)}


def test_two_rows_take_turns(make_trace):
    # job 2 does not fit beside job 1: it gets a row of its own, and both run half of the time
    run = gang(make_trace((0, 100, 100, 3), (10, 20, 20, 3)), mpl=2)
    assert rows_of(run) == {0: 0, 1: 1}
    assert run.end.tolist() == [120, 50]


def test_rounding_of_times_in_the_far_future_loses_no_work(make_trace):
    rows = [(86, 19, 38, 2), (107, 106, 212, 1), (113, 70, 140, 2), (153, 3, 6, 4)]
    trace = make_trace(*((2**36 + at, *row) for at, *row in rows), (2**36 + 164, 124, 248, 1))
    run = gang(trace, mpl=5, context_switch=0.1)  # and checks it
    assert run.summary["finished"] == 5


def test_the_matrix_has_no_more_rows_than_the_multiprogramming_level(make_trace):
    trace = make_trace((0, 100, 100, 3), (10, 20, 20, 3), (11, 20, 20, 3), (12, 5, 5, 1))
    run = gang(trace, mpl=2)
    # job 3 waits for the end of job 2, and job 4 behind it though it would fit
    assert starts(run) == [0, 10, 50, 50]
    assert starts(gang(trace, mpl=2, admission="skip")) == [0, 10, 50, 12]
    assert starts(gang(trace, mpl=3)) == [0, 10, 11, 12]


@pytest.mark.parametrize("admission", ["fcfs", "skip"])
def test_a_job_behind_the_window_has_a_place_when_all_of_the_window_have(admission, make_trace):
    trace = make_trace((0, 1000, 1000, 1), (0, 10, 10, 1), (0, 10, 10, 1), (5, 10, 10, 1))
    run = gang(trace, columns=8, window=1, admission=admission)
    assert starts(run) == [0, 0, 0, 5]


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
    trace = make_trace((0, 30, 30, 3), (0, 30, 30, 2), (0, 30, 30, 2))
    # row 0: columns 0-2; rows 1 and 2 take the idle column first
    run = gang(trace, mpl=3, sharing="nodes")
    shares = run.journal.frame.query("event == 'share' and time == 0")
    held = dict(zip(run.trace.job_id.tolist(), run.resources))
    loads = {c: sum(c in columns(text) for text in held.values()) for c in range(4)}
    slowest = {job - 1: max(loads[c] for c in columns(text)) for job, text in held.items()}
    told = dict(zip(shares.job, map(float, shares.detail)))
    assert {job: 1 / told.get(job, 1.0) for job in range(3)} == pytest.approx(slowest)


def columns(text):
    found = set()
    for word in text.split():
        first, _, last = word.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def test_a_context_switch_costs_its_part_of_every_turn(make_trace):
    trace = make_trace((0, 90, 90, 4), (0, 90, 90, 4), (1000, 50, 50, 4))
    run = gang(trace, mpl=2, time_slice=60, context_switch=6)
    assert run.end.tolist() == pytest.approx([200, 200, 1050])  # alone a job is never switched
    assert run.summary["utilization"] == pytest.approx(230 / 1050)


@pytest.mark.parametrize("order", ["batched", "one-by-one"])
def test_one_row_is_first_come_first_served(shared, order):
    log = shared("traces/SDSC-SP2-1998-4.2-cln.swf.gz")
    common = {"jobs": (1, 8000), "event_order": order}
    one_row = simulate(log, "matrix:128", "gang", settings={"mpl": 1}, **common)
    fcfs = simulate(log, "nodes:128", "fcfs", **common)
    assert starts(one_row) == starts(fcfs)
    assert one_row.end.tolist() == fcfs.end.tolist()


traces = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 30), st.integers(1, 6)), min_size=1, max_size=14
).map(sorted)
settings = st.fixed_dictionaries(
    {
        "mpl": st.integers(1, 4),
        "admission": st.sampled_from(["fcfs", "skip"]),
        "sharing": st.sampled_from(sorted(SHARINGS)),
        "compact": st.booleans(),
        "context_switch": st.sampled_from([0.0, 5.0]),
    }
)


@given(traces, settings)
def test_every_job_does_all_its_work_in_any_variant(rows, settings):
    submit, runtime, processors = (np.array(column) for column in zip(*rows))
    trace = clean(
        Trace(
            job_id=np.arange(1, len(rows) + 1),
            submit=submit,
            runtime=runtime,
            requested_time=runtime,
            processors=processors,
        )
    )
    run = gang(trace, columns=6, **settings)
    assert run.summary["finished"] == len(rows)
    assert run.schedule.run_time == pytest.approx(run.trace.runtime)
    placed = run.journal.frame.query("event in ('start', 'move')").detail
    assert all(int(text.split()[1][:-1]) < settings["mpl"] for text in placed)
    if settings["admission"] == "fcfs":
        assert starts(run) == sorted(starts(run))


@st.composite
def matrices(draw):
    """Draw what jobs hold of a matrix of 6 columns, and its rows."""
    rows, held = [0] * draw(st.integers(1, 4)), {}
    for job in range(draw(st.integers(1, 9))):
        row = draw(st.integers(0, len(rows) - 1))
        place = draw(st.integers(1, 63)) & ~rows[row]
        if place:
            rows[row] |= place
            held[job] = Slice(row, place)
    return held, rows


@given(matrices(), st.sampled_from([1.0, 0.9]))
def test_no_processor_gives_away_more_than_all_its_time(matrix, useful):
    held, rows = matrix
    for name, sharing in SHARINGS.items():
        shares = sharing(held, rows, useful)
        assert set(shares) == set(held)
        assert all(0 < share <= 1 for share in shares.values())
        for column in range(6):
            here = sum(shares[job] for job, place in held.items() if place.columns >> column & 1)
            assert here <= 1 + 1e-12, name
    by_rows, filled = (SHARINGS[name](held, rows, useful) for name in ("rows", "fill"))
    assert all(filled[job] >= by_rows[job] for job in held)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mpl": 0}, "mpl 0; expected a whole number from 1"),
        ({"window": 0}, "window 0; expected"),
        ({"time_slice": "1e10"}, "time slice 10000000000.0; expected seconds above 0"),
        ({"time_slice": "nan"}, "time_slice of policy 'gang': 'nan'; expected a number"),
        ({"context_switch": 60}, "context switch 60.*below the time slice of 60"),
        ({"context_switch": -1}, "context switch -1"),
        ({"sharing": "half"}, "expected one of rows, fill, nodes"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message, make_trace):
    with pytest.raises(InputError, match=message):
        gang(make_trace((0, 10, 10, 1)), **settings)


def test_it_runs_on_a_matrix_and_says_so(make_trace):
    with pytest.raises(InputError, match="policy 'gang' runs on matrix, not on nodes:4"):
        simulate(make_trace((0, 10, 10, 1)), "nodes:4", "gang")


def test_jobs_wait_for_the_first_turn_of_their_row(make_trace):
    # job 2 gets the second row at 10; when it ends, job 3 has that row, and the rest of the turn
    trace = make_trace((0, 100, 100, 3), (10, 20, 20, 3), (70, 90, 90, 3))
    run = gang(trace, mpl=2, sharing="turns")
    assert starts(run) == [0, 60, 80]
    assert run.end.tolist() == [160, 80, 210]
    assert run.jobs["paused_time"].tolist() == [60, 0, 40]


def test_a_context_switch_takes_part_of_each_turn(make_trace):
    trace = make_trace((0, 100, 100, 3), (0, 100, 100, 3))
    run = gang(trace, mpl=2, sharing="turns", context_switch=10)
    # of each turn of 60 s, 50 are work; the last job is alone from 180 on
    assert run.end.tolist() == [180, 230]


def by_the_second(trace, columns, rows, seconds):
    """Starts and ends with turns, simulated second by second, without compaction."""
    jobs = list(zip(trace.submit.tolist(), trace.runtime.tolist(), trace.processors.tolist()))
    matrix = [[] for _ in range(rows)]
    queue, left = list(range(len(jobs))), [runtime for _, runtime, _ in jobs]
    start, end = [None] * len(jobs), [None] * len(jobs)
    on_turn, turn_left, now = None, 0, 0
    while None in end:
        while queue and jobs[queue[0]][0] <= now:
            size = jobs[queue[0]][2]
            free = [columns - sum(jobs[job][2] for job in row) for row in matrix]
            used = [row for row in range(rows) if matrix[row] and free[row] >= size]
            empty = [row for row in range(rows) if not matrix[row]]
            if not used + empty:
                break
            matrix[(used + empty)[0]].append(queue.pop(0))
        used = [row for row in range(rows) if matrix[row]]
        if on_turn not in used or not turn_left:
            after = -1 if on_turn is None else on_turn
            later = [row for row in used if row > after]
            on_turn, turn_left = (later + used + [None])[0], seconds
        if on_turn is not None:
            turn_left -= 1
            for job in list(matrix[on_turn]):
                start[job] = now if start[job] is None else start[job]
                left[job] -= 1
                if not left[job]:
                    end[job] = now + 1
                    matrix[on_turn].remove(job)
        now += 1
    return start, end


@given(rows=traces, mpl=st.integers(1, 4), seconds=st.integers(1, 12))
def test_turns_are_those_of_a_simulation_second_by_second(rows, mpl, seconds):
    submit, runtime, processors = (np.array(column) for column in zip(*rows))
    trace = clean(
        Trace(
            job_id=np.arange(1, len(rows) + 1),
            submit=submit,
            runtime=runtime,
            requested_time=runtime,
            processors=processors,
        )
    )
    settings = {"mpl": mpl, "sharing": "turns", "time_slice": seconds, "compact": False}
    run = gang(trace, columns=6, **settings)
    expected_starts, expected_ends = by_the_second(trace, 6, mpl, seconds)
    assert starts(run) == expected_starts
    assert run.end.tolist() == expected_ends
    assert run.jobs["paused_time"].tolist() == pytest.approx(
        (run.end - run.start - trace.runtime).tolist()
    )


small = st.tuples(st.integers(0, 30), st.integers(1, 60), st.integers(1, 8))


@given(
    st.lists(small, min_size=1, max_size=25),
    st.fixed_dictionaries(
        {
            "mpl": st.integers(1, 4),
            "admission": st.sampled_from(["fcfs", "skip"]),
            "sharing": st.sampled_from(["rows", "fill", "nodes", "turns"]),
            "compact": st.booleans(),
            "window": st.sampled_from([1, 2, 100]),
            "context_switch": st.sampled_from([0.0, 5.0]),
            "time_slice": st.sampled_from([7.0, 60.0]),
        }
    ),
    st.sampled_from(["batched", "one-by-one"]),
    st.booleans(),
)
def test_the_journal_is_that_of_the_textbook(workload, settings, order, charged):
    gaps, runtime, processors = (np.array(column) for column in zip(*workload))
    jobs = np.arange(len(gaps)), np.cumsum(gaps), runtime, runtime, processors
    other = {"event_order": order, "charge_decisions": charged, "journal": True}
    runs = [
        simulate(clean(Trace(*jobs)), "matrix:8", policy(**settings), **other)
        for policy in (Gang, TextbookGang)
    ]
    assert runs[0].journal.entries == runs[1].journal.entries
    assert runs[0].schedule.decisions == runs[1].schedule.decisions
