"""What ``optsched slurm`` claims, and advises, of a captured state that does not show all."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

NOW = 1_800_000_000
CONFIG = "ClusterName = made\nAccountingStorageEnforce = {}\nSelectTypeParameters = CR_CORE\n"
PARTITION = "PartitionName=batch Nodes=c[1-3] State=UP MaxTime=UNLIMITED {}\n"
CLAIMS = re.compile(r"\bproven\b|\bnever\b|\boptimal\b")


def job(job_id: int, cores: int = 16, **fields) -> dict:
    usual = {"job_id": job_id, "job_state": ["PENDING"], "partition": "batch", "qos": "normal"}
    usual |= {"user_name": "ada", "account": "ai", "priority": 100 - job_id, "time_limit": 60}
    usual |= {"node_count": 1, "max_nodes": 1, "tasks": 1, "cpus_per_task": cores}
    return usual | {"state_reason": "None"} | fields


def running(job_id: int, node: str, cores: int = 16, **fields) -> dict:
    core = {"status": ["ALLOCATED"]}
    there = {"name": node, "memory": {"allocated": 0}, "sockets": [{"cores": [core] * cores}]}
    usual = {"job_state": ["RUNNING"], "user_name": "bob", "requeue": True, "batch_flag": True}
    usual |= {"start_time": NOW - 600, "end_time": NOW + 3000}
    usual |= {"job_resources": {"nodes": {"allocation": [there]}}}
    return job(job_id, cores, **usual | fields)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes a captured state of nodes c1 to c3, of 16 cores each."""

    def make(*jobs: dict, used=(), states=(), enforced="none", partition="") -> None:
        usual = {"cpus": 16, "real_memory": 64000, "alloc_memory": 0, "threads": 1}
        usual |= {"partitions": ["batch"], "features": []}
        nodes = [{"name": name} | usual for name in ("c1", "c2", "c3")]
        for node in nodes:
            node["alloc_cpus"] = dict(used).get(node["name"], 0)
            node["state"] = [dict(states).get(node["name"], "IDLE")]
        monkeypatch.chdir(tmp_path)
        meta = {"plugin": {"data_parser": "data_parser/v0.0.42"}}
        Path("squeue.json").write_text(json.dumps({"meta": meta, "jobs": list(jobs)}))
        Path("nodes.json").write_text(json.dumps({"meta": meta, "nodes": nodes}))
        Path("now").write_text(f"{NOW}\n")
        Path("partitions.txt").write_text(PARTITION.format(partition))
        Path("config.txt").write_text(CONFIG.format(enforced))
        Path("reservations.txt").write_text("No reservations in the system\n")

    return make


@pytest.fixture
def slurm(optsched):
    """Return a function that runs a command on that state: what it prints, or as JSON."""

    def run(words):
        printed = optsched("slurm", words, "--from .").out
        return json.loads(printed) if "--json" in words else printed

    return run


FULL = dict.fromkeys(("c1", "c2", "c3"), 16)
ALL = [running(10 + place, name) for place, name in enumerate(FULL, 1)]


def test_where_all_is_seen_it_is_proven(slurm, write):
    write(job(1), *ALL, used=FULL)
    shown = slurm("explain 1")
    assert "least to do     requeue 1 job, to start now on c" in shown
    assert "proven by highs" in shown
    assert "scontrol requeuehold 1" in shown
    assert "not known" not in shown


@pytest.mark.parametrize(
    "jobs", [ALL[:1], [], [each | {"job_resources": None} for each in ALL]], ids=len
)
def test_hidden_jobs_leave_nothing_proven(slurm, write, jobs):
    write(job(1), *jobs, used=FULL)
    shown = slurm("explain 1")
    assert "not known       which jobs hold" in shown
    assert "as far as is known" in shown
    assert not CLAIMS.search(shown)
    answer = slurm("explain 1 --json")
    assert answer["unseen"]
    assert answer["least"]["proven"] is False
    assert answer["least"]["status"] in ("feasible", "no-solution")


def test_no_running_job_is_touched_where_limits_are_not_known(slurm, write):
    write(job(1), *ALL, used=FULL, enforced="associations,limits")
    shown = slurm("explain 1")
    assert "not known       limits of QOS and associations, without assoc_mgr.txt" in shown
    assert "requeue 1 job" in shown
    assert "scontrol" not in shown
    assert "# no commands, as something about the job is unknown: --force prints them" in shown
    least = slurm("explain 1 --json")["least"]
    assert least["withheld"]
    assert [least[name] for name in ("lines", "at_start", "afterwards")] == [[], [], []]
    forced = slurm("explain 1 --force")
    assert "scontrol requeuehold 1" in forced
    assert not CLAIMS.search(forced)


def test_other_actions_need_no_force(slurm, write):
    write(job(1), *ALL[1:], used=FULL | {"c1": 0}, states={"c1": "DRAIN"}, enforced="limits")
    assert "scontrol update NodeName=c1 State=RESUME" in slurm("explain 1 --actions resume")


def test_a_job_that_its_partition_does_not_admit_gets_no_advice(slurm, write):
    chem = job(1, account="chem")
    write(chem, *ALL, used=FULL, partition="AllowAccounts=ai", enforced="associations")
    shown = slurm("explain 1 --force")
    assert "rule      partition batch admits the accounts ai, and not chem" in shown
    assert "scontrol" not in shown
    blocked = slurm("plan --json")["blocked"]
    assert blocked["1"].startswith("partition batch admits the accounts ai")


def test_where_nothing_has_to_be_done_there_are_no_lines(slurm, write):
    write(job(1))
    shown = slurm("explain 1")
    assert "least to do     nothing has to be done to start now on c1" in shown
    assert "scontrol" not in shown


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("DRAIN", "not before nodes that are drained are resumed, see --actions resume"),
        ("DOWN", "not before nodes that are down come back"),
    ],
)
def test_resuming_nodes_is_hinted_at(slurm, write, state, said):
    write(job(1, required_nodes="c2"), states={"c2": state})
    shown = slurm("explain 1")
    assert said in shown
    assert ("it would fit if drained nodes were resumed: see" in shown) == (state == "DRAIN")
    assert "never" not in shown


def test_a_job_that_slurm_may_start_before_others_of_the_plan_is_named(slurm, write):
    wide = job(1, 2, node_count=2, max_nodes=2, shared=["none"], priority=110)
    others = job(2, 12, priority=100), job(3, 12, priority=90), running(9, "c3", 16)
    write(wide, *others, used={"c3": 16})
    said = "job 1, priority 110, age 0 s: it fits alone, but other jobs of the plan take its room; "
    [line] = [line.strip() for line in slurm("plan").splitlines() if said in line]
    assert line == f"{said}delayed by at most 1 h, see --order strict"
    assert said not in slurm("plan --order strict")


def test_jobs_that_are_not_placed_are_named_with_reasons(slurm, write, optsched):
    asks = [job(1, 12), job(2, 12), job(3, 12), job(4, 12), job(5, priority=500, cpus_per_task=17)]
    held = job(6, hold=True)
    write(*asks, held, running(9, "c3", 8), used={"c3": 8}, enforced="limits")
    lines = slurm("plan").splitlines()
    place = lines.index("not placed     3")
    assert [line.strip() for line in lines[place + 1 : place + 4]] == [
        "job 5, priority 500, age 0 s: room on 0 of 1 node, short of cores",
        "job 3, priority 97, age 0 s: it fits alone, but other jobs of the plan take its room",
        "job 4, priority 96, age 0 s: it fits alone, but other jobs of the plan take its room",
    ]
    assert "not known      limits of QOS and associations, without assoc_mgr.txt: 5 jobs" in lines
    assert "               1 job: it is held" in lines
    waits = "               Slurm may let them wait: it reserves nodes for jobs of higher priority"
    assert lines[lines.index("jobs           2; by Slurm 0 now") + 1] == waits
    found = slurm("plan --json")
    first, *_ = not_placed = found["not_placed"]
    assert [(each["job"], each["priority"]) for each in not_placed] == [
        *(("5", 500), ("3", 97), ("4", 96)),
    ]  # fmt: skip
    assert first["reason"] == "room on 0 of 1 node, short of cores"
    assert found["unseen"] == {"limits of QOS and associations, without assoc_mgr.txt": 5}
    told = optsched("slurm apply --from .").err
    assert "not known of 5 jobs: limits of QOS and associations" in told
    write(job(1))
    assert "jobs           1; by Slurm 0 now\nweight" in slurm("plan")
