"""Input files that are inferred, the pieces of large jobs, and which jobs are evaluated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace
from optsched.traces.transformations import evaluate, infer_files, split_jobs

REAL = "traces/rackham/2022-09-10_V10000_anonymous.txt.gz"


def make(submit, processors, user, **columns):
    jobs = np.arange(1, len(submit) + 1)
    times = np.array(submit), np.full(len(jobs), 60), np.full(len(jobs), 100)
    return Trace(jobs, *times, np.array(processors), user=np.array(user), **columns)


def files_of(trace, **options):
    return infer_files(trace, **options).annotations["file"].tolist()


def test_a_file_goes_on_from_job_to_job():
    trace = make([0, 800, 1600, 2401], [4] * 4, [7] * 4)
    assert files_of(trace) == [1, 1, 1, 2]
    assert files_of(trace, window=801) == [1] * 4
    assert files_of(trace, window=0) == [1, 2, 3, 4]
    assert infer_files(trace).annotations["file_size"].tolist() == [25_600] * 4
    assert infer_files(trace, per_processor=5).annotations["file_size"].tolist() == [20] * 4
    assert files_of(make([900, 0, 850], [4] * 3, [7] * 3)) == [1, 2, 2]  # as they are submitted
    assert files_of(make([0, 1, 2, 3], [4] * 4, [-1, -1, 7, 7])) == [1, 2, 3, 3]  # -1 is unknown
    with pytest.raises(InputError, match="user: no job states its user"):
        infer_files(make([0, 1], [4] * 2, [-1, -1]))


def test_a_job_of_another_user_or_size_ends_it_or_may_come_between():
    assert files_of(make([0, 1, 2], [4] * 3, [7, 8, 7])) == [1, 2, 3]
    trace = make([0, 10, 20, 30, 820, 840], [4, 4, 2, 4, 4, 2], [7, 8, 7, 7, 7, 7])
    assert files_of(trace) == [1, 2, 3, 4, 4, 5]
    assert files_of(trace, sharing="interleaved") == [1, 2, 3, 1, 1, 4]
    assert files_of(trace, sharing="interleaved", window=820) == [1, 2, 3, 1, 1, 3]


job = st.tuples(st.integers(0, 300), st.integers(1, 2), st.integers(-1, 2))


@given(st.lists(job, max_size=30))
def test_interleaved_jobs_share_what_the_last_alike_has(jobs):
    jobs = [*jobs, (1, 1, 0)]  # one states its user
    gaps, processors, user = zip(*jobs)
    submit = np.cumsum(gaps)
    last, files, known = {}, [], 0
    for job in zip(user, processors, submit.tolist()):
        *alike, now = job
        before, file = last.get(tuple(alike), (-1000, 0))
        if now - before > 800 or alike[0] < 0:
            known += 1
            file = known
        last[tuple(alike)] = now, file
        files.append(file)
    assert files_of(make(submit, processors, user), sharing="interleaved") == files


def test_the_files_of_the_authors(shared):
    """Their numbers, job by job, and not those of chains with other jobs in between."""
    trace = read_trace(shared(REAL))
    theirs = trace.annotations["file"].tolist()
    assert files_of(trace) == theirs
    assert (max(theirs), max(files_of(trace, sharing="interleaved"))) == (1456, 1226)


def test_large_jobs_become_pieces():
    trace = make([0, 0, 5], [45, 20, 60], [1, 2, 3], requested_processors=np.array([50, 30, -1]))
    split = split_jobs(trace.annotated(bandwidth=np.array([1, 2, 3])), 20)
    assert (split.jobs, split.pieces) == (2, 6)
    assert split.trace.job_id.tolist() == [10, 11, 12, 20, 30, 31, 32]
    assert split.trace.processors.tolist() == [20, 20, 5, 20, 20, 20, 20]
    assert split.trace.requested_processors.tolist() == [20, 20, 5, 30, -1, -1, -1]
    assert split.trace.user.tolist() == [1, 1, 1, 2, 3, 3, 3]
    assert split.trace.annotations["bandwidth"].tolist() == [1, 1, 1, 2, 3, 3, 3]
    assert infer_files(split.trace).annotations.keys() == {"bandwidth", "file", "file_size"}
    assert files_of(split.trace) == [1, 1, 2, 3, 4, 4, 4]
    assert split_jobs(split.trace, 20).trace is split.trace
    # more than ten pieces take two digits
    trace = make([0, 1, 2], [11, 10, 1], [1] * 3, preceding_job=np.array([-1, 1, 2]))
    assert split_jobs(trace, 1).trace.job_id.tolist()[9:13] == [109, 110, 200, 201]
    pieces = split_jobs(trace.select(slice(1, None)), 1).trace
    assert pieces.job_id.tolist() == [*range(20, 30), 30]
    assert pieces.preceding_job.tolist() == [10] * 10 + [20]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 60)), min_size=1, max_size=20),
    st.integers(1, 25),
)
def test_pieces_do_the_work_of_their_job_in_its_place(jobs, cores):
    submit, processors = zip(*jobs)
    trace = make(submit, processors, [1] * len(jobs))
    pieces = split_jobs(trace, cores).trace
    assert pieces.processors.max() <= cores
    assert len(np.unique(pieces.job_id)) == len(pieces)
    order = np.lexsort((pieces.job_id, pieces.submit))
    assert order.tolist() == [*range(len(pieces))]
    factor = 10 ** len(str(-(-max(processors) // cores) - 1)) if max(processors) > cores else 1
    origin = pieces.job_id // factor
    assert np.bincount(origin, pieces.processors)[1:].tolist() == list(processors)


def test_jobs_amid_the_trace_are_evaluated_and_those_at_the_start_keep_their_category():
    trace = make([0, 10, 20, 30], [1] * 4, [1] * 4)
    assert evaluate(trace, 10, 30).annotations["category"].tolist() == [0, 1, 1, 2]
    with pytest.raises(InputError, match="evaluate: no job is submitted from 31 s to 40 s"):
        evaluate(trace, 31, 40)
    trace = trace.annotated(category=np.array([-2, -1, 0, 0]))
    assert evaluate(trace, 0, 30).annotations["category"].tolist() == [-2, -1, 1, 2]


@pytest.mark.parametrize(
    ("change", "arguments", "said"),
    [
        (infer_files, {"sharing": "x"}, "sharing: 'x'; expected one of consecutive, interleaved"),
        (infer_files, {"window": 0.5}, "window: 0.5; expected a whole number from"),
        (infer_files, {"per_processor": 2**53}, r"more than 2\^53 MB"),
        (split_jobs, {"cores": 2.0}, "cores: 2.0; expected a whole number from 1"),
        (split_jobs, {"cores": 1}, "more than 100,000,000 pieces"),
        (split_jobs, {"cores": 10**8}, "too large to be extended"),
    ],
)
def test_what_cannot_be_inferred_or_split_is_refused(change, arguments, said):
    trace = make([0], [10**9], [1]).changed(job_id=np.array([2**53]))
    with pytest.raises(InputError, match=said):
        change(trace, **arguments)
