from __future__ import annotations

from dataclasses import replace

import pytest

from optsched.sites.parts import Reservation
from optsched.sites.slurm_partitions import Access
from optsched.slurm.explain import explain
from optsched.slurm.queue import LeftToSlurmError
from optsched.slurm.requests import alternatives
from optsched.slurm.supply import read_supply
from optsched.slurm.unseen import unseen, unseen_rules

from .conftest import job, queue_of, running, supply

PREEMPTION = {"preempttype": "preempt/partition_prio"}


def runs(*nodes, **fields):
    """Return a running job with 8 cores of some nodes."""
    return running(7, *nodes, cores=8, **{"end": 2000} | fields)


def used(*places, **fields):
    """Return what is free where 8 cores of some nodes are in use."""
    free = supply().free.copy()
    free[list(places), 0] -= 8
    return supply(free=free, **fields)


def test_cores_that_no_job_of_the_queue_holds_are_seen():
    there = used(0, 1)
    assert unseen(job(), queue_of(job(), runs("c1", "c2")), there) == ()
    [said] = unseen(job(), queue_of(job(), runs("c1")), there)
    assert said == "which jobs hold 8 cores of 1 node (c2): none that the queue shows"
    of_rest = job(partitions=("rest",))  # which has other nodes
    assert unseen(of_rest, queue_of(of_rest, runs("c1")), there) == ()
    [said] = unseen(job(), queue_of(job(), runs()), there)
    assert "16 cores of 2 nodes (c[1-2])" in said


def test_licences_that_no_job_of_the_queue_holds_are_seen():
    there = replace(supply(), licences={"lab": 1})  # of three
    asks = job(licences="lab")
    [said] = unseen(asks, queue_of(asks, runs("c1", licences="lab")), there)
    assert said == "which jobs hold 1 of licence lab: none that the queue shows"
    assert unseen(job(), queue_of(job()), there) == ()


def test_gpus_of_jobs_that_do_not_state_theirs_are_not_known():
    asks = job(per_node={"gpu": 1})
    queue = queue_of(asks, **{"allocations.gres": 2})
    assert unseen(asks, queue, supply()) == ("which GPUs and the like 2 jobs hold",)


def test_groups_are_known_where_a_job_of_the_user_runs():
    there = used(0, access={"all": Access(groups=("hpc",))})
    asks = job(user="ada")
    [said] = unseen(asks, queue_of(asks, runs("c1")), there)
    assert said == "whether user ada is in the groups hpc of partition all"
    assert unseen(asks, queue_of(asks, runs("c1", user="ada")), there) == ()
    assert unseen_rules(job(user="root"), queue_of(), there) == ()


def test_rules_that_are_not_known_are_named():
    for access, words in (
        ({"unknown": ("maxcpuspersocket=8",)}, "the rule maxcpuspersocket=8 of partition all"),
        ({"shares": "FORCE:2"}, "which cores jobs may share in partition all"),
        ({"denied_accounts": ("ai",)}, "which accounts are below ai of partition all"),
        ({"accounts": ("ai",)}, "which accounts are below ai of partition all"),
    ):
        there = supply(access={"all": Access(**access)})
        [said] = unseen_rules(job(account="chem"), queue_of(), there)
        assert words in said


def test_preemption_is_said_not_to_be_modelled():
    parts = [
        replace(each, priority_tier=1 if each.name == "rest" else 5)
        for each in supply().site.partitions
    ]
    for partition, settings, preempted, says in (
        ("rest", PREEMPTION, True, True),
        ("rest", PREEMPTION, False, False),
        ("rest", {"preempttype": "preempt/none"}, True, False),
        ("own", PREEMPTION, True, False),  # of the same tier
        ("rest", {"preempttype": "preempt/qos"}, True, True),
    ):
        access = {name: Access(preempted=preempted) for name in ("rest", "own")}
        there = used(2, partitions=tuple(parts), settings=settings, access=access)
        other = runs("c3", partitions=(partition,), qos="low")
        found = unseen(job(), queue_of(job(), other), there)
        assert any("preempts" in said for said in found) == says


KEPT = Reservation("r", ("c1",), 0, 5000, cores=16)
OF_LICENCES = Reservation("r", (), 0, 5000, {"lab": 1})


@pytest.mark.parametrize(
    ("kept", "fields", "words"),
    [
        (KEPT, {}, None),
        (replace(KEPT, cores=8), {}, "what reservation r leaves of its nodes to others"),
        (replace(KEPT, has_parts=True), {}, "what reservation r leaves of its nodes to others"),
        (replace(KEPT, nodes=("m1",), cores=32), {}, None),  # of two threads each
        (replace(KEPT, cores=8), {"partitions": ("rest",)}, None),
        (replace(KEPT, cores=8, end=1000), {}, None),
        (replace(KEPT, flags=("MAGNETIC",)), {}, "whether it starts in the magnetic reservation r"),
        (replace(KEPT, flags=("MAGNETIC",), admits={"users": ("bob",)}), {}, None),
        (replace(KEPT, flags=("MAGNETIC",)), {"reservation": "r"}, None),
        (KEPT, {"least_time": 600}, "its time limit, to 10 min or more (--time-min), before res"),
        (KEPT, {"least_time": 600, "limit": 600.0}, None),
        (OF_LICENCES, {"least_time": 600, "licences": "lab"}, "--"),
    ],
)
def test_what_reservations_leave_to_a_job_is_not_known(kept, fields, words):
    asks = job(**{"user": "ada"} | fields)
    found = unseen(asks, queue_of(asks), supply(reservations=(kept,)))
    assert [words in said for said in found] == [True] if words else found == ()


def test_nodes_of_a_hidden_reservation_are_said():
    states = ("reserved", "reserved", *("up",) * 5)
    for nodes, shown in (((), "2 nodes (c[1-2])"), (("c2",), "1 node (c1)")):
        there = supply(states=states, reservations=(Reservation("r", nodes, 0, 5000),))
        [said] = unseen(job(), queue_of(), there)
        assert said == f"which reservation has {shown}: none that is shown"
    of_rest = job(partitions=("rest",))
    assert unseen(of_rest, queue_of(), there) == ()


def test_a_job_on_parts_of_reserved_nodes_is_left_to_slurm():
    there = supply(reservations=(replace(KEPT, cores=8),))
    with pytest.raises(LeftToSlurmError, match="reservation r has parts of its nodes alone"):
        alternatives(job(reservation="r"), there)
    flexible = supply(reservations=(replace(KEPT, cores=8, flags=("FLEX",)),))
    assert alternatives(job(reservation="r"), flexible)


def test_a_start_that_slurm_plans_and_the_model_excludes_raises_a_doubt():
    there = used(*range(7))
    other = runs("c1", "c2", "c3", "c4", "m1", "g1", "g2")  # which runs until 2000
    for start, doubts in ((2000, False), (1940, False), (1939, True), (None, False), (999, False)):
        asks = job(cores_per_task=16, start=start, required=("c1",))
        found = explain(queue_of(asks, other), there, "1").unseen
        assert any("why Slurm plans its start" in said for said in found) == doubts, start


def test_files_that_are_missing_are_said(write_dump, tmp_path):
    node = {"name": "c1", "cpus": 8, "real_memory": 1000, "state": ["IDLE"], "partitions": ["p"]}
    write_dump(42, node, name="nodes.json", key="nodes")
    unread = [
        "who may use partitions, without partitions.txt",
        "reservations, without reservations.json",
        "whether jobs are preempted, without config.txt",
        "limits of QOS and associations, without assoc_mgr.txt",
    ]
    enforced = "AccountingStorageEnforce = associations,"
    for name, text, known in (
        ("now", "1000", 0),
        ("partitions.txt", "PartitionName=p Nodes=c1 State=UP\n", 1),
        ("reservations.txt", "No reservations in the system\n", 2),
        ("config.txt", f"{enforced}limits\n", 3),
        ("assoc_mgr.txt", "Current Association Manager state\n", 4),
    ):
        (tmp_path / name).write_text(text)
        assert read_supply(tmp_path).unread == tuple(unread[known:])
    (tmp_path / "assoc_mgr.txt").unlink()
    (tmp_path / "config.txt").write_text(f"{enforced}qos\n")
    assert read_supply(tmp_path).unread == ()
