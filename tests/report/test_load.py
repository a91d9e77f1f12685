from __future__ import annotations

import numpy as np
import pytest

from optsched.report import load


def test_processors_in_use_by_hand(small_run):
    steps = load.processors_in_use(small_run)
    assert steps.times.tolist() == [0, 9, 39, 60]
    assert steps.values.tolist() == [4, 7, 4, 8]
    assert steps.end == 80


def test_what_waits_by_hand(small_run):
    jobs, work = load.waiting_jobs(small_run), load.waiting_work(small_run)
    assert dict(zip(jobs.times.tolist(), jobs.values.tolist())) == {0: 0, 5: 1, 9: 1, 60: 0}
    assert work.values.tolist() == [0, 160, 160, 0]


def test_the_area_is_the_work_of_the_jobs_and_nobody_waits_at_the_end(random_run):
    run = random_run(400)
    steps = load.processors_in_use(run)
    work = ((run.end - run.start) * run.trace.processors).sum()
    assert steps.integral(steps.end) == pytest.approx(work)
    assert steps.values.max() <= 64
    assert steps.values.min() >= 0
    waiting = load.waiting_jobs(run)
    assert waiting.integral(waiting.end) == pytest.approx((run.start - run.trace.submit).sum())
    assert waiting.values.min() >= 0
    assert waiting.values[-1] == 0


def test_rejected_jobs_do_not_wait_and_jobs_without_end_run_to_the_last(interrupted_run):
    run = interrupted_run
    assert load.span(run) == (0, 100)
    assert load.accepted(run.state).tolist() == [True, False, True, True]
    assert load.waiting_jobs(run).values[-1] == 1
    assert load.waiting_work(run).values[-1] == 8 * 50
    in_use = load.processors_in_use(run)
    assert in_use.values[-1] == 8
    assert np.isfinite(load.held_until(run)).all()


def test_the_subject_names_what_was_run(small_run):
    assert load.subject(small_run) == "small: easy on nodes:10"
