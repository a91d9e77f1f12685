import gzip
import hashlib
import http.server
import os
import re
import socket
import threading
from dataclasses import replace

import pytest

from optsched.content import bundled
from optsched.errors import InputError, UnknownNameError
from optsched.traces import catalogue
from optsched.traces.catalogue import download, entries, find, locate, read_catalogue, verify

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
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

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

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
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
        assert entry.url.startswith("https://")
        assert entry.url.endswith(f"/{entry.file}")
        assert entry.page.rpartition("/")[0] == entry.url.rpartition("/")[0]
        assert entry.jobs > 0
        assert entry.processors >= entry.nodes >= 0
        assert entry.title
        assert entry.acknowledge
        assert "10.1016/j.jpdc.2014.06.013" in entry.citation
        assert entry.terms
    assert len({entry.sha256 for entry in entries()}) == len(names)


@pytest.mark.parametrize(
    "name",
    [
        "SDSC-BLUE-2000-4.2-cln",
        "sdsc-blue-2000-4.2-CLN",
        "SDSC-BLUE-2000",
        "sdsc-b",
        "SDSC-BLUE-2000-4.2-cln.swf.gz",
    ],
)
def test_names_may_be_short_and_in_any_case(name):
    assert find(name).name == "SDSC-BLUE-2000-4.2-cln"


def test_unknown_and_ambiguous_names_are_told():
    with pytest.raises(UnknownNameError, match=r"did you mean SDSC-SP2-1998-4.2-cln"):
        find("SDSC-SP3-1998")
    with pytest.raises(InputError, match=r"with 'sdsc': SDSC-BLUE-2000-4.2-cln, SDSC-DS-2004"):
        find("sdsc")
    with pytest.raises(UnknownNameError):
        find("")


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
    with pytest.raises(InputError, match="not toy as published: the SHA-256 of its text is"):
        locate(entry, tmp_path)
    with pytest.raises(InputError, match="not toy as published"):
        download(entry, tmp_path)


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
        ("half.swf.gz", "ends before its end"),
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
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/toy.swf.gz"
        with pytest.raises(InputError, match=r"could not be fetched: .*refused"):
            download(replace(entry, url=url), tmp_path)
    with pytest.raises(InputError, match="could not be fetched: unknown url type"):
        download(replace(entry, url="toy.swf.gz"), tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trace = 5", "expected the tables"),
        ("[trace]\na = 5", "expected the tables"),
        ("[trac.a]", "expected the tables"),
        ("[trace.a", "not TOML"),
        ("[trace.a]\nprocessors = '5'\nsize = 4", "a.size: unknown field"),
        ("[trace.a]\nprocessors = '5'", "a.processors: expected an integer"),
        ("[trace.a]\nprocessors = 5", "a.title: expected a text"),
    ],
)
def test_a_wrong_catalogue_is_refused(tmp_path, text, message):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_catalogue(tmp_path / "c.toml")
    assert message in str(caught.value)
    with pytest.raises(InputError, match="No such file"):
        read_catalogue(tmp_path / "missing.toml")


def test_the_catalogue_holds_no_logs():
    assert not list(bundled("traces").rglob("*.gz"))


def test_the_real_files_are_those_of_the_catalogue(shared_traces):
    for entry in entries():
        assert locate(entry, shared_traces) == shared_traces / entry.file
