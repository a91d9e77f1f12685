"""Files that are nearly of an expected form are named for what they are."""

import json

import pytest

from optsched.errors import InputError
from optsched.sites.slurm_files import near_miss, printed_lines
from optsched.slurm.queue import read_queue

META = {"meta": {"plugin": {"data_parser": "data_parser/v0.0.42"}}}
JOB = {"job_id": 4, "steps": []}
ERROR = {"description": "No access"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b" \r\n", "is empty"),
        (b"<!DOCTYPE html><html>", "a page of HTML"),
        (b"\xfd7zXZ\0", "compressed with xz"),
        ("JobID|Submit\n".encode("utf-16"), "UTF-16"),
        (b'[{"job_id": 4}]', "a list in JSON"),
        (b'{"job_id": 4}\n{"job_id": 5}\n', "several objects in JSON"),
        (b"JobID    JobName\n-------- -------\n4        a\n", "sacct without -P"),
        (b"JobID Submit Start End\n4 1 2 3\n", "with blanks between them"),
        (b"774|u1|2022-11-01T12:50:00|None|COMPLETED|2\n", "without -n"),
        (b"774        wrap   batch    acc     1 COMPLETED    0:0\n", "without -n"),
        (b"  JOBID PARTITION     NAME     USER ST\n", "the text of squeue"),
        (b"PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n", "the text of sinfo"),
        (b'{"sinfo": []}', "what sinfo or scontrol writes"),
        (b"JobId=4 JobName=a\n", "scontrol show jobs"),
        (b"sacct: error: Problem talking to the database\n", "an error of Slurm: sacct: error"),
    ],
)  # fmt: skip
def test_what_a_file_is(content, said):
    assert said in (near_miss(content) or "")


@pytest.mark.parametrize(
    "content",
    [
        b"JobID|Submit|Start\n4|1|2\n",
        b"JOBID,SUBMIT,RUNTIME\n4,1,2\n",
        b'{"jobs": [], "meta": {}}',
        b"{ id: 1 delay: 0 }\n{ id: 2 delay: 0 }\n",
        b"submit,runtime,processors\n0,10,1\n",
        b"No reservations in the system\n",
    ],
)
def test_what_is_of_a_form_is_no_near_miss(content):
    assert near_miss(content) is None


@pytest.mark.parametrize(
    ("record", "command"),
    [
        ("NodeName=c1 Arch=x86_64\n   CPUAlloc=0 CPUTot=8\n   State=IDLE\n", "nodes"),
        ("PartitionName=a\n   AllowGroups=ALL\n   State=UP\n", "partitions"),
        ("LicenseName=a\n    Total=10 Used=0\n", "licenses"),
    ],
)
def test_records_on_several_lines_are_named(tmp_path, record, command):
    path = tmp_path / "a.txt"
    path.write_text(record + "\n" + record)
    with pytest.raises(InputError, match=rf"line 2: a record on several.*-o show {command}"):
        list(printed_lines(path))


def test_a_comment_with_line_breaks_is_no_record_on_several_lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("NodeName=c1 State=DOWN Reason=see\n   ticket=4 [root]\nNodeName=c2 State=UP\n")
    names = [line.text("nodename") for line in printed_lines(path)]
    assert names == ["c1", "", "c2"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("   JOBID PARTITION NAME\n", "squeue.json: the text of squeue; expected squeue --json"),
        ("<html>", "squeue.json: a page of HTML or XML"),
        (json.dumps([{"job_id": 4}]), "squeue.json: a list in JSON"),
        (json.dumps(META | {"jobs": [JOB]}), "jobs of sacct --json; expected those of squeue"),
        (json.dumps(META | {"jobs": [], "errors": [ERROR]}), "no jobs, and an error of Slurm: No"),
        (json.dumps(META | {"nodes": [{}]}), "jobs: no list, but of nodes; expected jobs"),
    ],
)
def test_what_is_no_queue_is_named(tmp_path, content, said):
    (tmp_path / "squeue.json").write_text(content)
    with pytest.raises(InputError, match=said):
        read_queue(tmp_path / "squeue.json")


def test_a_text_of_jobs_on_several_lines_is_named(tmp_path):
    (tmp_path / "squeue.json").write_text(json.dumps(META | {"jobs": []}).replace("42", "45"))
    (tmp_path / "jobs.txt").write_text("JobId=4 JobName=a\n   UserId=b(1) Priority=1\n")
    with pytest.raises(InputError, match=r"jobs\.txt, line 2: a record on several lines"):
        read_queue(tmp_path)
