"""Run by a fork of a process that has imported everything: one command, as typed."""

from __future__ import annotations

import os
import sys
from typing import Any

from optsched import compilation, registry
from optsched.cli import main


def run(given: Any) -> None:
    """Run a command with streams, folder and environment of its own, and exit."""
    os.chdir(given.cwd)
    os.environ.clear()
    os.environ.update(given.env)
    streams = {"stdin": os.devnull, "stdout": given.folder / "out", "stderr": given.folder / "err"}
    for number, (name, path) in enumerate(streams.items()):
        mode = "w" if number else "r"
        with open(path, mode) as stream:
            os.dup2(stream.fileno(), number)
        setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 (to the end)
    registry.entry_points = lambda **_: ()  # as in the tests themselves
    compilation.cores = lambda: 1  # a sweep starts one worker: importing takes longer than the runs
    main(given.arguments)


if __name__ == "__main__":
    run(globals()["given"])
