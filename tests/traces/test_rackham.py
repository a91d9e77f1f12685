"""The workloads of Gonthier et al.: reading, writing, what is refused."""

import gzip
import re
from math import exp, log
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.content import bundled
from optsched.errors import InputError
from optsched.traces.cleaning import clean
from optsched.traces.rackham import read_rackham
from optsched.traces.reading import read_trace, write_trace
from optsched.traces.swf import read_swf
from optsched.traces.trace import Trace
from optsched.traces.transformations import evaluate, infer_files

REAL = "traces/rackham/2022-09-10_V10000_anonymous.txt.gz"

RUNNING = (
    "{ id: 4 subtime: 3 delay: 500 walltime: 900 cores: 20 user: ann data: 7 data_size: 128.000000 "
    "workload: -2 start_time_from_history: 60 start_node_from_history: 338 }"
)
WAITING = (
    "{ id: 5 subtime: 9 delay: 120 walltime: 60 cores: 1 user: bob data: 0 data_size: 6.400000 "
    "workload: -1 start_time_from_history: 200 start_node_from_history: 1 }"
)
FIRST = (
    "{ id: 6 subtime: 100 delay: 130 walltime: 600 cores: 2 user: ann data: 8 data_size: 12.8004 "
    "workload: 0 start_time_from_history: 101 start_node_from_history: 2 }"
)


def read(tmp_path, *lines):
    path = tmp_path / "jobs.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return read_trace(path, clean=False)


def test_a_small_workload(tmp_path):
    trace = read(tmp_path, RUNNING, "", WAITING, "  " + FIRST + "\r")
    assert (trace.name, trace.limits_hold) == ("jobs", True)
    columns = ["job_id", "submit", "runtime", "requested_time", "stated_time", "processors", "user"]
    running, waiting, first = trace.frame[columns].to_numpy().tolist()
    assert running == [4, 3, 460, 860, 900, 20, 1]  # 40 s of 500 s are over by 100 s
    assert waiting == [5, 9, 120, 60, 60, 1, 2]
    assert first == [6, 100, 130, 600, 600, 2, 1]
    assert {name: column.tolist() for name, column in trace.annotations.items()} == {
        "file": [7, -1, 8],
        "file_size": [128_000, 0, 12_800],
        "category": [-2, -1, 0],
        "history_start": [60, 200, 101],
        "history_node": [337, 0, 1],
    }
    assert trace.oddities == {
        "jobs with a run time above their walltime, at which they end": 1,
        "running jobs, whose times are those that remain at the start": 1,
        "sizes of no file, left out": 1,
    }
    assert clean(trace).requested_time.tolist() == [860, 60, 600]


def test_a_job_that_was_over_by_the_start_has_a_second_left(tmp_path):
    over = RUNNING.replace("delay: 500", "delay: 40")
    trace = read(tmp_path, over, FIRST)
    assert trace.runtime.tolist() == [1, 130]
    assert trace.oddities["running jobs that were over by the start, and have 1 s left"] == 1
    write_trace(trace, tmp_path / "a.rackham")
    assert read_trace(tmp_path / "a.rackham", clean=False).frame.equals(trace.frame)


def test_numbers_of_users_stay_and_histories_that_nobody_states_are_left_out(tmp_path):
    lines = [line.replace("ann", "17").replace("bob", "-1") for line in (RUNNING, WAITING, FIRST)]
    assert read(tmp_path, *lines).user.tolist() == [17, -1, 17]
    bare = FIRST.replace("history: 101", "history: -1").replace("history: 2", "history: 0")
    assert list(read(tmp_path, bare).annotations) == ["file", "file_size", "category"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id: 6", "id: 5", "id: 5; another job has that number"),
        ("delay: 130", "delay: 0", "delay: 0; expected a whole number from 1 to 1,000,000,000"),
        ("data: 8", f"data: {10**12 + 1}", "data: 1000000000001; expected .* to 1,000,000,000,000"),
        ("12.8004", "-12.8", "data_size: '-12.8'; expected a decimal number of at least 0"),
        ("data: 8", "data: 7", "data_size: 12.8; expected the size that the file has in other"),
        ("workload: 0", "workload: 3", "workload: 3; expected a whole number from -2 to 2"),
        ("subtime: ", "submit: ", "word 4: 'submit:'; expected 'subtime:'"),
        (" }", "", "23 words; expected 24, from '{ id:' to '}'"),
    ],
)
def test_wrong_lines_are_refused(tmp_path, old, new, message):
    with pytest.raises(InputError, match=f"jobs.txt, line 4,? ?:? ?.*{message}"):
        read(tmp_path, RUNNING, WAITING, "", FIRST.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("history: 60", "history: 101", "start_time_from_history: 101; expected 0 to 100 for"),
        ("history: 338", "history: 0", "start_node_from_history: 0; expected a node"),
        ("subtime: 3", "subtime: 100", "subtime: 100; expected a time before 100 for a running"),
    ],
)
def test_wrong_histories_of_running_jobs_are_refused(tmp_path, old, new, message):
    with pytest.raises(InputError, match=f"jobs.txt, line 2, {message}"):
        read(tmp_path, FIRST, RUNNING.replace(old, new))
    with pytest.raises(InputError, match="line 1, workload: -2; expected a job of workload 0 too"):
        read(tmp_path, RUNNING, WAITING)


def job(rows=1, **annotations):
    files = {"file": np.arange(1, rows + 1), "file_size": np.full(rows, 6400)}
    one = np.ones(rows, dtype=np.int64)
    return Trace(np.arange(rows), one, one, one, one, annotations=files | annotations)


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (Trace(*[np.ones(1, int)] * 5), "have no input files.*trace annotate files TRACE"),
        (job(file_size=np.array([-1])), "data_size: the job in row 1: -0.001; expected a decimal"),
        (job(2, file=np.ones(2, int), file_size=np.array([1, 2])), "the job in row 2: 0.002; exp"),
        (job(2, load=np.ones(2), file=np.array([0.5, 1])), "data: the job in row 1: 0.5; expected"),
        (job(category=np.array([-2])), "the job in row 1: -2; expected a job of workload 0 too"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, trace, message):
    path = tmp_path / "a.rackham"
    with pytest.raises(InputError, match=message):
        write_trace(trace, path)
    assert not path.exists()


def test_raw_overruns_are_not_written_and_a_file_has_a_job(tmp_path, small_swf):
    raw = read_swf(small_swf).annotated(file=np.arange(1, 9), file_size=np.ones(8, int))
    with pytest.raises(InputError, match="would be cut; expected a cleaned trace"):
        write_trace(raw, tmp_path / "a.rackham")
    write_trace(clean(raw), tmp_path / "a.rackham.gz")
    again = read_trace(tmp_path / "a.rackham.gz")
    assert again.requested_time.tolist() == [200, 50, 70, 60]
    assert again.annotations["category"].tolist() == [1] * 4
    (tmp_path / "empty.rackham").write_text("\n \n")
    with pytest.raises(InputError, match="no jobs; expected one on each line"):
        read_trace(tmp_path / "empty.rackham")


@st.composite
def workloads(draw):
    """Traces as the reader gives them: sizes belong to files, running jobs have a history."""
    jobs = draw(st.integers(1, 8))
    start = draw(st.integers(1, 1000))
    sizes = draw(st.lists(st.integers(0, 10**9), min_size=5, max_size=5))
    rows = []
    for _ in range(jobs):
        category = draw(st.integers(-2, 2))
        file = draw(st.sampled_from([-1, 1, 2, 3, 4]))
        submit = st.integers(0, start - 1) if category == -2 else st.integers(start, 10**6)
        times = draw(submit), draw(st.integers(1, 10**6)), draw(st.integers(1, 10**6))
        history = [draw(st.integers(0 if category == -2 else -1, most)) for most in (start, 600)]
        size = sizes[file] if file > 0 else 0
        cores, user = draw(st.integers(1, 50)), draw(st.integers(-1, 5))
        rows.append([*times, cores, user, file, size, category, *history])
    rows[0][0], rows[0][7] = start, 0
    *columns, user, file, size, category, history, node = map(np.array, zip(*rows))
    ids = draw(st.lists(st.integers(0, 10**9), min_size=jobs, max_size=jobs, unique=True))
    annotations = {"file": file, "file_size": size, "category": category}
    annotations |= {"history_start": history, "history_node": node}
    return Trace(np.array(ids), *columns, user=user, annotations=annotations, limits_hold=True)


@given(trace=workloads())
def test_a_trace_is_read_as_it_was_written(trace, tmp_path_factory):
    path = tmp_path_factory.mktemp("rackham") / "a.rackham"
    write_trace(trace, path)
    again = read_rackham(path)
    for name in ("job_id", "submit", "runtime", "requested_time", "processors", "user"):
        assert getattr(again, name).tolist() == getattr(trace, name).tolist()
    for name, column in trace.annotations.items():
        unknown = np.full(len(trace), -1)
        assert again.annotations.get(name, unknown).tolist() == column.tolist()
    copy = path.with_name("b.rackham")
    write_trace(again, copy)
    assert copy.read_text() == path.read_text()


def test_the_real_workload(shared, tmp_path):
    trace = read_trace(shared(REAL), clean=False)
    categories = dict(zip(*np.unique(trace.annotations["category"], return_counts=True)))
    assert categories == {-2: 2041, -1: 865, 0: 10_201, 1: 1511, 2: 7201}
    assert trace.oddities == {
        "jobs with a run time above their walltime, at which they end": 276,
        "running jobs, whose times are those that remain at the start": 2041,
        "running jobs that were over by the start, and have 1 s left": 8,
    }
    assert (trace.annotations["file_size"] == 6400 * trace.processors).all()
    write_trace(trace, tmp_path / "again.rackham.gz")
    again = read_trace(tmp_path / "again.rackham.gz", clean=False)
    assert again.frame.equals(trace.frame)
    texts = [
        re.sub(r"user: \w+", "", gzip.decompress(path.read_bytes()).decode()).splitlines()
        for path in (shared(REAL), tmp_path / "again.rackham.gz")
    ]
    changed = sum(one != other for one, other in zip(*texts, strict=True))
    assert changed == 8  # those that have 1 s left: how long they ran before is not kept


SAMPLE = bundled("traces") / "samples" / "sample-8x20.rackham"
SEED = 20220910
NODES, CORES = 8, 20
DAY = 86_400
SIZES = (1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 16, 20)
LIMITS = (900, 3_600, 14_400, 43_200, 86_400)


def generate() -> Trace:
    """Return three days of bursts of alike jobs, behind jobs that run or wait when they begin.

    Only `Random.random` is drawn from: its numbers stay the same from one Python to the next.
    """
    random = Random(SEED)
    rows = []

    def between(low: int, high: int) -> int:
        return low + int(random.random() * (high - low + 1))

    def burst(submit: int, category: int, most: int = 14) -> int:
        user, cores = between(1, 12), SIZES[between(0, len(SIZES) - 1)]
        typical = exp(log(600) + random.random() * log(60))
        for _ in range(between(1, most)):
            runtime = 120 + int(typical * (0.7 + 0.6 * random.random()))
            enough = next(limit for limit in LIMITS if limit > typical)
            limit = runtime - between(1, 100) if random.random() < 0.02 else max(enough, runtime)
            rows.append((submit, runtime, limit, cores, user, category, -1, -1))
            submit += between(0, 40)
        return submit

    free = [CORES] * NODES
    for number in range(16):
        cores = SIZES[between(0, len(SIZES) - 1)]
        node = max(range(NODES), key=free.__getitem__)
        cores = min(cores, free[node])
        free[node] -= cores
        began, left = DAY - between(600, 20_000), between(1, 9_000)
        submit = 10_000 + 3_000 * number
        limit, user = left + between(0, 9_000), number % 12 + 1
        rows.append((submit, left, limit, cores, user, -2, began, node))
    submit = 60_000
    while submit < DAY - 9_000:
        submit = burst(submit, -1, most=3) + between(3_000, 9_000)
    submit = DAY
    while submit < 4 * DAY:
        submit = burst(submit, 0) + int(-log(1 - random.random()) * 3_600)
    *columns, user, category, start, node = map(np.array, zip(*rows))
    notes = {"category": category, "history_start": start, "history_node": node}
    numbers = np.arange(1, len(rows) + 1)
    trace = Trace(numbers, *columns, user=user, annotations=notes, limits_hold=True)
    return evaluate(infer_files(trace), 2 * DAY, 3 * DAY)


def test_the_sample_is_what_its_generator_writes(tmp_path):
    write_trace(generate(), tmp_path / SAMPLE.name)
    assert (tmp_path / SAMPLE.name).read_text() == SAMPLE.read_text()
