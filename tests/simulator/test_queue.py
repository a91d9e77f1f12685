from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.simulator.system import Queue


@given(st.lists(st.floats(0, 1, exclude_max=True), max_size=60))
def test_jobs_stay_in_order_of_submission(choices):
    queue, model = Queue(), []
    for submitted, choice in enumerate(choices):
        if choice < 0.6 or not model:
            queue.append(submitted)
            model.append(submitted)
        else:
            queue.remove(model.pop(int((choice - 0.6) / 0.4 * len(model))))
        assert list(queue) == model
        assert len(queue) == len(model)
        assert queue[1:3] == model[1:3]


def test_a_job_that_does_not_wait_cannot_be_removed():
    queue = Queue()
    queue.append(1)
    for job in (0, 2):
        with pytest.raises(ValueError, match="does not wait"):
            queue.remove(job)
