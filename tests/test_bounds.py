"""A small part of what ``make bounds`` does: kernels with numba's bounds checks on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SMALL_PART = [
    "metrics/test_fragmentation.py::test_a_trace_of_no_length_has_no_figures",
    "policies/test_line.py::test_kernel_and_python_decide_alike[batched-easy]",
    "solvers/window_mkp/test_heuristics.py::test_greedy_exchange_is_as_stated",
    "solvers/window_mkp/test_kernels.py::test_the_plain_search_is_as_stated",
    "traces/test_swf.py::test_odd_lines_are_read_and_counted",
]


@pytest.mark.long
def test_kernels_stay_within_their_arrays():
    tests = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SMALL_PART],
        cwd=tests,
        env=os.environ | {"NUMBA_BOUNDSCHECK": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout
