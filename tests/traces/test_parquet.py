import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optsched.errors import InputError
from optsched.traces.reading import read_trace, write_trace
from optsched.traces.swf import read_swf
from optsched.traces.table_files import read_parquet
from optsched.traces.trace import Header

JOBS = {"job_id": [1, 2, 3], "submit": [0, 5, 9], "runtime": [7, 8, 9], "processors": [1, 2, 4]}


def write(tmp_path, metadata=None, **columns):
    columns = {name: values for name, values in (JOBS | columns).items() if values is not None}
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)
    return path


def test_a_cleaned_trace_keeps_the_stated_times(tmp_path, small_swf):
    trace = read_trace(small_swf)
    write_trace(trace, tmp_path / "a.parquet")
    again = read_trace(tmp_path / "a.parquet")
    assert again.frame.equals(trace.frame)
    assert again.stated_time.tolist() != again.requested_time.tolist()
    assert "preceding_job" not in pq.read_schema(tmp_path / "a.parquet").names  # all unknown
    assert again.header.values("Note")[-1].startswith("cleaned by optsched (8 jobs read; 2 dropped")


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
    expected = {"submit": [0.5, -1.0, 2.0], "processors": [1, -1, 255], "user": [7, -1, 9]}
    expected |= {"memory": [0, -1, 2**53], "requested_time": [-1] * 3, "label": ["a", "b", "日本"]}
    expected |= {"bandwidth": [5, 6, -1], "weight": [0.5, -2.0, 1e300]}
    assert {name: trace.frame[name].tolist() for name in expected} == expected
    assert (trace.header.max_procs, trace.limits_hold) == (16, True)
    assert trace.oddities == {"jobs submitted before the job above": 1}


def test_the_frame_of_a_trace_is_a_file(tmp_path, small_swf):
    trace = read_trace(small_swf)
    trace.annotated(weight=np.array([1.0, 2.0, 3.0, 4.0])).frame.to_parquet(tmp_path / "f.parquet")
    again = read_trace(tmp_path / "f.parquet")
    assert again.frame.drop(columns="weight").equals(trace.frame)
    assert again.annotations["weight"].tolist() == [1, 2, 3, 4]


def test_columns_that_are_not_read_are_named(tmp_path):
    columns = {"parts": [[1], [2], []], "none": [None] * 3, "a b": [1, 2, 3]}
    trace = read_parquet(write(tmp_path, **columns))
    assert trace.oddities == {"columns that are not read (parts, none, a b)": 3}
    assert trace.annotations == trace.texts == {}


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
        ({"submit": [0, 2**53 + 1, 1]}, f", submit, row 2: {2**53 + 1}; expected a number"),
        ({"job_id": [1, None, 3]}, ", job_id, row 2: missing; expected an integer of at least 0"),
        ({"bandwidth": pa.array([2**63, 2, 1], pa.uint64())}, ", bandwidth, row 1: 92233720368"),
        ({"weight": [0, 1, -float("inf")]}, ", weight, row 3: -inf; expected a finite number"),
        ({"label": ["a", None, "c"]}, ", label, row 2: missing; expected a text"),
        ({"gpus": [1.0, None, 1e300]}, ", gpus, row 3: 1e+300; expected an integer of at least 0"),
        ({"exclusive": [1, 0, 2]}, ", exclusive, row 3: 2; expected an integer from 0 to 1"),
        ({"wait": ["1", "soon", "3"]}, ", wait, row 2: 'soon'; expected a number of at least 0"),
        ({"user": ["a", "b", "c"], "user_name": ["a"] * 3}, ", user_name: is user too; expected"),
        (
            {"runtime": None, "start": [1, 2, 3], "end": [1, 1, None]},
            ", end, row 2: 1; expected an end at the start or later",
        ),
        ({"label": [1, 2, 3]}, ", label: type int64; expected texts"),
        ({"metadata": {"header": "MaxProcs: 9999999999"}}, ", metadata header, MaxProcs: 9999"),
        ({"metadata": {"header": b"\xff"}}, ", metadata header: not UTF-8"),
        ({"metadata": {"limits_hold": "yes"}}, ", metadata limits_hold: 'yes'; expected true"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, refusal, columns, message):
    assert refusal(write(tmp_path, **columns)).startswith(message)


def test_damaged_files_and_two_columns_of_a_name_are_refused(tmp_path, refusal):
    path = write(tmp_path)
    whole = path.read_bytes()
    for data in (b"", b"PAR1", whole[:-1], whole[:40], whole[:4] + b"\xff" * 60 + whole[64:]):
        path.write_bytes(data)
        assert refusal(path) == ": damaged; expected a Parquet file"
    pq.write_table(pa.table([[1]] * 5, names=[*JOBS, "submit"]), path)
    assert refusal(path) == ", submit: more than one column with this name"


def test_numbers_that_the_format_does_not_hold_are_not_written(tmp_path, small_swf):
    trace = read_swf(small_swf).changed(wait=np.array([0, 0, 0, -7, 0, 0, 0, 0]))
    with pytest.raises(InputError, match=r"a.parquet, wait, row 4: -7; expected"):
        write_trace(trace, tmp_path / "a.parquet")
    broken = read_swf(small_swf).changed(header=Header((("Note", "a\nb"),)))
    with pytest.raises(InputError, match="line break"):
        write_trace(broken, tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()


def test_rows_of_several_groups_are_one_trace(tmp_path, refusal):
    jobs = np.arange(1, 1001)
    table = pa.table(dict.fromkeys(JOBS, jobs) | {"user": pa.array(np.where(jobs % 2, 1, -3))})
    path = tmp_path / "t.parquet"
    pq.write_table(table.drop_columns("user"), path, row_group_size=64)
    assert read_parquet(path).submit.tolist() == jobs.tolist()
    pq.write_table(table.slice(500), path, row_group_size=64)
    assert refusal(path).startswith(", user, row 2: -3; expected")


def test_a_file_of_too_many_jobs_is_refused_before_it_is_unpacked(tmp_path, small_swf, monkeypatch):
    write_trace(read_swf(small_swf), tmp_path / "a.parquet")
    monkeypatch.setattr("optsched.traces.table_files.MOST_JOBS", 1)
    with pytest.raises(InputError, match=r"a\.parquet: has more than 1 jobs"):
        read_parquet(tmp_path / "a.parquet")


def test_unknown_numbers_stay_unknown_beside_texts(tmp_path, small_swf):
    raw = read_swf(small_swf)
    trace = raw.changed(queue=np.full(8, -1), texts={"qos": np.array(["high"] * 8)})
    write_trace(trace, tmp_path / "a.parquet")
    assert read_parquet(tmp_path / "a.parquet").frame.equals(trace.frame)
