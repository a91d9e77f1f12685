"""``optsched slurm`` on captured clusters, and beside a small Slurm that keeps its state."""

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
from waiting import await_that

from optsched.sites.slurm_notation import hosts_of

from .fake_slurm import changing

FAKE = Path(__file__).with_name("fake_slurm.py")


class FakeSlurm:
    """Commands of a small Slurm in a folder that is the first of PATH."""

    def __init__(self, folder: Path, optsched: Callable) -> None:
        self.folder = folder
        self.optsched = optsched
        folder.mkdir()
        for name in ("squeue", "scontrol", "sinfo", "sprio", "sacctmgr", "sacct"):
            script = folder / name
            script.write_text(f"#!{sys.executable} -IS\n{FAKE.read_text()}")
            script.chmod(0o755)
        self.env = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
        usual = {"cpus": 8, "real_memory": 8000, "alloc_cpus": 0, "alloc_memory": 0, "threads": 1}
        usual |= {"state": ["IDLE"], "partitions": ["batch"], "features": []}
        nodes = [{"name": f"n{number}"} | usual for number in range(1, 9)]
        self.file = folder / "state.json"
        self.file.write_text(json.dumps({"version": 42, "nodes": nodes, "jobs": []}))

    def run(self, *words, code=0, **filters):
        """Run a command of ``optsched slurm``."""
        return self.optsched("slurm", *words, env=self.env | filters, code=code)

    @property
    def state(self) -> dict:
        return json.loads(self.file.read_text())

    def change(self, **fields) -> None:
        with changing(self.file) as state:
            state.update(fields)

    def add(self, job_id: int, nodes: int, **fields) -> None:
        """Add a job of whole nodes."""
        usual = {"job_id": job_id, "job_state": ["PENDING"], "partition": "batch"}
        usual |= {"user_name": "ada", "priority": 100 - job_id, "time_limit": 10}
        usual |= {"node_count": nodes, "max_nodes": nodes, "tasks": nodes, "cpus_per_task": 8}
        usual |= {"required_nodes": "", "comment": ""}
        with changing(self.file) as state:
            state["jobs"].append(usual | fields)

    def later(self, after: str, job_id: int, **fields) -> None:
        """Change a job after a command of Slurm."""
        self.change(changes=[{"after": after, "job": job_id, "fields": fields}])

    def job(self, job_id: int) -> dict:
        return next(job for job in self.state["jobs"] if job["job_id"] == job_id)

    def nodes_of(self, job_id: int) -> set[str]:
        return set(hosts_of(self.job(job_id)["required_nodes"]))

    def marks(self) -> list[tuple[str, str]]:
        """The required nodes and the comment of each job."""
        return [(job["required_nodes"], job["comment"]) for job in self.state["jobs"]]

    def edit(self, job_id: int, **fields) -> None:
        with changing(self.file) as state:
            next(job for job in state["jobs"] if job["job_id"] == job_id).update(fields)

    def edit_nodes(self, names: set[str], **fields) -> None:
        with changing(self.file) as state:
            for node in state["nodes"]:
                node |= fields if node["name"] in names else {}

    @property
    def calls(self) -> list[list[str]]:
        """The commands that were run."""
        return [json.loads(line) for line in (self.folder / "calls.jsonl").open()]

    @property
    def updates(self) -> list[list[str]]:
        """The updates that were run."""
        return [call for call in self.calls if call[1] == "update"]


@pytest.fixture
def slurm(tmp_path, optsched) -> FakeSlurm:
    return FakeSlurm(tmp_path / "bin", optsched)


BUSY = {"alloc_cpus": 8, "state": ["ALLOCATED"]}
"""Fields of a node on which other jobs run."""


def started(*nodes: int) -> dict:
    """Return the fields of a job that runs on some nodes."""
    has = {"sockets": {"0": {"cores": [*range(8)]}}, "memory_allocated": 0}
    allocated = [{"nodename": f"n{node}", **has} for node in nodes]
    return {"job_state": ["RUNNING"], "job_resources": {"allocated_nodes": allocated}}


@pytest.mark.parametrize("version", ["22.05.8", "26.05.5"])
def test_a_plan_is_printed_beside_that_of_slurm_and_its_lines_pin_its_jobs(
    optsched, shared, version
):
    folder = shared(f"slurm/fixtures/{version}")
    shown = optsched("slurm plan --time-limit 1 --from", folder).out
    for words in ("nodes by Slurm", "leaf switches", "blocked", "it is held", "verified"):
        assert words in shown
    found = json.loads(optsched("slurm plan --time-limit 1 --json --from", folder).out)
    placed = {job["job"]: set(job["nodes"]) for job in found["jobs"] if job["nodes"]}
    assert found["totals"]["plan"]["jobs"] == len(placed)
    assert found["answer"]["bound"] >= found["answer"]["objective"]
    pinned = set()
    for line in found["lines"]:
        command, verb, *settings = shlex.split(line)
        assert (command, verb) == ("scontrol", "update")
        job, (name, listed), comment = (word.split("=", 1) for word in settings)
        assert (job[0], comment[0], comment[1][:9]) == ("JobId", "Comment", "optsched:")
        pinned.add(job[1])
        if name == "ReqNodeList":
            assert {*hosts_of(listed)} == placed[job[1]]
        else:
            assert name == "ExcNodeList"
            assert placed[job[1]].isdisjoint(hosts_of(listed))
    assert pinned
    assert placed.keys() - pinned == found["not_pinned"].keys()
    assert not placed.keys() & (found["blocked"].keys() | found["left"].keys())


def test_what_three_commands_do_not_say_is_said(optsched, shared, tmp_path):
    for name in ("squeue.json.gz", "nodes.json.gz", "partitions.txt"):
        shutil.copy(shared("slurm/fixtures/26.05.5") / name, tmp_path)
    done = optsched("slurm plan --time-limit 1 --from", tmp_path)
    either = ("licenses.json or .txt", "reservations.json or .txt")
    for file in ("topology.txt", "config.txt", *either):
        assert f"optsched: no {file}: " in done.err
    assert "not one of the site" not in done.out
    shutil.copy(shared("slurm/fixtures/26.05.5/reservations.txt"), tmp_path)
    site = tmp_path / "site.toml"
    assert "left out of simulations" in optsched("slurm site --from", tmp_path, "-o", site).err
    assert "[[reservations]]" not in site.read_text()


@pytest.mark.parametrize(
    ("version", "asked", "nodes"),
    [
        (38, "openapi/v0.0.38", "sinfo.json"),
        (42, "data_parser/v0.0.42", "nodes.json"),
        (45, "data_parser/v0.0.44", "nodes.json"),
    ],
)
def test_versions_are_asked_for_what_they_can_write(slurm, tmp_path, version, asked, nodes):
    slurm.add(1, 2)
    slurm.change(version=version)
    kept = tmp_path / "kept"
    slurm.run("snapshot --keep", kept, "-o", tmp_path / "now.json")
    plugin = json.loads((kept / "squeue.json").read_text())["meta"]["plugin"]
    assert [*plugin.values()] == [asked]
    assert (kept / nodes).exists()
    again = json.loads(slurm.run("plan --json --from", kept).out)
    assert [job["job"] for job in again["jobs"]] == ["1"]


def test_without_yes_nothing_is_updated(slurm):
    slurm.add(1, 2)
    before = slurm.state
    done = slurm.run("apply")
    assert done.out.startswith("scontrol update JobId=1 ")
    assert "dry run" in done.err
    done = slurm.run("watch --every 0.1 --cycles 2")
    assert (slurm.state, slurm.updates) == (before, [])
    notes = [line for line in done.err.splitlines() if "dry run" not in line]
    assert len(notes) == len({*notes}) > 0  # not again in the second cycle


def test_pins_go_where_fewest_switches_are_crossed_and_reset_takes_them_back(slurm):
    slurm.edit_nodes({"n4"}, **BUSY)
    slurm.add(1, 3, comment="mine")
    slurm.add(2, 4)
    done = slurm.run("apply --yes")
    assert slurm.nodes_of(1) == {"n1", "n2", "n3"}
    assert slurm.nodes_of(2) == {"n5", "n6", "n7", "n8"}
    assert slurm.job(1)["comment"].startswith("optsched:")
    assert slurm.job(1)["comment"].endswith(" mine")
    assert [shlex.split(line) for line in done.out.splitlines()] == slurm.updates
    for words in slurm.updates:
        names = [word.partition("=")[0] for word in words[2:]]
        assert names == ["JobId", "ReqNodeList", "Comment"]

    assert slurm.run("apply --yes").out == ""
    assert len(slurm.run("reset").out.splitlines()) == len(slurm.updates) == 2
    slurm.run("reset --yes")
    assert slurm.marks() == [("", "mine"), ("", "")]


@pytest.mark.parametrize("solver", ["first-fit", "switch-groups"])
def test_other_solvers_plan_again_over_pins(slurm, solver):
    slurm.add(1, 3)
    for _ in range(2):
        slurm.run("apply --yes --solver", solver)
        assert len(slurm.nodes_of(1)) == 3
    assert len(slurm.updates) == 1


def test_totals_stand_beside_those_of_slurm(slurm):
    later = int(time.time()) + 7200
    slurm.add(1, 2, required_switches=0, scheduled_nodes="n[4-5]", start_time=1)
    slurm.add(2, 4, required_switches=0, scheduled_nodes="n[5-8]", start_time=later)
    shown = slurm.run("plan").out
    assert "jobs           2; by Slurm 1 now" in shown
    assert "weight         197; by Slurm 99 now" in shown
    assert "leaf switches  2; by Slurm 2 now" in shown
    assert "weight         6; by Slurm 2 now" in slurm.run("plan --weigh nodes").out
    rows = [line.split() for line in shown.splitlines()[1:3]]
    assert [row[-2:] for row in rows] == [["n[4-5]", "due"], ["2", "h"]]
    one, two = json.loads(slurm.run("plan --json").out)["jobs"]
    assert (one["slurm_nodes"], two["slurm_start"]) == (["n4", "n5"], later)


def test_a_plan_ignores_earlier_pins_and_replaces_them_when_a_node_fails(slurm):
    slurm.add(1, 4, comment="mine")
    slurm.run("apply --yes")
    failed = min(slurm.nodes_of(1))
    slurm.edit_nodes({failed}, state=["DOWN"])
    slurm.run("apply --yes")
    assert len(slurm.nodes_of(1) - {failed}) == 4
    assert slurm.job(1)["comment"].count("optsched:") == 1

    slurm.edit_nodes({node["name"] for node in slurm.state["nodes"]}, **BUSY)
    slurm.run("apply --yes")
    assert slurm.marks() == [("", "mine")]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"job_state": ["RUNNING"]}, "it is RUNNING by now"),
        ({"job_state": ["gone"]}, "it is no longer in the queue"),
        ({"comment": "new"}, "its comment changed"),
        ({"hold": True}, "its held changed"),
        ({"node_count": 3, "max_nodes": 3}, "its least nodes changed"),
        ({"priority": 7}, ""),  # no change of what it asks for
    ],
)
def test_a_job_that_changed_meanwhile_is_left_alone(slurm, fields, said):
    slurm.add(1, 2)
    slurm.add(2, 2)
    slurm.later("scontrol show config", 1, **fields)
    done = slurm.run("apply --yes")
    assert (f"job 1 is skipped: {said}" in done.err) == bool(said)
    updated = ["JobId=2"] if said else ["JobId=1", "JobId=2"]
    assert f"updated {len(updated)} of 2 jobs" in done.err
    assert [words[2] for words in slurm.updates] == updated
    assert slurm.nodes_of(2)


def test_a_job_that_starts_between_the_look_and_the_update_is_said(slurm):
    slurm.add(1, 2)
    slurm.add(2, 2)
    slurm.later("scontrol update JobId=1", 2, job_state=["RUNNING"])
    assert "job 2 is skipped" in slurm.run("apply --yes").err
    assert slurm.job(2)["comment"] == ""


def test_nodes_that_others_take_meanwhile_are_no_pins_and_earlier_ones_go(slurm):
    slurm.add(1, 2, comment="mine")
    slurm.add(3, 8)
    slurm.run("apply --yes")
    slurm.add(2, 2)
    slurm.later("scontrol show config", 3, **started(1, 2, 3, 4))
    done = slurm.run("apply --yes")
    assert "job 2 is skipped: others have started on its nodes" in done.err
    assert "others run on nodes of job 1: its pin is cleared" in done.err
    assert slurm.marks() == [("", "mine"), ("", ""), ("", "")]


def test_a_pin_stays_marked_while_its_job_runs_and_is_cleared_once_it_is_requeued(slurm):
    slurm.add(1, 2, comment="mine")
    slurm.add(2, 2)
    slurm.run("apply --yes")
    pin = slurm.job(1)["comment"]
    slurm.edit(1, job_state=["RUNNING"])
    done = slurm.run("watch --every 0.1 --cycles 1 --yes")
    assert "of 1 job start now: 1; run on their pins: 1" in done.out
    done = slurm.run("reset --yes")
    assert "updated 0 of 0 jobs" in done.err
    assert "1 job (1) started on a pin" in done.err
    assert slurm.job(1)["comment"] == pin
    slurm.edit(1, job_state=["PENDING", "REQUEUED"])
    assert "started on a pin" not in slurm.run("reset --yes").err
    assert slurm.updates[-1][2:] == ["JobId=1", "ReqNodeList=", "Comment=mine"]


def test_nodes_that_a_user_set_since_are_not_cleared(slurm):
    slurm.add(1, 2, comment="mine")
    slurm.run("apply --yes")
    slurm.edit(1, required_nodes="n[1,8]")
    slurm.run("reset --yes")
    assert slurm.marks() == [("n[1,8]", "mine")]


def test_tasks_of_an_array_are_pinned_one_by_one(slurm):
    slurm.add(7, 4, array_job_id=7, array_task_string="0,1,2", comment="many")
    slurm.run("apply --yes")
    assert [words[2] for words in slurm.updates] == ["JobId=7_0", "JobId=7_1"]
    one, two = (set(hosts_of(nodes)) for nodes, _ in slurm.marks() if nodes)
    assert (len(one), len(two), len(one | two)) == (4, 4, 8)
    assert slurm.run("apply --yes").out == ""
    slurm.run("reset --yes")
    assert {*slurm.marks()} == {("", "many")}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"max_nodes": 3, "excluded_nodes": "n8"}, "its number of nodes is not fixed, and"),
        ({"required_nodes": "n[1-2]"}, "it requires these nodes itself"),
        ({"prefer": "icelake"}, "it prefers icelake"),
        ({"comment": "x" * 1020}, "its comment has no room for a mark"),
        ({"comment": "a\0b"}, "its comment cannot be set back"),
    ],
)
def test_jobs_that_cannot_be_pinned_are_said(slurm, fields, said):
    slurm.add(1, 2, **fields)
    shown = slurm.run("plan").out
    assert f"1 job: {said}" in shown
    assert "scontrol" not in shown


def test_hostile_names_and_comments_stay_harmless(slurm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    comment = "$(touch pwned) `touch pwned` ' \" \\ \x1b[2J\nJobId=2 \u202e\u00e9"
    slurm.add(1, 2, comment=comment, user_name="a\x1b[2Jb", name="x\nJobState=RUNNING")
    shown = slurm.run("plan").out
    assert all(sign == "\n" or sign.isprintable() for sign in shown)
    [line] = [line for line in shown.splitlines() if line.startswith("scontrol")]
    if bash := shutil.which("bash"):
        subprocess.run([bash, "-c", line], env=slurm.env, check=True)
        assert slurm.job(1)["comment"].endswith(f" {comment}")
        slurm.run("reset --yes")
    slurm.run("apply --yes")
    assert slurm.job(1)["comment"].endswith(f" {comment}")
    slurm.run("reset --yes")
    assert slurm.job(1)["comment"] == comment
    assert not (tmp_path / "pwned").exists()


def test_variables_of_the_user_filter_nothing(slurm):
    slurm.add(1, 2)
    done = slurm.run("plan", SQUEUE_USERS="bob", SLURM_TIME_FORMAT="relative")
    assert "JobId=1" in done.out


def test_nothing_to_place_is_no_error_and_ranks_stand_in_for_large_priorities(slurm):
    assert "not placed     0" in slurm.run("plan").out
    slurm.add(1, 2, priority=2**32 - 2**16)
    assert "weighed by rank" in slurm.run("plan").err
    assert "weighed by rank" not in slurm.run("plan --order strict").err


def test_jobs_are_planned_on_nodes_of_low_weight(slurm):
    for number in range(1, 9):
        slurm.edit_nodes({f"n{number}"}, weight=10 - number)
    slurm.add(1, 2)
    [job] = json.loads(slurm.run("plan --json").out)["jobs"]
    assert job["nodes"] == ["n7", "n8"]


def test_pins_that_slurm_does_not_meet_are_cleared_for_a_cycle_and_all_at_the_end(slurm):
    slurm.add(1, 2, comment="mine")
    done = slurm.run("watch --every 0.1 --cycles 4 --yes")
    assert done.out.count("of 1 job start now") == 4
    assert done.err.count("job 1 did not start in 2 cycles: its pin is cleared") == 1
    pinned = [not words[3].endswith("=") for words in slurm.updates]
    assert pinned == [True, False, True, False]  # first cycle, third, fourth, and the end
    assert slurm.marks() == [("", "mine")]


def test_a_slurm_that_stops_to_answer_is_said_and_asked_again(slurm):
    slurm.add(1, 2)
    slurm.change(calls_left=12)  # more than of one cycle, less than of two
    done = slurm.run("watch --every 0.1 --cycles 3", code=1)
    assert "of 1 job start now" in done.out
    assert 1 <= done.err.count("Unable to contact slurm controller") <= 2


def test_a_slurm_that_does_not_answer_is_quoted_and_ends_a_watch(slurm):
    slurm.change(down=True)
    for words in ("plan", "watch --every 60"):
        told = slurm.run(words, code=1).err
        assert told.count("Unable to contact slurm controller") == 1
        assert "--from DIR" in told


def watching(slurm: FakeSlurm) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "optsched", "slurm", "watch", "--every", "60", "--yes"]
    return subprocess.Popen(words, env=slurm.env, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_an_interrupt_takes_all_pins_back(slurm, number, interruptible):
    slurm.add(1, 2, comment="mine")
    with watching(slurm) as watch:
        await_that(watch, lambda: slurm.job(1)["required_nodes"])
        time.sleep(0.2)
        watch.send_signal(number)
        _, said = watch.communicate(timeout=60)
    assert watch.returncode == 0, said
    assert "interrupted" in said
    assert slurm.marks() == [("", "mine")]


@pytest.mark.long
def test_pins_whose_nodes_others_take_go_before_the_next_plan(slurm, interruptible):
    slurm.add(1, 2, comment="mine")
    slurm.add(2, 8)
    with watching(slurm) as watch:
        await_that(watch, lambda: slurm.job(1)["required_nodes"])
        await_that(watch, lambda: slurm.calls[-1][1] != "update")  # the look after it
        slurm.edit(2, **started(1, 2))
        await_that(watch, lambda: slurm.job(1)["comment"] == "mine")
        watch.send_signal(signal.SIGINT)
        _, said = watch.communicate(timeout=60)
    assert "others run on nodes of job 1: its pin is cleared" in said


def test_no_captured_file_is_overwritten(optsched, slurm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    slurm.add(1, 2)
    slurm.run("snapshot --keep kept -o s.json")
    nodes = Path("kept/nodes.json")
    nodes.with_name("nodes.json.gz").write_bytes(gzip.compress(nodes.read_bytes()))
    nodes.unlink()
    Path("link.json").symlink_to("kept/squeue.json")
    for name in ("kept/squeue.json", "link.json", "kept/nodes.json.gz"):
        before = Path(name).read_bytes()
        told = optsched("slurm snapshot --from kept -o", name, code=1).err
        assert told == f"optsched: {name}: is the input; expected another file to write to\n"
        assert Path(name).read_bytes() == before
    Path("again").mkdir()
    told = slurm.run("snapshot --keep again -o again/squeue.json", code=1).err
    assert "is the input" in told
    assert "jobs" in json.loads(Path("again/squeue.json").read_text())


@pytest.mark.parametrize("words", ["plan", "apply", "reset", "snapshot -o s.json"])
def test_a_machine_without_slurm_is_told_of_from(optsched, tmp_path, words):
    done = optsched("slurm", words, env={"PATH": str(tmp_path)}, cwd=tmp_path, code=1)
    [told] = done.err.splitlines()
    assert "squeue is not installed" in told
    assert "--from DIR" in told


def test_no_plan_within_the_time_limit_exits_3(slurm):
    for number in range(1, 40):
        slurm.add(number, 2)
    done = slurm.run("plan --solver cp-sat --time-limit 1e-9", code=3)
    assert (done.out, "no plan" in done.err) == ("", True)
