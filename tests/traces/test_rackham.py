"""The workloads of Gonthier et al.: reading, writing, what is refused."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.traces.cleaning import clean
from optsched.traces.rackham import FIELDS, read_rackham
from optsched.traces.reading import read_trace, write_trace
from optsched.traces.swf import read_swf
from optsched.traces.trace import Trace

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
    assert trace.job_id.tolist() == [4, 5, 6]
    assert trace.submit.tolist() == [3, 9, 100]
    assert trace.runtime.tolist() == [460, 120, 130]  # 40 s of 500 s are over by 100 s
    assert trace.requested_time.tolist() == [860, 60, 600]
    assert trace.stated_time.tolist() == [900, 60, 600]
    assert trace.processors.tolist() == [20, 1, 2]
    assert trace.user.tolist() == [1, 2, 1]
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
    again = read_trace(tmp_path / "a.rackham", clean=False)
    assert again.frame.equals(trace.frame)


def test_numbers_of_users_stay(tmp_path):
    lines = [line.replace("ann", "17").replace("bob", "-1") for line in (RUNNING, WAITING, FIRST)]
    assert read(tmp_path, *lines).user.tolist() == [17, -1, 17]


def test_histories_that_nobody_states_are_left_out(tmp_path):
    bare = FIRST.replace("history: 101", "history: -1").replace("history: 2", "history: 0")
    assert list(read(tmp_path, bare).annotations) == ["file", "file_size", "category"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id: 6", "id: six", "id: 'six'; expected a whole number of at least 0"),
        ("id: 6", "id: 5", "id: 5; another job has that number"),
        ("subtime: 100", "subtime: -1", "subtime: -1; expected a whole number of at least 0"),
        ("delay: 130", "delay: 0", "delay: 0; expected a whole number from 1 to 1,000,000,000"),
        ("walltime: 600", "walltime: 0", "walltime: 0; expected a whole number from 1 to 1,000"),
        ("cores: 2", "cores: 0", "cores: 0; expected a whole number from 1 to 1,000"),
        ("cores: 2", "cores: 2.5", "cores: '2.5'; expected a whole number from 1 to"),
        ("delay: 130", "delay: 1e3", "delay: '1e3'; expected a whole number"),
        ("delay: 130", f"delay: {'9' * 16}", "delay: '9+'; expected a whole number from 1 to"),
        ("id: 6", f"id: {'9' * 16}", "id: '9+'; expected .* at most 15 digits"),
        ("walltime: 600", f"walltime: {'9' * 15}", "walltime: 9+; expected .* to 1,000,000,000"),
        ("data: 8", f"data: {10**12 + 1}", "data: 1000000000001; expected .* to 1,000,000,000,000"),
        ("cores: 2", "cores: 1000000001", "cores: 1000000001; expected .* to 1,000,000,000"),
        ("data: 8", "data: -1", "data: -1; expected a whole number from 0 to 1,000"),
        ("12.8004", "much", "data_size: 'much'; expected a decimal number of at least 0"),
        ("12.8004", "nan", "data_size: 'nan'; expected a decimal number of at least 0"),
        ("12.8004", "-12.8", "data_size: '-12.8'; expected a decimal number of at least 0"),
        ("data: 8", "data: 7", "data_size: 12.8; expected the size that the file has in other"),
        ("workload: 0", "workload: 3", "workload: 3; expected a whole number from -2 to 2"),
        ("workload: 0", "workload: -3", "workload: -3; expected a whole number from -2 to 2"),
        ("subtime: ", "submit: ", "word 4: 'submit:'; expected 'subtime:'"),
        (" }", "", "23 words; expected 24, from '{ id:' to '}'"),
        ("{ id", "[ id", "word 1: '\\['; expected '{'"),
    ],
)
def test_wrong_lines_are_refused(tmp_path, old, new, message):
    with pytest.raises(InputError, match=f"jobs.txt, line 4,? ?:? ?.*{message}"):
        read(tmp_path, RUNNING, WAITING, "", FIRST.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("history: 60", "history: 101", "start_time_from_history: 101; expected 0 to 100 for"),
        ("history: 60", "history: -1", "start_time_from_history: -1; expected 0 to 100 for"),
        ("history: 338", "history: 0", "start_node_from_history: 0; expected a node"),
        ("subtime: 3", "subtime: 500", "subtime: 500; expected a time before 100 for a running"),
        ("subtime: 3", "subtime: 100", "subtime: 100; expected a time before 100 for a running"),
    ],
)
def test_wrong_histories_of_running_jobs_are_refused(tmp_path, old, new, message):
    with pytest.raises(InputError, match=f"jobs.txt, line 2, {message}"):
        read(tmp_path, FIRST, RUNNING.replace(old, new))


def test_running_jobs_need_a_start(tmp_path):
    with pytest.raises(InputError, match="line 1, workload: -2; expected a job of workload 0 too"):
        read(tmp_path, RUNNING, WAITING)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_jobs_is_refused(tmp_path, text):
    path = tmp_path / "empty.rackham"
    path.write_text(text)
    with pytest.raises(InputError, match="no jobs; expected one on each line"):
        read_trace(path)


def job(rows=1, **annotations):
    files = {"file": np.arange(1, rows + 1), "file_size": np.full(rows, 6400)}
    one = np.ones(rows, dtype=np.int64)
    return Trace(np.arange(rows), one, one, one, one, annotations=files | annotations)


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (job().select([0]).annotated(file=np.zeros(1, int)), None),
        (Trace(*[np.ones(1, int)] * 5), "have no input files.*trace annotate files TRACE"),
        (job(file_size=np.array([-1])), "data_size: the job in row 1: -0.001; expected a decimal"),
        (job(2, file=np.array([1, -2])), "data: the job in row 2: -2; expected a whole number"),
        (job(2, file=np.ones(2, int), file_size=np.array([1, 2])), "the job in row 2: 0.002; exp"),
        (job(2, load=np.ones(2), file=np.array([0.5, 1])), "data: the job in row 1: 0.5; expected"),
        (job(category=np.array([4])), "workload: the job in row 1: 4; expected"),
        (job(category=np.array([-2])), "the job in row 1: -2; expected a job of workload 0 too"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, trace, message):
    path = tmp_path / "a.rackham"
    if message is None:
        write_trace(trace, path)
        assert read_rackham(path).annotations["file"].tolist() == [-1]
        return
    with pytest.raises(InputError, match=message):
        write_trace(trace, path)
    assert not path.exists()


def test_raw_overruns_are_not_written(tmp_path, small_swf):
    raw = read_swf(small_swf).annotated(file=np.arange(1, 9), file_size=np.ones(8, int))
    with pytest.raises(InputError, match="would be cut; expected a cleaned trace"):
        write_trace(raw, tmp_path / "a.rackham")
    write_trace(clean(raw), tmp_path / "a.rackham.gz")
    read = read_trace(tmp_path / "a.rackham.gz")
    assert read.requested_time.tolist() == [200, 50, 70, 60]
    assert read.annotations["category"].tolist() == [1] * 4


def test_what_is_left_out_is_said(tmp_path, small_swf, caplog):
    trace = clean(read_swf(small_swf)).annotated(
        file=np.arange(1, 5), file_size=np.ones(4, int), bandwidth=np.ones(4)
    )
    with caplog.at_level("INFO", logger="optsched"):
        write_trace(trace, tmp_path / "a.rackham")
    assert "8 header lines and" in caplog.text
    assert "queue, bandwidth)" in caplog.text


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
        rows.append(
            {
                "submit": draw(
                    st.integers(0, start - 1) if category == -2 else st.integers(start, 10**6)
                ),
                "runtime": draw(st.integers(1, 10**6)),
                "requested_time": draw(st.integers(1, 10**6)),
                "processors": draw(st.integers(1, 50)),
                "user": draw(st.integers(-1, 5)),
                "file": file,
                "file_size": sizes[file] if file > 0 else 0,
                "category": category,
                "history_start": draw(st.integers(0 if category == -2 else -1, start)),
                "history_node": draw(st.integers(0 if category == -2 else -1, 600)),
            }
        )
    rows[0]["category"], rows[0]["submit"] = 0, start
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    annotations = {name: columns.pop(name) for name in [*columns][5:]}
    ids = draw(st.lists(st.integers(0, 10**9), min_size=jobs, max_size=jobs, unique=True))
    return Trace(np.array(ids), **columns, annotations=annotations, limits_hold=True)


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


@given(number=st.integers(0, 23), word=st.text("0123456789-.{}: e\t\0ä", min_size=0, max_size=4))
def test_any_other_word_is_read_or_refused(number, word, tmp_path_factory):
    words = FIRST.split()
    words[number] = word
    path = tmp_path_factory.mktemp("rackham") / "a.rackham"
    path.write_text(f"{WAITING}\n{' '.join(words)}\n", encoding="utf-8")
    try:
        outcome = len(read_rackham(path)), None
    except InputError as error:
        outcome = None, error.line
    assert outcome in ((2, None), (None, 2))


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


def test_every_field_is_named_once():
    assert len({field.keyword for field in FIELDS}) == 11
