"""Boxes on a torus: placing, migrating, reserving, backfilling."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies import workloads

from optsched import load_snapshot, simulate
from optsched.policies._torus import Reason, Scan
from optsched.policies.torus import TorusBoxes
from optsched.solvers.migration.position_search import PositionSearch


def run(trace, machine="torus:4x1x1:hilbert:wrap=none", given=(), **options):
    options = {"interval": 0, "large": 2, "detect": "exact"} | options
    return simulate(trace, machine, "torus", settings=options, check=True, **dict(given))


def boxes(found):
    return found.jobs["box"].tolist()


@pytest.fixture
def apart(make_trace):
    """Return a trace: two routers are free, but not beside each other, when job 5 needs two."""
    return make_trace(
        (0, 10, 10, 1), (0, 100, 100, 1), (0, 10, 10, 1), (0, 200, 200, 1), (20, 50, 50, 2)
    )


def test_a_large_job_is_let_in_by_migration(apart):
    moved = run(apart, large=1)
    assert moved.start.tolist() == [0, 0, 0, 0, 20]
    assert moved.migrations["job_id"].tolist() == [2]  # cheaper than job 4? both cost 20
    assert moved.end.tolist()[1] == 100 + 300.064  # the restart of a job of one node
    free = run(apart, large=1, restart=0, per_node=0)
    assert free.end.tolist() == [10, 100, 10, 200, 70]
    for options in ({"large": 1, "migrate": False}, {"large": 2}):
        waits = run(apart, **options)
        assert waits.start.tolist() == [0, 0, 0, 0, 100]
        assert not len(waits.migrations)


@pytest.mark.parametrize(
    ("backfill", "starts"), [("none", [100, 100]), ("shadow", [100, 3]), ("easy", [2, 100])]
)
def test_jobs_behind_the_head_end_by_its_shadow_time_or_keep_off_the_reserved_box(
    backfill, starts, make_trace
):
    trace = make_trace((0, 100, 100, 3), (1, 50, 50, 2), (2, 300, 300, 1), (3, 90, 90, 1))
    found = run(trace, backfill=backfill, migrate=False, large=9)
    assert found.start.tolist() == [0, 100, *starts]


def test_by_layers_the_whole_partition_is_reserved(make_trace):
    # the head fits into the upper half, of which the layers do not see a part
    trace = make_trace(
        (0, 100, 100, 2), (0, 100, 100, 1), (0, 1000, 1000, 1), (1, 50, 50, 2), (2, 900, 900, 1)
    )
    found = run(trace, "torus:1x4x1:wrap=none", migrate=False, detect="layered", backfill="easy")
    assert found.start.tolist() == [0, 0, 0, 100, 100]


def test_migration_for_a_later_job_leaves_the_promise_to_the_head(make_trace):
    # two and two routers are free; job 6 is promised those of job 1 and the two beside it, and
    # they would do for job 7, too, if job 1 went to the other two
    running = [(0, end, end, 2) for end in (100, 10, 5000, 10, 5000)]
    head, later = (11, 50, 50, 3), (12, 5000, 5000, 4)
    machine = "torus:1x1x10:wrap=none"
    alone = run(make_trace(*running, later), machine, large=3)
    assert alone.migrations["job_id"].tolist() == [1]
    assert alone.start.tolist()[5] == 12
    for backfill in ("none", "shadow", "easy"):
        found = run(make_trace(*running, head, later), machine, large=3, backfill=backfill)
        assert found.start.tolist()[5] == 100
        assert not len(found.migrations)


@pytest.mark.parametrize(
    ("options", "last"), [({"pause": True}, 150), ({}, 3), ({"depth": 2}, 150)]
)
def test_backfilling_stops_at_the_next_large_job_and_at_the_end_of_the_window(
    options, last, make_trace
):
    trace = make_trace((0, 100, 100, 3), (1, 50, 50, 4), (2, 50, 50, 3), (3, 10, 10, 1))
    found = run(trace, **{"pause": False, "migrate": False} | options)
    assert found.start.tolist() == [0, 100, 150, last]


LINE = "torus:1x1x22:wrap=none"


def ahead(trace, **options):
    fast = {"interval": 10, "large": 6, "prepare": "ahead", "restart": 7, "per_node": 0}
    return run(trace, LINE, **fast | options)


@pytest.fixture
def coming(make_trace):
    """Return a function that makes a trace: job 11 is large, and three jobs stand before it.

    From 5 s on, jobs 1 to 4 hold routers 0 to 18 of the line (until 30, 1000, 38 and 1000 s), job 6
    holds router 20 (until 1000 s), and 19 and 21 are free. So jobs 8 to 10, of `nodes` each, wait
    for job 1, and job 11, of 7 nodes, waits for job 3, with job 4 in its way.
    """

    def make(nodes=2, *more):
        held = [(0, 30, 6), (0, 1000, 6), (0, 38, 6), (0, 1000, 1), (0, 5, 1), (0, 1000, 1)]
        queue = [(6, 100, nodes)] * 3 + [(6, 50, 7)]
        jobs = [*held, (0, 5, 1), *queue, *more]
        return make_trace(*[(at, seconds, seconds, size) for at, seconds, size in jobs])

    return make


def test_a_large_job_is_prepared_when_it_enters_the_window(coming):
    # detected at 10 s with three jobs before it, it expects to start at 40 s: job 3 ends by then,
    # and job 4 is moved at once
    found = ahead(coming())
    assert found.migrations[["time", "job_id", "taken"]].values.tolist() == [
        [10, 4, "1x1x1@0,0,19"]
    ]
    assert found.start.tolist()[7:] == [30, 30, 30, 40]
    assert boxes(found)[10] == "1x1x7@0,0,12"
    figures = {"large_detected": 1, "large_mean_buffer": 30, "large_mean_ahead": 3, "prepared": 1}
    figures |= {"prepared_starts": 1, "prepared_mean_buffer": 30}
    figures |= {"not_prepared": {}, "given_up": {}, "prepared_beside": 0}
    figures |= {"migrations_at_start": 0, "migrations_ahead": 1}
    assert {name: found.summary[name] for name in figures} == figures


def test_without_preparation_jobs_are_moved_at_the_start_alone(coming):
    found = ahead(coming(), prepare="at-start")
    assert found.migrations["time"].tolist() == [40]
    assert not [name for name in found.summary if "prepared" in name or "detected" in name]


def test_in_the_prepared_box_jobs_end_by_the_reserved_time(coming):
    # 18 and 21 are free at 20 s; 18 is reserved from 40 s on
    easy = {"backfill": "easy", "pause": False}
    short = ahead(coming(2, *[(12, 20, 1)] * 2), **easy)
    assert short.start.tolist()[10:] == [40, 20, 20]
    assert boxes(short)[11:] == ["1x1x1@0,0,21", "1x1x1@0,0,18"]
    long = ahead(coming(2, *[(12, 21, 1)] * 2), **easy)
    assert long.start.tolist()[10:] == [40, 20, 50]
    unprepared = ahead(coming(2, *[(12, 500, 1)] * 2), prepare="at-start", **easy)
    assert unprepared.start.tolist()[10:] == [130, 20, 20]


def test_the_queue_head_takes_the_prepared_box_if_it_fits_nowhere_else(coming):
    found = ahead(coming(3))
    assert found.start.tolist()[7:10] == [30, 30, 40]
    assert boxes(found)[9] == "1x1x3@0,0,12"
    assert (found.summary["prepared"], found.summary["prepared_starts"]) == (1, 0)
    assert found.summary["given_up"] == {"taken by the queue head": 1}


def test_a_lost_box_counts_once_though_another_follows_beside_a_later_job():
    """Job 0 loses its box to the queue head, and starts in one that a plan for job 1 reserves."""
    system = SimpleNamespace(now=0.0, processors=[9, 9], start=[None, None], submit=[0.0, 0.0])
    scan, box = Scan(large=8, most=None), ((0, 0, 0), (1, 1, 1))
    scan.look([0, 1], system)
    scan.prepare({0: box}, 60.0, 0.0)
    scan.give_up(0, Reason.HEAD)
    scan.prepare({1: box, 0: box}, 60.0, 30.0)
    for job in (0, 1):
        scan.start(job)
        system.start[job] = 60.0
    figures = scan.figures(system)
    assert (figures["prepared"], figures["prepared_starts"]) == (2, 1)
    assert figures["given_up"] == {"taken by the queue head": 1}


def test_one_job_is_prepared_at_a_time_unless_more_may_be(coming):
    # job 12, too, needs seven routers, which are free when jobs 2, 4 and 6 have ended
    second = (6, 50, 7)
    one, both = (ahead(coming(2, second), preparations=most) for most in (1, None))
    assert one.start.tolist() == both.start.tolist()
    assert one.start.tolist()[10:] == [40, 90]
    # there is a plan for it from 30 s on, when job 1 has ended; job 11 starts at 40 s
    assert one.summary["prepared_mean_buffer"] == (30 + 50) / 2
    assert both.summary["prepared_mean_buffer"] == (30 + 60) / 2


def test_what_keeps_a_detected_job_from_a_box_such_as_too_many_moves_is_counted(coming, make_trace):
    free = ahead(make_trace((0, 10, 10, 7)))
    assert free.summary["not_prepared"] == {"started when detected": 1}
    assert ahead(coming(), moves=1).summary["refused_plans"] == 0
    found = ahead(coming(), moves=0)
    assert found.summary["not_prepared"] == {"no plan": 1}
    assert found.summary["refused_plans"] > 0
    assert found.start[10] == 1000
    assert not len(found.migrations)


def test_with_a_worth_other_jobs_get_a_box_in_the_plan_that_prepares_a_large_one(
    make_trace, tmp_path
):
    # jobs hold 0-7 (until 38 s), 8-13 (until 30 s), 14-19, 20 and 22; 21 and 23 are free. Job 8 has
    # 8-13 at 30 s, and job 10 expects seven of 0-7 at 38 s. Job 9, which is before it, takes that
    # box unless it got another one, for which one more job moves
    held = [(30, 6), (1000, 6), (38, 8), (1000, 1), (5, 1), (1000, 1), (5, 1)]
    rows = [(0, end, end, size) for end, size in held]
    queue = [(6, 100, 100, 6), (6, 100, 100, 2), (6, 50, 50, 7)]
    options = {"interval": 10, "large": 6, "prepare": "ahead", "restart": 0, "per_node": 0}
    # a move costs 10 node-seconds, and the two nodes, of the first job, count twice
    for solver in ("migrate-then-place", "migration-based", "highs"):
        for worth in (2, 3):
            given = {"solver": {"reconfiguration": solver}}
            given |= {"capture": tmp_path} if (solver, worth) == ("highs", 3) else {}
            trace = make_trace(*rows, *queue)
            found = run(trace, "torus:1x1x24:wrap=none", given, worth=worth, **options)
            joint = worth == 3 and solver != "migrate-then-place"
            assert found.start.tolist()[7:] == [30, 10 if joint else 40, 40]
            names = ["prepared", "prepared_starts", "prepared_beside", "migrations_ahead"]
            assert [found.summary[name] for name in names] == [1, joint, joint, joint]
    problem = joint_problem(tmp_path)
    assert (problem.waiting, problem.profits, problem.required) == ((7, 2), (7, 4), (0,))
    assert [str(box) for box in problem.ending] == ["1x1x8@0,0,0"]


def joint_problem(folder):
    """Return the only problem of reconfiguration that was captured."""
    problems = [load_snapshot(file) for file in sorted(folder.iterdir())]
    [problem] = [problem for problem in problems if problem.name == "reconfiguration"]
    return problem


def test_no_job_beside_the_prepared_box_stands_in_the_way_of_the_queue_head(make_trace):
    # by estimates job 7 gets routers 0 to 5 at 50 s, and job 5 gets 6 to 9 at 30 s; at 20 s jobs 2
    # and 3 end, so that 3 to 7 are free: job 5 takes four, though 6 and 7 alone would do for job 6
    held = [(0, 50, 50, 3), (0, 20, 50, 3), (0, 20, 30, 2), (0, 29, 30, 2)]
    queue = [(1, 100, 100, 4), (1, 100, 100, 2), (1, 100, 100, 6)]
    found = run(make_trace(*held, *queue), "torus:1x1x10:wrap=none", large=5, prepare="ahead")
    assert found.start.tolist()[4:6] == [20, 29]
    assert (found.summary["prepared"], found.summary["prepared_starts"]) == (1, 0)


@pytest.mark.parametrize("place", ["bins", "boxes"])
def test_a_job_without_a_box_is_rejected(make_trace, place):
    """Of five routers in a line or in a ring, in which layers see no wrap-around."""
    trace, hole = make_trace((0, 10, 10, 4), (0, 10, 10, 3)), "holes=1x1x1@3,0,0"
    line = run(trace, f"torus:5x1x1:wrap=none:{hole}", place=place)
    assert line.summary["rejected"] == 1
    assert np.isnan(line.start[0])
    ring = run(trace, f"torus:5x1x1:{hole}", place=place)
    assert ring.summary["rejected"] == 0
    assert boxes(ring)[0] == "4x1x1@4,0,0"
    layered = run(trace, f"torus:5x1x1:{hole}", detect="layered")
    assert layered.summary["rejected"] == 1


def test_what_it_posed_is_captured_and_answered_again(apart, tmp_path):
    found = run(apart, large=1, given={"solver": "migration=position-search", "capture": tmp_path})
    assert found.config["solver"] == "partition-mkp=migration-based,migration=position-search"
    kinds = [load_snapshot(file).name for file in sorted(tmp_path.iterdir())]
    assert set(kinds) == {"partition-mkp", "migration"}
    assert found.summary["migrations"] == 1


def jointly(make_trace, side, queue, solver="migrate-then-place", capture=None, **options):
    """Run jobs on a line of which every other router, from the first on, is free at 5 s."""
    held = [(0, end, end, 1) for end in itertools.islice(itertools.cycle((5, 1000)), side)]
    nodes = sum(size for at, *_, size in (*held, *queue) if at == 0)
    options = {"restart": 0, "per_node": 0, "worth": 100} | options
    given = {"solver": {"reconfiguration": solver}, "capture": capture}
    return run(make_trace(*held, *queue), f"torus:1x1x{nodes}:wrap=none", given, **options)


def test_with_a_worth_jobs_are_moved_for_others_than_the_large_job(make_trace, tmp_path):
    queue = [(10, 50, 50, 3), (10, 50, 50, 2)]
    in_turn = jointly(make_trace, 9, queue)
    assert in_turn.start.tolist()[9:] == [10, 60]
    assert len(in_turn.migrations) == 1
    both = jointly(make_trace, 9, queue, "migration-based", tmp_path)
    assert both.start.tolist()[9:] == [10, 10]
    assert len(both.migrations) == 2
    problem = joint_problem(tmp_path)
    assert (problem.waiting, problem.required, problem.worth) == ((3, 2), (0,), 100)
    assert problem.costs == (10,) * 4
    # a move costs 10 node-seconds, and the job has two nodes, as the first one counted twice
    dear = jointly(make_trace, 9, queue, "migration-based", worth=2)
    assert dear.start.tolist()[9:] == [10, 60]


@pytest.mark.parametrize(
    ("backfill", "requested", "start"),
    [("shadow", 50, 11), ("shadow", 2000, 550), ("easy", 2000, 11), ("none", 50, 550)],
)
def test_beside_a_blocked_head_jobs_start_that_may_be_backfilled(
    make_trace, backfill, requested, start
):
    # beyond the eleven routers are three, for the head, from 500 to 550 s; the next job is large
    queue = [(0, 500, 500, 3), (10, 50, 50, 3), (11, 700, 700, 4), (11, 50, requested, 2)]
    found = jointly(make_trace, 11, queue, "migration-based", backfill=backfill, large=3)
    assert found.start.tolist()[11:] == [0, 500, 11, start]


def test_thinking_that_takes_time_is_paid_by_starts_and_migrations(apart):
    class Slow(PositionSearch):
        seconds_per_solve = 2.5

    given = {"solver": {"migration": Slow()}, "charge_decisions": True}
    found = run(apart, large=1, restart=0, per_node=0, given=given)
    thought = found.start[4] - 20
    assert 2.5 < thought < 2.6
    assert found.migrations["delay"].tolist() == [pytest.approx(thought)]


def test_large_jobs_are_those_of_the_policy(apart):
    assert run(apart, large=1).summary["large_from"] == 2
    assert run(apart, large=3).summary["large_from"] == 4
    assert run(apart, large=9).summary["large_from"] == 2  # none is: the tenth that needs most


CHOICES = {
    "depth": [1, 3, 100],
    "detect": ["layered", "exact"],
    "place": ["bins", "boxes"],
    "migrate": [False, True],
    "backfill": ["none", "shadow", "easy"],
    "pause": [False, True],
    "interval": [0, 7],
    "prepare": ["at-start", "ahead"],
    "preparations": [1, 2, None],
    "moves": [None, None, 1],
    "worth": [None, 0, 5, 3600],
}


some_jobs = st.tuples(st.integers(0, 12), *(st.integers(1, most) for most in (50, 30, 24)))


@settings(max_examples=60)
@given(
    jobs=st.lists(some_jobs, min_size=1, max_size=14),
    options=st.fixed_dictionaries({name: st.sampled_from(of) for name, of in CHOICES.items()}),
    solver=st.sampled_from(["migrate-then-place", "migration-based"]),
    machine=st.sampled_from(
        ["3x2x2x2", "4x3x2:wrap=xz:holes=1x1x1@1,1,1", "4x5x2:wrap=xy:convex=true"]
    ),
)
def test_every_job_runs_and_the_head_is_never_put_off(jobs, options, solver, machine):
    trace, promised = workloads.trace_of(jobs), {}

    class Watched(TorusBoxes):
        def decide(self, system):
            yield from super().decide(system)
            self.check_prepared(system)
            if system.queue and not self._fits(system, system.queue[0]):
                shadow = max(self._reserve(system).earliest, system.now)
                promised.setdefault(system.queue[0], shadow)

        def check_prepared(self, system):
            boxes = {} if self._scan is None else self._scan.prepared
            for one in boxes.values():
                if one.job in system.queue:
                    for job, box in system.held.items():
                        if self._torus.grid.overlap(box, one.box):
                            assert system.running.estimated_end(job) <= one.at
            for one, other in itertools.combinations(boxes.values(), 2):
                assert not self._torus.grid.overlap(one.box, other.box)
            if options["preparations"] is not None:
                large = [job for job in boxes if system.processors[job] > 8]
                assert len(large) <= options["preparations"]

    posed = options["migrate"] and options["worth"] is not None
    given = {"solver": {"reconfiguration": solver} if posed else None, "execution": "migration"}
    found = simulate(trace, f"torus:{machine}", Watched(large=8, **options), check=True, **given)
    assert found.summary["finished"] + found.summary["rejected"] == len(trace)
    for job, shadow in promised.items():
        assert found.start[job] <= shadow + options["interval"]
    if options["migrate"] and options["prepare"] == "ahead":
        s = found.summary
        assert s["large_detected"] == s["prepared"] + sum(s["not_prepared"].values())
        assert s["prepared"] == s["prepared_starts"] + sum(s["given_up"].values())
        assert s["migrations"] == s["migrations_at_start"] + s["migrations_ahead"]


@pytest.mark.parametrize("place", ["bins", "boxes"])
def test_convex_boxes_take_half_a_ring_or_all_of_it(make_trace, place):
    """On a ring of six, four routers need all six; by default they need four of them."""
    trace, options = make_trace((0, 10, 10, 4), (1, 10, 10, 2)), {"place": place, "migrate": False}
    usual = run(trace, "torus:6x1x1", **options)
    assert usual.start.tolist() == [0, 1]
    assert boxes(usual) == ["4x1x1@0,0,0", "2x1x1@4,0,0"]
    convex = run(trace, "torus:6x1x1:convex=true", **options)
    assert convex.start.tolist() == [0, 10]
    assert boxes(convex)[0] == "6x1x1@0,0,0"


@pytest.mark.parametrize("place", ["bins", "boxes"])
@pytest.mark.parametrize("detect", ["layered", "exact"])
@given(workloads.jobs(1, most=60))
@settings(max_examples=20, deadline=None)
def test_where_boxes_do_not_matter_it_is_fcfs(place, detect, jobs):
    trace = workloads.trace_of(jobs)
    found = run(trace, "torus:2x1x1", place=place, detect=detect, backfill="none")
    assert (found.start == simulate(trace, "nodes:2", "fcfs").start).all()
