from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.simulator import queue as queue_module
from optsched.simulator.queue import Queue


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=120))
@settings(max_examples=60)
def test_columns_follow_the_jobs(choices):
    old = queue_module.LONG
    queue_module.LONG = 8
    try:
        processors = list(range(1, 200))
        requested = [float(7 * size) for size in processors]
        queue, model, submitted = Queue(processors, requested), [], 0
        for choice in choices:
            if choice < 0.6 or not model:
                queue.append(submitted)
                model.append(submitted)
                submitted += 1
            else:
                job = model.pop(0 if choice < 0.7 else int((choice - 0.6) / 0.4 * len(model)))
                queue.remove(job)
            assert list(queue) == model
            if queue.columns is None:
                assert len(model) < 8
            else:
                wanted = [[processors[j] for j in model], [requested[j] for j in model]]
                assert np.array_equal(queue.columns, wanted)
    finally:
        queue_module.LONG = old


def test_a_job_that_does_not_wait_cannot_be_removed():
    queue = Queue([1, 1, 1], [1.0, 1.0, 1.0])
    queue.append(1)
    for job in (0, 2):
        with pytest.raises(ValueError, match="does not wait"):
            queue.remove(job)
