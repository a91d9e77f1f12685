"""Commands of Slurm: run without a shell, with a time limit, in an environment without filters."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from optsched.errors import InputError

SECONDS = 60.0
"""Time limit in seconds; a busy controller may let a command wait for a while."""

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
