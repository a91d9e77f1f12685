"""``optsched trace``: what its commands say, write and keep."""

import gzip
import json
import shlex

import pytest

import optsched as package
from optsched.content import bundled
from optsched.traces.reading import read_trace

SAMPLE = bundled("traces") / "samples" / "sample-256.swf"
RACKHAM = SAMPLE.with_name("sample-8x20.rackham")


def test_traces_are_looked_at_cleaned_and_converted(optsched, tmp_path):
    assert "offered load" in optsched("trace info", SAMPLE).out
    for verb, name in (("clean", "clean.swf.gz"), ("convert", "converted.json")):
        optsched("trace", verb, SAMPLE, "-o", tmp_path / name)
        assert json.loads(optsched("trace info", tmp_path / name, "--json").out)["jobs"] == 3000
    assert "SDSC-BLUE" in optsched("trace catalogue").out
    env = {"OPTSCHED_TRACES": ""}
    assert "download" in optsched("trace info SDSC-BLUE-2000-4.2-cln", env=env, code=1).err


def test_files_are_inferred_and_shown(optsched, tmp_path):
    output = tmp_path / "a.rackham.gz"
    done = optsched("trace annotate files", SAMPLE, "--evaluate 2:3 -o", output)
    assert "jobs         4,989\n" in done.out
    assert "input files  3,831, 6.4 / 57.6 / 128 GB" in done.out
    assert "categories   279 before, 471 evaluated, 4,239 after\n" in done.out
    assert "881 jobs of more than 20 processors in 2,870 pieces\n" in done.err
    assert "not written, this format has no place for them: 12 header lines" in done.err
    assert read_trace(output).processors.max() == 20
    options = "--cores 256 --per-processor 500 --window 0 -o"
    done = optsched("trace annotate files", SAMPLE, options, output)
    assert "jobs         3,000\n" in done.out
    assert "0.5 / " in done.out
    done = optsched("trace annotate files", RACKHAM, "-o", output)
    assert "85 files that 521 jobs stated are replaced\n" in done.err


def test_files_and_categories_are_told_of_and_kept(optsched, tmp_path):
    known = json.loads(optsched("trace info", RACKHAM, "--json").out)
    assert (known["files"]["files"], known["categories"]["1"]) == (85, 161)
    page = optsched("trace info", RACKHAM).out
    assert "file groups     59 files of several jobs, 6.1 jobs a file, 14 at most" in page
    assert "153 before, 161 evaluated, 186 after" in page
    copy = tmp_path / "copy.rackham"
    optsched("trace convert", RACKHAM, "-o", copy)
    assert copy.read_text() == RACKHAM.read_text()


@pytest.mark.parametrize("name", ["a.swf.gz", "a.json"])
def test_a_draw_of_demands_is_shown_and_kept(optsched, tmp_path, name):
    output = tmp_path / name
    words = ("trace annotate bandwidth", SAMPLE, "--mix HIGH --seed 1 -o", output)
    shown = optsched(*words).out
    assert "demand   bandwidth, 1,721 a process on average\n" in shown
    assert "2,000 / 1,000 / 500 in 79.9% / 10.0% / 10.1% of the jobs, 80.2% / " in shown
    assert f"written  {output} and {output}.demands.csv\n" in shown
    first = [file.read_bytes() for file in sorted(tmp_path.iterdir())]
    assert len(first) == 2
    optsched(*words)
    assert [file.read_bytes() for file in sorted(tmp_path.iterdir())] == first
    expected = read_trace(output).annotations["bandwidth"].tolist()
    for command, options in (("clean", ""), ("convert", ""), ("scale", "--to 512")):
        copy = tmp_path / f"{command}.swf.gz"
        done = optsched("trace", command, output, options, "-o", copy)
        assert f"{copy} and {copy}.demands.csv\n" in done.out
        assert read_trace(copy).annotations["bandwidth"].tolist() == expected


def test_levels_of_demands_may_be_stated(optsched, tmp_path):
    output = tmp_path / "a.swf"
    options = "--mix 20:30:50 --levels high=3000,low=0 -o"
    optsched("trace annotate bandwidth", SAMPLE, options, output)
    known = json.loads(optsched("trace info", output, "--json").out)
    levels = known["demands"]["bandwidth"]["levels"]
    assert [level["demand"] for level in levels] == [3000, 1000, 0]
    assert len(known["demands_sha256"]) == 64


def test_scale_says_what_was_changed(optsched, tmp_path):
    output = tmp_path / "a.swf"
    done = optsched("trace scale", SAMPLE, "--to 100 --unit 4 --load 1.25 -o", output)
    lines = dict(line.split("  ", 1) for line in done.out.splitlines())
    assert lines["jobs"].strip() == "3,000"
    assert lines["machine"].strip() == "256 to 100 processors"
    before, after = map(float, lines["offered load"].split(" to "))
    rounding = float(lines["by rounding"].split("%")[0]) / 100
    assert after == pytest.approx(1.25 * before * (1 + rounding), abs=0.002)
    assert "sizes rounded up to a multiple of 4: 3,000\n" in done.err
    assert (read_trace(output).processors % 4 == 0).all()


def test_from_is_for_traces_without_a_machine(optsched, tmp_path):
    bare, output = tmp_path / "bare.swf", tmp_path / "scaled.swf"
    bare.write_text("1 0 7 60 8 -1 -1 8 60 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    told = optsched("trace scale", bare, "--to 8 -o", output, code=1).err
    assert "expected the processors of the original machine, with --from" in told
    assert not output.exists()
    done = optsched("trace scale", bare, "--from 16 --to 8 -o", output)
    assert "offered load  - to -" in done.out
    assert read_trace(output).processors.tolist() == [4]


RAW = """; MaxProcs: 4
1 0 0 -1 1 5 -1 1 5 -1 1 1 1 1 1 1 -1 -1
2 0 0 9 1 5 -1 1 5 -1 1 1 1 1 1 1 -1 -1
"""


def test_a_raw_log_that_batsim_cannot_hold_comes_with_the_command_that_cleans_it(
    optsched, tmp_path
):
    log, output = tmp_path / "raw log.swf", tmp_path / "workload.json"
    log.write_text(RAW)
    [told] = optsched("trace convert", log, "-o", output, code=1).err.splitlines()
    assert told.startswith(f"optsched: {log}: 1 jobs without")
    optsched(*map(shlex.quote, shlex.split(told.partition("cleaned trace: ")[2])[1:]))
    assert output.exists()


def test_what_batsim_has_no_place_for_is_said(optsched, tmp_path):
    done = optsched("trace convert", SAMPLE, "-o", tmp_path / "workload.json")
    left_out = "11 header lines and 3 columns (requested_processors, status, user)"
    said, undated = done.err.splitlines()
    assert said == f"optsched: not written, a Batsim workload has no place for them: {left_out}"
    assert "(UnixStartTime) is not written, so reservations of a site do not hold" in undated
    again = optsched("trace convert", tmp_path / "workload.json", "-o", tmp_path / "copy.json")
    assert again.err == ""


GENERATE = "trace generate franke-1999 --jobs 3000 --seed 1 -o"


@pytest.fixture
def baseline(optsched, tmp_path):
    path = tmp_path / "baseline.swf"
    return path, optsched(GENERATE, path)


def test_generate_says_what_came_out_and_gives_the_same_bytes_again(baseline, optsched, tmp_path):
    path, done = baseline
    lines = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert list(lines) == ["jobs", "span", "machine", "offered", "written"]
    trace = read_trace(path)
    assert len(trace) == 3000
    assert lines["machine"] == "320 processors"
    assert lines["span"] == f"{(trace.submit[-1] - trace.submit[0]) / 86400:.1f} days"
    assert "run times that round to 0 s, raised to 1 s: 18\n" in done.err
    assert trace.header.max_procs == 320
    assert "spec franke-1999, seed 1, interarrival factor 1.0" in trace.header.values("Note")[0]
    assert trace.cleaning.counts() == []
    for name in ("one.swf.gz", "two.swf.gz"):
        optsched(GENERATE, tmp_path / name)
    one, two = (packed.read_bytes() for packed in sorted(tmp_path.glob("*.gz")))
    assert one == two
    assert gzip.decompress(one) == path.read_bytes()


def test_fit_prints_both_tables_and_writes_a_spec_that_generates(baseline, optsched, tmp_path):
    path, _ = baseline
    spec = tmp_path / "fitted.toml"
    fit = ("trace fit", path, "--boundaries 8,16,32,64,128,256 --sizes uniform")
    *tables, written = optsched(*fit, "-o", spec).out.split("\n\n")
    for table, title in zip(tables, ("interarrival times (s)", "run times (s)"), strict=True):
        lines = [line.split() for line in table.splitlines()]
        assert " ".join(lines[0]) == title
        assert " ".join(lines[1]) == "N_min N_max lambda1 lambda2 n p1 E4 % jobs % family"
        smallest = [["1", "8"], ["9", "16"], ["17", "32"], ["33", "64"]]
        assert [line[:2] for line in lines[2:]] == [*smallest, ["65", "128"], ["129", "256"]]
    assert written == f"written  {spec}\n"
    optsched("trace generate", spec, "--jobs 50 -o", tmp_path / "again.swf")
    as_json = json.loads(optsched(*fit, "--json").out)
    assert as_json["processors"] == 320
    first = as_json["classes"][0]
    assert (first["smallest"], first["largest"]) == (1, 8)
    assert set(first["service"]) == {"lambda1", "lambda2", "order", "p1", "family", "matched", "e4"}
    done = optsched("trace fit", path, "--fewest 200")
    assert "are fewer than 200; joined with" in done.err
    assert "joined" not in done.out


def test_python_does_the_same(baseline):
    path, _ = baseline
    trace = package.generate_workload("franke-1999", jobs=3000, seed=1)
    assert trace.submit.tolist() == read_trace(path).submit.tolist()
    fitted = package.fit_workload(path)
    specs = (fitted, fitted.model)
    one, other = (package.generate_workload(spec, jobs=9, seed=4) for spec in specs)
    assert one.frame.equals(other.frame)
    with pytest.raises(package.InputError, match="workload: 5; expected a workload model"):
        package.generate_workload(5, jobs=9)
