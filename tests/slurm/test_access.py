from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optsched.sites.parts import Reservation
from optsched.sites.slurm_files import printed_lines
from optsched.sites.slurm_partitions import Access, access_of, left_out
from optsched.slurm.explain import earliest_start, explain
from optsched.slurm.limits import Limits
from optsched.slurm.queue import LeftToSlurmError
from optsched.slurm.requests import blocked_by_rule, request_of
from optsched.slurm.running import read_captured
from optsched.slurm.snapshot import placement_problem
from optsched.slurm.unseen import unseen_rules
from optsched.solvers.solving import solve

from .conftest import job, queue_of, running, supply

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


def test_another_partition_of_the_job_may_be_open():
    there = supply(access={"all": Access(accounts=("ai",))})
    either = job(account="bio", partitions=("all", "rest"))
    assert blocked_by_rule(either, there) == ""
    assert np.flatnonzero(request_of(either, there).nodes).tolist() == [2, 3, 4]


def test_more_cores_for_more_memory_are_left_to_slurm():
    there = supply(access={"all": Access(memory_per_core=4000)})
    request_of(job(memory_per_core=4000), there)
    request_of(job(memory_per_node=8000, least_cores=2), there)
    for fields in ({"memory_per_core": 4001}, {"memory_per_node": 8000}):
        with pytest.raises(LeftToSlurmError, match="gives more cores for more than 4,000"):
            request_of(job(**fields), there)


class TestCoresOfAPartition:
    """Partition `all` with MaxCPUsPerNode=12; 8 of them are in use on c1."""

    THERE = supply(
        access={"all": Access(cores_per_node=12)}, cores_left={"all": np.array([4] + [12] * 6)}
    )

    def test_jobs_have_no_more_together(self):
        """On c1 there is room for one of four cores, on each other node for three, with threads."""
        jobs = [job(job_id=n, cores_per_task=4) for n in range(1, 30)]
        result = solve(placement_problem(queue_of(*jobs), self.THERE).problem, "highs")
        placed = [at for at in result.solution.nodes if at]
        assert len(placed) == 1 + 6 * 3
        assert sum(at == (0,) for at in placed) == 1

    def test_jobs_of_other_partitions_do_not_count(self):
        other = job(partitions=("own",), cores_per_task=16)
        assert np.flatnonzero(request_of(other, self.THERE).most(self.THERE)).tolist() == [
            0,
            1,
            2,
            3,
        ]
        assert not request_of(job(cores_per_task=13), self.THERE).most(self.THERE).any()
        assert not request_of(
            job(exclusive="node"), self.THERE
        ).nodes.any()  # of which all are larger

    def test_they_are_free_when_a_job_of_the_partition_ends(self):
        runs = running(7, "c1", cores=8, end=1600)
        waits = job(cores_per_task=12, required=("c1",))
        there = replace(self.THERE, free=self.THERE.free - np.array([[8, 0, 0, 0]] + [[0] * 4] * 6))
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


class TestWhoMayUseAReservation:
    """A reservation of c1 and c2 that holds now."""

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
    def test_rules(self, admits, fields, is_open):
        kept = Reservation("r", ("c1", "c2"), 0, 2000, admits=admits)
        there = supply(reservations=(kept,), limits=Limits(parents={"below": "a"}))
        asks = job(**{"user": "u", "account": "a", "reservation": "r"} | fields)
        found = blocked_by_rule(asks, there)
        assert found == ("" if is_open else "reservation r does not admit it")

    def test_what_is_not_known(self):
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

    def test_a_job_runs_in_one_of_several(self):
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

    def test_a_flexible_one_does_not_bind_its_jobs(self):
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


class TestLicencesOfReservations:
    """Two of three licences are kept from 5000 to 9000."""

    KEPT = Reservation("course", (), 5000, 9000, {"lab": 2})

    def test_jobs_that_run_then_share_what_is_left(self):
        there = supply(reservations=(self.KEPT,))
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

    def test_those_of_running_jobs_and_unknown_ones_are_not_free(self, write_dump, tmp_path):
        """Slurm counts those of running jobs later."""
        node = {"name": "c1", "cpus": 8, "real_memory": 9, "state": ["IDLE"], "partitions": ["p"]}
        write_dump(42, node, name="nodes.json", key="nodes")
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
