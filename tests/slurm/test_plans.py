"""Plans: how they are posed, in order, with reservations, on light nodes, and pinned."""

import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import rules
from optsched.models.node_placement.problem import NodePlacement
from optsched.models.node_placement.rules import with_rules
from optsched.sites.slurm_notation import hosts_of
from optsched.slurm.capture import Output
from optsched.slurm.pins import clearing, lowering, pinned_placements, updates_of, without_pins
from optsched.slurm.plan import (
    Ask,
    QueuePlan,
    Situation,
    carry_out,
    on_lighter_nodes,
    read_situation,
    strict,
)
from optsched.slurm.queue import SlurmQueue
from optsched.slurm.requests import request_of
from optsched.slurm.snapshot import SlurmSnapshot, placement_problem
from optsched.slurm.starts import reserve, reserved, started_now, starts_now, with_reserved
from optsched.solvers.result import Budget
from optsched.solvers.solving import solve

from .conftest import NOW, SITUATIONS, job, left_by, on, posed, queue_of, running, supply, whole

TWO = {"least_nodes": 2, "most_nodes": 2}
BLOCK = {"partitions": ("block",)}
LEFT = {"22.05.8": {"it asks for adjacent nodes": 1}, "24.11.5": {}, "26.05.5": {}}


def test_every_captured_pending_job_is_in_the_problem_or_said_not_to_be(captured):
    folder, queue, supply = captured
    snapshot = placement_problem(queue, supply)
    stated = {row.job.label for row in snapshot.rows}
    assert not stated & snapshot.left.keys()
    assert not (stated | snapshot.left.keys()) & snapshot.blocked.keys()
    named = stated | snapshot.left.keys() | snapshot.blocked.keys()
    assert named == {job.label for job in queue.pending}
    assert len({*snapshot.problem.jobs}) == len(snapshot.rows)
    assert Counter(snapshot.left.values()) == LEFT[folder.name]
    for one in queue.pending:
        rule = one.reason in (
            *("JobHeldUser", "BeginTime", "Dependency", "DependencyNeverSatisfied"),
            *("PartitionTimeLimit", "JobArrayTaskLimit"),
        )
        assert (one.label in snapshot.blocked) == rule


def test_placements_of_a_problem_with_all_that_may_be_asked():
    """Two columns of GPUs, threads, a switch, licences and an own node, by hand."""
    there = supply(busy=np.array([True, *(False,) * 6]))
    jobs = (
        job(job_id=1, tasks=2, switches=1, **TWO),
        job(job_id=2, exclusive="node"),
        job(job_id=3, per_node={"gpu": 1}, licences="lab:1,lab"),
        job(job_id=4, partitions=("block",), tasks=2),
    )
    problem = placement_problem(queue_of(*jobs), there).problem
    assert [*problem.resources] == ["cores", "memory", "gpu", "gpu:a100", "cores of 2 threads"]
    assert problem.free[:, 4].tolist() == [32] * 4 + [64] + [64] * 2
    assert problem.demand[:, 4].tolist() == [2, 2, 2, 2]
    assert problem.busy == (0,)
    assert problem.exclusive == (1,)
    assert problem.licences.tolist() == [3]
    assert problem.licences_of.tolist() == [[0], [0], [2], [0]]
    assert problem.span == ("switch", "anywhere", "anywhere", "block")

    def broken(*nodes):
        found = problem.violations(on(*nodes))
        return [one.constraint for one in found]

    assert broken((2, 3), (1,), (5,), (5,)) == []
    for place, at, kind in (
        (0, (0, 2), "span"),
        (1, (0,), "exclusive"),
        (2, (0,), "resource"),
        (3, (4,), "kind"),
    ):
        assert broken(*(at if here == place else () for here in range(4))) == [kind]


def test_tasks_of_an_array_are_rows_up_to_its_limit_and_the_room():
    array = job(job_id=9, array_id=9, array_tasks=(2, 3, 4, 7), array_limit=3)
    split = replace(array, job_id=10, array_tasks=(9,))  # as an update of one task leaves it
    wide = replace(array, array_limit=0, per_node={"gpu": 3})
    never = replace(wide, per_node={"gpu": 4}, least_nodes=3, most_nodes=3, tasks=3)
    for jobs, rows in (
        ([array], ("9_2", "9_3", "9_4")),
        ([array, running(8, "c1", cores=1, array_id=9, array_tasks=(1,))], ("9_2", "9_3")),
        ([array, split], ("9_2", "9_3", "9_4")),
        ([wide], ("9_2", "9_3")),
        ([never], ("9_2",)),
    ):
        assert placement_problem(queue_of(*jobs), supply()).problem.jobs == rows
    blocked = placement_problem(queue_of(array, split), supply()).blocked
    assert "its limit of 3 running tasks" in blocked["9_9"]


def test_jobs_weigh_as_much_as_is_asked_for():
    jobs = (
        job(job_id=1, priority=5),
        job(job_id=2, priority=900, tasks=2, **TWO),
        job(job_id=3, priority=900, tasks=30, partitions=("own",)),
        job(job_id=4, priority=0, per_task={"gpu": 1}, tasks=4, partitions=("block",)),
    )
    for weigh, expected in (
        ("priority", [5, 900, 900, 1]),
        ("rank", [2, 3, 3, 1]),
        ("nodes", [1, 2, 2, 1]),
        ("cores", [1, 2, 30, 4]),
        ("gpus", [1, 1, 1, 4 * 5 + 1]),
    ):
        problem = placement_problem(queue_of(*jobs), supply(), weigh=weigh).problem
        assert problem.weights.tolist() == expected, weigh


BASIC = 2**32 - 2**16
"""About the first priority of ``priority/basic``."""


def test_priorities_that_tell_the_order_alone():
    """Two nodes of 16 cores: the first job fits, and is worth more than all others."""
    jobs = [
        job(job_id=n, priority=BASIC - 3 * n, cores_per_task=c, partitions=("short",), limit=60.0)
        for n, c in enumerate([16, 16, 8, 8, 8, 8, 8])
    ]
    for weigh, first in (("priority", 22), ("rank", 7)):
        snapshot = placement_problem(queue_of(*jobs), supply(), weigh=weigh)
        assert snapshot.tells_order
        assert snapshot.problem.weights.tolist() == [first, 6, 5, 4, 3, 2, 1]
        solution = solve(snapshot.problem, "column-generation").solution
        assert [row for row, at in enumerate(solution.nodes) if at] == [0, 2, 3]
    # a first job that cannot fit is not the first
    wide = job(job_id=1, priority=BASIC, least_nodes=7, most_nodes=7, tasks=7, cores_per_task=17)
    unlicensed = job(job_id=2, priority=BASIC - 1, licences="lab:4")
    queue = queue_of(wide, unlicensed, job(job_id=3, priority=BASIC - 2))
    weights = placement_problem(queue, supply()).problem.weights
    assert weights.tolist() == [3, 2, 6]


def test_large_priorities_are_scaled_so_that_the_objective_is_exact():
    jobs = [job(job_id=n, priority=2_000_000_000 - n, tasks=80) for n in range(1, 400)]
    jobs.append(job(job_id=500, priority=1))
    problem = placement_problem(queue_of(*jobs), supply(), then=("switches", "nodes")).problem
    most = int(problem.weights.sum()) * int(np.prod(problem.radices))
    assert 2**52 < most <= 2**53
    assert problem.weights.min() == 1
    assert (np.diff(problem.weights) <= 0).all()


def test_other_jobs_leave_room_for_the_largest_chunks():
    """Two nodes of 4 GPUs: of 6 Slurm takes 4 + 2, and either node may be the first."""
    six = BLOCK | TWO | {"tasks": 2, "per_job": {"gpu": 6}}
    jobs = (job(job_id=1, priority=9, **six), job(job_id=2, per_node={"gpu": 1}, **BLOCK))
    few = job(job_id=3, cores_per_task=31, **BLOCK)
    problem = placement_problem(queue_of(*jobs, few), supply()).problem
    plan = solve(problem, "column-generation").solution
    assert [bool(at) for at in plan.nodes] == [True, False, True]
    # with 3 left on each node Slurm takes 3 + 3, of nodes that running jobs share, and none else
    there = supply()
    free = there.site.capacity - np.array([[0, 0, 0, 0]] * 5 + [[1, 0, 1, 1]] * 2)
    own = job(job_id=4, exclusive="node", **BLOCK)
    snapshot = placement_problem(queue_of(*jobs, few, own), supply(free=free))
    plan = solve(snapshot.problem, "column-generation").solution
    assert [bool(at) for at in plan.nodes] == [True, False, False, False]
    alone = placement_problem(queue_of(own), supply(free=free)).problem
    assert not any(solve(alone, "column-generation").solution.nodes)


@pytest.mark.parametrize(
    ("fields", "chunks", "divided"),
    [
        ({"tasks": 8, "cores_per_task": 2}, 1, {"cores": 16}),
        ({"tasks": 3}, 1, {"cores": 3, "cores of 2 threads": 4}),  # whole cores once
        ({"tasks": 5, "tasks_per_node": 2}, 3, None),
        ({"tasks": 9, "least_nodes": 3}, 3, {"cores": 7}),  # Slurm takes 7 + 1 + 1
        ({"tasks": 4, "least_nodes": 2, "most_nodes": 4}, 2, {"cores": 3}),
        (TWO | {"tasks": 4}, 2, {"cores": 3}),  # Slurm takes 3 + 1
        (TWO | {"tasks": 4, "memory_per_core": 100}, 2, {"cores": 3, "memory": 300}),
        (TWO | BLOCK | {"tasks": 2, "per_job": {"gpu": 4}}, 2, {"cores": 1, "gpu": 3}),
        (TWO | BLOCK | {"tasks": 2, "per_job": {"gpu": 8}}, 2, None),  # all there is
        ({"per_job": {"gpu": 3}, "cores_per_gpu": 2}, 1, {"cores": 6, "gpu": 3}),
        ({"tasks": 4, "per_task": {"gpu": 1}, "memory_per_core": 10}, 1, {"gpu": 4, "memory": 40}),
        ({"tasks": 1}, 1, None),
        ({"tasks": 8, "exclusive": "node"}, 8, None),
    ],
)
def test_a_job_is_on_the_fewest_nodes_as_slurm_divides_it(fields, chunks, divided):
    request = request_of(job(**fields), supply())
    if divided is None:
        assert (request.divided, request.chunks) == (None, chunks)
        return
    assert (request.divided.chunks, request.divided.most_per_node) == (chunks, 1)
    assert {name: request.divided.demand[name] for name in divided} == divided


def test_of_several_partitions_the_one_with_the_lightest_nodes_is_taken():
    wide = job(tasks=2, partitions=("rest", "block"), **TWO)
    for weights, first in (([1] * 7, {2, 3, 4}), ([1, 1, 9, 9, 9, 5, 5], {5, 6})):
        request = request_of(wide, supply(weights=np.array(weights)))
        assert {*np.flatnonzero(request.nodes).tolist()} == first


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40)), min_size=2, max_size=6))
def test_plans_are_feasible_however_slurm_divides_the_tasks(asked):
    """Of jobs of a fixed number of nodes, and of any number, which is 0 here."""
    jobs = []
    for number, (nodes, more) in enumerate(asked):
        counts = {"least_nodes": max(1, nodes), "tasks": max(0, nodes - 1) + more}
        jobs.append(job(job_id=number, most_nodes=nodes, partitions=("rest",), **counts))
    there = supply(threads=np.ones(7, dtype=np.int64))
    problem = placement_problem(queue_of(*jobs), there).problem
    plan = solve(problem, "column-generation", budget=Budget(work=1)).solution
    for node in range(7):
        here = [job.tasks - len({*at}) + 1 for job, at in zip(jobs, plan.nodes) if node in at]
        free = problem.free[node, 0]
        assert len(here) < 2 or sum(min(most, free) for most in here) <= free


def test_switches_are_not_minimized_without_a_tree():
    assert placement_problem(queue_of(job()), supply()).problem.then == ("switches",)
    flat = supply(topologies={}, partitions=(supply().site.partition("all"),))
    assert placement_problem(queue_of(job()), flat).problem.then == ()


def test_what_slurm_starts_now_is_what_fits_alone():
    planned = {"start": 900}
    jobs = (
        job(job_id=1, planned_nodes=("c1", "c2"), least_nodes=2, most_nodes=2, tasks=2, **planned),
        job(job_id=2, planned_nodes=("c3", "m1"), tasks=20, **planned),
        job(job_id=3, planned_nodes=("c4",), start=2000),
        job(job_id=4, planned_nodes=("c1",), constraint="old", **planned),
        job(job_id=5, planned_nodes=("c1",), cores_per_task=16, **planned),
        job(job_id=6),
    )
    there = supply()
    queue = queue_of(*jobs)
    placements = started_now(placement_problem(queue, there), there)
    assert placements.nodes == ((0, 1), (2,) * 16 + (4,) * 4, (), (), (0,), ())


@pytest.mark.parametrize("column", ["user", "partition", "account", "qos"])
def test_a_rule_by_each_column_of_a_queue_limits_a_plan_and_is_named(shared, column):
    problem = read_situation(shared("slurm/fixtures/26.05.5"), Ask()).posed.problem
    plan = solve(problem, "first-fit").solution
    started = [job for job, nodes in enumerate(plan.nodes) if nodes]
    counts = Counter(problem.columns["jobs"][column][job] for job in started)
    few = rules.limit("jobs", max(counts.values()) - 1, by=column)
    ruled = with_rules(problem, {"few": few})
    broken = [str(found) for found in ruled.violations(plan)]
    assert broken
    assert all(found.startswith("few ") for found in broken)
    kept = solve(ruled, "first-fit").solution
    assert ruled.violations(kept) == []
    left = [job for job in started if not kept.nodes[job]]
    assert any(ruled.blocking(kept, job).startswith("rule few ") for job in left)


def solved(problem, hint=None):
    return solve(problem, "cp-sat", budget=Budget(work=5), hint=hint)


def fit_together(posed_now, chosen) -> bool:
    """Whether jobs fit, by trying every set of nodes for each of them."""
    problem, requests = posed_now.problem, [posed_now.rows[at].request for at in chosen]
    ways = [combinations(np.flatnonzero(one.nodes).tolist(), one.chunks) for one in requests]
    for places in product(*ways):
        free = problem.free.copy()
        for at, nodes in zip(chosen, places):
            free[list(nodes)] -= problem.demand[at]
        if (free >= 0).all():
            return True
    return False


@settings(max_examples=40, deadline=None)
@given(SITUATIONS)
def test_strict_order_is_the_first_set_of_all(situation):
    queue, supply = posed(*situation)
    now = placement_problem(queue, supply)
    found = strict(now, supply, solved)
    ranks = [(-row.job.priority, row.job.job_id) for row in now.rows]
    chosen: list[int] = []
    for at in sorted(range(len(ranks)), key=ranks.__getitem__):
        if fit_together(now, [*chosen, at]):
            chosen.append(at)
    placed = [] if found.placements is None else found.placements.nodes
    assert [at for at, nodes in enumerate(placed) if nodes] == sorted(chosen)
    assert found.proven == found.of


@settings(max_examples=40, deadline=None)
@given(SITUATIONS, st.integers(1, 3), st.sets(st.integers(1, 6)))
def test_no_plan_delays_the_jobs_that_have_reservations(situation, number, alone):
    queue, supply = posed(*situation)
    alike = (replace(each, exclusive="node" * (each.job_id in alone)) for each in queue.jobs)
    queue = queue_of(*alike)
    plain = placement_problem(queue, supply)
    kept = reserved(plain, queue, supply, number)
    now = with_reserved(plain, supply, kept)
    blocked = [row for row in plain.rows if not row.request.fits(supply)]
    assert len(kept) <= min(number, len(blocked))
    best = solved(now.problem).solution
    taken = [starts_now(row, at, supply) for row, at in zip(now.rows, best.nodes) if at]
    for place, one in enumerate(kept):
        found = reserve(one.row, queue, supply, [*taken, *kept[:place]])
        assert found is not None
        assert found.start == one.start
    # what is given up for it is nothing that would be over before
    short = [row.job.limit for row in now.rows]
    if kept and all(NOW + limit <= min(one.start for one in kept) for limit in short):
        assert now.problem.weights @ np.array([bool(at) for at in best.nodes]) == (
            solved(plain.problem).objective
        )


def test_licences_are_kept_for_a_reservation_too():
    there = running(9, "c1", cores=1, end=NOW + 100, licences="lab:2")
    blocked = job(job_id=1, licences="lab:3", priority=9)
    for limit, starts in ((100.0, True), (101.0, False)):
        queue = queue_of(there, blocked, job(job_id=2, licences="lab", limit=limit))
        supply = left_by(there)
        plain = placement_problem(queue, supply)
        kept = reserved(plain, queue, supply, 1)
        assert [one.start for one in kept] == [NOW + 100]
        nodes = solved(with_reserved(plain, supply, kept).problem).solution.nodes
        assert [bool(at) for at in nodes] == [False, starts]


WEIGHTS = np.array([20, 20, 1, 1, 5, 1])
"""Of two fat nodes on a leaf switch of their own, and four others on two."""

FULL = [[8, 9]] * 3 + [[0, 9]] + [[8, 9]] * 2
"""What is free where the fourth node has no core left."""


def problem_of(**fields) -> NodePlacement:
    jobs = len(fields["chunks"])
    usual = {
        "resources": ["cores", "memory"],
        "free": np.array([[8, 100]] * 2 + [[8, 10]] * 4),
        "switches": ["fat", "fat", "one", "one", "two", "two"],
        "demand": np.array([[1, 1]] * jobs),
        "then": ["switches"],
    }
    return NodePlacement(**usual | fields)


@pytest.mark.parametrize(
    ("fields", "before", "after"),
    [
        ({"chunks": [1]}, [(0,)], [(2,)]),
        ({"chunks": [2], "most_per_node": [1]}, [(0, 1)], [(2, 3)]),  # to another switch
        ({"chunks": [2], "exclusive": [0]}, [(0, 1)], [(2, 2)]),
        ({"chunks": [1], "demand": [[1, 50]]}, [(1,)], [(1,)]),  # which needs the memory
        ({"chunks": [1], "kinds": list("aabbbb"), "allowed": [["a"]]}, [(1,)], [(1,)]),
        ({"chunks": [3], "most_per_node": [1]}, [(0, 1, 2)], [(0, 2, 3)]),  # no further switch
        ({"chunks": [1, 1], "exclusive": [0], "busy": [2]}, [(0,), (3,)], [(5,), (2,)]),
        ({"chunks": [1], "devices": [[1000]] * 6, "share": [1000]}, [(0,)], [(0,)]),
        # of nodes of the same weight, to those in use
        ({"chunks": [1], "busy": [5]}, [(2,)], [(5,)]),
        ({"chunks": [4], "busy": [3], "most_per_node": [2]}, [(2, 2, 5, 5)], [(2, 2, 3, 3)]),
        ({"chunks": [1, 1], "exclusive": [0]}, [(2,), (5,)], [(2,), (5,)]),
        ({"chunks": [1], "busy": [3], "free": FULL}, [(2,)], [(2,)]),
    ],
)
def test_jobs_move_to_the_lightest_nodes_on_as_many_switches(fields, before, after):
    problem = problem_of(**fields)
    placements = on(*before)
    if problem.share.any():
        placements = placements._replace(devices=(((0,),),))
    found = on_lighter_nodes(problem, placements, WEIGHTS)
    assert problem.violations(found) == []
    assert list(found.nodes) == after
    assert problem.objective(found) >= problem.objective(placements)


@given(st.data())
def test_moves_keep_the_objective_and_lower_the_weight(data):
    jobs = data.draw(st.integers(1, 5))
    numbers = st.integers(1, 4)
    each = st.lists(numbers, min_size=jobs, max_size=jobs)
    problem = problem_of(
        chunks=data.draw(each),
        demand=np.array([data.draw(each), data.draw(each)]).T * [2, 6],
        most_per_node=[n - 1 for n in data.draw(each)],
        exclusive=[job for job in range(jobs) if data.draw(st.booleans())],
        busy=[1] if data.draw(st.booleans()) else [],
        span=[data.draw(st.sampled_from(["anywhere", "switch"])) for _ in range(jobs)],
    )
    plan = solve(problem, "best-fit").solution
    found = on_lighter_nodes(problem, plan, WEIGHTS)
    assert problem.violations(found) == []
    assert [len(nodes) for nodes in found.nodes] == [len(nodes) for nodes in plan.nodes]
    assert problem.objective(found) >= problem.objective(plan)

    def weight(placements):
        return sum(WEIGHTS[list(nodes)].sum() for nodes in placements.nodes if nodes)

    def idle(placements):
        return len({*sum(placements.nodes, ())} - {*problem.busy})

    assert (weight(found), idle(found)) <= (weight(plan), idle(plan))


LISTS = {"required": "ReqNodeList", "excluded": "ExcNodeList"}
comments = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


def posed_without_pins(queue: SlurmQueue) -> SlurmSnapshot:
    return placement_problem(without_pins(queue), supply())


def followed(queue: SlurmQueue, updates) -> SlurmQueue:
    """Return the queue after updates, as Slurm carries them out."""
    settings_of = {update.label: update.settings for update in updates}
    jobs = []
    for one in queue.jobs:
        settings = dict(text.split("=", 1) for text in settings_of.get(one.label, ()))
        own = {field: settings[name] for field, name in LISTS.items() if name in settings}
        nice, comment = int(settings.get("Nice", one.nice)), settings.get("Comment", one.comment)
        raised = {"nice": nice, "priority": one.priority + one.nice - nice}
        nodes = {field: tuple(hosts_of(text)) for field, text in own.items()}
        jobs.append(replace(one, comment=comment, **nodes, **raised))
    return queue_of(*jobs)


@given(comments, st.integers(0, 5000), st.integers(-5000, 5000))
def test_clearing_restores_what_was_pinned(comment, higher, nice):
    before = queue_of(whole(1, 2, comment=comment, priority=70, nice=nice), whole(2, 2))
    placements = on((0, 1), (2, 3))
    updates = updates_of(
        before, posed_without_pins(before), placements, raises={"1": higher}
    ).updates
    its = followed(before, updates)
    assert its.jobs[0].priority == 70 + higher
    assert [each.required for each in its.jobs] == [("c1", "c2"), ("c3", "c4")]
    assert without_pins(its).jobs == before.jobs
    assert followed(its, clearing(its)).jobs == before.jobs
    assert {update.what for update in clearing(its)} == {"clear"}


def test_pins_of_jobs_that_have_ended_stay_and_marks_of_pins_that_somebody_has_cleared_go():
    before = queue_of(whole(1, 2, comment="mine"))
    [its] = followed(
        before, updates_of(before, posed_without_pins(before), on((0, 1))).updates
    ).jobs
    for required in (its.required, ()):
        assert clearing(queue_of(replace(its, required=required, state="COMPLETED"))) == ()
    [update] = clearing(queue_of(replace(its, required=(), state="RUNNING")))
    assert (update.what, update.settings) == ("unmark", ("Comment=mine",))


def test_raised_jobs_are_lowered_whether_they_run_or_wait():
    before = queue_of(whole(1, 2, comment="mine", priority=70, nice=5))
    [pin] = updates_of(before, posed_without_pins(before), on((0, 1)), raises={"1": 30}).updates
    assert "Nice=-25" in pin.settings
    its = followed(before, [pin]).jobs[0]
    lowered = replace(its, comment=its.comment.replace(":5:-25", ""), nice=5, priority=70)
    for state in ("PENDING", "RUNNING"):
        now = queue_of(replace(its, state=state))
        [update] = lowering(now)
        assert update.what == "lower"
        assert followed(now, [update]).jobs == (replace(lowered, state=state),)
        assert lowering(followed(now, [update])) == ()
    # a job that runs is lowered without its pin
    [update] = clearing(queue_of(replace(its, state="RUNNING")))
    assert update.what == "lower"
    assert lowering(queue_of(replace(its, state="COMPLETED"))) == ()
    # somebody else has set its nice since
    [update] = lowering(queue_of(replace(its, nice=0)))
    assert update.settings == (f"Comment={lowered.comment}",)
    assert without_pins(queue_of(replace(its, nice=0, priority=9))).jobs[0].priority == 9


def test_a_job_is_raised_before_those_that_have_no_room():
    """Three of four nodes are free; on the fourth a job runs for another minute."""
    own = {"partitions": ("own",), "exclusive": "node"}
    there = running(8, "c4", **own)
    first = whole(1, 4, priority=90, **own)
    second = whole(2, 1, priority=50, limit=60, **own)
    third = whole(3, 2, priority=20, limit=30, **own)

    def plan(*jobs, nodes, reserve=1) -> QueuePlan:
        queue, supply = queue_of(there, *jobs), left_by(there)
        plain = placement_problem(queue, supply)
        kept = reserved(plain, queue, supply, reserve)
        problem = with_reserved(plain, supply, kept)
        return QueuePlan(Situation(queue, supply, problem, Ask(reserve=reserve), kept), on(*nodes))

    ours = (), (0,), (1, 2)
    found = plan(first, second, third, nodes=ours)
    assert [one.row.label for one in found.situation.reserved] == ["1"]
    assert found.raises == {"2": 82, "3": 142}
    assert found.updates.raised == {"2", "3"}
    assert plan(first, second, third, nodes=ours, reserve=0).raises == {}
    # the second one would have room, and is passed over
    assert plan(first, second, third, nodes=((), (), (1, 2))).raises == {}
    assert plan(second, third, nodes=((0,), (1, 2))).raises == {"3": 62}
    assert plan(second, nodes=((0,),)).raises == {}  # none is before it
    by_operator = replace(second, priority_by_operator=True)
    assert plan(first, by_operator, third, nodes=ours).raises == {"3": 142}
    # Slurm may start it, as we cannot tell
    left = replace(first, job_id=4, other=("unknown",), priority=30)
    assert plan(first, second, third, left, nodes=ours).raises == {"2": 82}
    # it has room, but the first job would wait for it
    late = replace(second, limit=61)
    found = plan(first, late, third, nodes=((), (), (1, 2)))
    assert found.raises == {"3": 142}
    assert {row.label: why for row, why in found.not_placed}["2"] == "it would delay job 1"


def test_pins_stay_where_slurm_no_longer_shows_the_number_of_nodes():
    """As Slurm 24.11 does after a restart."""
    before = queue_of(whole(1, 2, tasks=4, cores_per_task=1))
    placements = on((0, 1))
    its = followed(before, updates_of(before, posed_without_pins(before), placements).updates)
    restarted = queue_of(replace(its.jobs[0], most_nodes=0))
    assert pinned_placements(restarted, posed_without_pins(restarted)) == placements
    assert updates_of(restarted, posed_without_pins(restarted), placements).updates == ()
    [update] = updates_of(restarted, posed_without_pins(restarted), on((2, 3))).updates
    assert update.what == "pin"


@given(comments, st.integers(0, 3))
def test_a_job_that_may_start_on_more_nodes_excludes_the_others(comment, higher):
    usual = {"tasks": 4, "cores_per_task": 1, "comment": comment, "priority": 70}
    before = queue_of(whole(1, 2, **usual, most_nodes=0))
    placements = on((0, 0, 0, 1))
    [pin] = updates_of(before, posed_without_pins(before), placements, raises={"1": higher}).updates
    assert pin.settings[0] == "ExcNodeList=c[3-4],g[1-2],m1"
    its = followed(before, [pin])
    assert its.jobs[0].excluded == ("c3", "c4", "g1", "g2", "m1")
    assert without_pins(its).jobs == before.jobs
    assert posed_without_pins(its).problem.allowed == posed_without_pins(before).problem.allowed
    assert followed(its, clearing(its)).jobs == before.jobs
    # the number of nodes becomes fixed, and the job requires them
    fixed = queue_of(replace(its.jobs[0], most_nodes=2))
    [update] = updates_of(fixed, posed_without_pins(fixed), placements).updates
    assert update.settings[:2] == ("ExcNodeList=", "ReqNodeList=c[1-2]")
    # it excludes nodes itself, or somebody else has changed those that it excludes
    own = queue_of(replace(before.jobs[0], excluded=("c4",)))
    found = updates_of(own, posed_without_pins(own), placements)
    assert (found.updates, [*found.without]) == ((), ["1"])
    other = queue_of(replace(its.jobs[0], excluded=("c4",)))
    [update] = clearing(other)
    assert (update.what, update.settings[-1]) == ("unmark", f"Comment={comment}")
    assert followed(other, [update]).jobs[0].excluded == ("c4",)


def test_of_a_pin_that_is_taken_back_the_pin_alone_counts(monkeypatch):
    before = queue_of(whole(1, 2), whole(2, 2))
    pins = updates_of(before, posed_without_pins(before), on((0, 1), (2, 3))).updates
    monkeypatch.setattr("optsched.slurm.plan.run_command", lambda words: Output(b"", ""))

    def reasons(updates, **fields):
        now = queue_of(*(replace(update.job, **fields) for update in updates))
        monkeypatch.setattr("optsched.slurm.plan.current_queue", lambda: now)
        return {reason for _, reason in carry_out(updates)}

    assert reasons(pins, memory_per_core=9) == {"its memory per core changed"}
    clear = clearing(followed(before, pins))
    assert reasons(clear, memory_per_core=9) == {""}
    assert reasons(clear, required=("c9",)) == {"its required changed"}
    assert reasons(clear, state="RUNNING") == {"it is RUNNING by now"}


def test_a_plan_loses_jobs_on_whose_nodes_others_start_unless_it_has_them_there():
    before = queue_of(running(8, "c7"), *(whole(number, 2) for number in (1, 2)))
    plan = QueuePlan(
        Situation(before, supply(), posed_without_pins(before), Ask()), on((0, 1), (2, 3))
    )
    ran, first, second = followed(before, plan.updates.updates).jobs
    starts = replace(second, state="RUNNING", allocations=running(2, "c3", "c4").allocations)
    assert plan.lost(queue_of(ran, first, starts)) == frozenset()
    assert plan.lost(queue_of(ran, first, starts, running(9, "c2", "c6"))) == {"1"}


@pytest.mark.parametrize("comment", ["optsched:", "optsched:0123abc", "Optsched:01234567", "a"])
def test_comments_without_a_mark_are_nobodys_pins(comment):
    queue = queue_of(whole(1, 2, comment=comment, required=("c1", "c2")))
    assert without_pins(queue).jobs == queue.jobs
    assert clearing(queue) == ()


def test_pins_are_cleared_before_others_are_set_by_priority():
    before = queue_of(*(whole(n, 1, priority=n) for n in (1, 2, 3)))
    first = updates_of(before, posed_without_pins(before), on((0,), (), ()))
    its = followed(before, first.updates)
    updates = updates_of(its, posed_without_pins(its), on((), (0,), (1,))).updates
    assert [f"{update.what} {update.label}" for update in updates] == ["clear 1", "pin 3", "pin 2"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@given(st.lists(comments, min_size=1, max_size=20))
def test_a_shell_reads_lines_as_they_are_meant(texts):
    lines, words = [], []
    for text in texts:
        queue = queue_of(whole(1, 2, comment=text))
        for update in updates_of(queue, posed_without_pins(queue), on((0, 1))).updates:
            assert update.line.isprintable()
            lines.append(f"printf '%s\\0' {update.line}")
            words += update.words
    ran = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, check=True)
    assert ran.stdout.decode().split("\0")[:-1] == words
