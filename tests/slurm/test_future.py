"""Forecasts against a textbook in seconds: jobs in order, each at the first time it fits."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.sites.parts import Reservation
from optsched.sites.slurm_partitions import Access
from optsched.slurm.forecast import RunTimes, forecast, read_history, run_times, shifts
from optsched.slurm.future import Future
from optsched.slurm.limits import Limit, Limits
from optsched.traces.trace import Trace

from .conftest import NODES, NOW, SITUATIONS, job, left_by, posed, queue_of, running, supply, whole

LAST = 400  # seconds of the textbook
TWO, POLICIES = ("conservative", "easy"), ("conservative", "easy", "none")

ALL = {"least_nodes": 4, "most_nodes": 4, "partitions": ("own",)}
WHOLE = ALL | {"limit": 10.0}
"""What a job of 10 s asks that has all of c1 to c4."""

AGED = {
    "prioritytype": "priority/multifactor",
    "priorityweightage": "1000",
    "prioritymaxage": "00:16:40",
}
"""A job has a further point of priority for each second, up to 1,000."""

RESERVED = "bf_job_part_count_reserve"


def with_settings(supply, **settings):
    return replace(supply, settings={**supply.settings, **settings})


def with_parameters(supply, text):
    return with_settings(supply, schedulerparameters=text)


def started(future: Future, seconds=None) -> dict[str, float]:
    """The start of each pending job in seconds from now."""
    starts = future.starts(future.limits if seconds is None else seconds)
    return {future.rows[row].label: at for row, at in zip(future.waiting.tolist(), starts)}


def starts_of(*jobs, policies=TWO, parameters="", settings=(), **fields) -> dict[str, float]:
    """The starts of the jobs of a queue, which are the same by all policies."""
    supply = replace(left_by(*(each for each in jobs if each.allocations)), **fields)
    supply = with_settings(with_parameters(supply, parameters), **dict(settings))
    first, *others = (started(Future(queue_of(*jobs), supply, policy)) for policy in policies)
    assert all(each == first for each in others)
    return first


class Plan:
    """The places of jobs on the nodes c1 to c4 in seconds, beside those that run."""

    def __init__(self, queue, supply):
        self.free = np.repeat(supply.site.capacity[None, :4, 0].astype(int), LAST, axis=0)
        self.closing = supply.closing[:4] - NOW
        for each in queue.running:
            for at in each.allocations:
                self.free[: each.end - NOW, supply.site.index[at.node]] -= at.cores
        self.order = sorted(queue.pending, key=lambda job: (-job.priority, job.job_id))
        self.places: dict[str, tuple[int, list[int]]] = {}

    def take(self, job, sign):
        start, nodes = self.places[job.label]
        self.free[start : start + int(job.limit), nodes] -= sign * job.cores_per_task

    def place(self, jobs, now):
        """Place jobs at the first second from now on at which they fit as long as they may run."""
        for one in jobs:
            for time in range(now, LAST - int(one.limit)):
                room = self.free[time : time + int(one.limit)].min(axis=0)
                nodes = np.flatnonzero((room >= one.cores_per_task) & (time < self.closing))
                if len(nodes) >= one.least_nodes:
                    self.places[one.label] = time, nodes[: one.least_nodes].tolist()
                    self.take(one, 1)
                    break

    def leave(self, *jobs):
        for one in jobs:
            if one.label in self.places:
                self.take(one, -1)
                del self.places[one.label]

    def waiting(self, jobs, now):
        return [job for job in jobs if self.starts.get(job.label, -1) >= now]

    def ends(self, queue, now):
        """The ends of the jobs that run, or have started before."""
        pending = (job for job in queue.pending if self.starts.get(job.label, now) < now)
        ends = {self.starts[job.label] + int(job.limit) for job in pending}
        return ends | {each.end - NOW for each in queue.running}

    @property
    def starts(self):
        return {label: start for label, (start, _) in self.places.items()}


@settings(max_examples=60, deadline=None)
@given(SITUATIONS)
def test_by_their_limits_jobs_start_as_in_the_textbook_and_the_first_by_all_policies(situation):
    queue, supply = posed(*situation)
    future, plan = Future(queue, supply), Plan(queue, supply)
    plan.place(plan.order, 0)
    expected = {job.label: plan.starts.get(job.label, math.nan) for job in plan.order}
    assert future.left == {}
    assert started(future) == pytest.approx(expected, nan_ok=True)
    first = plan.order[0].label
    for policy in POLICIES:
        start = started(Future(queue, supply, policy))[first]
        assert start == pytest.approx(expected[first], nan_ok=True), policy


@settings(max_examples=30, deadline=None)
@given(SITUATIONS, st.integers(0, 2**32))
def test_no_node_has_more_than_it_holds_whatever_jobs_take(situation, seed):
    queue, supply = posed(*situation)
    rng = np.random.default_rng(seed)
    for policy in POLICIES:
        future = Future(queue, supply, policy)
        seconds = np.ceil(rng.random(len(future.rows)) * future.limits)
        starts = started(future, seconds)
        for time in {0.0, *(at for at in starts.values() if not math.isnan(at))}:
            cores = nodes = 0
            for row, taken in zip(future.rows, seconds):
                start = starts[row.label] if row.label else 0.0
                if start <= time < start + max(1, taken):
                    one = row.ways[0][0]
                    cores += one.chunks * one.demand[0]
                    nodes += one.chunks * (one.demand[0] > 8)
            assert cores <= 64, policy
            assert nodes <= 4, policy


def test_captured_queues_are_played_on(captured):
    _, queue, supply = captured
    future = Future(queue, supply)
    found = started(future)
    assert not found.keys() & future.left.keys()
    assert min(found.values()) >= 0
    labels = {job.label for job in queue.pending if not job.array_tasks}
    assert labels <= found.keys() | future.left.keys()


def test_limits_hold_at_all_times_and_hold_back_nobody_else():
    def limits_of(most, used):
        limit = Limit("QOS two for user ada", "MaxJobsPU", "", most, used)
        return Limits({"two": (), "two user ada": (limit,), "two user": ()}, {("a", "ada", ""): ()})

    its = {"qos": "two", "account": "a"}
    runs = running(99, "c1", end=NOW + 50, user="ada", **its)
    ada = [job(job_id=n, user="ada", priority=9, limit=100.0, **its) for n in (1, 2, 3)]
    other = job(job_id=4, user="bob", limit=100.0, **its)
    found = starts_of(runs, *ada, other, limits=limits_of(2, 1))
    assert found == {"1": 0, "2": 50, "3": 100, "4": 0}
    assert starts_of(*ada, other, limits=limits_of(0, 0)) == {"4": 0}


def test_jobs_wait_for_their_time_others_and_the_limit_of_their_array():
    runs = running(99, "c1", end=NOW + 50)
    queue = queue_of(
        runs,
        job(job_id=1, eligible=NOW + 30, limit=10.0),
        job(job_id=2, dependency="afterany:99(unfulfilled)", limit=10.0),
        job(job_id=3, array_id=3, array_tasks=(0, 1, 2), array_limit=1, limit=10.0),
        job(job_id=4, dependency="afterok:3_*(unfulfilled)", limit=10.0),
        job(job_id=5, held=True),
    )
    future = Future(queue, left_by(runs))
    assert started(future) == {
        "1": 30, "2": 50, "3_0": 0, "3_1": 10, "3_2": 20, "4": 30,
    }  # fmt: skip
    assert future.left == {"5": "it is held"}


def test_jobs_without_a_node_in_service_are_left_out_with_the_reason():
    nowhere = supply(states=("down",) * 4 + ("drained",) * 3)
    own = job(job_id=1)
    future = Future(queue_of(own, job(job_id=2, partitions=("own",))), nowhere)
    assert started(future) == {}
    assert future.left == {
        "1": "not before nodes that are drained are resumed",
        "2": "not before nodes that are down come back",
    }
    assert forecast(future, None, draws=5).notes()[0] == (
        "no node is in service, so no job can start: 4 nodes down, 3 nodes drained"
    )
    assert Future(queue_of(own), supply()).out_of_service == ""


def test_why_a_job_has_no_room_and_who_waits_for_it_is_said():
    runs = running(99, "c1", end=None)
    queue = queue_of(
        runs,
        job(job_id=1, cores_per_task=65),
        job(job_id=2, dependency="afterok:1(unfulfilled)"),
        job(job_id=3, dependency="afterany:2(unfulfilled)?afterok:2(unfulfilled)"),
        job(job_id=4, dependency="afterok:1(unfulfilled)?afterok:99(unfulfilled)"),
        job(job_id=5, required=("c1",), cores_per_task=16),
        job(job_id=6, array_id=6, array_tasks=(1, 2), held=True),
        job(job_id=7, dependency="aftercorr:6_2(unfulfilled)"),
    )
    future = Future(queue, left_by(runs))
    assert future.left == {
        "1": "it has no room even if no job runs: room on 0 of 1 node, short of cores",
        "2": "it depends on job 1, which has no forecast",
        "3": "it depends on job 2, which has no forecast",
        "6_[1-2]": "it is held",
        "7": "it depends on job 6_2, which has no forecast",
    }
    assert set(started(future)) == {"4", "5"}
    never = "what it needs is in use, closed or limited without an end that is known"
    assert future.never == {"4": never, "5": never}


@settings(max_examples=60, deadline=None)
@given(SITUATIONS, st.lists(st.sampled_from([0, 0, 5, 17, 30]), min_size=6, max_size=6))
def test_jobs_that_begin_later_are_planned_as_in_the_textbook(situation, begins):
    """All jobs that wait are placed in order at each begin of a job that has to wait.

    Others keep what they had; a job that can start at once delays none of them.
    """
    queue, supply = posed(*situation[:2], {})
    at = {one.label: begin for one, begin in zip(queue.pending, begins)}
    jobs = [
        replace(one, eligible=NOW + at[one.label]) if at.get(one.label) else one
        for one in queue.jobs
    ]
    queue = queue_of(*jobs)
    plan = Plan(queue, supply)
    for now in sorted({*at.values()}):
        new = [one for one in plan.order if at[one.label] == now]
        plan.place(new, now)
        if any(plan.starts[one.label] > now for one in new):
            waiting = plan.waiting(plan.order, now)
            plan.leave(*waiting)
            plan.place(waiting, now)
    assert started(Future(queue, supply)) == plan.starts


def test_a_job_that_comes_late_takes_its_place_before_those_that_have_one():
    """The limit of its array holds one back, and another waits for a job that runs."""
    found = starts_of(
        running(99, *NODES[:4], end=NOW + 50, user="bob"),
        job(job_id=1, priority=9, array_id=1, array_tasks=(0, 1), array_limit=1, **WHOLE),
        job(job_id=2, priority=5, **WHOLE),
        job(job_id=3, priority=8, dependency="afterany:99(unfulfilled)", **WHOLE),
    )
    assert found == {"1_0": 50, "1_1": 60, "3": 70, "2": 80}


FIRST, SECOND = {"1": 50, "2": 60}, {"1": 60, "2": 50}


def test_a_job_overtakes_another_as_it_ages():
    """An old job has all for its age already, and a priority that an operator has set stays.

    One that waits for another job does not age, unless ages always count.
    """
    runs = running(99, *NODES[:4], end=NOW + 50, user="bob")
    old, now, young, ten = ({"submit": at, "eligible": at} for at in (0, NOW, NOW - 20, NOW - 10))
    is_set = now | {"priority_by_operator": True}
    waits = ten | {"eligible": None, "dependency": "afterany:99(unfulfilled)"}
    for priority, first, other, second, changes, expected in (
        (1200, old, 1190, young, {}, SECOND),
        (1200, old, 1190, young, {"priorityweightage": "0"}, FIRST),
        (1200, old, 1190, young, {"prioritytype": "priority/basic"}, FIRST),
        (1000, now, 1040, is_set, {}, FIRST),  # the first one grows to 1,050
        (1000, now, 1060, is_set, {}, SECOND),
        (500, ten, 530, waits, {}, FIRST),
        (500, ten, 530, waits, {"priorityflags": "ACCRUE_ALWAYS"}, SECOND),
    ):
        one = job(job_id=1, priority=priority, **WHOLE | first)
        two = job(job_id=2, priority=other, **WHOLE | second)
        found = starts_of(runs, one, two, policies=POLICIES, settings=AGED | changes)
        assert found == expected, (other, changes)


@settings(max_examples=60, deadline=None)
@given(SITUATIONS, st.lists(st.sampled_from([950, 970, 1000]), min_size=6, max_size=6))
def test_jobs_are_planned_again_where_they_overtake_others(situation, ages):
    """All jobs that wait are placed at each end of a job at which their order has changed."""
    queue, supply = posed(*situation[:2], {})
    pending = [
        replace(one, submit=NOW - age, eligible=NOW - age, priority=5 * one.priority)
        for one, age in zip(queue.pending, ages)
    ]
    queue, supply = queue_of(*queue.running, *pending), with_settings(supply, **AGED)

    def in_order(now):
        def grown(job):
            before, then = (min(1000, NOW + at - job.submit) for at in (0, now))
            return job.priority + then - before

        return sorted(pending, key=lambda job: (-grown(job), job.job_id))

    plan, before = Plan(queue, supply), in_order(0)
    plan.place(before, 0)
    for now in range(1, LAST):
        if now in plan.ends(queue, now):
            order = in_order(now)
            waiting = plan.waiting(order, now)
            if waiting != plan.waiting(before, now):
                plan.leave(*waiting)
                plan.place(waiting, now)
            before = order
    assert started(Future(queue, supply, "conservative")) == plan.starts


def place_in_turn(plan, jobs, now, parameters) -> bool:
    """Place jobs of one partition by SchedulerParameters; return whether each has a place."""
    blocked, is_awaited = Counter(), False
    window = 60 * parameters.get("bf_window", 1440)
    for one in jobs:
        owners = {RESERVED: "", "bf_max_job_test": "", "bf_max_job_user": one.user}
        counted = {(name, owner) for name, owner in owners.items() if name in parameters}
        over = {each for each in counted if blocked[each] >= parameters[each[0]]}
        least, oldest = (parameters.get(f"bf_min_{what}_reserve", 0) for what in ("prio", "age"))
        may_reserve = one.priority >= least and NOW + now - one.submit >= oldest
        is_seen = over <= {(RESERVED, "")} or not is_awaited
        if is_seen:
            plan.place([one], now)
            start = plan.starts[one.label]
            if start == now:
                continue
            if over or not may_reserve or start > now + window:
                plan.leave(one)
        is_awaited |= may_reserve
        for each in counted:
            blocked[each] += is_seen and (each[0] != RESERVED or one.label in plan.places)
    return all(one.label in plan.places for one in jobs)


def planned_in_turn(queue, supply, parameters) -> dict[str, float]:
    """Place jobs in order, and those that wait again at each end as long as one has no place."""
    plan = Plan(queue, supply)
    all_have = place_in_turn(plan, plan.order, 0, parameters)
    for now in range(1, LAST):
        if not all_have and now in plan.ends(queue, now):
            waiting = [job for job in plan.order if plan.starts.get(job.label, now) >= now]
            plan.leave(*waiting)
            all_have = place_in_turn(plan, waiting, now, parameters)
    return plan.starts


@settings(max_examples=200, deadline=None)
@given(
    SITUATIONS,
    st.lists(st.sampled_from([0, 30, 60]), min_size=6, max_size=6),
    st.fixed_dictionaries(
        {},
        optional={
            "bf_window": st.just(1),
            "bf_min_prio_reserve": st.integers(2, 3),
            "bf_min_age_reserve": st.just(60),
            "bf_max_job_test": st.integers(1, 3),
            "bf_max_job_user": st.integers(1, 2),
            RESERVED: st.integers(1, 2),
        },
    ),
)
def test_jobs_are_looked_at_and_reserve_as_in_the_textbook(situation, ages, parameters):
    queue, supply = posed(*situation[:2], {})
    jobs = [*queue.running]
    for one, age in zip(queue.pending, ages):
        user = "ada" if one.job_id % 3 else "bob"
        jobs.append(replace(one, submit=NOW - age, eligible=NOW - age, user=user))
    queue = queue_of(*jobs)
    text = ",".join(f"{name}={number}" for name, number in parameters.items())
    found = started(Future(queue, with_parameters(supply, text)))
    assert found == planned_in_turn(queue, supply, parameters)


def behind(parameters, head, small, limit=40.0) -> float:
    """The start of a job of a free node behind one that waits for 50 s."""
    runs = running(99, *NODES[:3], end=NOW + 50)
    second = {"required": ("c4",), "cores_per_task": 16, "limit": limit, "partitions": ("own",)}
    jobs = runs, job(job_id=1, **WHOLE | head), job(job_id=2, **second | small)
    return starts_of(*jobs, policies=["conservative"], parameters=parameters)["2"]


ADA, THREE, FOUR = {"user": "ada"}, {"association": 3}, {"association": 4}


def test_a_job_beyond_a_quota_of_its_own_is_not_backfilled():
    for name, head, other in (
        ("bf_max_job_part", {}, {"partitions": ("all",)}),
        ("bf_max_job_user_part", ADA, {"user": "bob"}),
        ("bf_max_job_user_part", ADA, ADA | {"partitions": ("all",)}),
        ("bf_max_job_assoc", THREE, FOUR),
        ("bf_max_job_user=1,bf_max_job_assoc", ADA | THREE, ADA | FOUR),
    ):
        for most, small, start in ((1, head, 60), (1, other, 0), (2, head, 0)):
            assert behind(f"{name}={most}", head, small) == start, (name, most, small)
    # tasks beyond a quota of their array keep no nodes
    array = {"array_id": 1, "array_tasks": (1, 2)}
    for parameters, start in (("", 70), ("bf_max_job_array_resv=0", 0)):
        assert behind(parameters, array, {}, limit=100.0) == start


def test_a_job_beyond_all_quotas_starts_if_none_waits_for_its_nodes():
    short = {"partitions": ("short",), "limit": 10.0}
    other = {"partitions": ("rest",), "required": ("c3",), "cores_per_task": 16, "limit": 10.0}
    jobs = (
        running(99, "c1", end=NOW + 50),
        job(job_id=1, least_nodes=2, most_nodes=2, cores_per_task=16, **short),
        job(job_id=2, **short),
        *(job(job_id=n, **other) for n in (3, 4)),
    )
    for parameters, second in (("", 0), ("bf_max_job_test=1", 60)):
        found = starts_of(*jobs, policies=["conservative"], parameters=parameters)
        assert found == {"1": 50, "2": second, "3": 0, "4": 10}, parameters


def test_a_job_that_would_start_beyond_a_day_keeps_no_nodes_by_default():
    day = 86_400
    own = {"limit": 3.0 * day, "partitions": ("own",)}
    jobs = running(99, *NODES[:3], end=NOW + 2 * day), job(job_id=1, **ALL | own)
    for parameters, expected in (
        ("", {"1": 3 * day, "2": 0}),
        ("bf_window=2880", {"1": 2 * day, "2": 5 * day}),
    ):
        given = {"policies": ["conservative"], "parameters": parameters}
        assert starts_of(*jobs, job(job_id=2, **own), **given) == expected


def test_a_job_reserves_once_its_priority_has_grown():
    """It has 20 points more when the first job ends."""
    own = {"submit": NOW, "eligible": NOW, "partitions": ("own",), "limit": 100.0}
    jobs = (
        *(running(98, "c1", end=NOW + 20), running(99, "c2", end=NOW + 40)),
        job(job_id=1, priority=90, **ALL | own),
        *(job(job_id=n, required=(at,), priority=10, **own) for n, at in ((2, "c3"), (3, "c1"))),
    )
    for least, expected in (
        (90, {"1": 40, "2": 140, "3": 140}),
        (110, {"1": 100, "2": 0, "3": 200}),
        (111, {"1": 120, "2": 0, "3": 20}),
    ):
        given = {"policies": ["conservative"], "parameters": f"bf_min_prio_reserve={least}"}
        assert starts_of(*jobs, settings=AGED, **given) == expected, least


def test_what_is_not_played_of_preemption_and_the_backfill_scheduler_is_said():
    runs = running(99, *NODES[:4], end=NOW + 50, partitions=("own",), qos="low")
    queue = queue_of(runs, job(job_id=1, qos="high", **ALL))
    supply = replace(left_by(runs), qos_preempts={"high": ("low",)})
    supply = with_settings(supply, preempttype="preempt/qos", preemptmode="REQUEUE")
    supply = with_parameters(supply, "bf_window=60,bf_interval=5,bf_one_resv_per_job")
    found = forecast(Future(queue, supply), None, draws=0)
    gone = "Slurm may preempt 1 running job, and the forecast takes it as gone"
    assert found.future.doubts == {"1": (gone,)}
    unheeded = "SchedulerParameters that are not heeded: "
    assert found.notes()[1] == f"{unheeded}bf_one_resv_per_job"
    easy = forecast(Future(queue, supply, "easy"), None, draws=0)
    assert easy.notes()[1] == f"{unheeded}bf_window=60, bf_one_resv_per_job"
    for text in ("x", "", "-1", "9" * 5000):
        [shown] = Future(queue, with_parameters(supply, f"bf_max_job_user={text}")).unheeded
        assert shown == f"bf_max_job_user={text}".removesuffix("=")
    assert Future(queue, with_settings(supply, schedulertype="sched/builtin")).chosen == "none"


@pytest.mark.parametrize("mode", ["REQUEUE", "CANCEL", "SUSPEND,GANG"])
def test_a_job_does_not_wait_for_those_that_it_may_preempt(mode):
    """Jobs that are suspended keep their memory, so those that preempt them wait."""
    low, high = ({"partitions": ("own",), "limit": 100.0, "qos": qos} for qos in ("low", "high"))
    runs = [running(98, *NODES[:3], end=NOW + 50, **low), running(99, "c4", end=NOW + 30, **high)]
    queue = queue_of(
        *runs,
        whole(1, 2, priority=5, **high),  # on nodes of job 98, at once
        whole(2, 2, priority=4, **high),  # and on that of job 99
        whole(3, 1, priority=3, **high),  # which then waits for job 1
        whole(4, 1, priority=9, **low),
        whole(5, 1, priority=2, dependency="afterany:98", **high),
    )
    supply = replace(left_by(*runs), qos_preempts={"high": ("low",)})
    supply = with_settings(supply, preempttype="preempt/qos", preemptmode=mode)
    found = forecast(Future(queue, supply), None, draws=0)
    starts = {one.label: one.by_limits - NOW for one in found.starts}
    suspends = mode == "SUSPEND,GANG"
    if suspends:
        assert starts == started(Future(queue, supply))
    else:
        assert {label: starts[label] for label in ("1", "2", "3")} == {"1": 0, "2": 30, "3": 100}
        assert starts["4"] == started(Future(queue, supply))["4"]
    assert Future(queue, replace(supply, qos_preempts=None)).views == ()
    assert Future(queue, with_settings(supply, preemptexempttime="00:05:00")).views == ()
    times = "waits for it to end" if suspends else "takes it as gone"
    assert found.future.doubts["1"][0].endswith(f" 1 running job, and the forecast {times}")
    assert "4" not in found.future.doubts


def test_jobs_start_again_after_a_reservation_that_comes():
    kept = Reservation("maintenance", NODES, NOW + 100, NOW + 300)
    jobs = running(99, "c1", end=NOW + 50), job(job_id=1, limit=150.0), job(job_id=2, limit=90.0)
    assert starts_of(*jobs, reservations=(kept,)) == {"1": 300, "2": 0}


def test_a_job_starts_in_its_reservation_and_is_ended_with_it():
    """As Slurm 24.11 did: it started a job of 5 h in a reservation of 3 h."""
    own = Reservation("course", ("c1",), NOW + 20, NOW + 100)
    runs = running(99, "c1", end=NOW + 50)
    supply = replace(left_by(runs), reservations=(own,))
    inside = [job(job_id=n, reservation="course", limit=1000.0, cores_per_task=16) for n in (1, 2)]
    queue = queue_of(runs, *inside, job(job_id=3, required=("c1",), cores_per_task=16, limit=10.0))
    for policy in TWO:
        future = Future(queue, supply, policy)
        found = started(future)
        # running jobs of others are off its nodes when it begins, as far as the forecast knows
        assert (found["1"], found["3"]) == (20, 100), policy
        assert math.isnan(found["2"]), policy
        assert future.never == {"2": "its reservation course ends before it has room"}, policy
    beyond = "reservation course ends before the time limit, and jobs with it"
    assert future.doubts == {"1": (beyond,), "2": (beyond,)}
    noted = forecast(future, None, draws=0)
    assert noted.notes() == (f"jobs 1, 2: {beyond}",)  # and nothing of sacct
    assert noted.to_json(["2"])["notes"] == [f"job 2: {beyond}"]
    late = replace(supply, settings={"resvoverrun": "2 min"})
    assert started(Future(queue, late))["3"] == 220
    flex = replace(supply, reservations=(replace(own, flags=("FLEX",)),))
    free = Future(queue, flex)
    assert (started(free)["1"], started(free)["2"]) == (0, 0)
    assert free.doubts["1"] == ("the nodes of reservation course are taken as closed",)


def test_nodes_that_a_user_owns_are_closed_until_the_last_job_there_ends():
    own = {"cores": 2, "exclusive": "user", "user": "ada"}
    runs = [running(98, "c1", end=NOW + 50, **own), running(99, "c1", end=NOW + 80, **own)]
    there = {"required": ("c1",), "limit": 10.0}
    bob, ada = job(job_id=1, user="bob", **there), job(job_id=2, user="ada", **there)
    queue = queue_of(*runs, bob, ada, job(job_id=3, user="bob", limit=10.0))
    future = Future(queue, left_by(*runs))
    for policy in TWO:
        found = started(replace(future, policy=policy))
        assert found == {"1": 80, "2": 80, "3": 0}, policy
    # each runs for 0.99 of its limit in all draws, 1,050 s and 1,080 s, of which 1,000 are over
    drawn = forecast(future, alike(np.full(10, 0.99)), draws=3)
    assert {one.label: one.median for one in drawn.starts}["1"] == NOW + 70
    assert [*future.doubts] == ["2"]
    assert "running jobs of the same user are taken as closed" in future.doubts["2"][0]
    hidden = replace(left_by(), owners=("ada", *("",) * 6))
    assert math.isnan(started(Future(queue_of(bob), hidden))["1"])


def test_what_no_job_of_the_queue_holds_stays_in_use():
    there = supply()
    queue = queue_of(job(job_id=1, licences="lab:2"), job(job_id=2, licences="lab:1"))
    future = Future(queue, replace(there, licences={"lab": 1}))
    assert started(future)["2"] == 0
    assert [*future.never] == ["1"]
    free = there.free.copy()
    free[:5, 0] -= there.site.capacity[:5, 0]
    future = Future(queue_of(job(constraint="ib")), replace(there, free=free))
    assert math.isnan(started(future)["1"])


def test_a_job_waits_for_licences_that_a_reservation_keeps():
    """One of the three is left beside the reservation, whatever runs."""
    two = {"licences": "lab:2", "limit": 30.0}
    for fields, begin, start in (
        ({"licences": "lab:1"}, 0, 0),
        (two, 0, 50),
        (two, 29, 50),
        (two, 30, 0),
        (two | {"reservation": "cut"}, 0, 0),
    ):
        cut = Reservation("cut", (), NOW + begin, NOW + 50, licences={"lab": 2})
        found = started(Future(queue_of(job(**fields)), supply(reservations=(cut,))))
        assert found == {"1": start}, fields


def test_cores_of_a_partition_on_a_node_are_limited():
    runs = running(99, "c1", cores=6, end=NOW + 50)
    left, access = np.array([2, *[8] * 6]), {"all": Access(cores_per_node=8)}
    supply = replace(left_by(runs), access=access, cores_left={"all": left})
    there = {"required": ("c1",), "limit": 10.0}
    jobs = [job(job_id=n, cores_per_task=cores, **there) for n, cores in ((1, 4), (2, 2), (4, 9))]
    future = Future(queue_of(runs, *jobs), supply)
    found = started(future)
    assert (found["1"], found["2"], "4" in found) == (50, 0, False)
    assert "short of cores of partition all" in future.left["4"]


def test_a_job_may_have_nodes_of_several_numbers_of_threads():
    runs = running(99, "c3", end=NOW + 50)
    rest = {"partitions": ("rest",), "limit": 10.0}
    wide = {"least_nodes": 2, "most_nodes": 2, "tasks": 2, "tasks_per_node": 1}
    # m1 has 64 threads of 32 cores: two jobs of 31 threads, 32 of whole cores, fill it
    narrow = [job(job_id=n, required=("m1",), cores_per_task=31, **rest) for n in (2, 3)]
    queue = queue_of(runs, job(job_id=1, cores_per_task=15, **wide, **rest), *narrow)
    found = started(Future(queue, left_by(runs)))
    assert found == {"1": 0, "2": 0, "3": 10}


def test_draws_of_a_job_do_not_depend_on_other_jobs():
    runs = running(99, "c1", end=NOW + 100, user="ada", start=NOW)
    one = job(job_id=1, priority=2, **ALL)
    two = job(job_id=2, priority=1, limit=10.0)
    times = alike(np.arange(1, 101) / 100)
    before, after = (
        forecast(Future(queue_of(runs, *jobs), left_by(runs)), times, draws=50)
        for jobs in ((one, two), (one, replace(two, held=True)))
    )
    [moved] = shifts(before, after)
    assert (moved.label, moved.seconds) == ("2", np.inf)
    [back] = shifts(after, before)
    assert (back.label, back.seconds) == ("2", -np.inf)


def alike(shares) -> RunTimes:
    """Run times as shares of limits, which are those of all jobs."""
    names = ("user", "account", "partition", "limit")
    return RunTimes(shares, dict.fromkeys(names, ["-"] * len(shares)))


def history(*rows) -> Trace:
    """A trace of users, accounts, partitions, limits and run times."""
    *texts, limit, ran = np.array(rows, dtype=object).T
    numbers = np.arange(len(rows))
    times = numbers, ran.astype(int), limit.astype(int)
    names = ("user_name", "account", "partition_name")
    return Trace(numbers + 1, *times, np.ones_like(numbers), texts=dict(zip(names, texts)))


def test_run_times_are_those_of_the_closest_jobs():
    rows = [("ada", "a", "all", 100, 50)] * 10 + [("ada", "a", "all", 200, 20)] * 5
    rows += [("bob", "a", "all", 100, 100)] * 10
    times = run_times(history(*rows))
    ada, bob = job(user="ada", account="a"), job(user="bob", account="b")
    assert times.of(ada, 100.0)[1] == "jobs of its user in its partition with its limit"
    assert set(times.of(ada, 100.0)[0]) == {0.5}
    assert times.of(ada, 300.0)[1] == "jobs of its user in its partition"
    eve = times.of(job(user="eve", account="a"), 9.0)
    assert eve[1] == "jobs of its account in its partition"
    assert times.of(job(user="eve", partitions=("x",)), 9.0)[1] == "all jobs"
    rng = np.random.default_rng(1)
    assert set(times.draw(ada, 200.0, 0.0, rng, 50)) <= {100.0, 20.0}
    assert set(times.draw(ada, 100.0, 60.0, rng, 5)) == {40.0}  # none has run for longer
    assert set(times.draw(bob, 100.0, 60.0, rng, 5)) == {40.0}
    assert run_times(history(("x", "y", "z", 0, 1))).shares.size == 0


def test_jobs_that_have_not_ended_are_no_history(tmp_path):
    header = "JobID|Submit|Start|End|Timelimit|AllocCPUS|State"
    times = "2026-11-01T10:00:00|2026-11-01T10:00:00"
    runs, ended = f"1|{times}|Unknown|00:10:00|1|RUNNING", f"2|{times[:20]}2026-11-01T10:00:00"
    path = tmp_path / "sacct.sacct"
    for rows in ("", f"{runs}\n"):
        path.write_text(f"{header}\n{rows}")
        assert read_history(tmp_path) is None
    path.write_text(f"{header}\n{runs}\n{ended}|2026-11-01T10:05:00|00:10:00|1|COMPLETED\n")
    assert run_times(read_history(tmp_path)).shares.tolist() == [0.5]


def test_a_forecast_has_medians_and_intervals_of_its_draws():
    runs = running(99, *NODES[:4], end=NOW + 100, user="ada", start=NOW)
    queue = queue_of(runs, job(job_id=1, **ALL))
    future = Future(queue, left_by(runs))
    times = alike(np.arange(1, 101) / 100)
    found = forecast(future, times, draws=200, seed=3)
    [one] = found.starts
    assert one.by_limits == NOW + 100
    assert one.low == pytest.approx(NOW + 10, abs=6)
    assert one.median == pytest.approx(NOW + 50, abs=8)
    assert one.high == pytest.approx(NOW + 90, abs=6)
    assert forecast(future, times, draws=200, seed=3).to_json() == found.to_json()
    alone = forecast(future, None, draws=200)
    assert alone.starts[0].expected == NOW + 100
    assert any("no sacct output" in note for note in alone.notes())
    [moved] = shifts(found, alone)
    assert moved.seconds == NOW + 100 - one.median


def test_where_many_jobs_wait_only_the_first_blocked_ones_have_reservations():
    jobs = [job(job_id=n, user="ada", limit=60.0) for n in range(1, 302)]
    for count, parameters, chosen in (
        (300, "", "conservative"),
        (301, "", "easy"),
        (301, "bf_max_job_test=300", "conservative"),
        (301, "bf_max_job_user=300", "conservative"),
        (301, "bf_max_job_user=301", "easy"),
        (301, "bf_job_part_count_reserve=9", "easy"),
    ):
        future = Future(queue_of(*jobs[:count]), with_parameters(supply(), parameters))
        assert future.chosen == chosen, parameters
        notes = "; ".join(forecast(future, None, draws=0).notes())
        assert ("first blocked one has a reservation" in notes) == (chosen == "easy"), parameters
    assert Future(queue_of(*jobs), supply(), "conservative").chosen == "conservative"
