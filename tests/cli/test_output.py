"""Where commands write to: it must be said, and is never what they read."""

from __future__ import annotations

import gzip
import os
import shlex
import subprocess
import sys

import pytest


@pytest.mark.parametrize("link", ["", "symlink_to", "hardlink_to"])
@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz"])
@pytest.mark.parametrize("verb", ["clean", "convert"])
def test_a_trace_is_not_overwritten_by_itself(verb, name, link, optsched, sample, tmp_path):
    data = sample.read_bytes()
    log = tmp_path / name
    log.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    before = log.read_bytes()
    output = log
    if link:
        output = tmp_path / f"link-to-{name}"
        getattr(output, link)(log)
    done = optsched("trace", verb, log, "-o", output)
    assert done.returncode == 1
    assert done.stderr == (f"optsched: {output}: is the input; expected another file to write to\n")
    assert log.read_bytes() == before


@pytest.mark.parametrize("command", ["solve", "snapshot export", "snapshot convert"])
def test_a_snapshot_is_not_overwritten_either(command, optsched, example, tmp_path):
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_bytes(example.read_bytes())
    done = optsched(*command.split(), snapshot, "-o", snapshot)
    assert done.returncode == 1
    assert "is the input" in done.stderr
    assert snapshot.read_bytes() == example.read_bytes()


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("simulate X", "simulate needs -o DIR, the folder"),
        ("compare X", "compare needs -o DIR, the folder"),
        ("sweep X", "sweep needs -o DIR, the folder"),
        ("trace clean X", "trace clean needs -o FILE, the file"),
        ("snapshot export X", "snapshot export needs -o FILE, the file"),
    ],
)
def test_a_forgotten_output_is_asked_for(command, what, optsched):
    done = optsched(*command.split())
    assert done.returncode == 2
    assert done.stderr == f"optsched: {what} to write\n"


RAW = """; MaxProcs: 4
1 0 0 -1 1 5 -1 1 5 -1 1 1 1 1 1 1 -1 -1
2 0 0 9 1 5 -1 1 5 -1 1 1 1 1 1 1 -1 -1
"""


@pytest.mark.parametrize("command", [["snapshot", "check"], ["compare", "-o", "out"], ["report"]])
def test_a_name_may_begin_with_a_bracket(optsched, command, tmp_path):
    done = optsched(*command, "[red].json", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("optsched: [red].json: ")


def test_a_raw_log_that_batsim_cannot_hold_comes_with_the_command_that_cleans_it(
    optsched, tmp_path
):
    log, output = tmp_path / "raw log.swf", tmp_path / "workload.json"
    log.write_text(RAW)
    done = optsched("trace", "convert", log, "-o", output)
    assert done.returncode == 1
    assert done.stderr.startswith(f"optsched: {log}: 1 jobs without")
    assert len(done.stderr.splitlines()) == 1
    told = shlex.split(done.stderr.partition("expected a cleaned trace: ")[2])
    assert optsched(*told[1:]).returncode == 0
    assert output.exists()


def test_what_batsim_has_no_place_for_is_said(optsched, sample, tmp_path):
    done = optsched("trace", "convert", sample, "-o", tmp_path / "workload.json")
    assert done.returncode == 0
    left_out = "11 header lines and 3 columns (requested_processors, status, user)"
    said, undated = done.stderr.splitlines()
    assert said == f"optsched: not written, a Batsim workload has no place for them: {left_out}"
    assert "(UnixStartTime) is not written, so reservations of a site do not hold" in undated
    again = optsched("trace", "convert", tmp_path / "workload.json", "-o", tmp_path / "copy.json")
    assert (again.returncode, again.stderr) == (0, "")


def test_an_interrupt_while_python_shuts_down_spoils_nothing():
    """All is written by then; this was a traceback, or death by the signal."""
    late = "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))"
    program = (
        f"import atexit, os, signal; from optsched.cli import main; {late}; main(['--version'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_threads_that_a_solver_left_do_not_keep_the_command_from_ending():
    program = (
        "import threading; from optsched.cli import main; "
        "threading.Thread(target=threading.Event().wait).start(); main(['--version'])"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, check=False, text=True, timeout=60)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert done.stderr == "optsched: threads of a solver are still running\n"


@pytest.mark.parametrize(("reader", "code"), [("reads", 1), ("is gone", 0)])
def test_a_broken_pipe_is_no_error_only_if_the_reader_of_stdout_is_gone(
    reader, code, monkeypatch, capfd
):
    from optsched import cli

    def breaks(_arguments):
        raise BrokenPipeError(32, "Broken pipe", "another/pipe")

    reading, writing = os.pipe()
    if reader == "is gone":
        os.close(reading)
    monkeypatch.setattr(cli, "_run", breaks)
    monkeypatch.setattr("sys.stdout", os.fdopen(writing, "w"))
    assert cli.run(["list"]) == code
    told = "optsched: another/pipe: Broken pipe\n" if code else ""
    assert capfd.readouterr().err == told
