"""Tables of jobs: CSV, Parquet and frames of pandas."""

import csv
import datetime
import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import optsched
from optsched.cli import run as command
from optsched.errors import InputError
from optsched.traces.reading import read_trace, write_trace
from optsched.traces.swf import read_swf
from optsched.traces.table_files import read_parquet
from optsched.traces.trace import Header, Trace

EAGLE = (
    "submit=submit_time,start=start_time,runtime=run_time,requested_time=wallclock_req,"
    "processors=processors_req,nodes=nodes_req,gpus=gpus_req,job_name=name"
)


def write(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_columns_are_read_by_their_names(tmp_path):
    path = write(
        tmp_path,
        "processors,submit,runtime,user,partition,nodes,exclusive,gpu_type,qos,power,host,parts\n"
        '4,0,60,anna,1,2,true,a100,007,1.5,"n1,n2",\n'
        "2.0,5,,bob,2,,false,,high,2,n3,\n"
        '1,9,7.5,anna,,1,true,"say ""h""",,,NA,\n',
    )
    trace = read_trace(path, clean=False)
    times = trace.frame[["job_id", "submit", "runtime", "processors"]].to_numpy().tolist()
    assert times == [[1, 0, 60, 4], [2, 5, -1, 2], [3, 9, 7.5, 1]]
    numbered = trace.frame[["user", "partition", "queue"]].to_numpy().tolist()
    assert numbered == [[1, 1, 1], [2, 2, 2], [1, -1, -1]]
    assert {name: column.tolist() for name, column in trace.annotations.items()} == {
        "nodes": [2, -1, 1],
        "exclusive": [1, 0, 1],
        "power": [1.5, 2, -1],
    }
    assert {name: column.tolist() for name, column in trace.texts.items()} == {
        "user_name": ["anna", "bob", "anna"],
        "gpu_type": ["a100", "", 'say "h"'],
        "qos": ["007", "high", ""],
        "host": ["n1,n2", "n3", "NA"],
    }
    assert trace.oddities == {
        "jobs numbered in the order of the rows": 3,
        "columns that are not read (parts)": 1,
    }


def test_other_names_and_dates_are_read(tmp_path):
    path = write(
        tmp_path,
        "id,at,begun,over,cores,submit\n"
        "7,2026-01-31 08:00:00,2026-01-31 08:00:10,2026-01-31 09:00:10,4,x\n"
        "8,2026-01-31 08:01:00,2026-01-31 08:00:59,2026-01-31 08:02:00,1,x\n"
        "9,2026-01-31 07:59:00,,,1,x\n",
    )
    columns = {"job_id": "id", "submit": "at", "start": "begun", "end": "over"}
    trace = read_trace(path, clean=False, columns={**columns, "processors": "cores"})
    began = datetime.datetime(2026, 1, 31, 7, 59, tzinfo=datetime.UTC)
    assert trace.header.unix_start_time == int(began.timestamp())
    jobs = trace.frame[["job_id", "submit", "wait", "runtime"]].to_numpy().tolist()
    assert jobs == [[7, 60, 10, 3600], [8, 120, -1, 61], [9, 0, -1, -1]]
    assert trace.oddities == {
        "jobs submitted before the job above": 1,
        "jobs that started before they were submitted, whose wait is unknown": 1,
        "columns that are not read (submit)": 1,
    }


@pytest.mark.parametrize(
    ("column", "texts", "seconds"),
    [
        ("submit", ["2026-03-02", "2026-03-03", ""], [0, 86400, -1]),
        ("submit", ["2026-03-02 08:00:00", "2026-03-02T08:01:00+01:00"], [3540, 0]),
        ("submit", ["2026-03-02T00:00:00Z", "2026-03-02", "2026-03-02 00:00:01 UTC"], [0, 0, 1]),
        ("submit", ["NA", "2026-03-02 08:00", "2026-03-02 08:00:00.5", "-1"], [-1, 0, 0.5, -1]),
        ("runtime", ["00:00:05", "02:00:00", ""], [5, 7200, -1]),
        ("runtime", ["26:00:00", "1-02:00:00", "NA"], [93600, 93600, -1]),
        ("runtime", ["0:01:30.5", "90", "-1"], [90.5, 90, -1]),
        ("runtime", ["0 days 01:00:00", "1 day, 2:00:00"], [3600, 93600]),
    ],
)
def test_forms_of_dates_and_of_durations_may_be_mixed(column, texts, seconds, tmp_path):
    frame = pd.DataFrame({"submit": 0, "runtime": 1, "processors": 1} | {column: texts})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for trace in (read_trace(tmp_path / "t.csv", clean=False), optsched.trace_from_frame(frame)):
        assert getattr(trace, column).tolist() == seconds


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        ("start,end", ["6,16", ",19", "9,"]),
        ("wait,end", ["5,16", ",19", "6,"]),
        ("wait,start,end", ["5,6,16", ",,19", "6,9,"]),
        ("start,end,runtime", ["6,16,", ",19,", "9,,"]),
    ],
)
def test_run_times_come_from_ends_where_none_is_known(names, rows, tmp_path):
    lines = [f"submit,processors,{names}", *(f"{at},1,{row}" for at, row in zip((1, 2, 3), rows))]
    trace = read_trace(write(tmp_path, "\n".join(lines)), clean=False)
    assert trace.runtime.tolist() == [10, -1, -1]
    assert trace.wait.tolist() == [5, -1, 6]
    path = write(tmp_path, "submit,processors,wait,end,runtime\n0,1,5,15,7\n0,1,5,15,\n")
    assert read_trace(path, clean=False).runtime.tolist() == [7, -1]  # whatever the end is


JOBS = "submit,runtime,processors\n"
DURATION = "expected a number of at least 0, or -1 for unknown, or HH:MM:SS or D-HH:MM:SS"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ", line 1: no line of column names; expected one"),
        ("submit,runtime\n1,2\n", ": no column processors; the table has submit, runtime; optsch"),
        (JOBS, ": no jobs; expected one in each row"),
        (f"{JOBS}1,2,3\n4,5\n", ", row 2: 2 columns; expected 3, as in line 1"),
        (f"{JOBS}1,2,1.5\n", ", processors, row 1: 1.5; expected an integer"),
        (f"memory,{JOBS}01:00:00,1,2,3\n", ", memory, row 1: '01:00:00'; expected a number of at"),
        (f"submit,{JOBS}1,2,3,4\n", ", submit: more than one column with this"),
        (f'{JOBS}1,2,"3\n', ': a quotation mark " is not closed'),
        (f"qos,{JOBS}".encode() + b"\xff,1,2,3\n", ", line 2: not UTF-8; expected CSV"),
        (f"start,end,{JOBS}5,9,2026-01-31,,1\n", ", start: numbers; expected dates, as in submit"),
        (f"{JOBS}2026-01-31 08:00:00,5,1\nsoon,5,1\n", ", submit, row 2: 'soon'; expected seconds"),
        (f"{JOBS}1969-12-31,5,1\n", ", submit, row 1: 1969-12-31 00:00:00; expected a date"),
        (f"{JOBS}5,5,1\n2026-01-31,5,1\n", ", submit, row 1: '5'; expected a date, as in row 2"),
        (
            f"{JOBS}5,5,1\n6,5,1\n2026-01-31,5,1\n",
            ", submit, row 3: '2026-01-31'; expected seconds, as in row 1",
        ),
        (f"{JOBS}1,01:00:00,1\n1,02:00,1\n", f", runtime, row 2: '02:00'; {DURATION}"),
        (f"{JOBS}1,01:00:00,1\n1,1e400,1\n", f", runtime, row 2: '1e400'; {DURATION}"),
        (f"{JOBS}1,01:00:00,1\n1,00:60:00,1\n", f", runtime, row 2: '00:60:00'; {DURATION}"),
        ("Submit\tTook\n", r", line 1: names separated by '\t'; expected commas"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, refusal, text, message):
    assert refusal(write(tmp_path, text)).startswith(message)


def test_wrong_names_of_columns_are_refused(tmp_path, refusal, small_swf):
    path = write(tmp_path, "at,runtime,processors\n1,2,3\n")
    found = refusal(path, submit="when")
    assert found == ", submit: no column 'when'; the table has at, runtime, processors"
    assert refusal(path, **{"a b": "at"}) == ", columns: 'a b'; expected a word"
    found = refusal(small_swf, submit="at")
    assert found == ", columns: swf has fixed columns; expected csv, parquet"


def test_the_command_renames_columns(tmp_path, capsys):
    path = write(tmp_path, "at,took,cores\n0,9,1\n3,8,2\n", "jobs.txt")
    for wrong in ("at", "submit=", "submit=at,submit=took"):
        output = str(tmp_path / "b.swf")
        assert command(["trace", "convert", str(path), "--columns", wrong, "-o", output]) == 1
        assert "expected NAME=COLUMN with commas" in capsys.readouterr().err
    path = path.rename(tmp_path / "jobs.csv")
    words = ["--columns", "submit=at,runtime=took,processors=cores", "-o", str(tmp_path / "a.swf")]
    assert command(["trace", "convert", str(path), *words]) == 0
    assert "jobs numbered in the order of the rows: 2" in capsys.readouterr().err
    assert read_trace(tmp_path / "a.swf").runtime.tolist() == [9, 8]


def test_swf_says_what_it_does_not_hold(tmp_path, caplog):
    caplog.set_level("INFO", "optsched")
    path = write(tmp_path, "submit,runtime,processors,nodes,qos\n0,9,1,1,high\n")
    assert command(["trace", "convert", str(path), "-o", str(tmp_path / "a.swf")]) == 0
    said = caplog.messages
    assert said == ["not written, this format has no place for them: 2 columns (nodes, qos)"]
    assert not (tmp_path / "a.swf.demands.csv").exists()
    notes = read_trace(tmp_path / "a.swf").header.values("Note")
    assert notes == ["nodes, qos of the jobs are not part of this format"]


def test_csv_says_what_it_does_not_hold(tmp_path, caplog, small_swf):
    caplog.set_level("INFO", "optsched")
    assert command(["trace", "convert", str(small_swf), "-o", str(tmp_path / "a.csv.gz")]) == 0
    left_out, undated = caplog.messages
    assert left_out == "not written, this format has no place for them: 8 header lines"
    assert undated.startswith("the time at which the trace begins (UnixStartTime) is not written")
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"job_id,submit,runtim")
    cut = Trace([1], [0], [9], [5], [1], limits_hold=True)
    with pytest.raises(InputError, match="which CSV cannot say; expected a Parquet file"):
        write_trace(cut, tmp_path / "b.csv")


def test_a_frame_is_a_trace_and_so_is_the_frame_of_a_trace(small_swf):
    frame = pd.DataFrame(
        {
            "when": pd.to_datetime(["2026-01-01 00:00:10", "2026-01-01 00:00:00"]),
            "took": pd.to_timedelta([90, 0.5], unit="s"),
            "processors": [4.0, 2.0],
            "user": pd.Categorical(["bob", "anna"]),
            "qos": ["high", None],
            "group": [7, None],
        },
        index=[5, 3],
    )
    trace = optsched.trace_from_frame(frame, name="mine", submit="when", runtime="took")
    assert (trace.name, trace.header.unix_start_time) == ("mine", 1_767_225_600)
    read = trace.frame[["submit", "runtime", "user", "group", "user_name", "qos"]]
    jobs = [[10, 90, 1, 7, "bob", "high"], [0, 0.5, 2, -1, "anna", ""]]
    assert read.to_numpy().tolist() == jobs
    assert optsched.simulate(trace, "nodes:4", "easy").summary["jobs"] == 1
    frame = pd.DataFrame({"submit": [0, 1], "runtime": [9, 9], "processors": [4, 4]})
    assert optsched.simulate(frame, "nodes:4", "fcfs").start.tolist() == [0, 9]
    trace = read_trace(small_swf).changed(texts={"qos": np.array(["a", "", "b", "a"])})
    again = optsched.trace_from_frame(trace.frame)
    pd.testing.assert_frame_equal(again.frame, trace.frame)


def test_wrong_frames_are_refused():
    jobs = {"submit": [0, 1], "runtime": [9, 9], "processors": [1, 2]}
    mixed = {"qos": pd.Series(["a", 1], dtype=object)}
    for table, names, said in (
        (jobs | mixed, {}, "^qos: holds values of int and str; expected one type in each column"),
        (jobs, {"submit": "at"}, "^submit: no column 'at'; the table has submit, runtime"),
        ({"at": [0]}, {}, "table has at; optsched.trace_from_frame.frame, submit=NAME, runtime=N"),
        (jobs | {"submit": ["2026-01-01", "1/2/2026"]}, {}, "^submit, row 2: '1/2/2026'; expected"),
    ):
        with pytest.raises(InputError, match=said):
            optsched.trace_from_frame(pd.DataFrame(table), **names)
    with pytest.raises(InputError, match=r"^frame: .*; expected a DataFrame of pandas"):
        optsched.trace_from_frame(jobs)
    with pytest.raises(InputError, match=r"^trace: a DataFrame; expected a file or a name"):
        optsched.read_trace(pd.DataFrame(jobs))


def test_the_eagle_sample_converts_by_one_command(shared, tmp_path):
    path, output = shared("traces/clusters/eagle_sample.csv.gz"), tmp_path / "eagle.parquet"
    words = ["trace", "convert", str(path), "--columns", EAGLE, "-o", str(output)]
    assert command(words) == 0
    trace = read_trace(output, clean=False)
    with gzip.open(path, "rt", newline="") as text:
        rows = list(csv.DictReader(text))
    first = trace.header.unix_start_time
    for name, offset in (("submit_time", 0), ("start_time", trace.wait)):
        times = [datetime.datetime.fromisoformat(f"{row[name]}+00:00").timestamp() for row in rows]
        assert (trace.submit + first + offset).tolist() == times
    read = {"run_time": "runtime", "processors_req": "processors", "gpus_req": "gpus"}
    read |= {"user": "user_name", "name": "job_name", "state": "state"}
    for column, name in read.items():
        values = trace.frame[name]
        assert values.tolist() == [values.dtype.type(row[column]) for row in rows]


TABLE = {"job_id": [1, 2, 3], "submit": [0, 5, 9], "runtime": [7, 8, 9], "processors": [1, 2, 4]}


def write_table(tmp_path, metadata=None, **columns):
    columns = {name: values for name, values in (TABLE | columns).items() if values is not None}
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
    path = write_table(
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
    trace = read_parquet(write_table(tmp_path, **columns))
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
        ({"gpus": [1.0, None, 1e300]}, ", gpus, row 3: 1e+300; expected an integer of at most 2"),
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
def test_what_is_no_trace_in_parquet_is_refused(tmp_path, refusal, columns, message):
    assert refusal(write_table(tmp_path, **columns)).startswith(message)


def test_damaged_files_and_two_columns_of_a_name_are_refused(tmp_path, refusal):
    path = write_table(tmp_path)
    whole = path.read_bytes()
    for data in (b"", b"PAR1", whole[:-1], whole[:40], whole[:4] + b"\xff" * 60 + whole[64:]):
        path.write_bytes(data)
        assert refusal(path) == ": damaged; expected a Parquet file"
    pq.write_table(pa.table([[1]] * 5, names=[*TABLE, "submit"]), path)
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
    table = pa.table(dict.fromkeys(TABLE, jobs) | {"user": pa.array(np.where(jobs % 2, 1, -3))})
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
