"""Random workloads for policies on nodes that share resources."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from optsched.traces.cleaning import clean
from optsched.traces.trace import Trace


def trace_of(workload, unit=1):
    """Return a trace of a drawn workload."""
    gaps, runtime, slack, processors, bandwidth, disk = map(np.array, zip(*workload))
    jobs = np.arange(len(gaps))
    demands = {"bandwidth": bandwidth, "disk": disk}
    times = (np.cumsum(gaps) * unit, 1 + runtime * unit, 1 + (runtime + slack) * unit)
    return clean(Trace(jobs, *times, processors, annotations=demands))


crowds = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(1, 30),
        st.sampled_from([0, 0, 1, 7, 30]),
        st.integers(1, 9),  # the widest are rejected
        st.sampled_from([0, 500, 1000, 2000, 4000]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=24,
)
