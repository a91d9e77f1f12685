"""``optsched trace annotate bandwidth``, and what the other commands make of demands."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from optsched.cli import run
from optsched.traces.reading import read_trace


@pytest.fixture
def trace(capsys):
    """Return the function that runs ``optsched trace`` in this process."""

    def call(*arguments):
        code = run(["trace", *map(str, arguments)])
        return SimpleNamespace(code=code, **capsys.readouterr()._asdict())

    return call


@pytest.mark.parametrize("name", ["a.swf", "a.swf.gz", "a.json"])
def test_a_draw_is_shown_and_kept(trace, sample, tmp_path, name):
    output = tmp_path / name
    words = ("annotate", "bandwidth", sample, "--mix", "HIGH", "--seed", 1, "-o", output)
    done = trace(*words)
    assert done.code == 0, done.err
    assert "demand   bandwidth, 1,721 a process on average\n" in done.out
    assert "2,000 / 1,000 / 500 in 79.9% / 10.0% / 10.1% of the jobs, 80.2% / " in done.out
    assert f"written  {output} and {output}.demands.csv\n" in done.out
    first = [file.read_bytes() for file in sorted(tmp_path.iterdir())]
    assert len(first) == 2
    assert trace(*words).code == 0
    assert [file.read_bytes() for file in sorted(tmp_path.iterdir())] == first
    expected = read_trace(output).annotations["bandwidth"].tolist()
    for command, *options in (("clean",), ("convert",), ("scale", "--to", 512)):
        copy = tmp_path / f"{command}.swf.gz"
        done = trace(command, output, *options, "-o", copy)
        assert f"{copy} and {copy}.demands.csv\n" in done.out
        assert read_trace(copy).annotations["bandwidth"].tolist() == expected


def test_demands_stay_where_files_are_inferred(trace, sample, tmp_path):
    drawn, output = tmp_path / "a.swf", tmp_path / "a.rackham"
    assert trace("annotate", "bandwidth", sample, "--mix", "MED", "-o", drawn).code == 0
    done = trace("annotate", "files", drawn, "-o", output)
    assert f"written      {output} and {output}.demands.csv\n" in done.out
    assert "input files" in done.out
    assert "2,000 / 1,000 / 500 in " in done.out
    assert len(read_trace(output).annotations["bandwidth"]) == 4989


def test_info_tells_of_demands(trace, sample, tmp_path):
    output = tmp_path / "a.swf"
    options = ("--mix", "20:30:50", "--levels", "high=3000,low=0", "-o", output)
    assert trace("annotate", "bandwidth", sample, *options).code == 0
    known = json.loads(trace("info", output, "--json").out)
    levels = known["demands"]["bandwidth"]["levels"]
    assert [level["demand"] for level in levels] == [3000, 1000, 0]
    assert sum(level["work_share"] for level in levels) == pytest.approx(1)
    assert len(known["demands_sha256"]) == 64
    assert "\n                3,000 / 1,000 / 0 in " in trace("info", output).out
    assert json.loads(trace("info", sample, "--json").out)["demands"] == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--mix HUGE -o a.swf", "--mix: 'HUGE'; expected HIGH, MED, LOW or the percent"),
        ("--mix 80:10 -o a.swf", "--mix: '80:10'; expected HIGH, MED, LOW or the percent"),
        ("--mix 80:10:11 -o a.swf", "--mix: '80:10:11'; expected HIGH, MED, LOW or the percent"),
        ("--mix a:b:c -o a.swf", "--mix: 'a:b:c'; expected HIGH, MED, LOW or the percent"),
        ("--mix LOW --seed -1 -o a.swf", "--seed: -1; expected a whole number from 0"),
        ("--mix LOW --levels 5 -o a.swf", "--levels: '5'; expected high=2000,medium=1000,low=500"),
        ("--mix LOW --levels low=1,low=2 -o a.swf", "--levels: 'low=1,low=2'; expected high=2000"),
        ("--mix LOW --levels foo=3 -o a.swf", "--levels: 'foo'; expected high, medium, low"),
        ("--mix LOW --levels high=100 -o a.swf", "expected high >= medium >= low"),
        ("--mix LOW --levels high=12345678901234567 -o a.swf", "67; expected a whole number"),
        ("--mix LOW -o a.xlsx", "a.xlsx: unknown suffix; expected .json, .csv, .parquet"),
        ("--mix LOW -o a.rackham", "a.rackham: the jobs have no input files"),
    ],
)
def test_wrong_draws_are_refused(trace, sample, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    done = trace("annotate", "bandwidth", sample, *options.split())
    assert done.code == 1
    assert words in done.err
    assert len(done.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_mix_is_asked_for(trace, sample, tmp_path):
    assert trace("annotate", "bandwidth", sample, "-o", tmp_path / "a.swf").code == 2


def test_a_mistake_in_the_demands_is_named(trace, sample, tmp_path):
    output = tmp_path / "a.swf"
    assert trace("annotate", "bandwidth", sample, "--mix", "LOW", "-o", output).code == 0
    beside = tmp_path / "a.swf.demands.csv"
    beside.write_text(beside.read_text().replace("\n7,", "\n7,-", 1))
    done = trace("info", output)
    assert done.code == 1
    assert "a.swf.demands.csv, line 8, bandwidth: '-" in done.err
    assert len(done.err.splitlines()) == 1
    beside.unlink()
    assert trace("info", output).code == 0


def test_the_input_is_not_overwritten(trace, tmp_path, sample):
    copy = tmp_path / "a.swf"
    copy.write_bytes(sample.read_bytes())
    done = trace("annotate", "bandwidth", copy, "--mix", "LOW", "-o", copy)
    assert done.code == 1
    assert "is the input; expected another file to write to" in done.err
    assert list(tmp_path.iterdir()) == [copy]
