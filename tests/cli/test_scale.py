"""``optsched trace scale``."""

from __future__ import annotations

import gzip

import pytest

from optsched.traces.reading import read_trace


def test_scale_says_what_was_changed(optsched, sample, tmp_path):
    options = ("--to", 100, "--unit", 4, "--load", 1.25)
    outputs = [tmp_path / "a.swf", tmp_path / "b.swf.gz"]
    for output in outputs:
        done = optsched("trace", "scale", sample, *options, "-o", output)
        assert done.returncode == 0, done.stderr
    lines = dict(line.split("  ", 1) for line in done.stdout.splitlines())
    assert lines["jobs"].strip() == "3,000"
    assert lines["machine"].strip() == "256 to 100 processors"
    before, after = map(float, lines["offered load"].split(" to "))
    rounding = float(lines["by rounding"].split("%")[0]) / 100
    assert after == pytest.approx(1.25 * before * (1 + rounding), abs=0.002)
    assert "sizes rounded up to a multiple of 4: 3,000\n" in done.stderr
    assert gzip.decompress(outputs[1].read_bytes()) == outputs[0].read_bytes()
    assert (read_trace(outputs[0]).processors % 4 == 0).all()


def test_from_is_for_traces_without_a_machine(optsched, tmp_path):
    bare, output = tmp_path / "bare.swf", tmp_path / "scaled.swf"
    bare.write_text("1 0 7 60 8 -1 -1 8 60 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    done = optsched("trace", "scale", bare, "--to", 8, "-o", output)
    assert done.returncode == 1
    assert "expected the processors of the original machine, with --from" in done.stderr
    assert not output.exists()
    done = optsched("trace", "scale", bare, "--from", 16, "--to", 8, "-o", output)
    assert done.returncode == 0, done.stderr
    assert "offered load  - to -" in done.stdout
    assert read_trace(output).processors.tolist() == [4]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--to 0 -o a.swf", "to: 0; expected a whole number from 1"),
        ("--to 64 --unit 65 -o a.swf", "unit: 65; expected a whole number from 1 to 64"),
        ("--to 64 --load 0 -o a.swf", "load: 0.0; expected a factor from"),
        ("--to 64 -o a.txt", "a.txt: unknown suffix; expected .json, .csv, .parquet"),
        ("--to 64 -o {}", "is the input; expected another file to write to"),
    ],
)
def test_bad_input_is_told_in_one_line(options, words, optsched, sample, tmp_path):
    copy = tmp_path / "copy.swf"
    copy.write_bytes(sample.read_bytes())
    done = optsched("trace", "scale", copy, *options.format(copy).split(), cwd=tmp_path)
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["copy.swf"]
