"""A small Slurm in one file: run as squeue, scontrol or sinfo, with its state in a file beside it.

The state has jobs and nodes as the JSON of Slurm has them, the oldest version of the data parser
that the commands know, and changes of jobs that happen when a command is run for the first time.
"""

import fcntl
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCRIPT = Path(sys.argv[0])
FILE = SCRIPT.with_name("state.json")
PARTITION = "PartitionName=batch MaxNodes=UNLIMITED MaxTime=UNLIMITED Nodes=n[1-8] State=UP\n"
TOPOLOGY = (
    "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-4]\n"
    "SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[5-8]\n"
    "SwitchName=core Level=1 LinkSpeed=1 Nodes=n[1-8] Switches=leaf[1-2]\n"
)


def main() -> int:
    """Run a command."""
    words = sys.argv[1:]
    with changing(FILE) as state:
        with SCRIPT.with_name("calls.jsonl").open("a") as log:
            log.write(json.dumps([SCRIPT.name, *words]) + "\n")
        code = answer(state, words)
        happens(state, " ".join([SCRIPT.name, *words]))
    return code


@contextmanager
def changing(file: Path) -> Iterator[dict]:
    """Read the state, and write what becomes of it, while nobody else does."""
    with file.with_name("lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = json.loads(file.read_text())
        yield state
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps(state))
        fresh.replace(file)


def answer(state: dict, words: list[str]) -> int:
    """Print what a command prints, and return its exit code."""
    if "calls_left" in state:
        state["calls_left"] -= 1
    if state.get("down") or state.get("calls_left", 1) < 0:
        print("slurm_load_jobs error: Unable to contact slurm controller", file=sys.stderr)
        return 1
    if words[:1] == ["update"]:
        return update(state, words[1:])
    assert not {"SQUEUE_USERS", "SLURM_TIME_FORMAT"} & {*os.environ}
    assert os.environ["SLURM_BITSTR_LEN"] == "0"
    version = state["version"]
    wanted = next((word for word in words if word.startswith("--json")), None)
    shown = words[-1] if wanted is None else words[-2]
    if wanted:
        asked = wanted.partition("=")[2]
        if (asked and version < 44) or (SCRIPT.name == "scontrol" and version < 40):
            print(f"{SCRIPT.name}: error: unknown option {wanted}", file=sys.stderr)
            return 1
        parser = {"data_parser": f"data_parser/v0.0.{min(version, 44) if asked else version}"}
        plugin = parser if version >= 40 else {"type": f"openapi/v0.0.{version}"}
        keys = {"squeue": "jobs", "sinfo": "nodes"}
        key = keys.get(SCRIPT.name, shown)
        print(json.dumps({"meta": {"plugin": plugin}, key: state.get(key, [])}))
    elif "partitions" in words:
        print(PARTITION)
    elif "topology" in words:
        print(TOPOLOGY)
    elif "config" in words:
        print("ClusterName             = fake")
    elif "topoconf" in words:
        print("scontrol: error: invalid entity:topoconf for keyword:show", file=sys.stderr)
        return 1
    return 0


def update(state: dict, settings: list[str]) -> int:
    """Change a job as ``scontrol update`` does."""
    values = dict(setting.split("=", 1) for setting in settings)
    label = values.pop("JobId")
    job = find(state["jobs"], label)
    if job is None:
        print(f"Invalid job id specified for job {label}", file=sys.stderr)
        return 1
    if {"ReqNodeList", "ExcNodeList"} & {*values} and job["job_state"] != ["PENDING"]:
        print(f"Requested nodes are busy for job {label}", file=sys.stderr)
        return 1
    job["required_nodes"] = values.pop("ReqNodeList", job["required_nodes"])
    job["excluded_nodes"] = values.pop("ExcNodeList", job.get("excluded_nodes", ""))
    job["comment"] = values.pop("Comment", job["comment"])
    assert not values, values
    return 0


def find(jobs: list[dict], label: str) -> dict | None:
    """Return the record of a job; a task of an array gets one of its own."""
    for job in jobs:
        own = job.get("array_task_id")
        if label in (str(job["job_id"]), f"{job.get('array_job_id')}_{own}"):
            return job
        pending = job.get("array_task_string", "").split(",")
        array, _, task = label.partition("_")
        if array == str(job["job_id"]) and task in pending:
            pending.remove(task)
            job["array_task_string"] = ",".join(pending)
            alone = {"job_id": 900 + int(task), "array_task_string": "", "array_task_id": int(task)}
            jobs.append({**job, **alone})
            return jobs[-1]
    return None


def happens(state: dict, line: str) -> None:
    """Apply the changes that wait for a command that begins like this one."""
    for change in [each for each in state.get("changes", []) if line.startswith(each["after"])]:
        state["changes"].remove(change)
        for job in state["jobs"]:
            if job["job_id"] == change["job"]:
                job.update(change["fields"])
        state["jobs"] = [job for job in state["jobs"] if job["job_state"] != ["gone"]]


if __name__ == "__main__":
    sys.exit(main())
