"""What Slurm says now, as a folder of files: the output of its commands."""

from __future__ import annotations

import time
from pathlib import Path

from optsched.binary_files import write_bytes
from optsched.errors import InputError
from optsched.files import FolderKind, write_text
from optsched.slurm.commands import run_command

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
    "assoc_mgr.txt": ("scontrol", "-o", "show", "assoc_mgr", "flags=users,assoc,qos"),
}
"""Commands whose output is text, by file."""

FOLDER = FolderKind("captured output of Slurm", "squeue.json", ("*.json", "*.txt", "now"))


def capture(folder: Path) -> None:
    """Write what Slurm says of its jobs and nodes into an empty folder.

    A file that the version of Slurm cannot write is left out.

    `folder`: the folder, which then can be read by `optsched.slurm.queue.read_queue` and
    `optsched.slurm.supply.read_supply`.
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
