import gzip

import pytest

import optsched
from optsched.errors import InputError
from optsched.registry import readers
from optsched.traces import catalogue
from optsched.traces.formats import TraceFormat
from optsched.traces.reading import format_of, read_trace, write_trace


def test_cleaning_is_the_default(small_swf):
    trace = optsched.read_trace(str(small_swf))
    assert isinstance(trace, optsched.Trace)
    assert (len(trace), trace.cleaning.jobs_read) == (4, 8)
    assert len(read_trace(small_swf, clean=False)) == 8


def test_formats_are_told_by_content_whatever_the_suffix(tmp_path, small_swf):
    small_json = tmp_path / "small.json"
    write_trace(read_trace(small_swf), small_json)
    for source, name, wrong in ((small_swf, "swf", "a.json"), (small_json, "batsim", "a.swf")):
        for other in (source.name, "plain", "a.txt", wrong):
            (tmp_path / other).write_bytes(source.read_bytes())
            assert format_of(tmp_path / other) is readers[name]
        (tmp_path / "packed").write_bytes(gzip.compress(source.read_bytes()))
        assert len(read_trace(tmp_path / "packed")) == 4


SACCT = b"JobID,Submit,State,ran,cores\n4,1,COMPLETED,3,4\n"
KNOWN = "known: batsim, csv, parquet, rackham, sacct-json, sacct-text, swf"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.swf", b"hello", "line 1, job number"),
        ("a.swf.bin", b"", "the file is empty"),
        ("a.swf.bin", b"<html>", "a page of HTML or XML"),
        ("a.csv", SACCT, "fields of sacct with commas between them"),
        ("a.bin", b"hello", f"not a known trace format; {KNOWN}"),
        ("a.bin", b'{"kind": "window-mkp"}', f"not a known trace format; {KNOWN}"),
    ],
)
def test_what_is_no_trace_is_named_for_what_it_is(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_trace(tmp_path / name)


def test_sacct_with_commas_is_read_if_columns_are_given(tmp_path):
    (tmp_path / "a.csv").write_bytes(SACCT)
    columns = {"submit": "Submit", "runtime": "ran", "processors": "cores"}
    assert read_trace(tmp_path / "a.csv", columns=columns).processors.tolist() == [4]


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
    suffixes = ".json, .csv, .parquet, .rackham, .swf"
    with pytest.raises(InputError, match=f"unknown suffix; expected {suffixes}$"):
        write_trace(read_trace(small_swf), tmp_path / "b.toy")


def test_files_that_come_close_are_suggested(tmp_path, small_swf, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, said in (
        (tmp_path / "smal.swf", r"smal.swf: no such file; did you mean small.swf\?"),
        ("Small.SWF2", r"traces`; did you mean small.swf\?"),
        ("sdsc-blu-2000-4.2", "did you mean SDSC-BLUE-2000-4.2-cln"),
        ("xyz", "xyz: no such file, and no name in `optsched list traces"),
        ("missing/folder/a.swf", "no such file$"),
        (tmp_path, "is a folder; expected a trace"),
    ):
        with pytest.raises(InputError, match=said):
            read_trace(name)


def test_a_name_is_looked_up_in_the_catalogue(tmp_path, shared, monkeypatch):
    shared_traces = shared("traces")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(catalogue.VARIABLE, raising=False)
    assert read_trace("nasa-ipsc", folder=shared_traces).name == "NASA-iPSC-1993-3.1-cln"
    with pytest.raises(InputError, match="OPTSCHED_TRACES names no folder"):
        read_trace("nasa-ipsc")
    monkeypatch.setenv(catalogue.VARIABLE, str(shared_traces))
    assert len(read_trace("NASA-iPSC-1993-3.1-cln.swf.gz")) == 18066
    with pytest.raises(InputError, match="begin with 'SDSC': SDSC-BLUE"):
        read_trace("SDSC")
