"""Who may use what: partitions, reservations, limits, and what is not known of it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.sites.job_request import UnplaceableError
from optsched.sites.parts import Reservation
from optsched.sites.site import Partition
from optsched.sites.slurm_files import printed_lines
from optsched.sites.slurm_partitions import Access, access_of, left_out
from optsched.slurm.access import why_closed
from optsched.slurm.explain import earliest_start, explain, unseen, unseen_rules
from optsched.slurm.limits import Limits, read_limits
from optsched.slurm.requests import alternatives, blocked_by_rule, request_of
from optsched.slurm.running import read_captured
from optsched.slurm.snapshot import placement_problem
from optsched.slurm.supply import read_supply
from optsched.solvers.solving import solve

from .conftest import ONE_NODE, job, queue_of, running, supply

AI = {"accounts": ("ai",)}
OLD, NEW = {"slurm_version": "22.05.8"}, {"slurm_version": "24.11.5"}
NINE = {"tasks": 9, "most_nodes": 1}
PARENTS = Limits(parents={"llm": "ai", "ai": "root", "root": ""})
LINE = (
    "PartitionName=p AllowGroups=hpc,dev AllowAccounts=ai,bio DenyQos=low AllocNodes=login QoS=own "
    "LLN=YES MaxCPUsPerNode=12 MaxCPUsPerSocket=8 MaxMemPerCPU=4000 MinNodes=2 Hidden=YES "
    "RootOnly=YES ReqResv=YES GraceTime=9 PreemptMode=REQUEUE OverSubscribe=FORCE:2 NewRule=3 "
    "SelectTypeParameters=NONE State=UP Nodes=c1 TotalCPUs=16"
)


def test_every_key_of_a_partition_is_obeyed_without_effect_or_named(tmp_path):
    path = tmp_path / "partitions.txt"
    path.write_text(LINE + "\n")
    [line] = printed_lines(path)
    access = access_of(line)
    assert (access.groups, access.accounts) == (("hpc", "dev"), ("ai", "bio"))
    assert access.denied_qos == ("low",)
    assert (access.own_qos, access.cores_per_node, access.memory_per_core) == ("own", 12, 4000)
    assert (access.least_nodes, access.root_only, access.reserved_only) == (2, True, True)
    assert (access.preempted, access.shares) == (True, "FORCE:2")
    assert access.unknown == ("maxcpuspersocket=8", "newrule=3")
    notes = left_out({"p": access})
    assert "1 partition (p): allowaccounts left out" in notes
    assert "1 partition (p): maxcpuspernode left out" in notes


@pytest.mark.parametrize(
    ("access", "fields", "settings", "words"),
    [
        (AI, {"account": "ai"}, NEW, ""),
        (AI, {"account": "chem"}, OLD, "partition all admits the accounts ai, and not chem"),
        # whether chem is below ai is not known
        (AI, {"account": "chem"}, NEW, "and not chem, as far as is known"),
        (AI, {"account": "llm"}, NEW | {"parents": ""}, ""),
        (AI, {"account": "llm"}, OLD | {"parents": ""}, "and not llm"),
        (AI, {"account": "x"}, NEW | {"accountingstorageenforce": "none"}, ""),
        ({"denied_accounts": ("ai",)}, {"account": "ai"}, NEW, "denies the account ai"),
        ({"denied_accounts": ("ai",)}, {"account": "llm"}, NEW | {"parents": ""}, "account llm"),
        ({"qos": ("high",)}, {"qos": "low"}, NEW, "admits the QOS high, and not low"),
        ({"denied_qos": ("low",)}, {"qos": "low"}, NEW, "partition all denies the QOS low"),
        ({"root_only": True}, {"user": "ada"}, NEW, "partition all is for root alone"),
        ({"reserved_only": True}, {}, NEW, "for jobs of a reservation alone"),
        ({"least_nodes": 3}, {"least_nodes": 2}, NEW, "for 2 nodes, and partition all wants 3"),
        ({"memory_per_node": 8000}, {"memory_per_node": 8001}, NEW, "8,001 MB of memory on a node"),
        ({"memory_per_node": 8000}, {"memory_per_core": 1000, "least_cores": 9}, NEW, "9,000 MB"),
        ({"memory_per_node": 8000}, {"memory_per_core": 1000} | NINE, NEW, "9,000 MB of memory"),
        ({}, {"memory_per_node": 9}, NEW | {"maxmempernode": "8"}, "partition all allows 8"),
    ],
)
def test_who_may_use_a_partition(access, fields, settings, words):
    limits = PARENTS if "parents" in settings else Limits()
    there = supply(access={"all": Access(**access)}, settings=settings, limits=limits)
    rule = blocked_by_rule(job(**fields), there)
    assert words in rule
    assert bool(words) == bool(rule)


def test_more_cores_for_more_memory_are_left_to_slurm():
    there = supply(access={"all": Access(memory_per_core=4000)})
    request_of(job(memory_per_core=4000), there)
    request_of(job(memory_per_node=8000, least_cores=2), there)
    for fields in ({"memory_per_core": 4001}, {"memory_per_node": 8000}):
        with pytest.raises(UnplaceableError, match="gives more cores for more than 4,000"):
            request_of(job(**fields), there)


CORES_LEFT = supply(
    access={"all": Access(cores_per_node=12)}, cores_left={"all": np.array([4] + [12] * 6)}
)
"""Partition `all` with MaxCPUsPerNode=12; 8 of them are in use on c1."""


def test_jobs_of_a_partition_have_no_more_cores_of_a_node_together():
    """On c1 there is room for one of four cores, on each other node for three, with threads."""
    jobs = [job(job_id=n, cores_per_task=4) for n in range(1, 30)]
    result = solve(placement_problem(queue_of(*jobs), CORES_LEFT).problem, "highs")
    placed = [at for at in result.solution.nodes if at]
    assert len(placed) == 1 + 6 * 3
    assert sum(at == (0,) for at in placed) == 1
    other = request_of(job(partitions=("own",), cores_per_task=16), CORES_LEFT)
    assert np.flatnonzero(other.most(CORES_LEFT)).tolist() == [0, 1, 2, 3]
    assert not request_of(job(cores_per_task=13), CORES_LEFT).most(CORES_LEFT).any()
    assert not request_of(job(exclusive="node"), CORES_LEFT).nodes.any()  # all are larger


def test_cores_of_a_partition_are_free_when_a_job_of_it_ends():
    runs = running(7, "c1", cores=8, end=1600)
    waits = job(cores_per_task=12, required=("c1",))
    there = replace(CORES_LEFT, free=CORES_LEFT.free - [[8, 0, 0, 0], *[[0] * 4] * 6])
    assert earliest_start(waits, queue_of(waits, runs), there) == 1600
    [question] = explain(queue_of(waits, runs), there, "1").questions(1000)
    result = solve(question.problem, "highs")
    assert [question.claims[claim].label for claim in result.solution.lifted] == ["job 7"]


def test_a_job_that_cannot_end_before_its_deadline_is_blocked():
    there = supply()
    assert blocked_by_rule(job(deadline=4600), there) == ""
    assert blocked_by_rule(job(deadline=4599), there)
    rule = blocked_by_rule(job(deadline=4000), there)
    assert rule == "it could not end before its deadline, in 50 min, by its time limit, 1 h"
    assert blocked_by_rule(job(deadline=4599, least_time=600), there) == ""
    late = job(deadline=4600, eligible=1001)
    assert earliest_start(late, queue_of(late), there) is None


@pytest.mark.parametrize(
    ("admits", "fields", "is_open"),
    [
        ({"users": ("u", "v")}, {}, True),
        ({"users": ("v",)}, {}, False),
        ({"users": ("v",)}, {"user": "root"}, True),
        ({"users": ("-u",)}, {}, False),
        ({"accounts": ("a",)}, {"account": "below"}, True),
        ({"accounts": ("-a",)}, {"account": "below"}, False),
        ({"accounts": ("below",)}, {}, False),
        ({"accounts": ("a",), "users": ("v",)}, {}, False),
        ({"qos": ("-high",)}, {}, True),
        ({"allowed_partitions": ("rest",)}, {}, False),
        ({"allowed_partitions": ("rest", "all")}, {}, True),
    ],
)
def test_who_may_use_a_reservation(admits, fields, is_open):
    kept = Reservation("r", ("c1", "c2"), 0, 2000, admits=admits)
    there = supply(reservations=(kept,), limits=Limits(parents={"below": "a"}))
    asks = job(**{"user": "u", "account": "a", "reservation": "r"} | fields)
    found = blocked_by_rule(asks, there)
    assert found == ("" if is_open else "reservation r does not admit it")


def test_what_is_not_known_of_a_reservation_is_said():
    kept = Reservation("r", ("c1",), 0, 2000, admits={"groups": ("staff",)})
    asks = job(user="u", account="x", reservation="r")
    [said] = unseen_rules(asks, queue_of(asks), supply(reservations=(kept,)))
    assert said == "whether user u is in the groups staff of reservation r"
    kept = replace(kept, admits={"accounts": ("a",)})
    there = supply(reservations=(kept,))
    [said] = unseen_rules(asks, queue_of(asks), there)
    assert said == "which accounts are below a of reservation r, without assoc_mgr.txt"
    assert blocked_by_rule(asks, there) == ""
    exact = replace(there, settings={"accountingstorageenforce": "none"})
    assert unseen_rules(asks, queue_of(asks), exact) == ()
    assert blocked_by_rule(asks, exact) == "reservation r does not admit it"


def test_a_job_runs_in_one_of_several_reservations():
    kept = (
        Reservation("a", ("c1", "c2"), 0, 2000, admits={"users": ("v",)}),
        Reservation("b", ("c3",), 0, 2000),
        Reservation("late", ("c4",), 1500, 2000),
    )
    there = supply(reservations=kept)
    asks = job(user="u", reservation="a,b,late", cores_per_task=16)
    assert request_of(asks, there).nodes.tolist() == [n == "c3" for n in there.site.nodes]
    found = explain(queue_of(asks), there, "1")
    assert ("in reservation b", 1) in found.shortage.filters
    both = replace(asks, user="v")
    assert request_of(both, there).nodes.sum() == 3
    wide = replace(both, tasks=3, least_nodes=3, most_nodes=3)
    assert explain(queue_of(wide), there, "1").shortage.room == 2
    none = replace(asks, reservation="a,late")
    assert blocked_by_rule(none, there) == (
        "reservation a does not admit it; reservation late does not hold now"
    )
    gone = replace(asks, reservation="x,y")
    assert blocked_by_rule(gone, there) == "there is no reservation x,y that is shown"
    assert unseen_rules(gone, queue_of(gone), there) == ("reservation x,y, which is not shown",)


def test_a_flexible_reservation_does_not_bind_its_jobs():
    kept = (
        Reservation("r", ("c1",), 1500, 2000, flags=("FLEX",)),
        Reservation("other", ("c2",), 0, 2000),
    )
    there = supply(reservations=kept)
    asks = job(reservation="r", partitions=("own",))
    assert blocked_by_rule(asks, there) == ""
    nodes = np.flatnonzero(request_of(asks, there).nodes)
    assert nodes.tolist() == [0, 2, 3]
    assert "not hold" in blocked_by_rule(asks, replace(there, time=2000))


def test_jobs_that_run_during_a_reservation_share_the_licences_that_it_leaves():
    there = supply(reservations=(Reservation("course", (), 5000, 9000, {"lab": 2}),))
    short, long = job(licences="lab:2"), job(job_id=2, licences="lab:2", limit=4001.0)
    assert explain(queue_of(short), there, "1").earliest == 1000
    found = explain(queue_of(long), there, "2")
    assert found.shortage.is_proof
    assert found.earliest == 9000
    own = job(licences="lab:2", limit=4001.0, reservation="course")
    assert request_of(own, replace(there, time=6000)).licences == {"lab": 2}
    ones = [job(job_id=n, licences="lab", limit=4001.0) for n in (1, 2)]
    problem = placement_problem(queue_of(*ones), there).problem
    assert sum(map(bool, solve(problem, "highs").solution.nodes)) == 1


def test_licences_of_running_jobs_and_unknown_ones_are_not_free(write_dump, tmp_path):
    """Slurm counts those of running jobs later."""
    (tmp_path / "nodes.txt").write_text(ONE_NODE)
    on = {"name": "c1", "memory": {"allocated": 1}, "sockets": []}
    has = {"job_resources": {"nodes": {"allocation": [on]}}}
    runs = {"job_id": 7, "job_state": ["RUNNING"], "licenses": "lab:3"} | has
    (tmp_path / "now").write_text("1000\n")
    for jobs, used, reserved, licences in (
        ([runs], 0, 0, {"lab": 2}),
        ([runs], 4, 0, {"lab": 1}),
        ([], 1, 3, {"lab": 4, "lab beside reservation of licences": 1}),
    ):
        write_dump(42, *jobs)
        text = f"LicenseName=lab Total=5 Used={used} Free={5 - used} Reserved={reserved}\n"
        (tmp_path / "licenses.txt").write_text(text)
        assert read_captured(tmp_path)[1].licences == licences


PREEMPTION = {"preempttype": "preempt/partition_prio"}


def runs(*nodes, **fields):
    """Return a running job with 8 cores of some nodes."""
    return running(7, *nodes, cores=8, **{"end": 2000} | fields)


def used(*places, **fields):
    """Return the supply of a site where 8 cores of some nodes are in use."""
    free = supply().free.copy()
    free[list(places), 0] -= 8
    return supply(free=free, **fields)


def test_what_no_job_of_the_queue_is_known_to_hold_is_seen():
    there = used(0, 1)
    assert unseen(job(), queue_of(job(), runs("c1", "c2")), there) == ()
    [said] = unseen(job(), queue_of(job(), runs("c1")), there)
    assert said == "which jobs hold 8 cores of 1 node (c2): none that the queue shows"
    of_rest = job(partitions=("rest",))  # which has other nodes
    assert unseen(of_rest, queue_of(of_rest, runs("c1")), there) == ()
    [said] = unseen(job(), queue_of(job(), runs()), there)
    assert "16 cores of 2 nodes (c[1-2])" in said
    there = replace(supply(), licences={"lab": 1})  # of three
    asks = job(licences="lab")
    [said] = unseen(asks, queue_of(asks, runs("c1", licences="lab")), there)
    assert said == "which jobs hold 1 of licence lab: none that the queue shows"
    assert unseen(job(), queue_of(job()), there) == ()
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
    with pytest.raises(UnplaceableError, match="reservation r has parts of its nodes alone"):
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


def test_files_that_are_missing_are_said(tmp_path):
    (tmp_path / "nodes.txt").write_text(ONE_NODE)
    unread = [
        "who may use partitions, without partitions.txt",
        "reservations, without reservations.json or .txt",
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


USER = "ClusterName=here Account=ai UserName=ada(7) Partition= ID=6 ParentAccount= "
ACCOUNT = "ClusterName=here Account=ai UserName= Partition= ParentAccount=root(1) "
ROOT = "ClusterName=here Account=root UserName= Partition= ParentAccount= "
NUMBERED = {"root": "\nUserName=ada(7) DefAccount=ai DefWckey= AdminLevel=None"}
OF_ADA = "user ada in account ai allows"
ASKS = {"cpu": 8, "mem": 8000, "node": 2, "gres/gpu": 0}


@pytest.fixture
def limits(tmp_path):
    """Return a function that reads limits: of the user, of accounts, and lines of QOS."""

    def read(*qos, user="", account="", root="", safe=False):
        names = {line.split("=", 1)[1].split("(")[0] for line in qos}
        used = "Account Limits= ai={MaxJobsPA=N(1)} User Limits= bob(8)={MaxJobsPU=N(1)}"
        rest = [f"QOS={name}(1) {used}" for name in ("normal", "own") if name not in names]
        lines = ("Current Association Manager state", USER + user, ACCOUNT + account, ROOT + root)
        path = tmp_path / "assoc_mgr.txt"
        path.write_text("\n".join((*lines, "QOS Records", *qos, *rest)) + "\n")
        return read_limits(path, safe=safe)

    return read


def of_ada(**fields):
    """Return a pending job of ada on two nodes."""
    usual = {"user": "ada", "account": "ai", "qos": "normal", "tres": ASKS, "limit": 3600.0}
    return job(**usual | {"least_nodes": 2, "most_nodes": 2, "tasks": 8} | fields)


def of_user(text):
    return {"qos": f"Account Limits= User Limits= {text}"}


def exceeded(limits, job, own_qos=""):
    return next((why for _, why in limits.broken(job, ASKS, own_qos)), "")


def of_account(text):
    return {"qos": f"Account Limits= {text} User Limits="}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        # the job takes 8 CPUs of 2 nodes for 60 minutes
        ({"user": "GrpTRES=cpu=12(4)"}, ""),
        ({"user": "GrpTRES=cpu=12(5)"}, f"{OF_ADA} 12 cpu (GrpTRES): 5 in use, 8 asked, 1"),
        ({"account": "GrpTRES=node=6(5)"}, "account ai allows 6 node (GrpTRES): 5 in use, 2 asked"),
        ({"root": "GrpJobs=3(3)"}, "account root allows 3 running jobs (GrpJobs): 3 in use"),
        ({"user": "MaxJobs=1(1)"}, f"{OF_ADA} 1 running jobs (MaxJobs)"),
        ({"root": "MaxJobs=1(1)"}, ""),  # limits of an account above are for each user below it
        ({"user": "MaxWallPJ=59"}, "allows 59 minutes (MaxWallPJ): 60 asked, 1 too many"),
        ({"user": "MaxWallPJ=9", "limit": math.inf}, "it has no time limit"),
        ({"user": "MaxTRESPJ=cpu=7"}, "allows 7 cpu (MaxTRESPJ): 8 asked, 1 too many"),
        ({"user": "MaxTRESPN=cpu=3"}, "allows 3 cpu (MaxTRESPN): 4 asked"),
        ({"user": "MaxTRESMinsPJ=cpu=479"}, "allows 479 minutes of cpu (MaxTRESMinsPJ): 480 asked"),
        ({"user": "GrpTRESRunMins=cpu=500(21)"}, "21 in use, 480 asked, 1 too many"),
        ({"user": "GrpTRESMins=cpu=500(499)"}, ""),
        ({"user": "GrpTRESMins=cpu=500(499)", "safe": True}, "480 asked, 479 too many"),
        ({"user": "GrpTRESMins=cpu=500(500)"}, "500 minutes of cpu (GrpTRESMins): 500 in use"),
        ({"user": "GrpWall=60(60.50)"}, "allows 60 minutes (GrpWall): 60 in use"),
        ({"user": "GrpTRES=gres/gpu=0(0)"}, ""),  # of which it asks for none
        ({"user": "GrpTRESRunMins=gres/gpu=9(0)", "limit": math.inf}, ""),
        ({"qos": "MinTRESPJ=gres/gpu=1"}, "normal requires at least 1 gres/gpu, and it asks for 0"),
        (of_user("ada(7)={MaxJobsPU=2(2)}"), "user ada allows 2 running jobs (MaxJobsPU): 2 "),
        (of_user("bob(8)={MaxJobsPU=2(2)}"), ""),
        # one limit for all users, of whom only those are shown who have used the QOS
        (of_user("bob(8)={MaxTRESPU=cpu=7(7)}"), "for user ada allows 7 cpu (MaxTRESPU): 8 asked"),
        (of_account("bio={MaxTRESPA=cpu=7(0)}"), "account ai allows 7 cpu (MaxTRESPA): 8 a"),
        (of_account("ai={MaxTRESPA=cpu=9(2)}"), "allows 9 cpu (MaxTRESPA): 2 in use, 8 asked, 1"),
        # Slurm 22.05 names the users of a QOS by their numbers, and has the names above
        (of_user("7={MaxJobsPU=2(2)}") | NUMBERED, "user ada allows 2 running jobs (MaxJobsPU)"),
        # the QOS allows more than the association, and counts in its place
        ({"qos": "GrpTRES=cpu=90(9)", "user": "GrpTRES=cpu=9(9)"}, ""),
        (of_user("ada(7)={MaxJobsPU=5(2)}") | {"user": "MaxJobs=2(2)"}, ""),
    ],
)
def test_a_job_is_within_a_limit_or_exceeds_it_by_what_is_said(limits, given, words):
    qos = [f"QOS=normal(1) {given['qos']}"] if "qos" in given else []
    others = {name: text for name, text in given.items() if name not in ("qos", "limit")}
    asked = of_ada(limit=given.get("limit", 3600.0))
    found = exceeded(limits(*qos, **others), asked)
    assert words in found
    assert bool(found) == bool(words)


def test_the_qos_of_a_partition_counts_and_comes_before_that_of_the_job(limits):
    strict, loose = "QOS=own(2) GrpJobs=2(2)", "QOS=normal(1) GrpJobs=5(2)"
    assert "QOS own allows 2" in exceeded(limits(strict, loose), of_ada(), "own")
    assert exceeded(limits(strict, loose), of_ada()) == ""
    swapped = limits("QOS=own(2) GrpJobs=5(2)", "QOS=normal(1) GrpJobs=2(2)")
    assert exceeded(swapped, of_ada(), "own") == ""
    partition = Partition("all", np.arange(7))
    full = limits("QOS=own(2) GrpTRES=node=3(2)")
    there = supply(limits=full, access={"all": Access(own_qos="own")})
    assert "QOS own allows 3 node" in why_closed(of_ada(), partition, there)
    assert why_closed(of_ada(), partition, replace(there, access={})) == ""


def test_whose_limits_are_not_there_is_said(limits):
    there = limits()

    def unknown(own="", **fields):
        return "; ".join(there.unknown(of_ada(**fields), own))

    assert unknown() == unknown("own") == unknown(association=6) == ""
    assert "QOS high" in unknown(qos="high")
    assert "QOS gone" in unknown("gone")
    assert "user bob in account ai" in unknown(user="bob")
    assert "user ada in account ai" in unknown(association=8)  # whose record is hidden
    there = limits(root="\nClusterName=here Account=bio UserName=ada(7) Partition= ParentAccount= ")
    assert "limits of account bio," in unknown(account="bio")
    assert not there.knows_above("bio")
    there = limits("QOS=high(3) GrpJobs=N(0) Account Limits=No Accounts User Limits=No Users")
    assert unknown(qos="high") == unknown("high")
    assert "limits of QOS high on each user and account, not shown until" in unknown("high")


def test_a_mistake_is_named(tmp_path):
    path = tmp_path / "assoc_mgr.txt"
    for line, message in (
        ("QOS=two(2) GrpJobs=many(3)", r"line 1, GrpJobs: 'many\(3\)'; expected a limit such as"),
        ("QOS=two(2) GrpTRES=cpu=x(1)", r"line 1, GrpTRES: 'cpu=x\(1\)'; expected a limit"),
        ("QOS=two(2)\n    GrpJobs=1(0)", "line 2: .*expected a record a line, as scontrol -o"),
    ):
        path.write_text(line + "\n")
        with pytest.raises(InputError, match=message):
            read_limits(path, safe=False)


def test_jobs_of_one_plan_keep_to_limits_together(limits):
    """Two jobs of the QOS may run; those of highest priority that have room are counted."""
    two = "QOS=normal(1) Account Limits= User Limits= ada(7)={MaxJobsPU=2(0)}"
    there = supply(limits=limits(two))
    one = {"least_nodes": 1, "most_nodes": 1, "tasks": 1, "tres": {"cpu": 1, "node": 1}}
    large = of_ada(job_id=9, priority=99, tasks=64, cores_per_task=64, least_nodes=5, most_nodes=5)
    jobs = [of_ada(job_id=n, priority=n, **one) for n in range(1, 5)]
    posed = placement_problem(queue_of(large, *jobs), there)
    assert [row.label for row in posed.rows] == ["9", "3", "4"]
    assert posed.blocked.keys() == {"1", "2"}
    assert "QOS normal for user ada allows 2 running jobs" in posed.blocked["1"]
    array = of_ada(job_id=5, array_id=5, array_tasks=(1, 2, 3), **one)
    posed = placement_problem(queue_of(array), there)
    assert [row.label for row in posed.rows] == ["5_1", "5_2"]
    assert posed.blocked.keys() == {"5_3"}


def test_whole_nodes_count_with_all_their_cores(limits):
    """Two of c1 to c4 have 32 cores, m1 alone has 64."""
    whole = of_ada(exclusive="node", partitions=("all",))
    there = supply(limits=limits(user="GrpTRES=cpu=40(0)"))
    [row] = placement_problem(queue_of(whole), there).rows
    assert np.flatnonzero(row.request.nodes).tolist() == [0, 1, 2, 3]
    too_little = supply(limits=limits(user="GrpTRES=cpu=31(0)"))
    posed = placement_problem(queue_of(whole), too_little)
    assert posed.blocked["1"].endswith("32 asked, 1 too many")


def test_a_limit_ends_with_the_jobs_that_fill_it(limits):
    there = supply(limits=limits(user="GrpTRES=cpu=20(16)"))
    its = {"user": "ada", "account": "ai", "qos": "normal", "tres": {"cpu": 16, "node": 1}}
    runs = running(7, "c1", end=1600, **its)
    waits = of_ada(reason="AssocGrpCpuLimit")
    queue = queue_of(waits, runs)
    assert "16 in use, 8 asked, 4 too many" in explain(queue, there, "1").rule
    assert earliest_start(waits, queue, there) == 1600
    other = replace(runs, user="bob", account="bio", end=1300)  # whose end changes no limit of it
    assert earliest_start(waits, queue_of(waits, other, runs), there) == 1600
    assert earliest_start(waits, queue_of(waits, other), there) is None
