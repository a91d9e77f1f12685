"""Loading input files before the work begins, and the figures of that."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optsched import simulate
from optsched.errors import InputError
from optsched.models.data_placement import DataPlacement
from optsched.models.data_placement.fields import Plan


def run(trace, solver="fcfs", machine="cluster:2x2", **settings):
    return simulate(trace, machine, "locality", solver=solver, settings=settings, check=True)


def test_a_job_loads_or_waits_or_finds_its_file(jobs_with_files):
    trace = jobs_with_files(
        (0, 100, 500, 1, 7), (10, 100, 500, 1, 7), (20, 50, 500, 2, 8), (164, 10, 90, 1, 7)
    )
    found = run(trace)
    assert found.start.tolist() == [0, 10, 20, 164]
    assert found.end.tolist() == [164, 164, 20 + 128 + 50, 174]
    assert found.jobs["transfer_time"].tolist() == [64, 0, 128, 0]
    assert found.jobs["waiting_for_a_load"].tolist() == [0, 54, 0, 0]
    summary = found.summary
    assert summary["transfer_time"] == 192
    assert summary["waiting_for_a_load"] == 54
    assert summary["data_reuse"] == 2
    assert summary["core_time"] == 164 + 154 + 2 * 178 + 10
    stretch = [164 / 164, 154 / 164, 178 / 178, 10 / 74]
    assert found.jobs["stretch"].tolist() == pytest.approx(stretch)
    assert summary["mean_bounded_stretch"] == pytest.approx((164 + 154 + 178 + 10) / 300 / 4)


JOB = st.tuples(
    st.integers(0, 60), st.integers(1, 30), st.integers(1, 2), st.sampled_from([-1, 1, 2])
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(JOB, min_size=1, max_size=12),
    st.sampled_from(["users", "next"]),
    st.sampled_from(["none", "holes", "conservative"]),
)
def test_jobs_load_as_the_maths_say_of_their_starts(jobs_with_files, jobs, kept, backfill):
    """Every job runs to its limit, so that what is planned is what happens."""
    jobs = sorted(jobs)
    load = {-1: 0, 1: 7, 2: 3}
    trace = jobs_with_files(
        *((submit, seconds, seconds, cores, file) for submit, seconds, cores, file in jobs),
        file_size=np.array([100 * load[file] for *_, file in jobs]),
    )
    found = run(trace, "lea", f"cluster:2x2:kept={kept}", backfill=backfill)
    node = [int(text.split("-")[0]) // 2 for text in found.jobs["allocated_resources"]]
    _, walltimes, processors, files = np.array(jobs).T
    loads = [load[file] for file in files.tolist()]
    problem = DataPlacement([[0, 0]] * 2, processors, walltimes, files, loads, kept=kept)
    plan = Plan(node, found.start.astype(np.int64), np.ones(len(jobs)))
    times = found.jobs["transfer_time"] + found.jobs["waiting_for_a_load"]
    assert times.tolist() == problem.load_times(plan).tolist()


def test_loading_counts_against_the_limit(jobs_with_files):
    found = run(jobs_with_files((0, 100, 150, 1, 7)))
    assert (found.end.tolist(), found.summary["killed"]) == ([150], 1)


def test_only_the_evaluated_jobs_count(jobs_with_files):
    jobs = [(submit, 10, 90, 1, 1 + submit) for submit in range(3)]
    summary = run(jobs_with_files(*jobs, category=np.array([0, 1, 2]))).summary
    assert (summary["evaluated"], summary["transfer_time"]) == (1, 64)


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"file": [1.0, 2.0]}, "file: expected whole numbers"),
        ({"file": [1, -2]}, "file: -2 in job 2; expected a number from 0 to"),
        ({"file_size": [-1, 1]}, "file_size: -1 in job 1; expected MB from 0"),
        ({"file": [-1, 1]}, "file_size: 6400 in job 1; expected 0 where there is no file"),
        ({"file": [1, 1], "file_size": [64, 65]}, "file_size: 65 in job 2; expected the size"),
        ({"category": [5, 0]}, "category: 5 in job 1; expected a whole number from -2 to 2"),
        ({"category": [-2, 0], "history_start": [0, -1]}, "history_node: trace 'trace': missing"),
    ],
)
def test_annotations_that_cannot_be_are_refused(jobs_with_files, annotations, said):
    trace = jobs_with_files((0, 9, 9, 1, 1), (9, 9, 9, 1, 2))
    with pytest.raises(InputError, match=said):
        run(trace.annotated(**{name: np.array(column) for name, column in annotations.items()}))


def test_what_files_need_is_told(jobs_with_files, make_trace):
    trace = jobs_with_files((0, 9, 9, 1, 1))
    with pytest.raises(InputError, match="file_size: trace 'trace': its files have no sizes"):
        run(replace(trace, annotations={"file": trace.annotations["file"]}))
    with pytest.raises(InputError, match="'optsched trace annotate files TRACE' infers"):
        run(make_trace((0, 10, 20, 1)))
    with pytest.raises(InputError, match="is for clusters, not nodes:4"):
        simulate(trace, "nodes:4", "easy", execution="file-loading")


def test_jobs_without_files_reuse_none(jobs_with_files):
    trace = jobs_with_files((0, 9, 99, 1, -1), (0, 9, 99, 1, 7), (1, 9, 99, 1, 7), (2, 9, 99, 1, 8))
    sizes = np.array([0, 6400, 6400, 99])  # the last takes no whole second
    found = run(trace.annotated(file_size=sizes), machine="cluster:1x4")
    assert found.summary["data_reuse"] == 1


def test_sessions_are_what_a_user_submits_within_five_minutes(jobs_with_files):
    jobs = [(submit, 100, 100, 2, -1) for submit in (0, 1, 300, 301)]
    trace = jobs_with_files(*jobs, category=np.ones(4, dtype=int))
    summary = run(trace, machine="cluster:4x2").summary
    assert (summary["sessions"], summary["mean_session_stretch"]) == (2, 2)
    nobody = replace(trace, user=np.full(4, -1))
    assert "sessions" not in run(nobody, machine="cluster:4x2").summary
