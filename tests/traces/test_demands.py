"""Demands of jobs: drawn in the shares of a mix, kept in a file beside the trace."""

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.content import bundled
from optsched.errors import InputError
from optsched.registry import readers
from optsched.simulator.simulate import simulate
from optsched.traces.cleaning import clean
from optsched.traces.facts import facts, lines
from optsched.traces.reading import read_trace, write_trace
from optsched.traces.requests import demands_file, encode_demands, split_demands
from optsched.traces.swf import read_swf
from optsched.traces.trace import Trace
from optsched.traces.transformations import drawn

JOBS = "".join(f"{job},{100 * job},{job % 3}\n" for job in (3, 1, 2, 8, 7, 6, 5, 4))
CSV = "job_id,bandwidth,network\n" + JOBS


@pytest.fixture
def demanding(small_swf):
    """Return the path of a trace of eight jobs, four of which count, with demands beside it."""
    demands_file(small_swf).write_text(CSV)
    return small_swf


def make(job_id, label=None, **annotations):
    jobs = np.arange(len(job_id))
    columns = np.array(job_id), jobs, jobs + 10, jobs + 10, jobs + 1
    label = None if label is None else np.array(label)
    return clean(Trace(*columns, label=label, annotations=annotations))


def test_demands_beside_a_trace_are_annotations(demanding):
    raw = read_trace(demanding, clean=False)
    assert raw.annotations["bandwidth"].tolist() == (100 * raw.job_id).tolist()
    assert raw.demands_sha256 == hashlib.sha256(CSV.encode()).hexdigest()
    columns = read_trace(demanding).frame[["job_id", "bandwidth", "network"]]
    assert columns.to_numpy().tolist() == [[1, 100, 1], [3, 300, 0], [4, 400, 1], [5, 500, 2]]


@pytest.mark.parametrize(
    "data",
    [
        CSV.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + CSV.replace("\n", "\n\n").encode(),
        gzip.compress(CSV.encode()),
        CSV.rstrip("\n").encode(),
        CSV.replace("\n", " \n").encode(),
    ],
    # bytes of a gzip file tell when it was made, and names of tests have to be the same everywhere
    ids=["windows", "marked", "gzip", "unfinished", "blanks"],
)
def test_what_spreadsheets_and_compressors_make_of_it_is_read(demanding, data):
    expected = read_trace(demanding).frame
    demands_file(demanding).write_bytes(data)
    assert read_trace(demanding).frame.equals(expected)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", ", line 1: ''; expected 'job_id,' and the names of resources"),
        ("job_id,Band\n", ", line 1, column 2: 'Band'; expected small letters and underscores"),
        ("job_id,a,b,a\n", ", line 1, column 4: 'a'; is the name of an earlier column"),
        ("job_id,memory\n", ", line 1, column 2: 'memory'; is the name of a column of traces"),
        (CSV.replace("3,300,0", "3,300"), ", line 2: 2 columns; expected 3, as in line 1"),
        (CSV.replace("3,300", "3,-300"), ", line 2, bandwidth: '-300'; expected a whole number"),
        (CSV.replace("3,300", "3,1000000001"), ", line 2, bandwidth: 1000000001; expected a whole"),
        (CSV.replace("3,300", "a,300"), ", line 2, job_id: 'a'; expected a whole number from 0"),
        (CSV.replace("3,300", "9,300"), ", line 2, job_id: 9; the trace has no job with this"),
        (CSV.replace("2,200", "3,200"), ", line 4, job_id: 3; is in line 2 too; expected one line"),
        (CSV.replace("3,300,0\n", ""), ": 1 of 8 jobs are not in it, job 3 first"),
        ("job_id,bandwidth\n", ": 8 of 8 jobs are not in it, job 1 first; expected a line for"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_mistakes_are_named(demanding, refusal, text, mistake):
    demands_file(demanding).write_text(text)
    assert refusal(demanding).startswith(f".demands.csv{mistake}")


def test_a_file_that_cannot_be_read_is_not_passed_over(small_swf, refusal):
    demands_file(small_swf).symlink_to("nowhere")
    assert refusal(small_swf).startswith(".demands.csv: No such file")


def test_job_numbers_must_tell_jobs_apart(tmp_path, swf_line):
    line = swf_line(5, c2=0, c4=10, c5=1)
    (tmp_path / "a.swf").write_text(f"{line}\n{line}\n")
    assert len(read_trace(tmp_path / "a.swf")) == 2
    (tmp_path / "a.swf.demands.csv").write_text("job_id,bandwidth\n5,1\n")
    with pytest.raises(InputError, match=r"csv, job_id: .* the trace has jobs of number 5; expect"):
        read_trace(tmp_path / "a.swf")
    for wrong in ([1, 1], [1, -1], [1, 10**15]):
        trace = make(wrong, bandwidth=np.array([1, 2]))
        with pytest.raises(InputError, match=r"b.swf, job_id: .*; expected each number once"):
            write_trace(trace, tmp_path / "b.swf")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "a.swf", tmp_path / "a.swf.demands.csv"]


@pytest.mark.parametrize("name", ["a.swf", "a.swf.gz", "a.json", "a.json.gz"])
def test_they_are_written_beside_every_format(demanding, tmp_path, name):
    trace = read_trace(demanding)
    files = write_trace(trace, tmp_path / name)
    assert files == (tmp_path / name, tmp_path / f"{name}.demands.csv")
    assert files[1].read_text() == "job_id,bandwidth,network\n1,100,1\n3,300,0\n4,400,1\n5,500,2\n"
    again = read_trace(files[0])
    for column in ("bandwidth", "network"):
        assert again.annotations[column].tolist() == trace.annotations[column].tolist()
    before = files[0].read_bytes()
    assert write_trace(trace.changed(annotations={}), files[0]) == files[:1]
    assert not files[1].exists()
    assert files[0].read_bytes() == before  # the trace itself is what it is without them


def test_they_lie_beside_jobs_with_files_too(tmp_path):
    sample = bundled("traces") / "samples" / "sample-8x20.rackham"
    trace = read_trace(sample)
    trace = trace.annotated(bandwidth=trace.job_id % 7)
    demands, others = split_demands(trace)
    assert list(demands) == ["bandwidth"]
    assert set(others) == readers["rackham"].annotations
    write_trace(trace, tmp_path / "a.rackham")
    again = read_trace(tmp_path / "a.rackham")
    assert again.annotations.keys() == trace.annotations.keys()
    assert again.annotations["bandwidth"].tolist() == (again.job_id % 7).tolist()
    write_trace(again, tmp_path / "a.swf")
    assert "file, file_size, category" in (tmp_path / "a.swf").read_text()
    assert list(read_trace(tmp_path / "a.swf").annotations) == ["bandwidth"]


def test_what_is_no_demand_is_left_out_and_named(tmp_path):
    columns = {"share": [0.5, 1.0], "change": [-1, 1], "Upper": [1, 2], "much": [1, 10**9 + 1]}
    trace = make([1, 2], **{name: np.array(column) for name, column in columns.items()})
    assert write_trace(trace, tmp_path / "a.swf") == (tmp_path / "a.swf",)
    assert "share, change, Upper, much of the jobs are not" in (tmp_path / "a.swf").read_text()
    assert read_trace(tmp_path / "a.swf").annotations == {}


@pytest.mark.parametrize(
    "label", [["a", "b", "c"], ["w!7", "w!5", "w!6"], ["v!1", "w!1", "w!2"], ["9", "8", "x"]]
)
def test_jobs_whose_ids_are_no_numbers_keep_their_own(tmp_path, label):
    """A Batsim workload is numbered anew when it is read, in another order for other rows."""
    trace = make([1, 2, 3], label, bandwidth=np.array([10, 20, 30])).select(np.array([2, 0]))
    write_trace(trace, tmp_path / "a.json")
    again = read_trace(tmp_path / "a.json")
    found = dict(zip(again.label.tolist(), again.annotations["bandwidth"].tolist()))
    assert found == {label[2]: 30, label[0]: 10}


def test_both_are_complete_before_either_has_its_name(demanding, tmp_path, monkeypatch):
    trace = read_trace(demanding)
    renamed = []
    replace = Path.replace

    def watched(path, target):
        if not renamed:
            assert sum(entry.name.endswith(".partial") for entry in tmp_path.iterdir()) == 2
        renamed.append(Path(target).name)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", watched)
    write_trace(trace, tmp_path / "a.swf.gz")
    assert renamed == ["a.swf.gz.demands.csv", "a.swf.gz"]


def test_nothing_is_left_of_what_cannot_be_written(demanding, tmp_path):
    trace = read_trace(demanding)
    (tmp_path / "out" / "a.swf.demands.csv").mkdir(parents=True)
    with pytest.raises(InputError, match=r"a.swf.demands.csv: is a folder"):
        write_trace(trace, tmp_path / "out" / "a.swf")
    with pytest.raises(InputError, match=r"b.rackham: the jobs have no input files"):
        write_trace(trace, tmp_path / "out" / "b.rackham")
    with pytest.raises(InputError, match=r"a.swf.demands.csv: is a folder"):
        write_trace(trace.changed(annotations={}), tmp_path / "out" / "a.swf")
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["a.swf.demands.csv"]


def test_a_run_says_which_demands_it_had(demanding, small_swf):
    def config():
        return simulate(read_trace(small_swf), "nodes:32", "easy").config

    first = config()
    assert first["demands_sha256"] == hashlib.sha256(CSV.encode()).hexdigest()
    assert first["repeat"].endswith(f"--demands-sha256 {first['demands_sha256']} -o DIR")
    assert config() == first
    demands_file(small_swf).write_text(CSV.replace("3,300", "3,301"))
    other = config()
    assert other["trace_sha256"] == first["trace_sha256"]
    assert other["demands_sha256"] != first["demands_sha256"]
    assert other["workload_sha256"] != first["workload_sha256"]
    demands_file(small_swf).unlink()
    assert config()["demands_sha256"] is None


@given(
    demands=st.dictionaries(
        st.sampled_from(["bandwidth", "network", "memory_capacity", "_", "if"]),
        st.lists(st.integers(0, 10**9), min_size=4, max_size=4),
        min_size=1,
    ),
    job_id=st.lists(st.integers(0, 10**15 - 1), min_size=4, max_size=4, unique=True),
)
def test_every_demand_survives_a_round_trip(tmp_path_factory, demands, job_id):
    columns = {name: np.array(column) for name, column in demands.items()}
    trace = make(job_id, **columns)
    path = tmp_path_factory.getbasetemp() / "round.swf"
    write_trace(trace, path)
    again = read_trace(path)
    assert again.frame[["job_id", *demands]].equals(trace.frame[["job_id", *demands]])
    text = encode_demands(again.annotations, again.job_id, path)
    assert text == demands_file(path).read_bytes()


def demands(jobs, *arguments, **options):
    return drawn(make(range(jobs)), *arguments, **options).annotations["bandwidth"]


@pytest.mark.parametrize(
    ("mix", "high", "least"),
    [("LOW", 10, 20), ("med", 50, 60), ("HIGH", 80, 90), ((33, 33, 34), 33, 66)],
)
def test_each_job_has_the_level_of_its_own_random_number(mix, high, least):
    """What the draw computes, said job by job."""
    percent = 100 * np.random.default_rng(7).random(500)
    expected = [2000 if one < high else 1000 if one < least else 500 for one in percent]
    assert demands(500, mix, seed=7).tolist() == expected


def test_levels_may_be_others_and_a_note_in_the_header_says_what_was_drawn():
    trace = drawn(make(range(3)), "LOW", seed=7, levels={"high": 1500})
    assert trace.header.values("Note") == [
        "bandwidth drawn by optsched, seed 7: 1,500 MB/s for each process of 10 % of the jobs, "
        "1,000 MB/s for each process of 10 % of the jobs, "
        "500 MB/s for each process of 80 % of the jobs"
    ]
    levels = {"low": 0, "medium": 7, "high": 7}
    assert set(demands(1000, "MED", levels=levels).tolist()) == {7, 0}


@given(
    seed=st.integers(0, 10**6),
    cuts=st.tuples(*[st.tuples(st.integers(0, 100), st.integers(0, 100)).map(sorted)] * 2),
)
def test_more_pressure_lessens_no_demand(seed, cuts):
    (high, least), (more_high, more_least) = cuts
    lower = (min(high, more_high), min(least, more_least))
    upper = (max(high, more_high), max(least, more_least))
    one, other = (demands(200, (a, b - a, 100 - b), seed) for a, b in (lower, upper))
    assert (one <= other).all()


def test_a_draw_is_of_the_cleaned_trace_and_replaces_another(small_swf):
    trace = drawn(read_swf(small_swf), (100, 0, 0))
    assert trace.cleaning.jobs_read == 8
    assert trace.annotations["bandwidth"].tolist() == [2000] * 4
    assert (trace.path, trace.sha256) == (None, None)
    again = drawn(trace.annotated(network=np.arange(4)), (0, 0, 100))
    assert again.annotations["bandwidth"].tolist() == [500] * 4
    assert again.annotations["network"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        ({"mix": "HUGE"}, "mix: 'HUGE'; expected HIGH, MED, LOW or the percent of the jobs"),
        ({"mix": (110, -20, 10)}, "mix: '110:-20:10'; expected"),
        ({"mix": (50.0, 25.0, 25.0)}, "mix: '50.0:25.0:25.0'; expected"),
        ({"seed": -1}, "seed: -1; expected a whole number from 0"),
        ({"levels": {"low": 0.5}}, "levels: low=0.5; expected a whole number from 0 to 1,000"),
    ],
)
def test_what_is_no_mix_is_refused(options, mistake):
    with pytest.raises(InputError) as caught:
        drawn(make(range(4)), **{"mix": "HIGH", **options})
    assert mistake in str(caught.value)


def test_facts_tell_shares_of_jobs_and_of_processor_seconds():
    trace = make(range(4), bandwidth=np.array([500, 2000, 500, 2000]))
    known = facts(trace)["demands"]["bandwidth"]
    assert known["levels"] == [
        {"demand": 2000, "share": 0.5, "work_share": 74 / 120},
        {"demand": 500, "share": 0.5, "work_share": 46 / 120},
    ]
    assert known["mean"] == (4 * 500 + 6 * 2000) / 10
    assert (known["min"], known["median"], known["max"]) == (500, 1250, 2000)
    many = facts(make(range(9), network=np.arange(9) * 1000))
    assert many["demands"]["network"]["levels"] is None
    assert "0 / 4,000 / 8,000 (min/median/max of the jobs)" in "\n".join(lines(many))
