"""The commands of Slurm, and their output now as a folder of files."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from optsched.errors import InputError
from optsched.files import FolderKind, write_bytes, write_text

SECONDS = 60.0  # time limit in seconds; a busy controller may let a command wait for a while

FILTERS = (
    *("SQUEUE_", "SINFO_", "SCONTROL_"),
    *("SLURM_TIME_FORMAT", "SLURM_TOPO_LEN", "SLURM_CLUSTERS"),
)
"""Beginnings of variables with which users change what the commands show."""


class Output(NamedTuple):
    """Output of a command."""

    text: bytes
    refusal: str  # why Slurm refused it, in one line; empty if it did not


def run_command(words: Sequence[str]) -> Output:
    """Run a command of Slurm.

    It runs in a session of its own, so that an interrupt on the terminal does not stop it halfway.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith(FILTERS)}
    variables["SLURM_BITSTR_LEN"] = "0"  # otherwise long lists of tasks of an array are cut short
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=SECONDS,
            env=variables,
            start_new_session=True,
        )
    except FileNotFoundError:
        expected = "expected Slurm on this machine, or --from DIR with its captured output"
        raise InputError(f"{words[0]} is not installed; {expected}") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"{words[0]} did not answer within {SECONDS:.0f} s") from None
    if done.returncode == 0:
        return Output(done.stdout, "")
    said = (done.stderr or done.stdout).decode("utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(said) if line.strip()), "")
    return Output(done.stdout, last or f"it ended with exit code {done.returncode}")


JSON_OPTIONS = ("--json=v0.0.44", "--json")
"""Options for JSON, of which the first that the version knows is taken.

Version 45 of the data parser does not say which jobs are exclusive; releases that do not know
version 44 write an older one, of which some need the text of the jobs as well.
"""

JSON_FILES = {
    "nodes.json": ("scontrol", "--all", "show", "nodes"),
    "reservations.json": ("scontrol", "show", "reservations"),
    "licenses.json": ("scontrol", "show", "licenses"),
}
"""Commands whose output is JSON, but as text in Slurm 22.05, by file."""

TEXT_FILES = {
    "partitions.txt": ("scontrol", "--all", "-o", "show", "partitions"),
    "topology.txt": ("scontrol", "show", "topology"),
    "topoconf.txt": ("scontrol", "show", "topoconf"),
    "config.txt": ("scontrol", "show", "config"),
    "sprio.txt": ("sprio", "-l"),
    "qos.txt": ("sacctmgr", "-P", "show", "qos", "format=Name,Preempt,PreemptMode,UsageFactor"),
    "assoc_mgr.txt": ("scontrol", "-o", "show", "assoc_mgr", "flags=users,assoc,qos"),
}
"""Commands whose output is text, by file."""

HISTORY = (
    *("sacct", "--allusers", "--allocations", "--parsable2", "--starttime", "now-30days"),
    "--format=JobID,User,Account,QOS,Partition,Submit,Start,End,Timelimit,State,AllocCPUS,NNodes",
)
"""The command whose output says how long the jobs of the last 30 days have run."""

FOLDER = FolderKind("captured output of Slurm", "squeue.json", ("*.json", "*.txt", "now"))


def capture(folder: Path) -> None:
    """Write what Slurm says of its jobs and nodes into an empty folder, which can be read then.

    A file that the version of Slurm cannot write is left out.
    """
    json = capture_queue(folder)
    refused = [
        file for file, words in JSON_FILES.items() if not _write(folder / file, *words, json)
    ]
    for file in refused:
        _write(folder / f"{Path(file).stem}.txt", *JSON_FILES[file], "-o", "-d")
    if "nodes.json" in refused:
        _write(folder / "sinfo.json", "sinfo", "--all", json)
    for file, words in TEXT_FILES.items():
        _write(folder / file, *words)


@contextmanager
def captured(source: Path | None, *, history: bool = False) -> Iterator[Path]:
    """Give the folder of captured output, or one with what Slurm says now, perhaps with history."""
    if source is not None:
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="optsched-") as folder:
        capture(Path(folder))
        if history:
            _write(Path(folder) / "sacct.sacct", *HISTORY)
        yield Path(folder)


def capture_queue(folder: Path) -> str:
    """Write what Slurm says of its jobs alone, and return the option for JSON that it knows."""
    write_text(folder / "now", f"{int(time.time())}\n")
    for option in JSON_OPTIONS:
        answer = run_command(("squeue", "--all", option))
        if not answer.refusal:
            break
    else:
        expected = "expected an answer, or --from DIR with captured output of Slurm"
        raise InputError(f"squeue --json: {answer.refusal}; {expected}")
    write_bytes(folder / "squeue.json", answer.text)
    if option != JSON_OPTIONS[0]:
        _write(folder / "jobs.txt", "scontrol", "--all", "-o", "-d", "show", "jobs")
    return option


def _write(file: Path, *words: str) -> bool:
    """Write the output of a command, and return whether there is any."""
    answer = run_command(words)
    if answer.refusal or not answer.text.strip():
        return False
    write_bytes(file, answer.text)
    return True
