"""``optsched trace fit``, ``optsched trace generate`` and ``optsched list workloads``."""

from __future__ import annotations

import gzip
import json

import pytest

import optsched as package
from optsched.traces.reading import read_trace


@pytest.fixture
def baseline(optsched, tmp_path):
    path = tmp_path / "baseline.swf"
    done = optsched("trace", "generate", "franke-1999", "--jobs", 3000, "--seed", 1, "-o", path)
    assert done.returncode == 0, done.stderr
    return path, done


def test_generate_says_what_came_out(baseline):
    path, done = baseline
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert list(lines) == ["jobs", "span", "machine", "offered", "written"]
    trace = read_trace(path)
    assert len(trace) == 3000
    assert lines["machine"] == "320 processors"
    assert lines["span"] == f"{(trace.submit[-1] - trace.submit[0]) / 86400:.1f} days"
    assert "run times that round to 0 s, raised to 1 s: 18\n" in done.stderr
    assert trace.header.max_procs == 320
    assert "spec franke-1999, seed 1, interarrival factor 1.0" in trace.header.values("Note")[0]
    assert trace.cleaning.counts() == []


def test_the_same_input_gives_the_same_bytes(baseline, optsched, tmp_path):
    path, _ = baseline
    for name in ("again.swf", "one.swf.gz", "two.swf.gz"):
        arguments = ("franke-1999", "--jobs", 3000, "--seed", 1)
        optsched("trace", "generate", *arguments, "-o", tmp_path / name)
    assert (tmp_path / "again.swf").read_bytes() == path.read_bytes()
    assert (tmp_path / "one.swf.gz").read_bytes() == (tmp_path / "two.swf.gz").read_bytes()
    assert gzip.decompress((tmp_path / "one.swf.gz").read_bytes()) == path.read_bytes()


def test_fit_prints_both_tables_and_writes_a_spec_that_generates(baseline, optsched, tmp_path):
    path, _ = baseline
    spec = tmp_path / "fitted.toml"
    classes = ("--boundaries", "8,16,32,64,128,256", "--sizes", "uniform")
    done = optsched("trace", "fit", path, *classes, "-o", spec)
    assert done.returncode == 0, done.stderr
    tables = done.stdout.split("\n\n")
    for table, title in zip(tables, ("interarrival times (s)", "run times (s)")):
        lines = table.splitlines()
        assert lines[0] == title
        columns = " ".join(lines[1].split())
        assert columns == "N_min N_max lambda1 lambda2 n p1 E4 % jobs % family"
        assert [line.split()[:2] for line in lines[2:]] == [
            ["1", "8"],
            ["9", "16"],
            ["17", "32"],
            ["33", "64"],
            ["65", "128"],
            ["129", "256"],
        ]
    assert tables[2] == f"written  {spec}\n"
    again = optsched("trace", "generate", spec, "--jobs", 50, "-o", tmp_path / "again.swf")
    assert again.returncode == 0, again.stderr
    as_json = json.loads(optsched("trace", "fit", path, *classes, "--json").stdout)
    assert as_json["processors"] == 320
    first = as_json["classes"][0]
    assert (first["smallest"], first["largest"]) == (1, 8)
    assert set(first["service"]) == {"lambda1", "lambda2", "order", "p1", "family", "matched", "e4"}


def test_notes_go_to_stderr(baseline, optsched):
    path, _ = baseline
    done = optsched("trace", "fit", path, "--fewest", 200)
    assert "are fewer than 200; joined with" in done.stderr
    assert "joined" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("generate frank-1999 --jobs 5 -o a.swf", "unknown workload 'frank-1999'; did you mean"),
        ("generate franke-1999 --jobs 0 -o a.swf", "jobs: 0; expected a whole number from 1"),
        ("generate franke-1999 --jobs 5 --seed -1 -o a.swf", "seed: -1; expected a whole number"),
        ("generate franke-1999 --jobs 5 --service-factor 0 -o a.swf", "service factor: 0.0; exp"),
        ("generate franke-1999 --jobs 5 -o a.txt", "a.txt: unknown suffix; expected .json, .csv"),
        ("fit {} --boundaries 8,x", "boundaries: '8,x'; expected whole numbers with commas"),
        ("fit {} --boundaries 8,16", "jobs are larger; expected a last boundary of at least 254"),
        ("fit {} -o spec.txt", "spec.txt: expected a name that ends in .toml"),
        ("fit {} -o {}", "is the input; expected another file to write to"),
    ],
)
def test_bad_input_is_told_in_one_line(arguments, words, baseline, optsched, tmp_path):
    path, _ = baseline
    done = optsched("trace", *arguments.replace("{}", str(path)).split(), cwd=tmp_path)
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert {file.name for file in tmp_path.iterdir()} == {"baseline.swf"}


def test_list_names_the_bundled_specs(optsched):
    listed = json.loads(optsched("list", "workloads", "--json").stdout)["workloads"]
    assert [(row["workload"], row["model"]) for row in listed] == [
        ("blue-waters-like", "capability-mix"),
        ("franke-1999", "hyper-erlang"),
        ("lublin-feitelson", "lublin-feitelson"),
    ]


def test_python_does_the_same(baseline):
    path, _ = baseline
    trace = package.generate_workload("franke-1999", jobs=3000, seed=1)
    assert trace.submit.tolist() == read_trace(path).submit.tolist()
    fitted = package.fit_workload(path)
    model = fitted.model
    generated = [package.generate_workload(one, jobs=9, seed=4) for one in (fitted, model)]
    assert generated[0].frame.equals(generated[1].frame)
    with pytest.raises(package.InputError, match="workload: 5; expected a workload model"):
        package.generate_workload(5, jobs=9)
    run = package.simulate(trace, policy="easy", jobs=(1, 300))
    assert run.summary["finished"] == 300
