"""Waiting for what processes do."""

import time


def await_that(process, holds):
    """Wait until something holds, while a process runs."""
    deadline = time.monotonic() + 120
    while not holds():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)


def await_runs(process, runs, number):
    """Wait until there is a folder of runs with so many finished ones."""
    await_that(process, lambda: runs.is_dir() and len([*runs.glob("[!.]*")]) >= number)
