import math
from collections import Counter
from dataclasses import replace
from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.sites.parts import Reservation
from optsched.slurm.explain import explain, pending_job
from optsched.slurm.relief import Relief
from optsched.slurm.requests import alternatives
from optsched.slurm.running import held_by, supply_at
from optsched.slurm.snapshot import placement_problem
from optsched.slurm.starts import earliest_start, held_as_planned, planned_to_run
from optsched.solvers.solving import solve

from .conftest import NODE, NODES, NOW, SMALL, job, left_by, queue_of, running, supply, whole

OWN = {"partitions": ("own",), "cores_per_task": 16}
"""What a job asks that takes a node of c1 to c4, of 16 cores, for itself."""

ONLY_C3 = OWN | {"excluded": ("c1", "c2", "c4")}


def answer(explanation, *starts):
    """The cheapest answer to the questions of some starts; by default, of one at the time asked."""
    best = None
    for start in starts or [explanation.by]:
        for question in explanation.questions(start):
            result = solve(question.problem)
            if result.solution is None:
                continue
            found = Relief(explanation, question, result.solution)
            if best is None or (found.lost, found.count) < (best.lost, best.count):
                best = found
    return best


def names(claims):
    return [claim.name for claim in claims]


def subsets(these):
    return chain.from_iterable(combinations(these, count) for count in range(len(these) + 1))


@pytest.mark.parametrize("captured", SMALL, indirect=True)
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.long)])
def test_captured_pending_jobs_are_explained(captured, every):
    _, queue, supply = captured
    kinds = set()
    for one in queue.pending[::every]:
        found = explain(queue, supply, one.label)
        if found.left:
            continue
        fits = not found.shortage.is_proof
        kinds.add((fits, bool(found.rule)))
        if not found.rule:
            assert (found.earliest == supply.time) == fits
        if one.start and found.earliest is not None:  # Slurm counts with other jobs, too
            assert found.earliest <= max(one.start, supply.time + 1)
        least = answer(found)
        assert least is not None
        assert (least.release.lifted == ()) == fits
        for line in (*least.lines, *least.afterwards):
            assert line.startswith("scontrol ")
    assert {(True, False), (False, False), (True, True)} <= kinds


def test_captured_jobs_hold_what_is_not_free(captured):
    _, queue, supply = captured
    free = supply.site.capacity.copy()
    for one in queue.running:
        held = held_by(one, supply)
        free[held.nodes] -= held.amounts
        assert one.requeues
    up = supply.site.is_up
    assert (free[up] == supply.free[up]).all()
    later = supply_at(supply, queue, supply.time + 10**6)
    assert (later.free[up] == supply.site.capacity[up]).all()
    assert later.licences == supply.site.licences
    assert not later.busy[up].any()


def ask(*jobs, **fields):
    """Explain job 1, with options, and fields of what is free."""
    options = {name: fields.pop(name) for name in ("by", "actions", "force") if name in fields}
    there = left_by(*(each for each in jobs if each.allocations), **fields)
    return explain(queue_of(*jobs), there, "1", **options)


def test_what_is_short_is_said_by_requirement():
    states = ("up", "up", "up", "up", "down", "drained", "up")
    asks = job(least_nodes=3, most_nodes=3, tasks=3, constraint="ib", excluded=("g1",))
    found = ask(asks, running(7, "c1", "c2", "c4"), states=states)
    said = {"nodes": 7, "with the features ib": 3, "with 1 or more cores free": 1}
    assert found.shortage.filters == tuple(said.items())
    assert (found.shortage.room, found.shortage.chunks, found.earliest) == (1, 3, NOW + 60)
    assert answer(found).lines[-1] == "scontrol requeuehold 7"


def test_the_least_work_is_lost():
    """Of the job on two nodes half of each has been in use for long."""
    found = ask(
        job(**OWN),
        running(7, "c1", "c2", cores=8, start=0),
        running(8, "c1", cores=8, start=900),
        running(9, "c2", cores=8, start=950),
        running(10, "c3", start=0),
        running(11, "c4", start=850, requeues=False),
    )
    (question,) = found.questions(NOW)
    lost = {claim.name: claim.lost // 10**6 for claim in question.claims}
    assert lost == {"requeue 7": 1000, "requeue 8": 50, "requeue 9": 25, "requeue 10": 1000}
    assert (names(answer(found).lifted), answer(found).nodes) == (["requeue 10"], ("c3",))
    # costs too large for a problem are rounded
    others = [running(n + 9, f"c{n}", start=NOW - 10**12 * n) for n in (1, 2, 3, 4)]
    least = answer(ask(job(**OWN), *others))
    assert (names(least.lifted), least.lost) == (["requeue 10"], 10**18)


def test_drained_nodes_may_be_resumed():
    other = running(7, "c1", start=NOW)
    asks = job(partitions=("short",), cores_per_task=16, limit=60.0)
    states = {"states": ("drained", "down", "up", "up", "up", "up", "up")}
    assert answer(ask(asks, other, **states)) is None
    both = states | {"actions": ("requeue", "resume")}
    *_, requeue, resume = answer(ask(asks, other, **both)).lines
    assert requeue == "scontrol requeuehold 7"
    assert resume == "scontrol update NodeName=c1 State=RESUME"
    assert names(answer(ask(asks, other, by=NOW + 60, **both)).lifted) == ["resume c1"]


def test_licences_of_running_jobs_are_freed():
    one = running(7, "c1", cores=1, licences="lab:1", start=0)
    two = running(8, "c2", cores=1, licences="lab:2", start=500)
    found = ask(job(licences="lab:2"), one, two)
    assert [tuple(each) for each in found.shortage.licences] == [(0, 0, 2)]
    assert found.shortage.room >= 1
    assert names(answer(found).lifted) == ["requeue 8"]


def test_lines_put_the_job_first_and_are_taken_back():
    place = {"partitions": ("rest",), "excluded": ("c4", "m1"), "most_nodes": 1}
    asks = job(cores_per_task=16, priority=5, nice=3, comment="it's mine", **place)
    first = job(job_id=2, priority=25, partitions=("all", "rest"))
    held = job(job_id=3, priority=90, held=True)
    elsewhere = job(job_id=4, priority=90, partitions=("block",))
    found = ask(asks, first, held, elsewhere, job(job_id=5, priority=5), running(7, "c3"))
    assert found.ahead == (first,)
    least = answer(found)
    assert least.lines[0] == "scontrol update JobId=1 Nice=-39"
    assert least.lines[1].startswith("scontrol update JobId=1 ReqNodeList=c3 'Comment=optsched:")
    assert least.lines[2:] == ("scontrol requeuehold 7",)
    assert least.lines[1].endswith(""" it'"'"'s mine'""")
    assert least.afterwards == ("scontrol release 7", "scontrol update JobId=1 Nice=3")
    assert least.is_pinned  # which stays, as Slurm does not clear the nodes of a running job


def test_where_nothing_is_lifted_the_job_is_on_the_lightest_nodes():
    for lightest in ("c1", "c4", "m1"):
        weights = np.array([1 if name == lightest else 20 for name in NODES])
        found = answer(ask(job(tasks=4), weights=weights))
        assert (found.nodes, found.weight) == ((lightest,), 4)
        assert (found.lines, found.is_pinned) == ((), False)


def test_a_rule_may_end_by_the_time_or_never():
    begins = job(eligible=NOW + 50, reason="BeginTime")
    for seconds, rule in ((0, "it may begin in 50 s"), (40, "it may begin in 50 s"), (50, "")):
        found = ask(begins, by=NOW + seconds)
        assert (found.rule_then, found.earliest) == (rule, NOW + 50)
    late = ask(job(deadline=NOW + 3620, limit=3600), by=NOW + 50)
    assert (late.rule_then, late.starts) == ("", (NOW,))
    assert ask(job(dependency="afterok:7(unfulfilled)")).earliest is None
    found = ask(job(cores_per_task=100))
    assert (found.earliest, found.shortage_of_idle.is_proof) == (None, True)


def test_tasks_of_arrays_and_parts_of_jobs_are_found_by_number():
    array = job(job_id=12, array_id=9, array_tasks=(2, 4))
    part = job(job_id=32, part_of="31+1")
    queue = queue_of(job(job_id=1), array, part)
    for label, tasks in (("9", (2,)), ("9_4", (4,)), ("9_[2,4]", (2,)), ("12", (2,))):
        assert pending_job(queue, label).array_tasks == tasks, label
    assert pending_job(queue, "31+1") == pending_job(queue, "32") == part


CORES = st.sampled_from([4, 8])
BEGINS = st.tuples(NODE, st.integers(990, 1060), st.sampled_from([5.0, 20.0, 1e6]))
SITUATIONS = st.tuples(
    st.lists(st.tuples(NODE, CORES, st.integers(990, 1040)), max_size=5),
    st.lists(BEGINS, max_size=2),
    st.fixed_dictionaries(
        {
            "tasks": st.integers(1, 4),
            "cores_per_task": st.sampled_from([4, 9, 16]),
            "limit": st.sampled_from([10.0, 50.0]),
            "partitions": st.sampled_from([("rest",), ("own",), ("short", "rest")]),
            "switches": st.sampled_from([0, 1]),
            "eligible": st.sampled_from([None, 990, 1015]),
            "switches_wait": st.sampled_from([0.0, 30.0]),
        }
    ),
)
"""Nodes, cores and times of running jobs; nodes, begins and lengths of reservations; a request."""


def runs(jobs, times):
    """Return the running jobs for which nodes have room."""
    load, found = Counter(), []
    for number, (node, cores, time) in enumerate(jobs, 10):
        load[node] += cores
        if load[node] <= 16:
            found.append(running(number, node, cores=cores, **times(number, time)))
    return found


@settings(max_examples=150, deadline=None)
@given(SITUATIONS)
def test_the_earliest_start_is_the_first_second_at_which_it_fits(situation):
    jobs, reserved, asks = situation
    others = runs(jobs, lambda _, end: {"end": end})
    reservations = tuple(
        Reservation(f"r{place}", (node,), start, start + length)
        for place, (node, start, length) in enumerate(reserved)
    )
    there = left_by(*others, reservations=reservations)
    asked = job(**asks)
    queue = queue_of(asked, *others)
    found = earliest_start(asked, queue, there)

    def fits(time):
        then = supply_at(there, queue, time)
        begins = (asked.eligible or 0) <= time
        return begins and any(each.room(then) >= each.chunks for each in alternatives(asked, then))

    seconds = range(NOW, NOW + 200)
    assert found == next((time for time in (*seconds, 3 * 10**6) if fits(time)), None) or (
        found is not None and found > seconds[-1] and not fits(found - 1)
    )


def test_a_job_that_fits_only_on_two_switches_gives_its_wait_up():
    asks = {"tasks": 3, "cores_per_task": 16, "switches": 1, "switches_wait": 30.0}
    for fields, gives_up in (
        ({"eligible": 990}, True),
        ({"eligible": 900}, False),  # it has waited
        ({"eligible": 990, "tasks": 1}, False),
    ):
        found = ask(job(excluded=("c4", "m1"), **asks | fields))
        assert found.gives_up_switches is gives_up
        assert found.shortage_of_idle.is_proof is gives_up
        assert found.earliest == (1020 if gives_up else NOW)


@settings(max_examples=60, deadline=None)
@given(SITUATIONS)
def test_the_answer_is_the_cheapest_set_of_all(situation):
    """Every set of running jobs is taken away, and what is free is counted anew."""
    jobs, _, asks = situation
    others = runs(jobs, lambda _, start: {"start": start - 60, "end": 5000})
    asked = job(**asks | {"eligible": None})
    found = ask(asked, *others)
    least = answer(found)
    costs = {claim.job.job_id: claim.lost for each in found.questions(NOW) for claim in each.claims}
    tried = []
    for gone in subsets(others):
        then = left_by(*(each for each in others if each not in gone))
        if any(each.room(then) >= each.chunks for each in alternatives(asked, then)):
            tried.append((sum(costs.get(each.job_id, 10**9) for each in gone), len(gone)))
    assert min(tried, default=None) == (least and (least.lost, len(least.lifted)))


def planned(job_id, *nodes, start, end=NOW + 10_000, cores=16, **fields):
    """Return a pending job that Slurm plans to start on some nodes."""
    its = {"priority": 50, "cores_per_task": cores, "start": start, "end": end} | fields
    return whole(job_id, len(nodes), planned_nodes=nodes, **its)


def test_jobs_that_slurm_plans_to_start_before_are_held():
    """c1 and c3 are taken at first, and jobs are planned on c2, and on c3 and c4."""
    jobs = (
        job(**OWN, least_nodes=2, most_nodes=2, tasks=2),
        running(7, "c1", "c3", end=NOW + 400, requeues=False),
        planned(20, "c2", start=NOW + 100),
        planned(21, "c3", "c4", start=NOW + 400, partitions=("own",)),
    )
    late = answer(ask(*jobs, by=NOW + 600, actions=("hold",)))
    assert (names(late.lifted), late.lost) == (["hold 21"], 2 * 200 * 10**6)
    assert late.lines[-1] == "scontrol hold 21"
    assert not any("Nice" in line for line in late.lines)
    assert late.at_start == ("scontrol update JobId=1 Nice=-100",)
    assert late.afterwards == ("scontrol release 21", "scontrol update JobId=1 Nice=0")
    first = answer(ask(*jobs, by=NOW + 600))
    assert (first.lifted, "Nice" in first.lines[0]) == ((), True)


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "COMPLETED", "flags": ("COMPLETING",), "end": NOW - 5},
        {"state": "RUNNING", "flags": ("COMPLETING",)},
        {"state": "RUNNING", "flags": ("STAGE_OUT",)},
        {"state": "COMPLETING"},
        {"state": "PENDING", "flags": ("REQUEUED", "COMPLETING")},
        {"part_of": "7+0"},
    ],
)
def test_neither_ended_jobs_nor_parts_of_jobs_are_stopped_or_held(fields):
    other = running(7, "c3", start=NOW - 100, flags=("CONFIGURING",))
    ended = replace(other, **{"flags": ()} | fields)
    assert answer(ask(job(**ONLY_C3), ended, actions=("requeue", "migrate", "hold"))) is None
    found = answer(ask(job(**ONLY_C3), other, actions=("requeue",)))
    assert found.lines[-1] == "scontrol requeuehold 7"
    first = planned(20, "c3", start=NOW, partitions=("own",), part_of="20+0")
    assert answer(ask(job(**ONLY_C3), first, by=NOW + 50, actions=("hold",))) is None


def test_no_job_starts_where_another_is_being_completed():
    """c3 has a job that has ended, c1 and c4 run ones; the job asks nodes of its own."""
    ended = running(7, "c3", state="COMPLETED", flags=("COMPLETING",), end=NOW - 5, cores=1)
    others = (ended, running(8, "c1"), running(9, "c4"))
    there = {"completing": np.array([name == "c3" for name in NODES])}
    asks = job(cores_per_task=8, required=("c3",))
    found = ask(asks, *others, **there)
    assert ("not completing a job", 0) in found.shortage.filters
    assert found.earliest == NOW + 1
    assert found.unseen == ("how soon jobs are completed on nodes where it then fits",)
    assert answer(found) is None
    assert answer(ask(asks, *others, by=NOW + 1, **there)).count == 0
    found = ask(replace(asks, required=("c1",)), *others, **there)
    assert found.unseen == ()
    assert answer(found).lines[-1] == "scontrol requeuehold 8"
    either = replace(asks, required=(), excluded=("c1", "c2", "m1", "g1", "g2"))
    assert answer(ask(either, *others, **there)).withheld
    forced = answer(ask(either, *others, force=True, **there))
    assert forced.lines[-1] == "scontrol requeuehold 9"
    posed = placement_problem(queue_of(asks, *others), left_by(*others, **there))
    assert solve(posed.problem, "highs").solution.nodes == ((),)


def test_jobs_are_requeued_no_sooner_than_the_job_is_to_start():
    other = running(7, "c3", start=NOW - 100, end=NOW + 900)
    jobs = job(**ONLY_C3), other, planned(20, "c1", start=NOW, partitions=("own",))
    later = answer(ask(*jobs, by=NOW + 50, actions=("requeue", "hold")))
    assert later.lost == 150 * 10**6
    assert [line.split()[1:3] for line in later.lines] == [["update", "JobId=1"]]
    nice, requeue = "scontrol update JobId=1 Nice=-100", "scontrol requeuehold 7"
    assert later.at_start == (nice, requeue)
    assert later.afterwards[:2] == ("scontrol release 7", "scontrol update JobId=1 Nice=0")
    now = answer(ask(*jobs, actions=("requeue", "hold")))
    assert (now.lines[0], now.lines[-1], now.at_start) == (nice, requeue, ())
    by_nice = answer(ask(*jobs, by=NOW + 50))
    assert (by_nice.lines[0], by_nice.at_start) == (nice, (requeue,))


def test_running_jobs_are_moved_to_nodes_of_their_kind():
    asks = job(partitions=("own",), tasks=2, least_nodes=2, most_nodes=2, excluded=("c1",))
    moves = running(7, "c3", "c4", cores=4, start=-10_000, partitions=("all",), tasks=2, limit=9e5)
    stay = [
        running(n, node, cores=cores, requeues=False)
        for n, node, cores in ((8, "c1", 10), (9, "g1", 30), (10, "g2", 30))
    ]
    both = {"actions": ("requeue", "migrate")}
    assert names(answer(ask(asks, moves, *stay)).lifted) == ["requeue 7"]
    least = answer(ask(asks, moves, *stay, **both))
    [(claim, (first, second), lost)] = least.moved
    assert (claim.label, first) == ("job 7", "c1")
    assert {second, *least.nodes} == {"c2", "c3", "c4"}
    assert lost == least.lost == 2 * 0.25 * 600 * 10**6
    assert not any("requeue" in line for line in least.lines)
    alone = running(7, "c3", "c4", start=-10_000, exclusive="node", tasks=2)
    assert answer(ask(asks, alone, *stay, actions=("migrate",))) is None
    recent = replace(moves, start=NOW - 100)
    assert names(answer(ask(asks, recent, *stay, **both)).lifted) == ["requeue 7"]


PLANNED = NODE, st.sampled_from([4, 8, 16])
PLANS = st.tuples(*PLANNED, st.integers(1000, 1012), st.integers(1, 12))


@settings(max_examples=40, deadline=None)
@given(
    SITUATIONS,
    st.lists(PLANS, max_size=3),
    st.integers(0, 12),
    st.sampled_from([(), ("hold",), ("hold", "drain"), ("drain",), ("migrate",)]),
)
def test_no_second_by_the_time_is_cheaper_than_the_starts_that_are_tried(
    situation, plans, seconds, actions
):
    """Every second is tried: none is cheaper, so more time is never dearer than a start now."""
    jobs, reserved, asks = situation
    others = runs(
        jobs, lambda number, end: {"start": NOW - 7 * number, "end": NOW + (end - 990) // 4}
    )
    waiting = [
        planned(number, node, start=start, end=start + length, cores=cores)
        for number, (node, cores, start, length) in enumerate(plans, 30)
    ]
    reservations = tuple(
        Reservation(f"r{place}", (node,), first := NOW + (start - 1000) // 5, first + length)
        for place, (node, start, length) in enumerate(reserved)
    )
    asked = job(**asks | {"eligible": asks["eligible"] and asks["eligible"] - 10})
    asked_by = {"by": NOW + seconds, "actions": ("requeue", *actions)}
    found = ask(asked, *others, *waiting, reservations=reservations, **asked_by)

    def least(*starts):
        starts = [start for start in starts if not found.rule_at(start)]
        relief = answer(found, *starts) if starts else None
        return (math.inf, 0) if relief is None else (relief.lost, relief.count)

    best = least(*found.starts)
    assert best == min(map(least, range(NOW, NOW + seconds + 1)))
    assert best <= least(NOW)


def test_starts_are_where_something_becomes_free():
    """c3 is busy for 60 s, and then planned for 30 s."""
    first = planned(20, "c3", start=NOW + 60, end=NOW + 90)
    jobs = job(**OWN, required=("c3",)), running(7, "c3"), first
    for action, seconds, starts in (
        ("requeue", 50, [0]),
        ("requeue", 200, [60]),  # the earliest one, which costs nothing
        ("hold", 200, [0, 60, 90]),
        ("drain", 200, [0, 1, 60, 90]),
        ("drain", 0, [0]),
    ):
        found = ask(*jobs, by=NOW + seconds, actions=(action,))
        assert [start - NOW for start in found.starts] == starts, action


@pytest.mark.parametrize(
    ("start", "by", "fields", "expected"),
    [
        (NOW + 50, NOW + 50, {}, True),
        (NOW + 50, NOW + 49, {}, False),
        (NOW + 50, NOW + 60, {"held": True}, False),  # as Slurm last saw it
        (NOW + 50, NOW + 60, {"eligible": NOW + 50}, False),  # when it may start, not when it does
        (NOW - 5, NOW + 60, {"planned_nodes": ("c3",)}, False),  # which does not fit
        (NOW - 5, NOW + 60, {"planned_nodes": ("c4",), "required": ("c4",)}, True),
        (NOW - 5, NOW, {"planned_nodes": ("c4",), "required": ("c4",)}, False),  # asked why not
        (NOW - 5, NOW + 60, {"required": ("c4",)}, False),  # when it might start at first
    ],
)
def test_nothing_is_to_be_done_where_slurm_starts_the_job_in_time(start, by, fields, expected):
    asks = job(**{"cores_per_task": 16, "required": ("c3",), "start": start} | fields)
    assert ask(asks, running(7, "c3"), by=by).is_expected is expected


@settings(max_examples=40, deadline=None)
@given(SITUATIONS, st.lists(st.tuples(*PLANNED, st.integers(1000, 1100)), max_size=4))
def test_holds_and_drains_cost_least_of_all(situation, plans):
    """Every set of planned jobs and nodes is kept away, and what is free is counted anew."""
    jobs, _, asks = situation
    others, by = runs(jobs, lambda _, end: {"end": end}), NOW + 60
    left = [each for each in others if each.end > by]
    used, waiting = Counter(), []
    for each in left:
        used[each.nodes[0]] += each.allocations[0].cores
    for number, (node, cores, start) in enumerate(plans, 30):
        if used[node] + cores <= 16:
            used[node] += cores
            waiting.append(planned(number, node, start=start, cores=cores))
    asked = job(**asks | {"eligible": None})
    least = answer(ask(asked, *others, *waiting, by=by, actions=("hold", "drain")))
    before = [each for each in waiting if each.start <= by + 60]  # Slurm rounds its times
    tried = []
    for held, drained in product(subsets(before), [*subsets(NODES[:4])]):
        stay = [
            running(each.job_id, *each.planned_nodes, cores=each.cores_per_task)
            for each in before
            if each not in held and each.planned_nodes[0] not in drained
        ]
        then = replace(left_by(*left, *stay), time=by)
        usable = np.array([not drained or node in drained for node in NODES])
        if any(
            replace(each, nodes=each.nodes & usable).room(then) >= each.chunks
            for each in alternatives(asked, then)
        ):
            lost = sum(max(0, by - each.start) * each.cores_per_task / 16 for each in held)
            lost += 60 * len(drained) - sum(
                (min(max(each.end, NOW + 1), by) - NOW) * each.allocations[0].cores / 16
                for each in others
                if each.nodes[0] in drained
            )
            tried.append((round(1e6 * lost), len(held) + len(drained)))
    assert min(tried, default=None) == (least and (least.lost, least.count))


def test_planned_jobs_hold_what_they_ask_there():
    there = supply()

    def held(*nodes, **fields):
        job = planned(30, *nodes, start=NOW, **fields)
        return held_as_planned(job, there).amounts.tolist()

    thin, gpus = [16, 64000, 0, 0], {"per_node": {"gpu": 2}}
    assert held("m1", cores=3) == [[4, 0, 0, 0]]
    assert held("c1", "g1", cores=3, **gpus) == [thin, [32, 256000, 4, 4]]
    assert held("g1", cores=3, **gpus) == [[3, 0, 2, 0]]
    assert held("c2", exclusive="node") == [thin]
    assert held("c2", other=("it asks for adjacent nodes",)) == [thin]
    spread = held("c1", "c2", cores=4, tasks=5, most_nodes=0)
    assert [cores for cores, *_ in spread] == [16, 4]


def test_planned_jobs_hold_licences_and_run_until_their_end():
    first = planned(30, "c1", start=NOW, end=NOW + 100, licences="lab:2")
    jobs = job(licences="lab:2"), first
    assert names(answer(ask(*jobs, actions=("hold",))).lifted) == ["hold 30"]
    assert answer(ask(*jobs, actions=("drain",), by=NOW + 9)) is None
    assert answer(ask(*jobs, actions=("hold",), by=NOW + 100)).count == 0
    endless = replace(first, end=None, limit=None)
    for seconds, runs in ((10**9, (endless,)), (-60, (endless,)), (-61, ())):
        assert planned_to_run(queue_of(endless), NOW + seconds) == runs
