"""What a run says of the jobs that were simulated."""

from __future__ import annotations

import numpy as np

from optsched.simulator.scenario import workload_sha256


def test_annotations_are_part_of_what_is_simulated(make_trace):
    plain = make_trace((0, 10, 10, 1), (5, 10, 10, 2))
    one, other = (plain.annotated(file=np.array(files)) for files in ([1, 1], [1, 2]))
    renamed = plain.annotated(size=np.array([1, 1]))
    both = one.annotated(size=np.array([3, 4]))
    again = plain.annotated(size=np.array([3, 4]), file=np.array([1, 1]))
    assert len({workload_sha256(trace) for trace in (plain, one, other, renamed, both)}) == 5
    assert workload_sha256(both) == workload_sha256(again)
