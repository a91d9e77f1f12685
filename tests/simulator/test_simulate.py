"""What `simulate` refuses before it begins."""

from __future__ import annotations

import subprocess
import sys

import pytest

from optsched import simulate
from optsched.errors import InputError


def test_times_that_would_be_rounded_are_refused(make_trace):
    """Each of them is exact, their sum is not."""
    trace = make_trace((2**53 - 10, 9, 9, 1), (2**53 - 10, 9, 9, 1))
    with pytest.raises(InputError, match=r"add up to more than 2\^53 s"):
        simulate(trace, "nodes:1", "fcfs")


def test_kernels_are_compiled_before_the_clock_starts():
    """In a process of its own: no other test has compiled them there."""
    code = """
import numpy as np
from optsched.policies import _line
from optsched.simulator.engine import Engine
from optsched.simulator.simulate import simulate
process = Engine.run

def watched(engine):
    before = list(_line.loop.compiled.signatures)
    process(engine)
    assert before == list(_line.loop.compiled.signatures) != []

Engine.run = watched
trace = Trace(*[np.arange(1, 50)] * 5)
run = simulate(trace, "nodes:50", "easy", compiled_from=0)
assert run.timing["prepare_seconds"] > 0
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_part_of_a_trace_claims_none_of_its_dropped_jobs(make_trace):
    """A job without run time is dropped; whether it lies within the part nobody can tell."""
    trace = make_trace((0, 5, 5, 1), (1, 0, 5, 1), (2, 5, 5, 1))
    assert simulate(trace, "nodes:1").summary["dropped"] == 1
    part = simulate(trace, "nodes:1", jobs=(1, 1)).summary
    assert (part["jobs"], part["dropped"], part["cleaning"]["dropped"]) == (1, None, 1)
