"""Random workloads, traces of them, and what policies promise."""

import numpy as np
from hypothesis import strategies as st

from optsched.traces.cleaning import clean
from optsched.traces.trace import Trace


def trace_of(workload, unit=1, **more):
    """Return a trace of jobs: gap before, run time, what is requested beyond it, processors.

    Times are in units of so many seconds.
    """
    gaps, runtime, slack, processors = map(np.array, zip(*workload))
    times = np.cumsum(gaps), runtime, np.maximum(1, runtime + slack)
    numbers = np.arange(1, 1 + len(gaps))
    return clean(Trace(numbers, *(each * unit for each in times), processors, **more))


def jobs(widest, most=40, slack=None):
    """Draw jobs for `trace_of`; the widest are rejected by a machine of one processor less."""
    slack = st.integers(0, 8) if slack is None else slack
    job = st.tuples(st.integers(0, 6), st.integers(1, 12), slack, st.integers(1, widest))
    return st.lists(job, min_size=1, max_size=most)


orders = st.sampled_from(["batched", "one-by-one"])
units = st.sampled_from([1, 1.3])
"""Sums of fractions are rounded."""


def jobs_with(*jobs, **more):
    """Return a trace of (submit, run time, requested time, processors, MB/s per process)."""
    *columns, bandwidth = np.array(jobs).T
    annotations = {"bandwidth": bandwidth} | {name: np.array(row) for name, row in more.items()}
    return clean(Trace(np.arange(1, len(jobs) + 1), *columns, annotations=annotations))


def demanding(workload, unit=1):
    """Return a trace of jobs that also demand bandwidth and disk."""
    *plain, bandwidth, disk = zip(*workload)
    demands = {"bandwidth": np.array(bandwidth), "disk": np.array(disk)}
    return trace_of([*zip(*plain)], unit, annotations=demands)


crowds = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(2, 31),
        st.sampled_from([0, 0, 1, 7, 30]),
        st.integers(1, 9),  # the widest are rejected
        st.sampled_from([0, 500, 1000, 2000, 4000]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=24,
)
"""Jobs for `demanding`."""


def noting_promises(policy, **chosen):
    """Return a policy with some settings, and the first promises to jobs that it will make."""
    first = {}

    class Noting(policy):
        def promised(self, system):
            found = super().promised(system)
            first.update(found | first)
            return found

    return Noting(**chosen), first
