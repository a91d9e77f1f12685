import json

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.traces.batsim import read_batsim, write_batsim
from optsched.traces.cleaning import clean
from optsched.traces.swf import read_swf


def job(name, **fields):
    return {"id": name, "subtime": 0, "res": 1, "profile": "short"} | fields


PROFILES = {
    "short": {"type": "delay", "delay": 10},
    "long": {"type": "DelayProfile", "delay": 20.25},
    "work": {"type": "parallel_homogeneous", "cpu": 1e6, "com": 0},
}


def write(tmp_path, jobs, **fields):
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": PROFILES} | fields))
    return path


def test_both_names_of_a_delay_are_read(tmp_path):
    jobs = [
        job("5", subtime=0.5, walltime=100, res=2, priority=1),
        job(7, subtime=3, profile="long", walltime=-1),
    ]
    trace = read_batsim(write(tmp_path, jobs, seed=4))
    columns = trace.frame[["job_id", "submit", "runtime", "requested_time", "processors"]]
    assert columns.to_numpy().tolist() == [[5, 0.5, 10, 100, 2], [7, 3, 20.25, -1, 1]]
    assert trace.requested_time.dtype == np.int64
    assert (trace.name, trace.header.max_procs, trace.label) == ("w", 8, None)
    assert trace.oddities == {
        "jobs with fields that are not used (priority)": 1,
        "profiles with fields that are not used (com, cpu)": 1,
    }


@pytest.mark.parametrize(
    ("ids", "numbers", "labelled"),
    [
        *(([3, "12"], [3, 12], False), (["w0!3", "w0!12"], [3, 12], True)),
        *((["w0!3", "w1!12"], [1, 2], True), (["a", "b", "12"], [1, 2, 3], True)),
        *((["7", "07"], [1, 2], True), (["1" * 30, "2"], [1, 2], True)),
    ],
)
def test_ids_become_numbers_or_stay_visible(tmp_path, ids, numbers, labelled):
    trace = read_batsim(write(tmp_path, [job(name) for name in ids]))
    assert trace.job_id.tolist() == numbers
    assert (trace.label is not None) == labelled
    if labelled:
        assert trace.label.tolist() == [str(name) for name in ids]
        assert trace.frame.label.tolist() == trace.label.tolist()
    renumbered = numbers == list(range(1, len(ids) + 1))
    assert any("numbered in the order of the file" in what for what in trace.oddities) == renumbered


def test_all_mistakes_are_told_at_once_with_their_places(tmp_path):
    jobs = [job(1), job(1, subtime=-1), job(None, res=0.5), job("", walltime=0), {"subtime": True}]
    jobs += [job(5, profile="missing", subtime="0"), job(6, profile="work"), "job"]
    path = write(tmp_path, jobs)
    with pytest.raises(InputError) as caught:
        read_batsim(path)
    assert caught.value.file == str(path)
    assert list(caught.value.mistakes[:10]) == [
        "jobs[1].subtime: -1; expected a number of at least 0",
        "jobs[2].id: null; expected a name or a number",
        "jobs[2].res: 0.5; expected an integer of at least 0",
        'jobs[3].id: ""; expected a name or a number',
        "jobs[3].walltime: 0; expected a positive number, or -1 for none",
        "jobs[4].id: missing; expected a name or a number",
        "jobs[4].subtime: true; expected a number of at least 0",
        "jobs[4].res: missing; expected an integer of at least 0",
        "jobs[4].profile: missing; expected the name of a profile",
        'jobs[5].subtime: "0"; expected a number of at least 0',
    ]
    assert caught.value.mistakes[10] == "4 more mistakes"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("{}", "3 mistakes\n  - jobs: missing; expected a list\n  - profiles: missing"),
        ('{"nb_res": 1, "jobs": [], "profiles": {}}', "jobs: no jobs"),
        ('{"nb_res": 0, "jobs": [1], "profiles": {}}', "nb_res: 0; expected an integer from 1"),
        ('{"nb_res": 1,\n "jobs": [}', "line 2: not JSON"),
        (r'{"nb_res": 1, "jobs": [{"id": "a\uD800b"}]}', r"'\ud800': half of a surrogate pair"),
        (b"\xff\xfe{}", "not text"),
    ],
)
def test_what_is_no_workload_is_refused(tmp_path, text, message):
    path = tmp_path / "w.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        read_batsim(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("jobs", "delay", "message"),
    [
        ([job(4), job("4"), job(5)], 10, "jobs: the id '4' is used 2 times"),
        ([job(1, subtime=2**53 + 1)], 10, "jobs[0].subtime: 9007199254740993"),
        ([job(1)], "10", "jobs[0].profile: 'short'.delay: \"10\"; expected"),
        ([job(1, profile="work")], 10, "jobs[0].profile: 'work' is of type 'parallel_homogeneous'"),
    ],
)
def test_jobs_that_cannot_be_told_apart_or_have_no_times_are_refused(
    tmp_path, refusal, jobs, delay, message
):
    profiles = PROFILES | {"short": {"type": "delay", "delay": delay}}
    assert refusal(write(tmp_path, jobs, profiles=profiles)).startswith(f": {message}")


def test_a_trace_without_gaps_is_written_with_the_names_of_the_version(tmp_path, small_swf):
    with pytest.raises(InputError, match="5 jobs without submit time, run time or processors"):
        write_batsim(read_swf(small_swf), tmp_path / "v.json")
    assert not (tmp_path / "v.json").exists()
    trace = clean(read_swf(small_swf))
    for version, name in ((4, "delay"), (5, "DelayProfile")):
        write_batsim(trace, tmp_path / "v.json", version=version)
        written = json.loads((tmp_path / "v.json").read_text())
        assert written["nb_res"] == 32
        assert written["profiles"]["50"] == {"type": name, "delay": 50}
        expected = {"id": "3", "subtime": 20, "walltime": 50, "res": 8, "profile": "50"}
        assert written["jobs"][1] == expected
