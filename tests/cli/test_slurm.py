"""``optsched slurm`` on captured clusters, and beside a small Slurm that keeps its state."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from optsched.sites.slurm_notation import hosts_of
from optsched.slurm.explain import pending_job
from optsched.slurm.queue import read_queue

from .fake_slurm import changing

FAKE = Path(__file__).with_name("fake_slurm.py")


@pytest.fixture(
    params=[
        "22.05.8",
        pytest.param("24.11.5", marks=pytest.mark.long),  # tests/slurm/ reads all three
        "26.05.5",
    ]
)
def folder(request, shared) -> Path:
    return shared(f"slurm/fixtures/{request.param}")


class FakeSlurm:
    """Commands of a small Slurm in a folder that is the first of PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name in ("squeue", "scontrol", "sinfo"):
            script = folder / name
            script.write_text(f"#!{sys.executable} -IS\n{FAKE.read_text()}")
            script.chmod(0o755)
        self.env = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
        nodes = [
            {
                "name": f"n{number}",
                "cpus": 8,
                "real_memory": 8000,
                "alloc_cpus": 0,
                "alloc_memory": 0,
                "threads": 1,
                "state": ["IDLE"],
                "partitions": ["batch"],
                "features": [],
            }
            for number in range(1, 9)
        ]
        self.file = folder / "state.json"
        self.file.write_text(json.dumps({"version": 42, "nodes": nodes, "jobs": []}))

    @property
    def state(self) -> dict:
        return json.loads(self.file.read_text())

    def change(self, **fields) -> None:
        with changing(self.file) as state:
            state.update(fields)

    def add(self, job_id: int, nodes: int, **fields) -> None:
        """Add a job of whole nodes."""
        usual = {
            "job_id": job_id,
            "job_state": ["PENDING"],
            "partition": "batch",
            "user_name": "ada",
            "priority": 100 - job_id,
            "node_count": nodes,
            "max_nodes": nodes,
            "tasks": nodes,
            "cpus_per_task": 8,
            "time_limit": 10,
            "required_nodes": "",
            "comment": "",
        }
        with changing(self.file) as state:
            state["jobs"].append(usual | fields)

    def job(self, job_id: int) -> dict:
        return next(job for job in self.state["jobs"] if job["job_id"] == job_id)

    def edit(self, job_id: int, **fields) -> None:
        with changing(self.file) as state:
            next(job for job in state["jobs"] if job["job_id"] == job_id).update(fields)

    def use(self, *names: str) -> None:
        """Let other jobs run on some nodes."""
        nodes = self.state["nodes"]
        for node in nodes:
            busy = {"alloc_cpus": 8, "state": ["ALLOCATED"]}
            node |= busy if node["name"] in names else {}
        self.change(nodes=nodes)

    @property
    def calls(self) -> list[list[str]]:
        """The commands that were run."""
        return [json.loads(line) for line in (self.folder / "calls.jsonl").open()]

    @property
    def updates(self) -> list[list[str]]:
        """The updates that were run."""
        return [call for call in self.calls if call[1] == "update"]


@pytest.fixture
def slurm(tmp_path) -> FakeSlurm:
    return FakeSlurm(tmp_path / "bin")


def started(*nodes: int) -> dict:
    """Return the fields of a job that runs on some nodes."""
    has = {"sockets": {"0": {"cores": [*range(8)]}}, "memory_allocated": 0}
    allocated = [{"nodename": f"n{node}", **has} for node in nodes]
    return {"job_state": ["RUNNING"], "job_resources": {"allocated_nodes": allocated}}


def nodes_of(job: dict) -> set[str]:
    return set(hosts_of(job["required_nodes"]))


class TestCaptured:
    def test_a_plan_is_printed_beside_that_of_slurm(self, optsched, folder):
        done = optsched("slurm", "plan", "--from", folder, "--time-limit", 1)
        assert done.returncode == 0, done.stderr
        for words in ("nodes by Slurm", "leaf switches", "blocked", "it is held", "verified"):
            assert words in done.stdout
        lines = [line for line in done.stdout.splitlines() if line.startswith("scontrol")]
        assert lines
        for line in lines:
            command, verb, job, nodes, comment = shlex.split(line)
            assert (command, verb) == ("scontrol", "update")
            assert job.startswith("JobId=")
            name, _, listed = nodes.partition("=")
            assert name in ("ReqNodeList", "ExcNodeList")
            assert hosts_of(listed)
            assert comment.startswith("Comment=optsched:")

    def test_a_plan_as_json_states_the_same_as_its_lines(self, optsched, folder):
        done = optsched("slurm", "plan", "--from", folder, "--time-limit", 1, "--json")
        found = json.loads(done.stdout)
        placed = {job["job"]: set(job["nodes"]) for job in found["jobs"] if job["nodes"]}
        assert found["totals"]["plan"]["jobs"] == len(placed)
        assert found["answer"]["bound"] >= found["answer"]["objective"]
        pinned = {}
        for line in found["lines"]:
            fields = dict(word.split("=", 1) for word in shlex.split(line)[2:])
            nodes = placed[fields["JobId"]]
            pinned[fields["JobId"]] = nodes
            if "ReqNodeList" in fields:
                assert {*hosts_of(fields["ReqNodeList"])} == nodes
            else:
                assert nodes.isdisjoint(hosts_of(fields["ExcNodeList"]))
        assert placed.keys() - pinned.keys() == found["not_pinned"].keys()
        assert not placed.keys() & (found["blocked"].keys() | found["left"].keys())

    @pytest.mark.parametrize("command", [("plan", "--time-limit", 1), ("explain", 61)])
    def test_what_three_commands_do_not_say_is_said(self, optsched, shared, tmp_path, command):
        folder = shared("slurm/fixtures/26.05.5")
        for name in ("squeue.json.gz", "nodes.json.gz", "partitions.txt"):
            shutil.copy(folder / name, tmp_path)
        done = optsched("slurm", *command, "--from", tmp_path)
        assert done.returncode == 0, done.stderr
        for file in ("topology.txt", "config.txt", "licenses.json", "reservations.json"):
            assert f"optsched: no {file}: " in done.stderr
        assert "not one of the site" not in done.stdout

    def test_a_snapshot_of_it_can_be_solved(self, optsched, folder, tmp_path):
        file = tmp_path / "now.json"
        done = optsched("slurm", "snapshot", "--from", folder, "-o", file)
        assert done.returncode == 0, done.stderr
        assert json.loads(file.read_text())["origin"]["scheduler"] == "Slurm"
        solved = optsched("solve", file, "--solver", "first-fit", "--json")
        assert json.loads(solved.stdout)["verified"]

    @pytest.mark.parametrize("weigh", ["rank", "nodes", "cores", "gpus"])
    def test_other_weights_are_taken(self, optsched, shared, weigh):
        folder = shared("slurm/fixtures/26.05.5")
        given = ("--from", folder, "--weigh", weigh, "--time-limit", 1)
        done = optsched("slurm", "plan", *given)
        assert done.returncode == 0, done.stderr

    def test_gpus_are_counted(self, optsched, shared):
        folder = shared("slurm/fixtures/24.11.5")
        given = ("--from", folder, "--weigh", "gpus", "--time-limit", 1, "--json")
        found = json.loads(optsched("slurm", "plan", *given).stdout)
        queue = read_queue(folder)
        gpus = 0
        for job in found["jobs"]:
            if job["nodes"]:
                asked = pending_job(queue, job["job"])
                gpus += len(job["nodes"]) * asked.per_node.get("gpu", 0)
                gpus += asked.tasks * asked.per_task.get("gpu", 0) + asked.per_job.get("gpu", 0)
        assert found["totals"]["plan"]["weight"] == gpus > 0

    def test_nothing_is_reset_where_nothing_is_pinned(self, optsched, folder):
        done = optsched("slurm", "reset", "--from", folder)
        assert (done.returncode, done.stdout) == (0, "")
        assert "0 updates" in done.stderr


class TestLive:
    @pytest.mark.parametrize("version", [38, 42, 45])
    def test_versions_are_asked_for_what_they_can_write(self, optsched, slurm, tmp_path, version):
        slurm.add(1, 2)
        slurm.change(version=version)
        kept = tmp_path / "kept"
        done = optsched(
            *("slurm", "snapshot", "--keep", kept, "-o", tmp_path / "now.json"), env=slurm.env
        )
        assert done.returncode == 0, done.stderr
        meta = json.loads((kept / "squeue.json").read_text())["meta"]["plugin"]
        assert meta == (
            {"type": "openapi/v0.0.38"}
            if version == 38
            else {"data_parser": f"data_parser/v0.0.{min(version, 44)}"}
        )
        assert (kept / ("sinfo.json" if version == 38 else "nodes.json")).exists()
        again = optsched("slurm", "plan", "--from", kept, "--json")
        assert [job["job"] for job in json.loads(again.stdout)["jobs"]] == ["1"]

    def test_apply_prints_its_lines_and_runs_none(self, optsched, slurm):
        slurm.add(1, 2)
        before = slurm.state
        done = optsched("slurm", "apply", env=slurm.env)
        assert done.stdout.startswith("scontrol update JobId=1 ")
        assert "dry run" in done.stderr
        assert slurm.state == before
        assert slurm.updates == []

    def test_pins_go_where_fewest_switches_are_crossed_and_reset_takes_them_back(
        self, optsched, slurm
    ):
        slurm.use("n4")
        slurm.add(1, 3, comment="mine")
        slurm.add(2, 4)
        done = optsched("slurm", "apply", "--yes", env=slurm.env)
        assert done.returncode == 0, done.stderr
        assert nodes_of(slurm.job(1)) == {"n1", "n2", "n3"}
        assert nodes_of(slurm.job(2)) == {"n5", "n6", "n7", "n8"}
        assert slurm.job(1)["comment"].startswith("optsched:")
        assert slurm.job(1)["comment"].endswith(" mine")
        printed = [shlex.split(line) for line in done.stdout.splitlines()]
        assert printed == slurm.updates
        for words in slurm.updates:
            names = [word.partition("=")[0] for word in words[2:]]
            assert names == ["JobId", "ReqNodeList", "Comment"]

        again = optsched("slurm", "apply", "--yes", env=slurm.env)
        assert (again.stdout, len(slurm.updates)) == ("", 2)

        done = optsched("slurm", "reset", env=slurm.env)
        assert len(done.stdout.splitlines()) == 2
        assert slurm.job(1)["required_nodes"]
        optsched("slurm", "reset", "--yes", env=slurm.env)
        assert [(job["required_nodes"], job["comment"]) for job in slurm.state["jobs"]] == [
            ("", "mine"),
            ("", ""),
        ]

    @pytest.mark.parametrize("solver", ["first-fit", "tree-best-fit", "switch-groups"])
    def test_other_solvers_plan_again_over_pins(self, optsched, slurm, solver):
        slurm.add(1, 3)
        for _ in range(2):
            done = optsched("slurm", "apply", "--yes", "--solver", solver, env=slurm.env)
            assert done.returncode == 0, done.stderr
            assert len(nodes_of(slurm.job(1))) == 3
        assert len(slurm.updates) == 1

    def test_totals_stand_beside_those_of_slurm(self, optsched, slurm):
        later = int(time.time()) + 7200
        nodes = {"required_switches": 0, "scheduled_nodes": "n[4-5]"}
        slurm.add(1, 2, **nodes, start_time=1)
        slurm.add(2, 4, **nodes | {"scheduled_nodes": "n[5-8]"}, start_time=later)
        done = optsched("slurm", "plan", env=slurm.env)
        assert "jobs           2; by Slurm 1 now" in done.stdout
        assert "weight         197; by Slurm 99 now" in done.stdout
        assert "leaf switches  2; by Slurm 2 now" in done.stdout
        rows = [line.split() for line in done.stdout.splitlines()[1:3]]
        assert [row[-2:] for row in rows] == [["n[4-5]", "now"], ["2", "h"]]
        found = json.loads(optsched("slurm", "plan", "--json", env=slurm.env).stdout)
        assert found["jobs"][0]["slurm_nodes"] == ["n4", "n5"]
        assert found["jobs"][1]["slurm_start"] == later

    def test_a_plan_ignores_earlier_pins_and_replaces_them_when_a_node_fails(self, optsched, slurm):
        slurm.add(1, 4, comment="mine")
        optsched("slurm", "apply", "--yes", env=slurm.env)
        pinned = nodes_of(slurm.job(1))
        nodes = slurm.state["nodes"]
        for node in nodes:
            node |= {"state": ["DOWN"]} if node["name"] == min(pinned) else {}
        slurm.change(nodes=nodes)
        optsched("slurm", "apply", "--yes", env=slurm.env)
        assert len(nodes_of(slurm.job(1))) == 4
        assert min(pinned) not in nodes_of(slurm.job(1))
        assert slurm.job(1)["comment"].count("optsched:") == 1

        slurm.use(*(f"n{number}" for number in range(1, 9)))
        optsched("slurm", "apply", "--yes", env=slurm.env)
        assert (slurm.job(1)["required_nodes"], slurm.job(1)["comment"]) == ("", "mine")

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"job_state": ["RUNNING"]}, "it is RUNNING by now"),
            ({"job_state": ["gone"]}, "it is no longer in the queue"),
            ({"comment": "new"}, "its comment changed"),
            ({"hold": True}, "its held changed"),
            *(
                pytest.param(fields, said, marks=pytest.mark.long)
                for fields, said in (
                    ({"job_state": ["CANCELLED"]}, "it is CANCELLED by now"),
                    ({"node_count": 3, "max_nodes": 3}, "its least nodes changed"),
                    ({"required_nodes": "n7"}, "its required changed"),
                )
            ),
        ],
    )
    def test_a_job_that_changed_meanwhile_is_left_alone(self, optsched, slurm, fields, said):
        slurm.add(1, 2)
        slurm.add(2, 2)
        change = {"after": "scontrol show config", "job": 1, "fields": fields}
        slurm.change(changes=[change])
        done = optsched("slurm", "apply", "--yes", env=slurm.env)
        assert done.returncode == 0
        assert f"job 1 is skipped: {said}" in done.stderr
        assert "updated 1 of 2 jobs" in done.stderr
        assert [words[2] for words in slurm.updates] == ["JobId=2"]
        assert nodes_of(slurm.job(2))

    def test_a_changed_priority_is_no_change_of_the_request(self, optsched, slurm):
        slurm.add(1, 2)
        change = {"after": "scontrol show config", "job": 1, "fields": {"priority": 7}}
        slurm.change(changes=[change])
        optsched("slurm", "apply", "--yes", env=slurm.env)
        assert nodes_of(slurm.job(1))

    def test_a_job_that_starts_between_the_look_and_the_update_is_said(self, optsched, slurm):
        slurm.add(1, 2)
        slurm.add(2, 2)
        started = {"after": "scontrol update JobId=1", "job": 2}
        slurm.change(changes=[started | {"fields": {"job_state": ["RUNNING"]}}])
        done = optsched("slurm", "apply", "--yes", env=slurm.env)
        assert "job 2 is skipped" in done.stderr
        assert slurm.job(2)["comment"] == ""

    def test_nodes_that_others_take_meanwhile_are_no_pins_and_earlier_ones_go(
        self, optsched, slurm
    ):
        slurm.add(1, 2, comment="mine")
        slurm.add(3, 8)
        optsched("slurm", "apply", "--yes", env=slurm.env)
        slurm.add(2, 2)
        start = {"after": "scontrol show config", "job": 3, "fields": started(1, 2, 3, 4)}
        slurm.change(changes=[start])
        done = optsched("slurm", "apply", "--yes", env=slurm.env)
        assert "job 2 is skipped: others have started on its nodes" in done.stderr
        assert "others run on nodes of job 1: its pin is cleared" in done.stderr
        assert [job["comment"] for job in slurm.state["jobs"]] == ["mine", "", ""]
        assert {job["required_nodes"] for job in slurm.state["jobs"]} == {""}

    def test_a_pin_is_cleared_once_its_job_is_requeued(self, optsched, slurm):
        slurm.add(1, 2, comment="mine")
        optsched("slurm", "apply", "--yes", env=slurm.env)
        pin = slurm.job(1)
        slurm.edit(1, job_state=["RUNNING"])
        done = optsched("slurm", "reset", "--yes", env=slurm.env)
        assert "updated 0 of 0 jobs" in done.stderr
        assert "1 job (1) started on a pin" in done.stderr
        assert slurm.job(1)["comment"] == pin["comment"]
        slurm.edit(1, job_state=["PENDING", "REQUEUED"])
        done = optsched("slurm", "reset", "--yes", env=slurm.env)
        assert "started on a pin" not in done.stderr
        assert slurm.updates[-1][2:] == ["JobId=1", "ReqNodeList=", "Comment=mine"]

    def test_nodes_that_a_user_set_since_are_not_cleared(self, optsched, slurm):
        slurm.add(1, 2, comment="mine")
        optsched("slurm", "apply", "--yes", env=slurm.env)
        slurm.edit(1, required_nodes="n[1,8]")
        optsched("slurm", "reset", "--yes", env=slurm.env)
        assert (slurm.job(1)["required_nodes"], slurm.job(1)["comment"]) == ("n[1,8]", "mine")

    def test_tasks_of_an_array_are_pinned_one_by_one(self, optsched, slurm):
        slurm.add(7, 4, array_job_id=7, array_task_string="0,1,2", comment="many")
        optsched("slurm", "apply", "--yes", env=slurm.env)
        assert [words[2] for words in slurm.updates] == ["JobId=7_0", "JobId=7_1"]
        placed = [nodes_of(job) for job in slurm.state["jobs"] if job["required_nodes"]]
        assert sorted(map(len, placed)) == [4, 4]
        assert not placed[0] & placed[1]
        again = optsched("slurm", "apply", "--yes", env=slurm.env)
        assert again.stdout == ""
        optsched("slurm", "reset", "--yes", env=slurm.env)
        assert {job["comment"] for job in slurm.state["jobs"]} == {"many"}
        assert {job["required_nodes"] for job in slurm.state["jobs"]} == {""}

    @pytest.mark.parametrize("most", [0, 3])
    def test_jobs_that_may_have_more_nodes_exclude_all_others(self, optsched, slurm, most):
        slurm.add(1, 2, max_nodes=most, comment="mine")
        optsched("slurm", "apply", "--yes", env=slurm.env)
        assert slurm.job(1)["required_nodes"] == ""
        assert slurm.job(1)["excluded_nodes"] == "n[3-8]"
        again = optsched("slurm", "apply", "--yes", env=slurm.env)
        assert again.stdout == ""
        optsched("slurm", "reset", "--yes", env=slurm.env)
        assert (slurm.job(1)["excluded_nodes"], slurm.job(1)["comment"]) == ("", "mine")

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"max_nodes": 3, "excluded_nodes": "n8"}, "its number of nodes is not fixed, and"),
            ({"max_nodes": 0, "excluded_nodes": "n8"}, "its number of nodes is not fixed, and"),
            ({"required_nodes": "n[1-2]"}, "it requires these nodes itself"),
            ({"prefer": "icelake"}, "it prefers icelake"),
            ({"comment": "x" * 1020}, "its comment has no room for a mark"),
            ({"comment": "a\0b"}, "its comment cannot be set back"),
        ],
    )
    def test_jobs_that_cannot_be_pinned_are_said(self, optsched, slurm, fields, said):
        slurm.add(1, 2, **fields)
        done = optsched("slurm", "plan", env=slurm.env)
        assert f"1 job: {said}" in done.stdout
        assert "scontrol" not in done.stdout

    def test_hostile_names_and_comments_stay_harmless(self, optsched, slurm, tmp_path):
        comment = "$(touch pwned) `touch pwned` ' \" \\ \x1b[2J\nJobId=2 \u202e\u00e9"
        slurm.add(1, 2, comment=comment, user_name="a\x1b[2Jb", name="x\nJobState=RUNNING")
        done = optsched("slurm", "plan", env=slurm.env)
        assert done.returncode == 0, done.stderr
        assert all(sign == "\n" or sign.isprintable() for sign in done.stdout)
        [line] = [line for line in done.stdout.splitlines() if line.startswith("scontrol")]
        if bash := shutil.which("bash"):
            ran = subprocess.run([bash, "-c", line], env=slurm.env, cwd=tmp_path, check=False)
            assert ran.returncode == 0
            assert slurm.job(1)["comment"].endswith(f" {comment}")
            optsched("slurm", "reset", "--yes", env=slurm.env)
        optsched("slurm", "apply", "--yes", env=slurm.env, cwd=tmp_path)
        assert slurm.job(1)["comment"].endswith(f" {comment}")
        optsched("slurm", "reset", "--yes", env=slurm.env, cwd=tmp_path)
        assert slurm.job(1)["comment"] == comment
        assert not (tmp_path / "pwned").exists()

    def test_variables_of_the_user_filter_nothing(self, optsched, slurm):
        slurm.add(1, 2)
        for name in ("squeue", "scontrol"):
            script = slurm.folder / name
            text = script.read_text().replace(
                "def main() -> int:",
                "import os\nassert not {'SQUEUE_USERS', 'SLURM_TIME_FORMAT'} & {*os.environ}\n"
                "assert os.environ['SLURM_BITSTR_LEN'] == '0'\n\ndef main() -> int:",
            )
            script.write_text(text)
        filters = {"SQUEUE_USERS": "bob", "SLURM_TIME_FORMAT": "relative"}
        done = optsched("slurm", "plan", env=slurm.env | filters)
        assert done.returncode == 0, done.stderr
        assert "JobId=1" in done.stdout

    def test_nothing_to_place_is_no_error(self, optsched, slurm):
        done = optsched("slurm", "plan", env=slurm.env)
        assert done.returncode == 0, done.stderr
        assert "not placed     0" in done.stdout

    def test_priorities_that_tell_the_order_alone_are_said(self, optsched, slurm):
        slurm.add(1, 2, priority=2**32 - 2**16)
        assert "weighed by rank" in optsched("slurm", "plan", env=slurm.env).stderr
        done = optsched("slurm", "plan", "--order", "strict", env=slurm.env)
        assert (done.returncode, "weighed by rank" in done.stderr) == (0, False)

    def test_jobs_are_planned_on_nodes_of_low_weight(self, optsched, slurm):
        heavy = [node | {"weight": 9 - n} for n, node in enumerate(slurm.state["nodes"])]
        slurm.change(nodes=heavy)
        slurm.add(1, 2)
        [job] = json.loads(optsched("slurm", "plan", "--json", env=slurm.env).stdout)["jobs"]
        assert job["nodes"] == ["n7", "n8"]


class TestWatch:
    def test_cycles_end_with_all_pins_taken_back(self, optsched, slurm):
        slurm.add(1, 2, comment="mine")
        done = optsched(*("slurm", "watch", "--every", 0.2, "--cycles", 2, "--yes"), env=slurm.env)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("of 1 job start now") == 2
        assert [len(words) for words in slurm.updates] == [5, 5]  # pinned once, cleared once
        assert (slurm.job(1)["required_nodes"], slurm.job(1)["comment"]) == ("", "mine")

    def test_pins_that_slurm_does_not_meet_are_cleared_for_a_cycle(self, optsched, slurm):
        slurm.add(1, 2)
        done = optsched(*("slurm", "watch", "--every", 0.1, "--cycles", 4, "--yes"), env=slurm.env)
        assert done.stderr.count("job 1 did not start in 2 cycles: its pin is cleared") == 1
        pinned = [not words[3].endswith("=") for words in slurm.updates]
        assert pinned == [True, False, True, False]  # first cycle, third, fourth, and the end

    def test_jobs_that_run_on_their_pins_are_counted(self, optsched, slurm):
        slurm.add(1, 2)
        slurm.add(2, 2)
        optsched("slurm", "apply", "--yes", env=slurm.env)
        slurm.edit(1, job_state=["RUNNING"])
        done = optsched(*("slurm", "watch", "--every", 0.1, "--cycles", 1, "--yes"), env=slurm.env)
        assert "of 1 job start now: 1; run on their pins: 1" in done.stdout
        assert "1 job (1) started on a pin" in done.stderr

    def test_without_yes_nothing_is_updated(self, optsched, slurm):
        slurm.add(1, 2)
        done = optsched("slurm", "watch", "--every", 0.1, "--cycles", 2, env=slurm.env)
        assert done.returncode == 0
        assert slurm.updates == []
        notes = [line for line in done.stderr.splitlines() if "dry run" not in line]
        assert notes
        assert len(notes) == len({*notes})  # not again in the second cycle

    def test_a_slurm_that_stops_to_answer_is_said_and_asked_again(self, optsched, slurm):
        slurm.add(1, 2)
        slurm.change(calls_left=12)  # more than of one cycle, less than of two
        done = optsched("slurm", "watch", "--every", 0.1, "--cycles", 3, env=slurm.env)
        assert done.returncode == 1
        assert "of 1 job start now" in done.stdout
        assert 1 <= done.stderr.count("Unable to contact slurm controller") <= 2

    def test_a_slurm_that_never_answers_ends_the_watch(self, optsched, slurm):
        slurm.change(down=True)
        done = optsched("slurm", "watch", "--every", 60, env=slurm.env)
        assert done.returncode == 1
        assert done.stderr.count("Unable to contact slurm controller") == 1

    @pytest.mark.parametrize(
        "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
    )
    def test_an_interrupt_takes_all_pins_back(self, slurm, number, interruptible):
        slurm.add(1, 2, comment="mine")
        with self.watching(slurm) as watching:
            self.wait(watching, lambda: slurm.job(1)["required_nodes"])
            time.sleep(0.2)
            watching.send_signal(number)
            _, said = watching.communicate(timeout=60)
        assert watching.returncode == 0, said
        assert "interrupted" in said
        assert (slurm.job(1)["required_nodes"], slurm.job(1)["comment"]) == ("", "mine")

    @pytest.mark.long
    def test_pins_whose_nodes_others_take_go_before_the_next_plan(self, slurm, interruptible):
        slurm.add(1, 2, comment="mine")
        slurm.add(2, 8)
        with self.watching(slurm) as watching:
            self.wait(watching, lambda: slurm.job(1)["required_nodes"])
            self.wait(watching, lambda: slurm.calls[-1][1] != "update")  # the look after it
            slurm.edit(2, **started(1, 2))
            self.wait(watching, lambda: slurm.job(1)["comment"] == "mine")
            watching.send_signal(signal.SIGINT)
            _, said = watching.communicate(timeout=60)
        assert "others run on nodes of job 1: its pin is cleared" in said

    def watching(self, slurm: FakeSlurm) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "optsched", "slurm", "watch", "--every", "60", "--yes"]
        return subprocess.Popen(
            words, env=slurm.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def wait(self, watching: subprocess.Popen[str], reached: Callable[[], object]) -> None:
        end = time.monotonic() + 60
        while not reached():
            assert watching.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)


class TestMistakes:
    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            (["plan", "--from", "absent"], 1, "absent"),
            (["plan", "--from", "bin/state.json"], 1, "is a file; expected a folder"),
            (["reset", "--from", "bin/state.json"], 1, "is a file; expected a folder"),
            (["snapshot", "-o", "s.txt"], 1, "s.txt: unknown suffix; expected .json or .json.gz"),
            (["plan", "--weigh", "bogus"], 1, "--weigh: 'bogus'; expected one of priority, rank"),
            (["plan", "--time-limit", "0"], 1, "--time-limit: 0.0 is not a time limit"),
            (["plan", "--solver", "cpsat"], 1, "did you mean cp-sat"),
            (["apply", "--from", ".", "--yes"], 1, "--yes: cannot be combined with --from"),
            (["reset", "--from", ".", "--yes"], 1, "--yes: cannot be combined with --from"),
            (["snapshot", "--from", ".", "--keep", "k", "-o", "s.json"], 1, "--keep"),
            (["snapshot"], 2, "slurm snapshot needs -o FILE"),
            (["watch", "--every", "0"], 1, "--every: 0; expected"),
            (["watch", "--cycles", "0"], 1, "--cycles: 0; expected"),
            (["plann"], 2, "plann"),
        ],
    )
    def test_wrong_usage_gets_one_line(self, optsched, slurm, tmp_path, words, code, said):
        slurm.add(1, 2)
        done = optsched("slurm", *words, env=slurm.env, cwd=tmp_path)
        assert done.returncode == code
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert done.stdout == ""

    @pytest.mark.parametrize("name", ["squeue.json", "link.json", "nodes.json.gz"])
    def test_no_captured_file_is_overwritten(self, optsched, slurm, tmp_path, name):
        slurm.add(1, 2)
        kept = tmp_path / "kept"
        done = optsched(
            *("slurm", "snapshot", "--keep", kept, "-o", tmp_path / "s.json"), env=slurm.env
        )
        assert done.returncode == 0, done.stderr
        packed = kept / "nodes.json.gz"
        packed.write_bytes(gzip.compress((kept / "nodes.json").read_bytes()))
        (kept / "nodes.json").unlink()
        (tmp_path / "link.json").symlink_to(kept / "squeue.json")
        output = (tmp_path if name == "link.json" else kept) / name
        before = output.read_bytes()
        done = optsched("slurm", "snapshot", "--from", kept, "-o", output)
        assert (done.returncode, done.stdout) == (1, "")
        assert (
            done.stderr == f"optsched: {output}: is the input; expected another file to write to\n"
        )
        assert output.read_bytes() == before

    def test_what_is_kept_is_not_overwritten(self, optsched, slurm, tmp_path):
        slurm.add(1, 2)
        kept = tmp_path / "kept"
        kept.mkdir()
        given = ("snapshot", "--keep", kept, "-o", kept / "squeue.json")
        done = optsched("slurm", *given, env=slurm.env)
        assert done.returncode == 1
        assert "is the input" in done.stderr
        assert "jobs" in json.loads((kept / "squeue.json").read_text())

    @pytest.mark.parametrize(
        "words", [["plan"], ["apply"], ["reset"], ["snapshot", "-o", "s.json"]]
    )
    def test_a_machine_without_slurm_is_told_of_from(self, optsched, tmp_path, words):
        env = os.environ | {"PATH": str(tmp_path)}
        done = optsched("slurm", *words, env=env, cwd=tmp_path)
        assert done.returncode == 1
        assert "squeue is not installed" in done.stderr
        assert "--from DIR" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1

    def test_a_slurm_that_does_not_answer_is_quoted(self, optsched, slurm):
        slurm.change(down=True)
        done = optsched("slurm", "plan", env=slurm.env)
        assert done.returncode == 1
        assert "Unable to contact slurm controller" in done.stderr
        assert "--from DIR" in done.stderr

    def test_no_plan_within_the_time_limit_exits_3(self, optsched, slurm):
        for number in range(1, 40):
            slurm.add(number, 2)
        given = ("--solver", "cp-sat", "--time-limit", 1e-9)
        done = optsched("slurm", "plan", *given, env=slurm.env)
        assert done.returncode == 3
        assert "no plan" in done.stderr
        assert done.stdout == ""
