"""``optsched trace annotate``, and what the other commands make of what it writes."""

from __future__ import annotations

import json

import pytest

from optsched.content import bundled
from optsched.traces.reading import read_trace

RACKHAM = bundled("traces") / "samples" / "sample-8x20.rackham"


def test_files_are_inferred_and_shown(optsched, sample, tmp_path):
    output = tmp_path / "a.rackham.gz"
    done = optsched("trace", "annotate", "files", sample, "--evaluate", "2:3", "-o", output)
    assert done.returncode == 0, done.stderr
    assert "jobs         4,989\n" in done.stdout
    assert "input files  3,831, 6.4 / 57.6 / 128 GB" in done.stdout
    assert "categories   279 before, 471 evaluated, 4,239 after\n" in done.stdout
    assert "881 jobs of more than 20 processors in 2,870 pieces\n" in done.stderr
    assert "not written, this format has no place for them: 12 header lines" in done.stderr
    assert read_trace(output).processors.max() == 20
    options = ("--cores", 256, "--per-processor", 500, "--window", 0)
    done = optsched("trace", "annotate", "files", sample, *options, "-o", output)
    assert done.returncode == 0, done.stderr
    assert "jobs         3,000\n" in done.stdout
    assert "0.5 / " in done.stdout


def test_info_tells_of_files_and_categories(optsched):
    known = json.loads(optsched("trace", "info", RACKHAM, "--json").stdout)
    assert known["files"]["files"] == 85
    assert known["categories"]["1"] == 161
    page = optsched("trace", "info", RACKHAM).stdout
    assert "file groups     59 files of several jobs, 6.1 jobs a file, 14 at most" in page
    assert "153 before, 161 evaluated, 186 after" in page


def test_converting_keeps_what_the_format_holds(optsched, tmp_path):
    copy, lossy = tmp_path / "copy.rackham", tmp_path / "a.swf"
    assert optsched("trace", "convert", RACKHAM, "-o", copy).returncode == 0
    assert copy.read_text() == RACKHAM.read_text()
    assert optsched("trace", "convert", RACKHAM, "-o", lossy).returncode == 0
    assert "file, file_size, category, history_start, history_node of the jobs" in lossy.read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-o a.swf", "a.swf: unknown suffix; expected .rackham or .rackham.gz"),
        ("--cores 0 -o a.rackham", "--cores: 0; expected a whole number from 1"),
        ("--window -1 -o a.rackham", "--window: -1; expected a whole number from 0"),
        ("--per-processor 0 -o a.rackham", "--per-processor: 0; expected a whole number from 1"),
        ("--evaluate 3:2 -o a.rackham", "--evaluate: '3:2'; expected the days FROM:TO"),
        ("--evaluate week -o a.rackham", "--evaluate: 'week'; expected the days FROM:TO"),
        ("--evaluate 90:90 -o a.rackham", "--evaluate: no job is submitted from"),
    ],
)
def test_wrong_input_is_refused(optsched, sample, tmp_path, options, words):
    done = optsched("trace", "annotate", "files", sample, *options.split(), cwd=tmp_path)
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_files_that_were_stated_are_counted(optsched, tmp_path):
    done = optsched("trace", "annotate", "files", RACKHAM, "-o", tmp_path / "a.rackham")
    assert done.returncode == 0, done.stderr
    assert "85 files that 521 jobs stated are replaced\n" in done.stderr


def test_what_has_no_files_is_not_converted(optsched, sample, tmp_path):
    done = optsched("trace", "convert", sample, "-o", tmp_path / "a.rackham")
    assert done.returncode == 1
    assert "`optsched trace annotate files TRACE` infers them" in done.stderr


def test_the_input_is_not_overwritten(optsched, tmp_path):
    copy = tmp_path / "a.rackham"
    copy.write_bytes(RACKHAM.read_bytes())
    done = optsched("trace", "annotate", "files", copy, "-o", copy)
    assert done.returncode == 1
    assert "is the input; expected another file to write to" in done.stderr
    assert copy.read_bytes() == RACKHAM.read_bytes()


def test_a_wrong_line_is_named(optsched, tmp_path):
    wrong = tmp_path / "a.rackham"
    wrong.write_text(RACKHAM.read_text().replace("cores: 2 ", "cores: none ", 1))
    done = optsched("trace", "info", wrong)
    assert done.returncode == 1
    assert "a.rackham, line 1, cores: 'none'; expected a whole number from 1 to" in done.stderr


def test_annotate_alone_is_incomplete(optsched):
    assert optsched("trace", "annotate").returncode == 2
