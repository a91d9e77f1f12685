import gzip
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace, write_trace
from optsched.traces.swf import FIELDS, read_swf
from optsched.traces.table_files import read_parquet
from optsched.traces.trace import COLUMNS, Header, Trace

JOBS = {"job_id": [1, 2, 3], "submit": [0, 5, 9], "runtime": [7, 8, 9], "processors": [1, 2, 4]}


def write(tmp_path, metadata=None, **columns):
    columns = {name: values for name, values in (JOBS | columns).items() if values is not None}
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)
    return path


def refusal(path):
    with pytest.raises(InputError) as caught:
        read_parquet(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))


def test_a_converted_log_gives_the_same_trace(tmp_path, small_swf):
    raw = read_swf(small_swf)
    write_trace(raw, tmp_path / "a.parquet")
    again = read_trace(tmp_path / "a.parquet", clean=False)
    assert again.frame.equals(raw.frame)
    assert again.header == raw.header
    assert again.oddities == raw.oddities
    cleaned = clean(again)
    assert cleaned.cleaning == clean(raw).cleaning
    assert (again.name, again.path) == ("a", tmp_path / "a.parquet")


def test_a_cleaned_trace_keeps_the_stated_times(tmp_path, small_swf):
    trace = read_trace(small_swf)
    write_trace(trace, tmp_path / "a.parquet")
    again = read_trace(tmp_path / "a.parquet")
    assert again.frame.equals(trace.frame)
    assert again.stated_time.tolist() != again.requested_time.tolist()
    assert again.header.values("Note")[-1].startswith("cleaned by optsched (8 jobs read; 2 dropped")


def test_unknown_columns_are_left_out(tmp_path, small_swf):
    write_trace(read_swf(small_swf), tmp_path / "a.parquet")
    names = pq.read_schema(tmp_path / "a.parquet").names
    assert names == [
        *("job_id", "submit", "runtime", "requested_time", "processors", "requested_processors"),
        *("wait", "average_cpu_time", "status", "user", "group", "queue"),
    ]


def test_gzipped_files_are_read_and_written(tmp_path, small_swf):
    trace = read_swf(small_swf)
    write_trace(trace, tmp_path / "a.parquet.gz")
    assert gzip.decompress((tmp_path / "a.parquet.gz").read_bytes()).startswith(b"PAR1")
    assert read_trace(tmp_path / "a.parquet.gz", clean=False).frame.equals(trace.frame)


def test_what_other_tools_write_is_read(tmp_path):
    path = write(
        tmp_path,
        {"header": "Computer: Toy\nMaxProcs: 16", "limits_hold": "true"},
        submit=pa.array([0.5, None, 2], pa.float32()),
        processors=pa.array([1, None, 255], pa.uint8()),
        user=pa.chunked_array([pa.array([7, None]), pa.array([9])]),
        memory=pa.array([0, None, 2**53], pa.uint64()),
        label=["a", "b", "日本"],
        bandwidth=[5, 6, None],
        weight=[0.5, -2.0, 1e300],
    )
    trace = read_parquet(path)
    assert trace.submit.tolist() == [0.5, -1.0, 2.0]
    assert trace.processors.tolist() == [1, -1, 255]
    assert trace.user.tolist() == [7, -1, 9]
    assert trace.memory.tolist() == [0, -1, 2**53]
    assert trace.requested_time.tolist() == [-1, -1, -1]
    assert trace.label.tolist() == ["a", "b", "日本"]
    assert trace.annotations["bandwidth"].tolist() == [5, 6, -1]
    assert trace.annotations["weight"].tolist() == [0.5, -2.0, 1e300]
    assert {column.dtype for column in trace.annotations.values()} == {
        np.dtype("int64"),
        np.dtype("float64"),
    }
    assert trace.header.max_procs == 16
    assert trace.limits_hold
    assert trace.oddities == {"jobs submitted before the job above": 1}


def test_the_frame_of_a_trace_is_a_file(tmp_path, small_swf):
    trace = read_trace(small_swf)
    trace.annotated(weight=np.array([1.0, 2.0, 3.0, 4.0])).frame.to_parquet(tmp_path / "f.parquet")
    again = read_trace(tmp_path / "f.parquet")
    assert again.frame.drop(columns="weight").equals(trace.frame)
    assert again.annotations["weight"].tolist() == [1, 2, 3, 4]


def test_columns_that_are_not_read_are_named(tmp_path):
    name = "a b"
    lists, nothing = [[1], [2], []], [None] * 3
    trace = read_parquet(write(tmp_path, parts=lists, none=nothing, **{name: [1, 2, 3]}))
    assert trace.oddities == {"columns that are not read (parts, none, a b)": 3}
    assert trace.annotations == {}
    assert trace.texts == {}


def test_demands_are_in_the_file(tmp_path, small_swf):
    trace = read_trace(small_swf)
    demanding = trace.annotated(bandwidth=np.array([1, 2, 3, 4]))
    path, beside = tmp_path / "a.parquet", tmp_path / "a.parquet.demands.csv"
    beside.write_text("of an earlier trace")
    assert write_trace(demanding, path) == (path,)
    assert not beside.exists()
    assert read_trace(path).annotations["bandwidth"].tolist() == [1, 2, 3, 4]
    beside.write_text("job_id,bandwidth\n")
    with pytest.raises(InputError, match="line 1, column 2: 'bandwidth'; is the name of a column"):
        read_trace(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"runtime": [1, 2, -5]}, ", runtime, row 3: -5; expected a number of at least 0, or -1"),
        ({"runtime": [1, -0.5, 2]}, ", runtime, row 2: -0.5; expected a number of at least 0"),
        ({"submit": [0, 2**53 + 1, 1]}, f", submit, row 2: {2**53 + 1}; expected a number"),
        ({"submit": [0, float("nan"), 1]}, ", submit, row 2: nan; expected a number"),
        ({"submit": [0, 1, float("inf")]}, ", submit, row 3: inf; expected a number"),
        ({"job_id": [1, None, 3]}, ", job_id, row 2: missing; expected an integer of at least 0"),
        ({"job_id": [1, 2, -1]}, ", job_id, row 3: -1; expected an integer of at least 0"),
        ({"user": pa.array([1, 2, 2**63], pa.uint64())}, f", user, row 3: {2**63}; expected"),
        ({"bandwidth": pa.array([2**63, 2, 1], pa.uint64())}, ", bandwidth, row 1: 92233720368"),
        ({"weight": [0, 1, -float("inf")]}, ", weight, row 3: -inf; expected a finite number"),
        ({"label": ["a", None, "c"]}, ", label, row 2: missing; expected a text"),
        ({"processors": [1.0, 2.5, 3.0]}, ", processors, row 2: 2.5; expected an integer of at"),
        ({"gpus": [1.0, None, 1e300]}, ", gpus, row 3: 1e+300; expected an integer of at least 0"),
        ({"exclusive": [1, 0, 2]}, ", exclusive, row 3: 2; expected an integer from 0 to 1"),
        ({"nodes": [1, -2, None]}, ", nodes, row 2: -2; expected an integer of at least 0"),
        ({"wait": ["1", "2", "3"]}, ", wait: type string; expected numbers"),
        ({"wait": ["1", "soon", "3"]}, ", wait, row 2: 'soon'; expected a number of at least 0"),
        ({"qos": [1, 2, 3]}, ", qos: type int64; expected texts"),
        ({"user": ["a", "b", "c"], "user_name": ["a"] * 3}, ", user_name: is user too; expected"),
        (
            {"runtime": None, "start": [1, 2, 3]},
            ": no column runtime (or start and end); the table",
        ),
        (
            {"runtime": None, "start": [1, 2, 3], "end": [1, 1, None]},
            ", end, row 2: 1; expected an end at the start or later",
        ),
        ({"label": [1, 2, 3]}, ", label: type int64; expected texts"),
        ({"submit": None}, ": no column submit; the table has job_id, runtime, processors; opt"),
        (dict.fromkeys(JOBS, ()), ": no jobs; expected one in each row"),
        (dict.fromkeys(JOBS, np.empty(0, dtype=np.int64)), ": no jobs; expected one in each row"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, columns, message):
    assert refusal(write(tmp_path, **columns)).startswith(message)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"header": "MaxProcs: 9999999999"}, ", metadata header, MaxProcs: 9999999999; expected"),
        ({"header": b"\xff"}, ", metadata header: not UTF-8"),
        ({"limits_hold": "yes"}, ", metadata limits_hold: 'yes'; expected true or false"),
    ],
)
def test_wrong_metadata_are_refused(tmp_path, metadata, message):
    assert refusal(write(tmp_path, metadata)).startswith(message)


def test_two_columns_of_a_name_are_refused(tmp_path):
    table = pa.table([[1], [2], [3], [4], [5]], names=[*JOBS, "submit"])
    pq.write_table(table, tmp_path / "t.parquet")
    assert refusal(tmp_path / "t.parquet") == ", submit: more than one column with this name"


def test_damaged_files_are_refused(tmp_path):
    path = write(tmp_path)
    whole = path.read_bytes()
    for data in (b"", b"PAR1", whole[:-1], whole[:40], whole[:4] + b"\xff" * 60 + whole[64:]):
        path.write_bytes(data)
        assert refusal(path) == ": damaged; expected a Parquet file"


def test_numbers_that_the_format_does_not_hold_are_not_written(tmp_path, small_swf):
    trace = read_swf(small_swf).changed(wait=np.array([0, 0, 0, -7, 0, 0, 0, 0]))
    with pytest.raises(InputError, match=r"a.parquet, wait, row 4: -7; expected"):
        write_trace(trace, tmp_path / "a.parquet")
    broken = read_swf(small_swf).changed(header=Header((("Note", "a\nb"),)))
    with pytest.raises(InputError, match="line break"):
        write_trace(broken, tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()


def test_the_same_trace_gives_the_same_bytes(tmp_path, small_swf):
    for name in ("a.parquet", "b.parquet"):
        write_trace(read_swf(small_swf), tmp_path / name)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@st.composite
def traces(draw):
    jobs = draw(st.integers(1, 5))

    def values(numbers):
        return np.array(draw(st.lists(numbers, min_size=jobs, max_size=jobs)))

    columns = {}
    for field in FIELDS:
        largest = 2**53 if field.decimals else 2**63 - 1
        numbers = st.integers(max(field.lowest, -largest), largest)
        if field.decimals and draw(st.booleans()):
            numbers = st.just(-1.0) | st.floats(0, 2**53)
        columns[field.column] = values(numbers)
    if draw(st.booleans()):
        columns["stated_time"] = values(st.integers(-1, 2**53))
    annotations = {
        "file": values(st.integers(-(2**63), 2**63 - 1)),
        "weight": values(st.floats(allow_nan=False, allow_infinity=False)),
        "nodes": values(st.integers(-1, 2**63 - 1)),
        "eligible": values(st.just(-1.0) | st.floats(0, 2**53)),
    }
    texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
    lines = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["", "Note"]), st.from_regex(r"[a-z0-9]{0,9}", fullmatch=True)
            )
        )
    )
    return Trace(
        **columns,
        header=Header(tuple(lines)),
        label=values(texts) if draw(st.booleans()) else None,
        annotations=annotations if draw(st.booleans()) else {},
        texts={"qos": values(texts), "host": values(texts)} if draw(st.booleans()) else {},
        limits_hold=draw(st.booleans()),
    )


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(trace=traces())
def test_every_trace_survives_a_round_trip(tmp_path, trace):
    write_trace(trace, tmp_path / "a.parquet")
    again = read_parquet(tmp_path / "a.parquet")
    for name in COLUMNS:
        column, read = getattr(trace, name), getattr(again, name)
        assert read.tolist() == column.tolist()
        assert read.dtype == column.dtype or (column == -1).all()
    assert again.annotations.keys() == trace.annotations.keys()
    for name, column in trace.annotations.items():
        assert again.annotations[name].tolist() == column.tolist()
    assert {name: column.tolist() for name, column in again.texts.items()} == {
        name: column.tolist() for name, column in trace.texts.items()
    }
    assert (again.label is None) == (trace.label is None)
    if trace.label is not None:
        assert again.label.tolist() == trace.label.tolist()
    assert again.header == trace.header
    assert again.limits_hold == trace.limits_hold


def test_rows_of_several_groups_are_one_trace(tmp_path):
    jobs = np.arange(1, 1001)
    table = pa.table(dict.fromkeys(JOBS, jobs) | {"user": pa.array(np.where(jobs % 2, 1, -3))})
    content = io.BytesIO()
    pq.write_table(table.drop_columns("user"), content, row_group_size=64)
    path = tmp_path / "t.parquet"
    path.write_bytes(content.getvalue())
    assert read_parquet(path).submit.tolist() == jobs.tolist()
    pq.write_table(table.slice(500), path, row_group_size=64)
    assert refusal(path).startswith(", user, row 2: -3; expected")


def test_a_file_of_too_many_jobs_is_refused_before_it_is_unpacked(tmp_path, small_swf, monkeypatch):
    write_trace(read_swf(small_swf), tmp_path / "a.parquet")
    monkeypatch.setattr("optsched.traces.table_files.MOST_JOBS", 1)
    with pytest.raises(InputError, match=r"a\.parquet: has more than 1 jobs"):
        read_parquet(tmp_path / "a.parquet")


def test_unknown_numbers_stay_unknown_beside_texts(tmp_path, small_swf):
    trace = read_swf(small_swf)
    unknown = np.full(len(trace), -1)
    texts = {"qos": np.array(["high"] * len(trace), dtype=object)}
    write_trace(trace.changed(queue=unknown, texts=texts), tmp_path / "a.parquet")
    again = read_parquet(tmp_path / "a.parquet")
    assert again.queue.tolist() == unknown.tolist()
    assert again.texts["qos"].tolist() == texts["qos"].tolist()
