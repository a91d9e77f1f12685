"""Traces in every format, as files or by name: recognized, written, read, and downloaded."""

import csv
import gzip
import hashlib
import http.server
import os
import re
import socket
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import optsched
from optsched.content import bundled
from optsched.errors import InputError
from optsched.registry import readers
from optsched.traces import catalogue
from optsched.traces.catalogue import download, entries, find, locate, read_catalogue, verify
from optsched.traces.cleaning import clean
from optsched.traces.facts import facts
from optsched.traces.formats import TraceFormat
from optsched.traces.reading import format_of, read_trace, write_trace
from optsched.traces.requests import QUANTITIES, TEXTS
from optsched.traces.swf import FIELDS
from optsched.traces.trace import COLUMNS, Header, Trace


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
        ("missing/folder/a.swf", "no such file$"),
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


@pytest.mark.parametrize("suffix", ["swf", "parquet", "csv"])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_log_is_the_same_in_every_format_and_its_files_are_the_same_twice(
    tmp_path, small_swf, suffix, packed
):
    raw = read_trace(small_swf, clean=False)
    files = [tmp_path / f"{name}.{suffix}{packed}" for name in ("one", "two")]
    for path in files:
        assert write_trace(raw, path) == (path,)
    assert files[0].read_bytes() == files[1].read_bytes()
    again = read_trace(files[0], clean=False)
    assert again.frame.equals(raw.frame)
    assert (again.name, again.path) == ("one", files[0])
    assert clean(again).cleaning == clean(raw).cleaning
    if suffix != "csv":
        assert again.header == raw.header
        assert again.oddities == raw.oddities


@st.composite
def traces(draw, suffix):
    """Return a trace with what a format has a place for."""
    jobs = draw(st.integers(1, 5))

    def values(numbers):
        return np.array(draw(st.lists(numbers, min_size=jobs, max_size=jobs)))

    if suffix == "json":
        times = st.integers(1, 10**9) | st.floats(0.1, 1e9)
        columns = [values(of) for of in (times, times, times, st.integers(1, 10**6))]
        label = np.array(list("abcde"[:jobs])) if draw(st.booleans()) else None
        header = Header((("MaxProcs", "77"),))
        return Trace(np.arange(1, jobs + 1), *columns, header=header, label=label)
    columns = {}
    for field in FIELDS:
        largest = 2**53 if field.decimals or suffix == "csv" else 2**63 - 1
        numbers = st.integers(max(field.lowest, -largest), largest)
        if field.decimals and draw(st.booleans()):
            numbers = st.just(-1.0) | st.floats(0, 2**53, allow_subnormal=suffix != "swf")
        columns[field.column] = values(numbers)
    if suffix != "csv":
        key = st.sampled_from(["", "Note", "MaxProcs"])
        value = st.from_regex(r"[a-z0-9]{0,9}", fullmatch=True)
        columns["header"] = Header(tuple(draw(st.lists(st.tuples(key, value), max_size=4))))
    if suffix == "swf":
        return Trace(**columns)
    largest = 2**53 if suffix == "csv" else 2**63 - 1
    annotations = {
        name: values(st.integers(-1, quantity.highest or (2**53 if quantity.unit else largest)))
        for name, quantity in QUANTITIES.items()
        if draw(st.booleans())
    }
    annotations["eligible"] = values(st.just(-1.0) | st.floats(0, 2**53))
    annotations["weight"] = values(st.floats(allow_nan=False, allow_infinity=False))
    texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
    names = [*TEXTS]
    if suffix == "parquet":
        names.append("host")  # CSV does not tell a further column of empty texts from none
        annotations["file"] = values(st.integers(-(2**63), 2**63 - 1))
        columns["limits_hold"] = draw(st.booleans())
        for name, of in (("stated_time", st.integers(-1, 2**53)), ("label", texts)):
            columns |= {name: values(of)} if draw(st.booleans()) else {}
    named = {name: values(texts) for name in names if draw(st.booleans())}
    return Trace(**columns, annotations=annotations, texts=named)


@pytest.mark.parametrize("suffix", ["swf", "json", "parquet", "csv"])
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_every_trace_survives_a_round_trip(tmp_path, suffix, data):
    trace = data.draw(traces(suffix))
    write_trace(trace, tmp_path / f"a.{suffix}")
    again = read_trace(tmp_path / f"a.{suffix}", clean=False)
    for name in COLUMNS:
        written, read = getattr(trace, name), getattr(again, name)
        assert read.tolist() == written.tolist()
        assert suffix != "parquet" or read.dtype == written.dtype or (written == -1).all()
    for kind in ("annotations", "texts"):
        written, read = getattr(trace, kind), getattr(again, kind)
        assert read.keys() == written.keys()
        for name, column in written.items():
            assert read[name].tolist() == column.tolist()
    assert (again.label is None) == (trace.label is None)
    assert trace.label is None or again.label.tolist() == trace.label.tolist()
    assert (again.header, again.limits_hold) == (trace.header, trace.limits_hold)


def test_every_log_agrees_with_the_published_table(shared):
    folder = shared("traces")
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    table = [row for row in cells if row[0].endswith(".swf.gz") and len(row) == 8]
    assert sorted(path.name for path in folder.glob("*.swf.gz")) == sorted(row[0] for row in table)
    for name, jobs, size, days, load, stated, _, sha256 in table:
        raw = read_trace(folder / name, clean=False)
        assert len(raw) == int(jobs), name
        assert raw.sha256 == sha256, name
        procs, nodes = (re.match(r"\d+", part.strip()) for part in size.split(" / ", 1))
        assert raw.header.max_procs == (procs and int(procs[0])), name
        assert raw.header.max_nodes == (nodes and int(nodes[0])), name
        assert f"{(raw.requested_time > 0).mean():.0%}" == stated.replace(" ", ""), name
        span = int(raw.submit.max() - raw.submit.min()) / 86400
        assert f"{span:.1f}" == days, name
        known = facts(raw)
        expected = pytest.approx(float(load), abs=6e-4) if load else None
        assert known["offered_load"] == expected, name
        assert known["jobs"] + known["cleaning"]["dropped"] == int(jobs), name
        assert set(raw.oddities) <= {
            "lines with status 2 to 4, in SWF parts of checkpointed jobs",
            "jobs with a status that SWF does not define",
        }, name


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("SDSC-SP2-1998-4.2-cln", {"dropped_runtime": 5681}),
        ("CTC-SP2-1996-3.1-cln", {"dropped_runtime": 17}),
        ("SDSC-BLUE-2000-4.2-cln", {"dropped_runtime": 10770, "requested_time_raised": 23434}),
        ("LANL-CM5-1994-4.1-cln", {"requested_time_raised": 40180}),
    ],
)
def test_cleaning_counts_what_others_counted(shared, name, counts):
    report = read_trace(shared(f"traces/{name}.swf.gz")).cleaning
    assert counts.items() <= report.to_json().items()


@pytest.mark.parametrize("name", ["SDSC-SP2-1998-4.2-cln", "CTC-SP2-1996-3.1-cln"])
def test_cleaned_jobs_are_those_that_the_other_simulators_were_given(shared, name):
    with gzip.open(shared(f"oracles/{name}.5000.input.csv.gz"), "rt") as stream:
        given = np.array(list(csv.reader(stream))[1:], dtype=np.int64)
    trace = read_trace(shared(f"traces/{name}.swf.gz"))
    trace = trace.select(trace.processors <= trace.header.max_procs).jobs(1, 5000)
    columns = ("job_id", "submit", "runtime", "requested_time", "processors")
    for place, column in enumerate(columns):
        np.testing.assert_array_equal(getattr(trace, column), given[:, place], err_msg=column)


@pytest.mark.parametrize(
    ("name", "jobs"), [("MIRA_2017June_withoutC", 3311), ("MIRA_2018March_withoutC", 4024)]
)
def test_real_batsim_workloads_are_read(shared, tmp_path, name, jobs):
    trace = read_trace(shared(f"traces/other/{name}.json.gz"))
    assert (len(trace), trace.cleaning.dropped) == (jobs, 0)
    assert (trace.header.max_procs, trace.label) == (49152, None)
    write_trace(trace, tmp_path / "again.json")
    assert read_trace(tmp_path / "again.json").frame.equals(trace.frame)
    write_trace(trace, tmp_path / "again.swf")
    again = read_trace(tmp_path / "again.swf")
    assert again.runtime.tolist() == trace.runtime.tolist()


TEXT = b"; MaxProcs: 4\n1" + b" -1" * 17 + b"\n"


@pytest.fixture
def entry():
    sha256 = hashlib.sha256(TEXT).hexdigest()
    return replace(entries()[0], name="toy", file="toy.swf.gz", sha256=sha256)


@pytest.fixture
def server(tmp_path):
    """Serve a folder on this machine; yields the folder and its address."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/cut":
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b"short")
                return
            super().do_GET()

        def log_message(self, *args):
            pass

    handler = partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def test_every_bundled_entry_is_complete_and_consistent():
    names = [entry.name for entry in entries()]
    assert len(set(names)) == len(names) > 10
    assert names == sorted(names)
    for entry in entries():
        assert entry.file == f"{entry.name}.swf.gz"
        assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256)
        assert re.fullmatch(rf"https://.*/{re.escape(entry.file)}", entry.url)
        assert entry.page.rpartition("/")[0] == entry.url.rpartition("/")[0]
        assert entry.jobs > 0
        assert entry.processors >= entry.nodes >= 0
        assert all((entry.title, entry.acknowledge, entry.terms))
        assert "10.1016/j.jpdc.2014.06.013" in entry.citation
    assert len({entry.sha256 for entry in entries()}) == len(names)
    assert not list(bundled("traces").rglob("*.gz"))  # the logs themselves are not bundled


def test_names_may_be_short_and_in_any_case_and_others_are_told():
    for name in ("sdsc-blue-2000-4.2-CLN", "sdsc-b", "SDSC-BLUE-2000-4.2-cln.swf.gz"):
        assert find(name).name == "SDSC-BLUE-2000-4.2-cln"
    for name, said in (
        ("SDSC-SP3-1998", "did you mean SDSC-SP2-1998-4.2-cln"),
        ("sdsc", "with 'sdsc': SDSC-BLUE-2000-4.2-cln, SDSC-DS-2004"),
        ("", "unknown trace"),
    ):
        with pytest.raises(InputError, match=said):
            find(name)


def test_files_are_found_in_the_folder_and_in_the_configured_ones(tmp_path, entry, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    monkeypatch.setenv(catalogue.VARIABLE, os.pathsep.join([str(first), str(second), ""]))
    with pytest.raises(InputError, match=f"not in {first}, {second}.*trace download toy"):
        locate(entry)
    (second / "toy.swf").write_bytes(TEXT)
    assert locate(entry) == second / "toy.swf"
    (first / "toy.swf.gz").write_bytes(gzip.compress(TEXT, 1))
    assert locate(entry) == first / "toy.swf.gz"
    assert locate(entry, second) == second / "toy.swf"
    monkeypatch.delenv(catalogue.VARIABLE)
    with pytest.raises(InputError, match="OPTSCHED_TRACES names no folder"):
        locate(entry)


def test_another_text_is_never_taken_for_the_published_one(tmp_path, entry):
    (tmp_path / "toy.swf.gz").write_bytes(gzip.compress(TEXT + b"\n"))
    for get in (locate, download):
        with pytest.raises(InputError, match="not toy as published: the SHA-256 of its text is"):
            get(entry, tmp_path)


def test_a_download_is_verified_and_renamed(tmp_path, entry, server):
    served, address = server
    (served / "toy.swf.gz").write_bytes(gzip.compress(TEXT))
    entry = replace(entry, url=f"{address}/toy.swf.gz")
    target = tmp_path / "new" / "folder"
    assert download(entry, target) == target / "toy.swf.gz"
    verify(entry, target / "toy.swf.gz")
    assert [path.name for path in target.iterdir()] == ["toy.swf.gz"]
    (served / "toy.swf.gz").unlink()
    assert download(entry, target) == target / "toy.swf.gz"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("other.swf.gz", "not toy as published"),
        ("half.swf.gz", "is truncated"),
        ("missing.swf.gz", "could not be fetched: File not found; the trace is described at https"),
        ("cut", "could not be fetched: IncompleteRead"),
    ],
)
def test_a_download_that_fails_leaves_nothing(tmp_path, entry, server, path, message):
    served, address = server
    (served / "other.swf.gz").write_bytes(gzip.compress(TEXT + b"; more\n"))
    (served / "half.swf.gz").write_bytes(gzip.compress(TEXT)[:-9])
    with pytest.raises(InputError, match=message) as caught:
        download(replace(entry, url=f"{address}/{path}"), tmp_path / "new")
    assert str(caught.value).startswith(f"{address}/{path}: ")
    assert not (tmp_path / "new").exists()


def test_without_a_network_the_message_says_so(tmp_path, entry):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}/toy.swf.gz"
        for url, said in ((closed, ".*refused"), ("toy.swf.gz", "unknown url type")):
            with pytest.raises(InputError, match=f"could not be fetched: {said}"):
                download(replace(entry, url=url), tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[trac.a]", "expected the tables"),
        ("[trace.a", "not TOML"),
        ("[trace.a]\nprocessors = '5'\nsize = 4", "a.size: unknown field"),
        ("[trace.a]\nprocessors = '5'", "a.processors: expected an integer"),
    ],
)
def test_a_wrong_catalogue_is_refused(tmp_path, text, message):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_catalogue(tmp_path / "c.toml")


def test_the_real_files_are_those_of_the_catalogue(shared):
    folder = shared("traces")
    for entry in entries():
        assert locate(entry, folder) == folder / entry.file
