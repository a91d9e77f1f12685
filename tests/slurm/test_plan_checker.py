"""Plans for every captured cluster pass the independent checker, and it finds what is planted."""

import json

import pytest

from optsched.cli import run
from slurm.plan_checker import hosts, illegal_starts, needless_weights

from .conftest import SMALL


@pytest.mark.parametrize("version", SMALL)
def test_slurm_would_make_every_planned_start(shared, version, capsys):
    """Those of the reviews are in the table of public cases, and are checked there."""
    folder = shared(f"slurm/fixtures/{version}")
    assert run(["slurm", "plan", "--json", "--from", str(folder)]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert sum(bool(each["nodes"]) for each in plan["jobs"]) > 1
    assert illegal_starts(folder, plan) == []


def _node(name, **fields):
    usual = {"state": ["IDLE"], "effective_cpus": 8, "cpus": 8, "alloc_cpus": 0, "threads": 1}
    usual |= {"real_memory": 8000, "alloc_memory": 0, "gres": "gpu:a100:4", "gres_used": ""}
    return {"name": name, "active_features": ["ib"], "owner": "", "weight": 1} | usual | fields


def _job(number, **fields):
    usual = {"job_state": ["PENDING"], "priority": 1000 - number, "time_limit": 60, "tasks": 1}
    usual |= {"partition": "batch", "account": "lab", "qos": "normal", "max_nodes": 1}
    usual |= {"node_count": 1, "memory_per_cpu": 1000, "memory_per_node": None, "shared": []}
    usual |= {"required_nodes": "", "excluded_nodes": "", "nodes": "", "user_name": "ann"}
    return {"job_id": number, "eligible_time": 0} | usual | fields


def _running(at, **fields):
    return _job(99, job_state=["RUNNING"], nodes=at) | fields


@pytest.fixture
def build(tmp_path):
    """Return a function that writes a captured cluster of n1 and n2, which is changed by name."""

    def write(*jobs, nodes=(), partition="", **files):
        made = [_node(name, **dict(nodes).get(name, {})) for name in ("n1", "n2")]
        (tmp_path / "nodes.json").write_text(json.dumps({"nodes": made}))
        (tmp_path / "squeue.json").write_text(json.dumps({"jobs": jobs}))
        (tmp_path / "now").write_text("1000000000")
        row = f"PartitionName=batch Nodes=n[1-2] MaxTime=1-00:00:00 {partition}"
        (tmp_path / "partitions.txt").write_text(row)
        for name, text in files.items():
            (tmp_path / f"{name}.txt").write_text(text)
        return tmp_path

    return write


def _plan(**starts):
    jobs = [{"job": job[1:], "nodes": hosts(at)} for job, at in starts.items()]
    return {"jobs": jobs, "lines": [f"JobId={each['job']} ReqNodeList=n" for each in jobs]}


PER_JOB = {"node_count": 2, "max_nodes": 2, "tasks": 2}
RESERVED = "ReservationName=m StartTime={} EndTime=2001-09-10T00:00:00 Nodes=n1"
OF_BOB = {"running": {"user_name": "bob"}}
GPU = {"tres_per_node": "gres/gpu:1"}
LICENCES = "LicenseName=lab Total=3 Used=1 Free=2 Reserved=1"


def _n1(**fields):
    return {"nodes": {"n1": fields}}


FAULTS = {
    "held": ({"priority": 0}, {}, "held"),
    "begin": ({"eligible_time": 1_000_000_060}, {}, "may not begin"),
    "deadline": ({"deadline": 1_000_003_000}, {}, "deadline"),
    "dependency": ({"dependency": "afterok:3"}, {}, "depends"),
    "heterogeneous": ({"het_job_id": 4}, {}, "heterogeneous"),
    "required": ({"required_nodes": "n2"}, {}, "requires"),
    "features": ({"features": "ib&(big|old)"}, {}, "features"),
    "preferred": ({"prefer": "big"}, {}, "pinned to nodes without big"),
    "counted": ({"features": "[ib*1&big*1]"}, {}, "features"),
    "cores of tasks, which 22.05 does not state": ({"tasks": 3, "cpus": 9}, {}, "1 tasks"),
    "least cores": ({"tasks": 2, "minimum_cpus_per_node": 9}, {}, "9 cores, 9000 MB"),
    "memory": ({"memory_per_cpu": 9000}, {}, "n1 has 8 cores, 8000 MB"),
    "all memory": ({"memory_per_cpu": 0}, _n1(alloc_memory=10), "7990 MB"),
    "type": ({"tres_per_node": "gres/gpu:h100:1"}, {}, "1 gpu:h100 needed"),
    "per task": ({"tasks": 5, "tres_per_task": "gres/gpu=1"}, {}, "1 tasks"),
    "drained": ({}, _n1(state=["IDLE", "DRAIN"]), "DRAIN"),
    "silent": ({}, _n1(state=["IDLE", "NOT_RESPONDING"]), "NOT_RESPONDING"),
    "specialized": ({"tasks": 8}, _n1(effective_cpus=6), "2 tasks"),
    "owner": ({}, _n1(owner="bob"), "belongs to bob"),
    "account": ({}, {"partition": "AllowAccounts=other"}, "not open to lab"),
    "longest": ({"time_limit": 2000}, {}, "MaxTime"),
    "most nodes": ({"max_nodes": 4}, {"partition": "MaxNodes=2"}, "takes 0 to 2"),
    "closed": ({}, {"partition": "State=DOWN"}, "is DOWN"),
    "cpus of node": ({"tasks": 4}, {"partition": "MaxCPUsPerNode=3"}, "MaxCPUsPerNode"),
    "reserved": ({}, {"reservations": RESERVED.format("2001-09-09T02:00:00")}, "reserved by m"),
    "licence": ({"licenses": "lab:2"}, {"licenses": LICENCES}, "licence lab"),
    "not shared": ({}, {"running": {"shared": ["none"]}} | _n1(alloc_cpus=1), "not shared"),
    "own user alone": ({}, {"running": {"shared": ["user"], "user_name": "bob"}}, "bob alone"),
    "exclusive user": ({}, OF_BOB | {"partition": "ExclusiveUser=YES"}, "has jobs of bob"),
    "GPU with a shard": (GPU, _n1(gres="gpu:1,shard:4", gres_used="gpu:0,shard:1(1/4)"), "1 gpu"),
    "shards": ({"tres_per_node": "gres/shard:5"}, _n1(gres="gpu:2,shard:8"), "5 shard needed"),
}


@pytest.mark.parametrize(("job", "cluster", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_found(build, job, cluster, reason):
    cluster = dict(cluster)
    others = [_running("n1", **cluster.pop("running"))] if "running" in cluster else []
    at = "n[1-2]" if job.get("node_count") == 2 else "n1"
    wrong = illegal_starts(build(_job(1, **job), *others, **cluster), _plan(j1=at))
    assert any(reason in each for each in wrong)


def test_legal_starts_are_legal(build):
    booting = {"n1": {"state": ["IDLE", "NOT_RESPONDING", "POWERING_UP"], "owner": "ann"}}
    floating = RESERVED.format("2001-09-09T02:46:41")  # one second after the end of the job
    job = _job(1, tasks=8, features="ib", tres_per_node="gres/gpu:a100:4")
    folder = build(job, _running("n2"), nodes=booting, reservations=floating)
    assert illegal_starts(folder, _plan(j1="n1")) == []
    # MaxMemPerCPU makes 7 CPUs the least of a node for the memory of one; they hold 4 tasks
    job = _job(1, tasks=4, cpus=4, minimum_cpus_per_node=7, memory_per_node=7000)
    folder = build(job, _job(2), _job(3))
    assert illegal_starts(folder, _plan(j1="n1", j2="n1")) == []
    assert "n1 has 0 cores" in illegal_starts(folder, _plan(j1="n1", j2="n1", j3="n1"))[0]


def test_jobs_of_a_plan_are_in_the_way_of_each_other(build):
    # on two nodes of 8 cores, 9 tasks take 8 + 1
    first = _job(1, **PER_JOB | {"tasks": 9})
    folder, plan = build(first, _job(2, tasks=7)), _plan(j1="n[1-2]", j2="n2")
    assert illegal_starts(folder, plan) == []
    assert "n2 has 0 cores" in illegal_starts(folder, plan, in_any_order=True)[0]
    [wrong] = illegal_starts(build(first, _job(2, tasks=1)), _plan(j1="n[1-2]", j2="n1"))
    assert "job 2" in wrong
    # 6 GPUs on two nodes of 4 are 4 + 2
    first = _job(1, **PER_JOB, tres_per_job="gres/gpu:6")
    other = _job(2, **GPU)
    folder = build(first, other)
    assert illegal_starts(folder, _plan(j1="n[1-2]", j2="n2")) == []
    assert "1 gpu needed" in illegal_starts(folder, _plan(j1="n[1-2]", j2="n1"))[0]
    # and every node gives as many CPUs as the one with most GPUs, if it has them
    first["cpus_per_tres"] = "gpu:2"
    [wrong] = illegal_starts(build(first, _job(2)), _plan(j1="n[1-2]", j2="n2"))
    assert "n2 has 0 cores" in wrong


def test_a_node_of_less_weight_is_named(build):
    folder = build(_job(1), nodes={"n1": {"weight": 20}})
    assert needless_weights(folder, _plan(j1="n1")) == ["job 1 on n1 of weight 20: n2"]
    assert needless_weights(folder, _plan(j1="n2")) == []
    light = {"n1": {"weight": 20}, "n2": {"state": ["IDLE", "UNHEARD_OF"]}}
    assert needless_weights(build(_job(1), nodes=light), _plan(j1="n1")) == []
    reserved = RESERVED.replace("n1", "n2").format("2001-09-09T03:00:00")
    folder = build(_job(1), nodes={"n1": {"weight": 20}}, reservations=reserved)
    assert needless_weights(folder, _plan(j1="n1")) == []
