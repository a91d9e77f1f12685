from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.sites.site import Partition
from optsched.sites.slurm_partitions import Access
from optsched.slurm.access import why_closed
from optsched.slurm.explain import earliest_start, explain
from optsched.slurm.limits import read_limits
from optsched.slurm.snapshot import placement_problem

from .conftest import job, queue_of, running, supply

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


def asks(**fields):
    """Return a pending job of ada on two nodes."""
    usual = {"user": "ada", "account": "ai", "qos": "normal", "tres": ASKS, "limit": 3600.0}
    return job(**usual | {"least_nodes": 2, "most_nodes": 2, "tasks": 8} | fields)


def of_user(text):
    return {"qos": f"Account Limits= User Limits= {text}"}


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
    asked = asks(limit=given.get("limit", 3600.0))
    found = limits(*qos, **others).exceeded(asked, ASKS, "")
    assert words in found
    assert bool(found) == bool(words)


def test_the_qos_of_a_partition_counts_and_comes_before_that_of_the_job(limits):
    strict, loose = "QOS=own(2) GrpJobs=2(2)", "QOS=normal(1) GrpJobs=5(2)"
    assert "QOS own allows 2" in limits(strict, loose).exceeded(asks(), ASKS, "own")
    assert limits(strict, loose).exceeded(asks(), ASKS, "") == ""
    swapped = limits("QOS=own(2) GrpJobs=5(2)", "QOS=normal(1) GrpJobs=2(2)")
    assert swapped.exceeded(asks(), ASKS, "own") == ""
    partition = Partition("all", np.arange(7))
    full = limits("QOS=own(2) GrpTRES=node=3(2)")
    there = supply(limits=full, access={"all": Access(own_qos="own")})
    assert "QOS own allows 3 node" in why_closed(asks(), partition, there)
    assert why_closed(asks(), partition, replace(there, access={})) == ""


def test_whose_limits_are_not_there_is_said(limits):
    there = limits()

    def unknown(own="", **fields):
        return "; ".join(there.unknown(asks(**fields), own))

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
    large = asks(job_id=9, priority=99, tasks=64, cores_per_task=64, least_nodes=5, most_nodes=5)
    jobs = [asks(job_id=n, priority=n, **one) for n in range(1, 5)]
    posed = placement_problem(queue_of(large, *jobs), there)
    assert [row.label for row in posed.rows] == ["9", "3", "4"]
    assert posed.blocked.keys() == {"1", "2"}
    assert "QOS normal for user ada allows 2 running jobs" in posed.blocked["1"]
    array = asks(job_id=5, array_id=5, array_tasks=(1, 2, 3), **one)
    posed = placement_problem(queue_of(array), there)
    assert [row.label for row in posed.rows] == ["5_1", "5_2"]
    assert posed.blocked.keys() == {"5_3"}


def test_whole_nodes_count_with_all_their_cores(limits):
    """Two of c1 to c4 have 32 cores, m1 alone has 64."""
    whole = asks(exclusive="node", partitions=("all",))
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
    waits = asks(reason="AssocGrpCpuLimit")
    queue = queue_of(waits, runs)
    assert "16 in use, 8 asked, 4 too many" in explain(queue, there, "1").rule
    assert earliest_start(waits, queue, there) == 1600
    other = replace(runs, user="bob", account="bio", end=1300)  # whose end changes no limit of it
    assert earliest_start(waits, queue_of(waits, other, runs), there) == 1600
    assert earliest_start(waits, queue_of(waits, other), there) is None
