import gzip
import json
import math
from datetime import UTC, datetime

import numpy as np
import pytest

from optsched.cli import run as command
from optsched.errors import InputError
from optsched.registry import readers
from optsched.traces.cleaning import clean
from optsched.traces.reading import format_of, read_trace, write_trace
from optsched.traces.sacct import read_sacct_json
from optsched.traces.sacct_text import read_sacct_text
from optsched.traces.trace import COLUMNS

NAMES = "JobIDRaw|JobID|Submit|Eligible|Start|End|ReqCPUS|AllocCPUS|ReqTRES|TimelimitRaw|State"
START = 1_795_367_000
VERSIONS = (38, 42, 45)
NOTHING = {"got": 0, "elapsed": 0}


def number(value, version):
    """A number as a version of the data parser writes it."""
    if version == 38:
        return value
    amount = 0 if value in (None, math.inf) else value
    return {"set": value is not None, "infinite": value == math.inf, "number": amount}


def record(version=42, **changed):
    """A job of 4 cores that waited 5 s and ran 60 s, or as `changed` says."""
    job = {"job_id": 7, "limit": 30, "cores": 4, "got": 4, "state": "COMPLETED", "steps": 0}
    job |= {"cluster": "scout", "array": {}, "het": 0, "asked": [("node", "", 1)], "memory": 0}
    time = {"submit": START, "eligible": START, "start": START + 5, "end": START + 65}
    job |= time | {"elapsed": 60, "suspended": 0} | changed
    asked = [("cpu", "", job["cores"]), ("energy", "", -2), *job["asked"]]
    got = [("cpu", None, job["got"])] if job["got"] else []
    requested, allocated = (
        [{"type": kind, "name": name, "id": 1, "count": count} for kind, name, count in resources]
        for resources in (asked, got)
    )
    time = {name: job[name] for name in ("eligible", "start", "end", "elapsed", "suspended")}
    limit = number(job["limit"], version)
    array = {"job_id": 0, "task_id": number(None, version), "task": None}
    required = {"memory": job["memory"]}
    if version != 38:
        names = "memory_per_cpu", "memory_per_node"
        required = {name: number(job.get(name), version) for name in names}
    return {
        "job_id": job["job_id"],
        "array": array | job["array"],
        "cluster": job["cluster"],
        "time": time | {"submission": job["submit"], "limit": limit},
        "required": required | {"CPUs": job["cores"]},
        "state": {"current": job["state"] if version == 38 else [job["state"]], "reason": "None"},
        "steps": [{}] * job["steps"],
        "tres": {"allocated": allocated, "requested": requested},
        "reservation": {"id": 0, "name": 0 if version == 38 else ""},
        "het": {"job_id": job["het"]},
    } | job.get("more", {})


def dump(*records, version=42):
    plugin = {"data_parser": f"data_parser/v0.0.{version}"}
    if version == 38:
        plugin = {"type": "openapi/dbv0.0.38"}
    return {"jobs": [*records], "meta": {"plugin": plugin}}


def of_json(tmp_path, *records, version=42):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(dump(*records, version=version)))
    return read_trace(path, clean=False)


def text_of(tmp_path, *lines):
    path = tmp_path / "t.sacct"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def of_text(tmp_path, *lines, names=NAMES):
    return read_trace(text_of(tmp_path, names, *lines), clean=False)


def line(job="7", raw=None, submit=START, **changed):
    start, end = (submit + 5, submit + 65) if isinstance(submit, int) else (submit, submit)
    fields = {"JobIDRaw": job if raw is None else raw, "JobID": job, "ReqCPUS": 4, "AllocCPUS": 4}
    fields |= {"Submit": submit, "Eligible": submit, "Start": start, "End": end}
    fields |= {"State": "COMPLETED", "ReqTRES": "cpu=4,node=1", "TimelimitRaw": 30} | changed
    return "|".join(str(fields[name]) for name in NAMES.split("|"))


def same(one, other, but=()):
    for name in COLUMNS:
        if name not in but:
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for kind in ("annotations", "texts"):
        left, right = getattr(one, kind), getattr(other, kind)
        assert set(left) ^ set(right) <= set(but)
        for name in set(left) & set(right) - set(but):
            assert left[name].tolist() == right[name].tolist(), name


# --- what the three versions of Slurm wrote


@pytest.mark.parametrize("version", ["24.11.5", "26.05.5"])
def test_json_and_text_of_the_same_jobs_are_the_same_trace(shared, version):
    folder = shared(f"slurm/fixtures/{version}")
    of_records = read_sacct_json(folder / "sacct.json.gz")
    of_lines = read_sacct_text(folder / "sacct.txt.gz")
    memory = ("memory_per_core", "memory_per_node")
    # the text was written without names, licences and Exclusive, and has totals of memory
    same(of_records, of_lines, ("executable", "job_name", "licences", "exclusive", *memory))
    counted = [trace.oddities for trace in (of_records, of_lines)]
    for what in (
        "jobs that had not started, whose run time is unknown",
        "jobs that ended without having started, whose run time is unknown",
        "records of several waiting tasks of an array, each one job here",
    ):
        assert counted[0][what] == counted[1][what] > 0
    total = []
    for trace in (of_records, of_lines):
        asked = {"memory_per_node": np.full(len(trace), -1)} | trace.annotations
        of_cores = asked["memory_per_core"].clip(min=0) * trace.requested_processors
        total.append(of_cores + asked["memory_per_node"].clip(min=0) * asked["nodes"])
    assert (total[0] == total[1]).mean() > 0.9  # Slurm states other totals with --mem-per-gpu


@pytest.mark.parametrize("version", ["22.05.8", "24.11.5", "26.05.5"])
def test_states_of_a_capture_decide_on_what_is_known(shared, version):
    path = shared(f"slurm/fixtures/{version}/sacct.json.gz")
    records = json.loads(gzip.decompress(path.read_bytes()))["jobs"]
    trace = read_sacct_json(path)
    assert trace.job_id.tolist() == [one["job_id"] for one in records]
    state = trace.texts["state"]
    ran = (state == "COMPLETED") | ((state == "FAILED") & (trace.processors > 0))
    assert ((trace.runtime >= 0) == ran).all()
    assert ((trace.wait >= 0) == (ran | (state == "RUNNING"))).all()
    assert (trace.status[state == "COMPLETED"] == 1).all()
    assert (trace.status[state == "PENDING"] == -1).all()
    assert (trace.requested_time % 60 == 0).all()
    assert trace.header.lines[0] == ("Computer", "scout")


@pytest.mark.parametrize("version", [42, 43, 44, 45])
def test_every_version_of_the_data_parser_gives_the_same_trace(shared, version):
    folder = shared("slurm/fixtures/26.05.5/parsers")
    one, other = (read_sacct_json(folder / f"sacct.v{v}.json.gz") for v in (42, version))
    same(one, other, ("exclusive",))
    assert ("exclusive" in other.annotations) == (version == 45)


def test_a_capture_is_converted_and_simulated(shared, tmp_path, capsys):
    path = str(shared("slurm/fixtures/24.11.5/sacct.json.gz"))
    out = tmp_path / "x.parquet"
    assert command(["trace", "convert", path, "-o", str(out)]) == 0
    same(read_trace(path, clean=False), read_trace(out, clean=False))
    assert command(["trace", "info", path]) == 0
    assert "jobs that had not started, whose run time is unknown: 120" in capsys.readouterr().out
    words = ["--policy", "easy", "--machine", "nodes:1024", "--no-plots", "-o", str(tmp_path / "r")]
    assert command(["simulate", path, *words]) == 0


# --- JSON, record by record


@pytest.mark.parametrize("version", VERSIONS)
def test_a_record_becomes_a_job(tmp_path, version):
    asked = [("mem", "", 8000), ("node", "", 2), ("gres", "gpu", 2), ("gres", "gpu:a100", 2)]
    more = {"user": "anna", "account": "ai", "qos": "high", "partition": "debug,batch"}
    more |= {"name": "x|y", "constraints": "ib&skylake", "nodes": "c[01-02]"}
    more |= {"licenses": "matlab:4", "priority": number(508, version)}
    one = record(version, asked=asked, more=more, memory=2000, memory_per_cpu=2000)
    other = record(version, job_id=9, submit=START + 100, start=START + 100, end=START + 110)
    trace = of_json(tmp_path, one, other, version=version)
    numbers = {"job_id": [7, 9], "submit": [0, 100], "wait": [5, 0]}
    numbers |= {"runtime": [60, 60], "requested_time": [1800] * 2}  # elapsed, as Slurm states it
    numbers |= {"processors": [4, 4], "requested_processors": [4, 4], "nodes": [2, 1]}
    numbers |= {"memory_per_core": [2000, -1], "gpus": [2, 0], "priority": [508, -1]}
    assert {name: trace.frame[name].tolist() for name in numbers} == numbers
    assert "memory_per_node" not in trace.annotations
    assert trace.header.unix_start_time == START
    texts = {"user_name": "anna", "account": "ai", "qos": "high", "partition_name": "debug,batch"}
    texts |= {"job_name": "x|y", "gpu_type": "a100", "features": "ib&skylake"}
    texts |= {"licences": "matlab:4", "state": "COMPLETED", "node_list": "c[01-02]"}
    assert {name: column[0] for name, column in trace.texts.items()} == texts


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("changed", "wait", "runtime", "counted"),
    [
        ({"start": 0, "end": 0, **NOTHING, "state": "PENDING"}, -1, -1, "jobs that had not st"),
        ({"start": None, **NOTHING, "state": "DEADLINE"}, -1, -1, "jobs that ended with"),
        ({"start": START + 65, **NOTHING, "state": "CANCELLED"}, -1, -1, "jobs that ended with"),
        ({"end": 0, "elapsed": 12, "state": "RUNNING"}, 5, -1, "jobs that had not ended"),
        ({"elapsed": 50, "suspended": 10}, 5, 50, "jobs that were suspended"),
        ({"elapsed": None, "suspended": 10}, 5, 50, "jobs that were suspended"),
        ({"elapsed": None, "end": START + 4}, 5, -1, "jobs that ended before they started"),
        ({"start": START - 9}, -1, 60, "jobs that started before they were submitted"),
        ({"limit": math.inf}, 5, 60, "jobs without a limit of their own"),
        ({"steps": 3}, 5, 60, "steps of jobs"),
        ({"het": 7}, 5, 60, "parts of heterogeneous jobs"),
        ({"array": {"job_id": 7, "task": "0xFF"}}, 5, 60, "records of several waiting tasks"),
        ({"eligible": START - 1}, 5, 60, "jobs that were eligible before"),
    ],
)  # fmt: skip
def test_what_is_unknown_is_counted(tmp_path, version, changed, wait, runtime, counted):
    if version == 38 and changed.get("limit"):
        changed = {"limit": 4294967295}
    records = record(version, **changed), record(version, job_id=8)
    trace = of_json(tmp_path, *records, version=version)
    assert (trace.wait[0], trace.runtime[0]) == (wait, runtime)
    assert (trace.wait[1], trace.runtime[1]) == (5, 60)
    found = {what: count for what, count in trace.oddities.items() if what.startswith(counted)}
    assert list(found.values()) == [changed.get("steps", 1)]
    assert len(trace.oddities) == 1
    assert trace.requested_time[0] == (-1 if "limit" in changed else 1800)


def test_runs_of_a_requeued_job_are_jobs_and_later_records_replace_earlier(tmp_path):
    again = {"submit": START + 70, "eligible": START + 70, "start": START + 80}
    records = record(**again, end=0, state="RUNNING"), record(**again, end=START + 140)
    trace = of_json(tmp_path, record(state="NODE_FAIL"), *records, record(job_id=8))
    assert trace.job_id.tolist() == [7, 7, 8]
    assert trace.submit.tolist() == [0, 70, 0]
    assert trace.status.tolist() == [0, 1, 1]
    assert trace.oddities == {
        "job numbers used before": 1,
        "jobs submitted before the job above": 1,
        "records of a job with a later record of the same submission, left out": 1,
    }


def test_memory_of_version_38_is_told_by_its_total(tmp_path):
    cases = [(1000, 4000, 2), (2000, 4000, 2), (0, 60_001, 1), (4000, 60_000, 1), (500, 2000, 4)]
    records = [
        record(38, job_id=7 + place, memory=memory, asked=[("mem", "", total), ("node", "", nodes)])
        for place, (memory, total, nodes) in enumerate(cases)
    ]
    trace = of_json(tmp_path, *records, version=38)
    assert trace.annotations["memory_per_core"].tolist() == [1000, -1, 15_001, 15_000, 500]
    assert trace.annotations["memory_per_node"].tolist() == [-1, 2000, -1, -1, -1]
    what = "jobs whose memory is stated for the whole job, divided here by its cores"
    assert trace.oddities == {what: 2}


def test_words_of_one_record_are_columns_of_all(tmp_path):
    whole = record(memory_per_node=0)  # all memory of a node, which is not none
    task = record(job_id=8, memory_per_node=9, array={"job_id": 3, "task_id": number(0, 42)})
    words = enumerate(("NODE", "NO", "USER", ""), 9)
    others = [record(45, job_id=job, more={"exclusive": word}) for job, word in words]
    found = of_json(tmp_path, whole, task, *others, version=45).annotations
    assert found["memory_per_node"].tolist() == [-1, 9, -1, -1, -1, -1]
    assert found["exclusive"].tolist() == [-1, -1, 1, 0, 0, -1]
    assert found["array_job"].tolist() == [-1, 3, -1, -1, -1, -1]
    assert found["array_task"].tolist() == [-1, 0, -1, -1, -1, -1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (dump(record(), version=46), ", meta.plugin: data parser data_parser/v0.0.46; expect"),
        (dump(record()) | {"meta": {}}, ", meta.plugin: data parser none; expected v0.0.38"),
        (dump(record(more={"job_id": "x"})), ", job_id: record 1 (x): 'x'; expected a"),
        (dump(), ": no jobs; expected a record of each"),
        (dump({"job_id": 4, "job_state": ["PENDING"]}), ": jobs of squeue --json; expected those"),
        (dump() | {"errors": [{"description": "No", "error": "x"}]}, ": no jobs, and an error of"),
        (dump(record(start="now")), ", time.start: record 1 (7): 'now'; expected a number from 0"),
        (dump(record(limit=-1)), ", time.limit: record 1 (7): {'set': True, 'infinite': False,"),
        (dump(record(more={"tres": {"requested": [3]}})), ", tres.requested: record 1 (7): [3]"),
        (dump(record(), record(cluster="b")), ": jobs of clusters b, scout; expected those of one"),
        ({"jobs": [{"job_id": 3}]}, ", meta: no version of a data parser; expected what"),
    ],
)  # fmt: skip
def test_a_mistake_names_the_record_and_the_field(tmp_path, refusal, content, message):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(content))
    assert refusal(path).startswith(message)


def test_what_is_no_record_of_a_job_is_left_out_and_counted(tmp_path):
    without = [record(more={"job_id": job}) for job in (0, None, number(None, 42))]
    without.append({name: value for name, value in record().items() if name != "job_id"})
    unsubmitted = record(job_id=8, submit=None)
    content = dump(record(), *without, unsubmitted)
    content["errors"] = [{"description": "one is missing"}]
    (tmp_path / "t.json").write_text(json.dumps(content))
    trace = read_sacct_json(tmp_path / "t.json")
    assert trace.job_id.tolist() == [7, 8]
    assert clean(trace).cleaning.dropped_submit == 1
    assert trace.oddities["records without the number of a job, left out"] == 4
    assert trace.oddities["errors that Slurm reports beside the records (one is missing)"] == 1


# --- text, line by line


def test_lines_are_read_by_the_names_of_their_fields(tmp_path):
    names = "State|AllocTRES|NodeList|ReqMem|Submit|ReqTRES|Start|Timelimit|End|JobID|User|Elapsed|"
    trace = of_text(
        tmp_path,
        "CANCELLED by 1000|billing=9,cpu=16,energy=18446744073709551614,node=2|c[01-02]|4Gc|"
        "2026-01-31T08:00:00|cpu=8,mem=62.50G,node=2,gres/gpu:h100=2|2026-01-31T08:00:30|"
        "1-00:00:00|2026-01-31T09:00:30|12|anna|01:00:00|",
        "JobID|no|line|of|names|x|x|x|x|JobID|x|x|",
        "COMPLETED||||2026-01-31T08:00:00||2026-01-31T08:00:30||2026-01-31T08:00:31|12.batch|||",
        "PENDING||None assigned|0n|2026-01-31T08:00:05|cpu=8,mem=1000M,node=2|Unknown|UNLIMITED|"
        "Unknown|13||00:00:00|",
        "CANCELLED||None assigned||2026-01-31T08:00:05|cpu=8,mem=1000M|2026-01-31T08:00:15|"
        "Partition_Limit|2026-01-31T08:00:15|14||00:00:00|",
        names=names,
    )
    columns = {"job_id": [12, 13, 14], "submit": [0, 5, 5], "wait": [30, -1, -1]}
    columns |= {"runtime": [3600, -1, -1], "processors": [16, 0, 0], "status": [5, -1, 5]}
    columns |= {"requested_processors": [8] * 3, "requested_time": [86_400, -1, -1]}
    columns |= {"allocated_nodes": [2, -1, -1], "memory_per_core": [4096, 125, 125]}
    columns |= {"gpus": [2, 0, 0], "gpu_type": ["h100", "", ""], "user_name": ["anna", "", ""]}
    assert {name: trace.frame[name].tolist() for name in columns} == columns
    eight = int(datetime(2026, 1, 31, 8, tzinfo=UTC).timestamp())
    assert trace.header.unix_start_time == eight
    assert trace.oddities == {
        "further lines of field names, left out": 1,
        "steps of jobs, left out": 1,
        "jobs whose times name no zone, read as UTC": 3,
        "jobs that had not started, whose run time is unknown": 1,
        "jobs that ended without having started, whose run time is unknown": 1,
        "jobs without a limit of their own (UNLIMITED, Partition_Limit)": 2,
        "jobs whose memory is stated for the whole job, divided here by its cores": 2,
    }


def test_times_with_a_zone_or_in_seconds_are_exact(tmp_path):
    for time in ("2026-01-31T09:00:00+01:00", "2026-01-31T08:00:00Z", "1769846400"):
        trace = of_text(tmp_path, line(submit=time))
        assert (trace.header.unix_start_time, trace.oddities) == (1_769_846_400, {})


def test_elapsed_counts_where_the_clock_was_put_back(tmp_path):
    names = "JobID|Submit|Start|End|Elapsed|ReqCPUS"
    row = "5|2026-10-25T02:00:00|2026-10-25T02:50:00|2026-10-25T02:10:00|00:20:00|1"
    assert of_text(tmp_path, row, names=names).runtime.tolist() == [1200]
    unknown = of_text(tmp_path, row.replace("00:20:00", ""), names=names)
    assert unknown.runtime.tolist() == [-1]
    assert unknown.oddities["jobs that ended before they started, whose run time is unknown"] == 1


def test_tasks_and_parts_have_numbers_of_their_own_or_keep_their_ids_as_labels(tmp_path):
    rows = [line("26_3", "40"), line("26_[4-9%2]", "26"), line("50+0", "50"), line("50+1", "51")]
    trace = of_text(tmp_path, *rows)
    assert trace.label is None
    assert trace.job_id.tolist() == [40, 26, 50, 51]
    assert trace.annotations["array_job"].tolist() == [26, 26, -1, -1]
    assert trace.annotations["array_task"].tolist() == [3, -1, -1, -1]
    assert trace.oddities["records of several waiting tasks of an array, each one job here"] == 1
    assert trace.oddities["parts of heterogeneous jobs, each one job here"] == 2
    names = "JobID|Submit|Start|End|ReqCPUS"
    trace = of_text(tmp_path, "26_3|1|2|3|1", "26_4|1|2|3|1", "30|1|2|3|1", names=names)
    assert trace.job_id.tolist() == [1, 2, 3]
    assert trace.label.tolist() == ["26_3", "26_4", "30"]
    assert trace.annotations["array_job"].tolist() == [26, 26, -1]
    assert trace.oddities["jobs numbered in the order of the file, ids kept as labels"] == 3


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["JobID|Submit|Start|ReqCPUS"], ", line 1: no field End; expected what sacct -P -o"),
        (["User|Submit|Start|End|AllocCPUS"], ", line 1: no field JobID or JobIDRaw; expected"),
        (["JobID|Submit|Start|End"], ", line 1: no field AllocCPUS or NCPUS or AllocTRES"),
        ([NAMES + "|State", line() + "|x"], ", line 1, State: more than one field with this name"),
        ([NAMES], ": no jobs; expected a record of each"),
        ([NAMES, line(), "8|9"], ", line 3: 2 fields; expected 11, as in line 1; perhaps a val"),
        ([NAMES, line(), line("7.0"), line(Start="soon")], ", line 4, Start: 'soon'; expected"),
        ([NAMES, line(ReqTRES="cpu=x")], ", line 2, ReqTRES: 'cpu=x'; expected names and amounts"),
        ([NAMES, line("7", "x7")], ", line 2, JobIDRaw: 'x7'; expected a whole number from 0"),
        ([NAMES, line("x7", "7")], ", line 2, JobID: 'x7'; expected a job such as 26, 26_3"),
        ([NAMES, line(ReqTRES="mem=999999999999999P")], ", line 2, ReqTRES: 'mem=999999999999"),
        ([NAMES.replace("|", "|||"), "7||||8"],
         ", line 2: '||||'; expected the delimiter '|||', once or several times"),
        ([NAMES.replace("|", "|||"), "7|||8\x1f"], ": holds the control character 31"),
        (["JobID|" + "|".join(f"k{k}" for k in range(200_000)), "1|x"], ", line 1: is too long"),
    ],
)  # fmt: skip
def test_a_mistake_names_the_line_and_the_field(tmp_path, refusal, lines, message):
    assert refusal(text_of(tmp_path, *lines)).startswith(message)


def test_lines_without_a_number_and_fields_that_are_not_read_are_counted(tmp_path):
    trace = of_text(tmp_path, line() + "|0.00M|x", names=NAMES + "|ReqNodes|Flags")
    assert trace.oddities == {"fields that are not read (ReqNodes, Flags)": 2}
    long = "9" * 20  # which no job has
    rows = line("", "8"), line("0", "0"), line("9", ""), line(long, long), line("10")
    trace = of_text(tmp_path, line(), *rows)
    assert trace.job_id.tolist() == [7, 10]
    assert trace.oddities["records without the number of a job, left out"] == 4


@pytest.mark.parametrize("change", [str.lower, lambda text: text.replace("|", "%30|") + "%-9"])
def test_names_may_be_in_small_letters_or_have_a_width(tmp_path, change):
    names = change(NAMES)
    trace = of_text(tmp_path, line(), names, line("8"), names=names)
    usual = of_text(tmp_path, line(), NAMES, line("8"))
    same(trace, usual)
    assert trace.oddities == usual.oddities


@pytest.mark.parametrize("separator", ["\t", ";", "^", "^|^", "|||", ";;"])
def test_fields_may_have_another_separator(tmp_path, separator):
    names = NAMES.replace("|", separator) + f"{separator}Constraints{separator}JobName"
    row = line().replace("|", separator) + f"{separator}a100|h100{separator}x, y"
    trace = of_text(tmp_path, row, names=names)
    assert trace.texts["features"].tolist() == ["a100|h100"]
    assert trace.texts["job_name"].tolist() == ["x, y"]
    assert format_of(tmp_path / "t.sacct") is readers["sacct-text"]
    (tmp_path / "t.txt").write_text((tmp_path / "t.sacct").read_text())
    same(read_trace(tmp_path / "t.txt", clean=False), trace)


def test_a_job_without_nodes_has_not_started(tmp_path):
    names = "JobID|Submit|Start|End|AllocCPUS|NodeList|ReqMem"
    rows = ["5|1|9|9|4|None assigned|16?c", "6|1|9|10|4||0n"]
    trace = of_text(tmp_path, *rows, names=names)
    assert trace.wait.tolist() == [-1, 8]
    assert trace.runtime.tolist() == [-1, 1]
    assert "memory_per_core" not in trace.annotations


def test_what_is_not_text_is_refused(tmp_path, refusal):
    path = text_of(tmp_path, NAMES, line())
    path.write_bytes(path.read_bytes().replace(b"COMPL", b"\xff"))
    assert refusal(path) == ", line 2: not UTF-8; expected what sacct -P writes"


# --- both


def test_the_forms_are_told_from_each_other_and_from_batsim(tmp_path):
    contents = {
        "sacct-json": json.dumps(dump(record())),
        "sacct-text": f"{NAMES}|\n{line()}|\n",
        "batsim": '{"jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "a"}]}',
    }
    for name, content in contents.items():
        for file in ("a.json", "a.sacct", "a.txt", "a"):
            (tmp_path / file).write_text(content)
            assert format_of(tmp_path / file) is readers[name]
    with pytest.raises(InputError, match="unknown suffix"):
        write_trace(of_json(tmp_path, record()), tmp_path / "a.sacct")


def test_jobs_that_ask_shares_of_gpus_are_counted(tmp_path):
    asked = ["cpu=1,gres/shard=3", "cpu=1,gres/mps:a100=50", "cpu=1,gres/gpu=1"]
    rows = [f"{number}|1|2|3|{each}" for number, each in enumerate(asked, 1)]
    lines = of_text(tmp_path, *rows, names="JobID|Submit|Start|End|ReqTRES")
    records = of_json(tmp_path, record(asked=[("gres", "shard", 3)]), record(job_id=8))
    what = "jobs that ask for shares of GPUs (mps, shard), which are not read"
    assert (lines.oddities[what], records.oddities[what]) == (2, 1)
