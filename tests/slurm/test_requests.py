import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.models.node_placement.problem import NodePlacement
from optsched.sites.job_request import CORES, MEMORY, UnplaceableError, column
from optsched.sites.parts import Blocks, Places, Reservation, Torus
from optsched.sites.site import Partition
from optsched.sites.slurm_notation import hosts_of
from optsched.sites.slurm_partitions import Access
from optsched.slurm.group_limits import block_limits, torus_limit
from optsched.slurm.requests import blocked_by_rule, request_of
from optsched.slurm.snapshot import Row, placement_fields

from .conftest import job, on, supply

GPU = {"gpu": 1}
A100 = {"gpu": 2, "gpu:a100": 2}
OF_GPU = {"cores_per_gpu": 4, "memory_per_gpu": 100}
TWO = {"least_nodes": 2, "most_nodes": 2}
SHORT = {"partitions": ("short", "rest"), "limit": 60.0}
BLOCK = {"partitions": ("block",)}
ONE_THREAD = {"cores_per_task": 3, "threads_per_core": 1}
CORES_OF_2, MEMORY_OF_2 = column(CORES, 2), column(MEMORY, 2)


def names(request, supply):
    return {name for name, is_in in zip(supply.site.nodes, request.nodes.tolist()) if is_in}


@pytest.mark.parametrize(
    ("fields", "chunks", "most_per_node", "demand"),
    [
        # nodes are given: a chunk for each, of its tasks
        (TWO | {"tasks": 7}, 2, 1, {CORES: 4}),
        (TWO | {"tasks": 2, "least_cores": 3}, 2, 1, {CORES: 3}),
        # only tasks are given: a chunk for each
        ({"tasks": 5, "cores_per_task": 2}, 5, 0, {CORES: 2}),
        ({"tasks": 5, "tasks_per_node": 2}, 3, 1, {CORES: 2}),
        ({"tasks": 5, "least_nodes": 3}, 5, 2, {CORES: 1}),
        # a range of nodes: the least number if each has a task, the fewest that hold them otherwise
        ({"tasks": 2, "least_nodes": 2, "most_nodes": 4}, 2, 1, {CORES: 1}),
        ({"tasks": 96, "most_nodes": 4}, 3, 1, {CORES: 32}),
        # a partition of at most two nodes
        ({"tasks": 20, "partitions": ("short",), "limit": 60.0}, 2, 1, {CORES: 10}),
        # GPUs of a node, of a task, of the job
        ({"per_node": GPU}, 1, 1, {"gpu": 1, "gpu:a100": 0}),  # of any type
        ({"per_task": A100, "tasks": 3}, 3, 0, {"gpu": 2, "gpu:a100": 2}),
        (TWO | {"per_task": GPU, "tasks": 4}, 2, 1, {"gpu": 2}),
        ({"per_job": {"gpu": 5}} | OF_GPU, 5, 0, {"gpu": 1, CORES: 4, MEMORY: 100}),
        ({"per_job": {"gpu": 8}, "cores_per_gpu": 4, "least_nodes": 2}, 8, 7, {"gpu": 1}),
        ({"per_job": {"gpu": 4}, "per_node": {"gpu": 2}, "tasks": 2}, 2, 1, {"gpu": 2}),
        ({"per_job": {"gpu": 4}, "per_task": GPU, "tasks": 4}, 1, 1, {"gpu": 4, CORES: 4}),
        ({"per_job": {"gpu": 5}, "tasks": 5}, 2, 1, {"gpu": 3, CORES: 3}),
        (TWO | {"per_job": A100, "tasks": 2} | OF_GPU, 2, 1, {"gpu": 1, "gpu:a100": 1, CORES: 4}),
        # memory that a job states, beside a default for each GPU: both must be free
        ({"per_node": GPU, "memory_per_gpu": 700, "memory_per_node": 1}, 1, 1, {MEMORY: 700}),
        ({"memory_per_gpu": 700, "memory_per_core": 9}, 1, 0, {MEMORY: 9}),  # without a GPU
        # whole cores of nodes of two threads
        ({"memory_per_core": 100}, 1, 0, {CORES_OF_2: 2, MEMORY_OF_2: 200}),
        ({"cores_per_task": 3, "memory_per_node": 70}, 1, 1, {CORES_OF_2: 4, MEMORY_OF_2: 70}),
        (ONE_THREAD | {"memory_per_core": 100}, 1, 0, {CORES_OF_2: 6, MEMORY_OF_2: 600}),
    ],
)
def test_a_job_is_made_of_equal_chunks(fields, chunks, most_per_node, demand):
    request = request_of(job(**fields), supply())
    assert (request.chunks, request.most_per_node) == (chunks, most_per_node)
    assert {name: request.demand[name] for name in demand} == demand


def test_gpus_have_the_cores_and_memory_of_a_partition_or_the_site():
    """Slurm shows these with a job once it has tried to start it."""
    asks = job(per_node={"gpu": 2}, partitions=("all",), memory_per_core=1)
    there = supply(
        access={"all": Access(cores_per_gpu=3)},
        settings={"jobdefaults": "DefCpuPerGPU=9,DefMemPerGPU=700"},
    )
    demand = request_of(asks, there).demand
    assert (demand[CORES], demand[MEMORY]) == (6, 1400)
    demand = request_of(replace(asks, cores_per_gpu=1, memory_per_gpu=9), there).demand
    assert (demand[CORES], demand[MEMORY]) == (2, 18)
    assert request_of(replace(asks, per_node={}), there).demand[CORES] == 1


def test_what_does_not_divide_is_noted():
    notes = request_of(job(tasks=7, **TWO), supply()).notes
    assert notes == ("its 7 tasks count as 4 on each node",)
    notes = request_of(job(per_job={"gpu": 5}, tasks=5), supply()).notes
    assert "its 5 gpu count as 3 on each node" in notes
    assert "it is taken on the fewest nodes that can hold it, 2" in notes
    assert request_of(job(tasks=7, cores_per_task=2), supply()).notes == ()
    odd = ("each task counts as whole cores on nodes of several threads per core",)
    assert request_of(job(tasks=7), supply()).notes == odd
    assert request_of(job(tasks=7, excluded=("m1",)), supply()).notes == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"c1", "c2", "c3", "c4", "m1", "g1", "g2"}),
        ({"partitions": ("rest",)}, {"c3", "c4", "m1"}),
        ({"constraint": "(old|big)&ib"}, {"c2"}),
        ({"excluded": ("c1", "c4", "unknown")}, {"c2", "c3", "m1", "g1", "g2"}),
        (TWO | {"required": ("c3", "c1")}, {"c1", "c3"}),
        ({"required": ("c3",), "partitions": ("short",), "limit": 60.0}, set()),
        # a job on one node may use all its partitions, another one only the one with most room
        (SHORT, {"c1", "c2", "c3", "c4", "m1"}),
        (SHORT | TWO, {"c1", "c2"}),
        (SHORT | {"least_nodes": 3, "most_nodes": 3}, {"c3", "c4", "m1"}),
        # one hour is over the limit of the partition
        ({"partitions": ("short", "rest")}, {"c3", "c4", "m1"}),
        ({"partitions": ("off", "unknown", "rest")}, {"c3", "c4", "m1"}),
        # brackets: all nodes of one choice; [old|ib] has more room with ib
        (TWO | {"constraint": "[old|ib]"}, {"c1", "c2", "c3"}),
        ({"constraint": "[old|big]"}, {"c2", "m1"}),
        # no leaf switch holds g1 and g2
        (TWO, {"c1", "c2", "c3", "c4", "m1"}),
        (TWO | BLOCK, {"g1", "g2"}),
    ],
)
def test_which_nodes_a_job_may_use(fields, expected):
    fields = {"tasks": fields.get("least_nodes", 1)} | fields
    assert names(request_of(job(**fields), supply()), supply()) == expected


def test_nodes_that_are_not_up_or_reserved_for_others_are_not_used():
    there = supply(states=("drained", "up", "down", "up", "up", "reserved", "up"))
    assert names(request_of(job(), there), there) == {"c2", "c4", "m1", "g2"}
    assert (there.free[[0, 2]] == 0).all()
    assert (there.amounts[[0, 2]] == 0).all()
    kept = (
        Reservation("now", ("c1", "c2"), 0, 2000),
        Reservation("soon", ("c3",), 1000 + 1800, 9000),
        Reservation("later", ("c4",), 1000 + 3600, 9000),
        Reservation("past", ("m1",), 0, 1000),
    )
    there = supply(states=("reserved", *("up",) * 6), reservations=kept)
    assert names(request_of(job(), there), there) == {"c4", "m1", "g1", "g2"}
    assert names(request_of(job(limit=1800.0), there), there) == {"c3", "c4", "m1", "g1", "g2"}


def test_a_job_is_within_limits_of_blocks_or_switches():
    pairs = Blocks(("b1", "b2", "b3"), [0, 0, 1, 1, -1, 2, 2], (2, 4))
    there = supply(topologies={"blocks": pairs}, partitions=(Partition("all", np.arange(7)),))
    request = request_of(job(tasks=3, least_nodes=3, most_nodes=3), there)
    assert [limit.most for limit in request.limits] == [1]
    assert names(request, there) == {"c1", "c2", "c3", "c4", "g1", "g2"}
    assert request.room(there) == 4  # of b1 and b2, which are joined
    assert request.held_in(there) == ("block", request.limits[0].groups)
    request = request_of(job(switches=2, tasks=64, segment=2), supply())
    (limit,) = request.limits
    assert (limit.level, limit.most) == ("leaf switches of tree", 2)
    assert {*limit.groups[:5]} == {"leaf1", "leaf2"}
    assert request_of(job(switches=1, tasks=4), supply()).span == "switch"
    segmented = job(tasks=2, least_nodes=2, segment=4, **BLOCK)
    assert request_of(segmented, supply()).span == "block"
    assert request_of(job(partitions=("torus",)), supply()).span == "anywhere"
    with pytest.raises(UnplaceableError, match="several of the leaf switches of tree"):
        request.held_in(supply())
    known, unknown = (
        request_of(job(tasks=2, segment=size, **BLOCK), supply()).notes for size in (0, None)
    )
    assert {*unknown} - {*known} == {"whether it asks for segments is not known"}


def test_which_jobs_share_their_nodes_with_none():
    own = {"exclusive": "node"}, {"exclusive": "user"}, {"partitions": ("own",)}
    for fields in (*own, {"memory_per_node": 0}):
        assert request_of(job(**fields), supply()).exclusive, fields
    assert not request_of(job(), supply()).exclusive


def test_memory_that_is_not_given_away_only_rules_out_smaller_nodes():
    there = supply(counts_memory=False)
    request = request_of(job(memory_per_node=100_000), there)
    assert names(request, there) == {"m1", "g1", "g2"}
    assert request.demand[MEMORY] == request.demand[MEMORY_OF_2] == 0
    assert not request_of(job(memory_per_node=0), there).exclusive
    assert request_of(job(memory_per_node=0, tasks=20), there).chunks == 20


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"other": ("it asks for adjacent nodes",)}, "it asks for adjacent nodes"),
        ({"constraint": "[ib*2&old*1]"}, "node counts"),
        ({"exclusive": "mcs"}, "by the rule mcs"),
        ({"licences": "lab:1|other:2"}, "one of several licences"),
        ({"licences": "matlab:1"}, "licence matlab is not one of the site"),
        ({"per_node": {"gpu": 1, "gpu:v100": 1}}, "gpu:v100, which no node has"),
        ({"partitions": ("unknown",)}, "no partition unknown"),
        ({"partitions": ("torus",), "tasks": 2}, "torus of partition torus"),
        ({"partitions": ("off", "block"), "least_nodes": 3}, "off is down; it asks for 3 nodes"),
        (BLOCK | {"least_nodes": 2, "tasks": 4, "segment": 1}, "segments and any number of nodes"),
        (TWO | {"required": ("c1",), "tasks": 2}, "leaves others open"),
        ({"required": ("c1",), "tasks": 4}, "leaves others open"),
    ],
)
def test_what_the_model_cannot_state_is_left_to_slurm(fields, words):
    with pytest.raises(UnplaceableError, match=words):
        request_of(job(**fields), supply())
    with pytest.raises(UnplaceableError, match="needs licence lab, and those of the site are not"):
        request_of(job(licences="lab:1"), replace(supply(), licences={}))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, ""),
        ({"held": True}, "held"),
        ({"flags": ("REQUEUE_HOLD",)}, "held"),
        ({"flags": ("COMPLETING",)}, "not yet completed"),
        ({"eligible": 1000}, ""),
        ({"eligible": 1001}, "may begin in 1 s"),
        ({"dependency": "afterok:3(unfulfilled)"}, "depends on afterok:3"),
        ({"partitions": ("off",)}, "partition off is down"),
        ({"partitions": ("rest",), "least_nodes": 4}, "for 4 nodes, and partition rest has 3"),
        ({"partitions": ("rest", "own"), "least_nodes": 4}, ""),
        ({"partitions": ("short",)}, "its time limit, 1 h, exceeds the 10 min of partition short"),
        ({"partitions": ("short",), "limit": math.inf}, "its time limit, none, exceeds"),
        (SHORT | {"partitions": ("short",), "least_nodes": 3}, "3 nodes are more than the 2"),
        ({"partitions": ("short", "off")}, "; partition off is down"),
        ({"partitions": ("short", "all")}, ""),
        ({"reason": "QOSMaxCpuPerUserLimit"}, "QOSMaxCpuPerUserLimit"),
        ({"reason": "PartitionTimeLimit", "partitions": ("short", "all")}, ""),
    ],
)
def test_a_job_is_blocked_by_rules(fields, words):
    rule = blocked_by_rule(job(**fields), supply())
    assert words in rule
    assert bool(rule) == bool(words)


def test_what_slurm_gives_and_plans_is_what_jobs_are_said_to_ask(captured):
    """Groups of nodes, and the amounts of running jobs on nodes of one thread that are still up."""
    _, queue, supply = captured
    site = supply.site
    idle = replace(supply, free=site.capacity, busy=np.zeros(64, dtype=bool), reservations=())
    counted = (supply.threads == 1) & site.is_up
    compared = Counter()
    for each in (*queue.running, *queue.pending):
        places = sorted(site.index[name] for name in each.planned_nodes or each.nodes)
        try:
            request = request_of(each, idle)
        except UnplaceableError:
            continue
        if len(places) == request.chunks:
            problem = NodePlacement(**placement_fields([Row(each.label, each, request)], idle))
            found = problem.violations(on(tuple(places)))
            assert not {"groups", "segment", "span"} & {one.constraint for one in found}
            compared[request.span] += 1
            compared["limits"] += bool(request.limits)
        if not each.allocations or each.per_job or not counted[places].all():
            continue
        assert request.nodes[places].all()
        room = 0
        for own in each.allocations:
            has = {CORES: own.cores, MEMORY: own.memory, **own.gres}
            fit = min(has[name] // request.demand[name] for name in has if request.demand[name])
            room += min(fit, request.most_per_node or fit)
            assert not request.exclusive or own.cores == site.capacity[site.index[own.node], 0]
        assert room >= request.chunks
        compared["amounts"] += 1
    assert compared["anywhere"] > 10
    assert compared["amounts"] >= 15
    if queue.path.parent.name == "26.05.5":
        assert min(compared["limits"], compared["block"]) >= 3


JOBS = st.fixed_dictionaries(
    {
        "partitions": st.sampled_from([("all",), ("block",)]),
        "tasks": st.integers(1, 9),
        "least_nodes": st.integers(1, 4),
        "most_nodes": st.integers(0, 5),
        "cores_per_task": st.integers(1, 9),
        "tasks_per_node": st.sampled_from([0, 0, 1, 2, 3]),
        "least_cores": st.sampled_from([0, 0, 0, 5, 12]),
        "memory_per_node": st.sampled_from([None, None, None, 5000]),
        "memory_per_core": st.integers(0, 5000),
        "threads_per_core": st.sampled_from([0, 1]),
        "per_node": st.sampled_from([{}, {}, GPU, A100]),
        "per_task": st.sampled_from([{}, {}, GPU]),
        "per_job": st.sampled_from([{}, {}, {"gpu": 3}, {"gpu": 6, "gpu:a100": 6}]),
        "cores_per_gpu": st.integers(0, 3),
        "memory_per_gpu": st.sampled_from([0, 0, 900]),
    }
)


@settings(max_examples=600)
@given(JOBS, st.lists(st.integers(0, 30), min_size=7, max_size=7), st.permutations(range(7)))
def test_where_all_chunks_fit_slurm_can_start_the_job(fields, percent, order):
    """Whatever the nodes are, what the job has there is checked from its own fields."""
    if fields["most_nodes"]:
        fields["most_nodes"] = max(fields["most_nodes"], fields["least_nodes"])
    asked = job(**fields)
    capacity = supply().site.capacity
    there = supply(free=capacity * np.array(percent)[:, None] // 100)
    try:
        request = request_of(asked, there)
    except UnplaceableError:
        return
    most = request.most(there)
    left, chunks = request.chunks, {}
    for node in order:
        if taken := min(left, int(most[node])):
            chunks[node] = taken
            left -= taken
    if left:
        return
    _check_start(asked, there, chunks, request.chunks)


def _check_start(asked, there, chunks, count):
    nodes = len(chunks)
    assert nodes >= max(asked.least_nodes, 1)
    fewest = -(-asked.tasks // (asked.tasks_per_node or asked.tasks))
    assert nodes <= (asked.most_nodes or nodes) or nodes == fewest
    share = -(-asked.tasks // count)  # tasks of a chunk
    gpus_of_job = -(-asked.per_job.get("gpu", 0) // count)
    gpu_chunks = asked.per_job and count == asked.per_job["gpu"] and max(chunks.values()) > 1
    for node, number in chunks.items():
        tasks = min(number * share, asked.tasks)
        if asked.tasks_per_node and not gpu_chunks:
            assert tasks <= asked.tasks_per_node
        # GPUs that are asked in several ways are the same ones
        of_tasks = tasks * asked.per_task.get("gpu", 0)
        gpus = max(number * gpus_of_job, asked.per_node.get("gpu", 0), of_tasks)
        cores = max(tasks * asked.cores_per_task, asked.cores_per_gpu * gpus)
        if gpu_chunks:
            cores = asked.cores_per_gpu * gpus
        cores = max(cores, asked.least_cores) if asked.least_cores > asked.cores_per_task else cores
        threads = int(there.threads[node])
        used = min(threads, asked.threads_per_core or threads)
        cores = math.ceil(cores / used) * threads
        memory = asked.memory_per_core * cores
        if asked.memory_per_node is not None:
            memory = asked.memory_per_node
        needs = cores, max(memory, asked.memory_per_gpu * gpus), gpus
        assert (needs <= there.free[node, :3]).all()


NAMES = [f"n{number:02}" for number in range(1, 65)]


def eight(*sizes):
    """Return eight blocks of 8 nodes, as of the real Slurm 26.05.5 on which figures were seen."""
    return Blocks(tuple(f"b{n + 1}" for n in range(8)), np.arange(64) // 8, sizes)


def admits(limits, nodes):
    """Return whether one node after the other is all that a job may have, by the model."""
    problem = NodePlacement(
        *(["nodes"], [[1]] * 64, [len(nodes)], [[1]]),
        levels=[limit.level for limit in limits],
        groups=[limit.groups for limit in limits],
        most_groups=[[limit.most for limit in limits]],
        segments=[[limit.segment for limit in limits]],
    )
    return not problem.violations(on(tuple(nodes)))


def at(text):
    return sorted(NAMES.index(name) for name in hosts_of(text))


@pytest.mark.parametrize(
    ("sizes", "asked", "together", "nodes", "other"),
    [
        ((8, 16, 32), (12,), False, "n[49-52,57-64]", "n[41-48,49-52]"),
        ((8, 16, 32), (8, 4), False, "n[41-44,53-56]", "n[41-43,53-57]"),
        ((8, 16, 32), (12, 4), True, "n[33-40,45-48]", "n[25-32,33-36]"),
        ((8, 16, 32), (24, 12), False, "n[01-02,05-06,09-16,33-40,45-48]", "n[01-08,17-32]"),
        # one block of 32, and at most three blocks of 8
        ((8, 32), (20,), False, "n[03-04,07-08,17-32]", "n[01-05,09-13,17-21,25-29]"),
        ((8, 32), (20,), False, "n[01-20]", "n[17-36]"),
        # no block is large enough: at most three blocks of 8, wherever they are
        ((8,), (20,), False, "n[41-44,49-64]", "n[01-05,17-21,33-37,57-61]"),
        ((8,), (20,), False, "n[01-08,25-28,57-64]", "n[01-06,25-30,41-46,63-64]"),
        # sizes that are not stated: 8, 16, 32, 64 and 128
        ((), (20,), False, "n[01-20]", "n[25-44]"),
    ],
)
def test_a_job_may_have_what_slurm_gave_it(sizes, asked, together, nodes, other):
    size, *segment = asked
    limits = block_limits(eight(*sizes), "racks", size, *segment, together=together)
    assert len(at(nodes)) == len(at(other)) == size
    assert admits(limits, at(nodes))
    assert not admits(limits, at(other))


def test_blocks_that_are_joined_are_named():
    (limit,) = block_limits(eight(8, 16, 32), "racks", 12)
    assert limit.level == "blocks of 16 nodes of racks"
    assert sorted({*limit.groups}) == ["b[1-2]", "b[3-4]", "b[5-6]", "b[7-8]"]
    assert block_limits(eight(8, 16), "racks", 12, 12) == (limit,)  # one segment
    assert block_limits(eight(8, 16), "racks", 12, 16) == (limit,)  # larger ones are ignored


def cube(*places):
    return Torus((4, 3, 3), np.arange(36), tuple(Places(*each) for each in places))


ORIGIN = (0, 0, 0)


def test_a_job_has_one_place_of_its_size_on_a_torus():
    torus = cube(((4, 3, 1), ORIGIN, (4, 3, 1)), ((2, 3, 1), ORIGIN, (2, 3, 1)))
    limit = torus_limit(torus, "cube", 12, names=NAMES)
    assert sorted({*limit.groups}) == ["", "n[01-12]", "n[13-24]", "n[25-36]"]
    assert (limit.most, limit.segment) == (1, 0)
    limit = torus_limit(torus, "cube", 12, 6, names=NAMES)
    assert limit.groups[12] == "n[13-14,17-18,21-22]"  # planned by Slurm for a job of 6
    assert (limit.most, limit.segment) == (0, 6)
    # places wrap around
    torus = cube(((2, 3, 1), (1, 0, 0), (2, 3, 1)))
    assert torus_limit(torus, "cube", 6, names=NAMES).groups[0] == "n[01,04-05,08-09,12]"


def test_what_has_no_limit_is_left_to_slurm():
    with pytest.raises(UnplaceableError, match="its 6 nodes are no multiple of its segments of 4"):
        block_limits(eight(8, 16), "racks", 6, 4)
    with pytest.raises(UnplaceableError, match="its segments of 20 nodes need several blocks"):
        block_limits(eight(8), "racks", 40, 20)
    torus = cube(((2, 2, 1), ORIGIN, (2, 2, 1)))
    with pytest.raises(UnplaceableError, match="the places of 4 nodes on its torus overlap"):
        torus_limit(torus, "cube", 4, names=NAMES)
    with pytest.raises(UnplaceableError, match="its torus has no place of 5 nodes"):
        torus_limit(torus, "cube", 5, names=NAMES)
