"""What `simulate` refuses before it begins."""

from __future__ import annotations

import pytest

from optsched import simulate
from optsched.errors import InputError


def test_times_that_would_be_rounded_are_refused(make_trace):
    """Each of them is exact, their sum is not."""
    trace = make_trace((2**53 - 10, 9, 9, 1), (2**53 - 10, 9, 9, 1))
    with pytest.raises(InputError, match=r"add up to more than 2\^53 s"):
        simulate(trace, "nodes:1", "fcfs")
