"""``optsched trace fit`` and ``optsched trace generate``."""

from __future__ import annotations

import gzip
import json

import pytest

import optsched as package
from optsched.traces.reading import read_trace

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
    generated = [
        package.generate_workload(one, jobs=9, seed=4).frame for one in (fitted, fitted.model)
    ]
    assert generated[0].equals(generated[1])
    with pytest.raises(package.InputError, match="workload: 5; expected a workload model"):
        package.generate_workload(5, jobs=9)
    run = package.simulate(trace, policy="easy", jobs=(1, 300))
    assert run.summary["finished"] == 300
