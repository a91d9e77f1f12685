import gzip
import json
import shutil

import pytest

import optsched
from optsched.errors import InputError
from optsched.registry import readers
from optsched.traces import catalogue
from optsched.traces.formats import TraceFormat
from optsched.traces.reading import format_of, read_trace, write_trace


@pytest.fixture
def small_json(tmp_path, small_swf):
    write_trace(read_trace(small_swf), tmp_path / "small.json")
    return tmp_path / "small.json"


def test_the_public_names_work(small_swf):
    trace = optsched.read_trace(small_swf)
    assert isinstance(trace, optsched.Trace)
    assert len(trace) == 4


def test_cleaning_is_the_default(small_swf):
    assert read_trace(str(small_swf)).cleaning.jobs_read == 8
    assert len(read_trace(small_swf, clean=False)) == 8


def test_formats_are_told_by_suffix_or_by_content(tmp_path, small_swf, small_json):
    for source, name in ((small_swf, "swf"), (small_json, "batsim")):
        assert format_of(source) is readers[name]
        content = source.read_bytes()
        for other, data in (
            ("plain", content),
            ("packed", gzip.compress(content)),
            ("a.txt", content),
        ):
            (tmp_path / other).write_bytes(data)
            assert format_of(tmp_path / other) is readers[name]
            assert len(read_trace(tmp_path / other)) == 4


def test_a_wrong_suffix_does_not_hide_what_a_file_is(tmp_path, small_swf):
    shutil.copy(small_swf, tmp_path / "a.json")
    assert format_of(tmp_path / "a.json") is readers["swf"]


def test_a_file_with_a_known_suffix_gets_the_message_of_its_format(tmp_path):
    (tmp_path / "a.swf").write_text("hello")
    with pytest.raises(InputError, match="line 1, job number"):
        read_trace(tmp_path / "a.swf")


def test_what_is_nearly_a_trace_is_named(tmp_path):
    for content, said in ((b"", "the file is empty"), (b"<html>", "a page of HTML or XML")):
        (tmp_path / "a.swf.bin").write_bytes(content)
        with pytest.raises(InputError, match=said):
            read_trace(tmp_path / "a.swf.bin")


def test_sacct_with_commas_is_named_unless_columns_are_given(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("JobID,Submit,State,ran,cores\n4,1,COMPLETED,3,4\n")
    with pytest.raises(InputError, match="fields of sacct with commas between them"):
        read_trace(path)
    columns = {"submit": "Submit", "runtime": "ran", "processors": "cores"}
    assert read_trace(path, columns=columns).processors.tolist() == [4]


@pytest.mark.parametrize("content", [b"hello", b"\0\1\2", b'{"kind": "window-mkp"}', b"[1]"])
def test_unknown_formats_are_refused(tmp_path, content):
    (tmp_path / "a.bin").write_bytes(content)
    known = "batsim, csv, parquet, rackham, sacct-json, sacct-text, swf"
    with pytest.raises(InputError, match=f"not a known trace format; known: {known}"):
        read_trace(tmp_path / "a.bin")


def test_a_format_is_one_registered_class(tmp_path, small_swf, monkeypatch):
    monkeypatch.setattr(readers, "_classes", dict(readers._classes))

    @readers.register("toy")
    class Toy(TraceFormat):
        suffixes = (".toy",)

        @staticmethod
        def recognizes(first_bytes, path):
            return first_bytes.startswith(b"toy")

        @staticmethod
        def read(path):
            return read_trace(small_swf, clean=False)

    (tmp_path / "a.toy.gz").write_bytes(gzip.compress(b"toy"))
    assert len(read_trace(tmp_path / "a.toy.gz")) == 4
    with pytest.raises(
        InputError, match=r"unknown suffix; expected .json, .csv, .parquet, .rackham, .swf$"
    ):
        write_trace(read_trace(small_swf), tmp_path / "b.toy")


def test_traces_are_written_by_suffix(tmp_path, small_swf):
    trace = read_trace(small_swf)
    for name in ("a.swf", "a.swf.gz", "a.json", "a.json.gz", "a.parquet"):
        write_trace(trace, tmp_path / name)
        again = read_trace(tmp_path / name)
        assert again.processors.tolist() == trace.processors.tolist()
        assert again.header.max_procs == 32
    assert json.loads((tmp_path / "a.json").read_text())["nb_res"] == 32
    with pytest.raises(InputError, match="unknown suffix"):
        write_trace(trace, tmp_path / "a.xlsx")


def test_files_that_come_close_are_suggested(tmp_path, small_swf, monkeypatch):
    with pytest.raises(InputError, match=r"smal.swf: no such file; did you mean small.swf\?"):
        read_trace(tmp_path / "smal.swf")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"traces`; did you mean small.swf\?"):
        read_trace("Small.SWF2")
    with pytest.raises(InputError, match=r"did you mean SDSC-BLUE-2000-4.2-cln"):
        read_trace("sdsc-blu-2000-4.2")
    with pytest.raises(
        InputError, match=r"xyz: no such file, and no name in `optsched list traces"
    ):
        read_trace("xyz")
    with pytest.raises(InputError, match=r"no such file$"):
        read_trace("missing/folder/a.swf")


def test_a_folder_is_no_trace(tmp_path):
    with pytest.raises(InputError, match="is a folder; expected a trace"):
        read_trace(tmp_path)


def test_a_name_is_looked_up_in_the_catalogue(tmp_path, shared_traces, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(catalogue.VARIABLE, raising=False)
    assert read_trace("nasa-ipsc", folder=shared_traces).name == "NASA-iPSC-1993-3.1-cln"
    with pytest.raises(InputError, match="OPTSCHED_TRACES names no folder"):
        read_trace("nasa-ipsc")
    monkeypatch.setenv(catalogue.VARIABLE, str(shared_traces))
    assert len(read_trace("NASA-iPSC-1993-3.1-cln.swf.gz")) == 18066
    with pytest.raises(InputError, match="begin with 'SDSC': SDSC-BLUE"):
        read_trace("SDSC")
