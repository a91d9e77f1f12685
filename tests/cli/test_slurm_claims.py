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
    return {
        "job_id": job_id,
        "job_state": ["PENDING"],
        "user_name": "ada",
        "account": "ai",
        "qos": "normal",
        "partition": "batch",
        "priority": 100 - job_id,
        "node_count": 1,
        "max_nodes": 1,
        "tasks": 1,
        "cpus_per_task": cores,
        "time_limit": 60,
        "state_reason": "None",
        **fields,
    }


def running(job_id: int, node: str, cores: int = 16, **fields) -> dict:
    core = {"status": ["ALLOCATED"]}
    there = {"name": node, "memory": {"allocated": 0}, "sockets": [{"cores": [core] * cores}]}
    usual = {
        "job_state": ["RUNNING"],
        "user_name": "bob",
        "start_time": NOW - 600,
        "end_time": NOW + 3000,
        "requeue": True,
        "batch_flag": True,
        "job_resources": {"nodes": {"allocation": [there]}},
    }
    return job(job_id, cores, **usual | fields)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a captured state of nodes c1 to c3, of 16 cores each."""

    def make(
        *jobs: dict,
        used: dict[str, int] | None = None,
        states: dict[str, str] | None = None,
        enforced: str = "none",
        partition: str = "",
    ) -> Path:
        meta = {"plugin": {"data_parser": "data_parser/v0.0.42"}}
        nodes = [
            {
                "name": name,
                "cpus": 16,
                "real_memory": 64000,
                "alloc_cpus": (used or {}).get(name, 0),
                "alloc_memory": 0,
                "threads": 1,
                "state": [(states or {}).get(name, "IDLE")],
                "partitions": ["batch"],
                "features": [],
            }
            for name in ("c1", "c2", "c3")
        ]
        (tmp_path / "squeue.json").write_text(json.dumps({"meta": meta, "jobs": list(jobs)}))
        (tmp_path / "nodes.json").write_text(json.dumps({"meta": meta, "nodes": nodes}))
        (tmp_path / "now").write_text(f"{NOW}\n")
        (tmp_path / "partitions.txt").write_text(PARTITION.format(partition))
        (tmp_path / "config.txt").write_text(CONFIG.format(enforced))
        (tmp_path / "reservations.txt").write_text("No reservations in the system\n")
        return tmp_path

    return make


FULL = dict.fromkeys(("c1", "c2", "c3"), 16)
ALL = [running(10 + place, name) for place, name in enumerate(FULL, 1)]


def test_where_all_is_seen_it_is_proven(optsched, write):
    folder = write(job(1), *ALL, used=FULL)
    done = optsched("slurm", "explain", 1, "--from", folder)
    assert "least to do     requeue 1 job, to start now on c" in done.stdout
    assert "proven by highs" in done.stdout
    assert "scontrol requeuehold 1" in done.stdout
    assert "not known" not in done.stdout


@pytest.mark.parametrize(
    "jobs", [ALL[:1], [], [each | {"job_resources": None} for each in ALL]], ids=len
)
def test_hidden_jobs_leave_nothing_proven(optsched, write, jobs):
    folder = write(job(1), *jobs, used=FULL)
    done = optsched("slurm", "explain", 1, "--from", folder)
    assert done.returncode == 0, done.stderr
    assert "not known       which jobs hold" in done.stdout
    assert "as far as is known" in done.stdout
    assert not CLAIMS.search(done.stdout)
    answer = json.loads(optsched("slurm", "explain", 1, "--from", folder, "--json").stdout)
    assert answer["unseen"]
    assert answer["least"]["proven"] is False
    assert answer["least"]["status"] in ("feasible", "no-solution")


def test_no_running_job_is_touched_where_limits_are_not_known(optsched, write):
    folder = write(job(1), *ALL, used=FULL, enforced="associations,limits")
    done = optsched("slurm", "explain", 1, "--from", folder)
    assert "not known       limits of QOS and associations, without assoc_mgr.txt" in done.stdout
    assert "requeue 1 job" in done.stdout
    assert "scontrol" not in done.stdout
    assert (
        "# no commands, as something about the job is unknown: --force prints them" in done.stdout
    )
    answer = json.loads(optsched("slurm", "explain", 1, "--from", folder, "--json").stdout)
    least = answer["least"]
    assert least["withheld"]
    assert [least[name] for name in ("lines", "at_start", "afterwards")] == [[], [], []]
    forced = optsched("slurm", "explain", 1, "--from", folder, "--force").stdout
    assert "scontrol requeuehold 1" in forced
    assert not CLAIMS.search(forced)


def test_other_actions_need_no_force(optsched, write):
    drained = {"c1": "DRAIN"}
    folder = write(job(1), *ALL[1:], used=FULL | {"c1": 0}, states=drained, enforced="limits")
    done = optsched("slurm", "explain", 1, "--from", folder, "--actions", "resume")
    assert "scontrol update NodeName=c1 State=RESUME" in done.stdout


def test_a_job_that_its_partition_does_not_admit_gets_no_advice(optsched, write):
    chem = job(1, account="chem")
    folder = write(chem, *ALL, used=FULL, partition="AllowAccounts=ai", enforced="associations")
    done = optsched("slurm", "explain", 1, "--from", folder, "--force")
    assert "rule      partition batch admits the accounts ai, and not chem" in done.stdout
    assert "scontrol" not in done.stdout
    found = json.loads(optsched("slurm", "plan", "--from", folder, "--json").stdout)
    assert found["blocked"]["1"].startswith("partition batch admits the accounts ai")


def test_where_nothing_has_to_be_done_there_are_no_lines(optsched, write):
    done = optsched("slurm", "explain", 1, "--from", write(job(1)))
    assert "least to do     nothing has to be done to start now on c1" in done.stdout
    assert "scontrol" not in done.stdout
    done = optsched("slurm", "explain", 2, "--from", write(job(1), job(2)))
    assert "least to do     raise it above 1 job and pin it, to start now on c1" in done.stdout
    assert "scontrol update JobId=2 Nice=-4" in done.stdout
    done = optsched("slurm", "explain", 1, "--from", write(job(1, hold=True)))
    assert "least to do     release it and pin it, to start now on c1" in done.stdout


def test_resuming_nodes_is_hinted_at(optsched, write):
    folder = write(job(1, required_nodes="c2"), states={"c2": "DRAIN"})
    done = optsched("slurm", "explain", 1, "--from", folder)
    assert "not before nodes that are drained are resumed, see --actions resume" in done.stdout
    assert "it would fit if drained nodes were resumed: see --actions resume" in done.stdout
    assert "never" not in done.stdout
    answer = json.loads(optsched("slurm", "explain", 1, "--from", folder, "--json").stdout)
    assert (answer["lacks_service"], answer["resume_suffices"]) == ("drained", True)
    down = write(job(1, required_nodes="c2"), states={"c2": "DOWN"})
    done = optsched("slurm", "explain", 1, "--from", down)
    assert "not before nodes that are down come back" in done.stdout


def test_a_job_that_slurm_may_start_before_others_of_the_plan_is_named(optsched, write):
    wide = job(1, 2, node_count=2, max_nodes=2, shared=["none"], priority=110)
    others = job(2, 12, priority=100), job(3, 12, priority=90), running(9, "c3", 16)
    folder = write(wide, *others, used={"c3": 16})
    said = "job 1, priority 110, age 0 s: it fits alone, but other jobs of the plan take its room; "
    [line] = [
        line.strip()
        for line in optsched("slurm", "plan", "--from", folder).stdout.splitlines()
        if said in line
    ]
    assert line == f"{said}delayed by at most 1 h, see --order strict"
    strict = optsched("slurm", "plan", "--from", folder, "--order", "strict").stdout
    assert said not in strict


def test_jobs_that_are_not_placed_are_named_with_reasons(optsched, write):
    asks = [job(1, 12), job(2, 12), job(3, 12), job(4, 12), job(5, priority=500, cpus_per_task=17)]
    held = job(6, hold=True)
    folder = write(*asks, held, running(9, "c3", 8), used={"c3": 8}, enforced="limits")
    done = optsched("slurm", "plan", "--from", folder)
    lines = done.stdout.splitlines()
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
    found = json.loads(optsched("slurm", "plan", "--from", folder, "--json").stdout)
    assert [(each["job"], each["priority"]) for each in found["not_placed"]] == [
        ("5", 500),
        ("3", 97),
        ("4", 96),
    ]
    assert found["not_placed"][0]["reason"] == "room on 0 of 1 node, short of cores"
    assert found["unseen"] == {"limits of QOS and associations, without assoc_mgr.txt": 5}
    done = optsched("slurm", "apply", "--from", folder)
    assert "not known of 5 jobs: limits of QOS and associations" in done.stderr
    alone = optsched("slurm", "plan", "--from", write(job(1)))
    assert "jobs           1; by Slurm 0 now\nweight" in alone.stdout
