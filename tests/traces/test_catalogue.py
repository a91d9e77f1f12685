import gzip
import hashlib
import http.server
import os
import re
import socket
import threading
from dataclasses import replace
from functools import partial

import pytest

from optsched.content import bundled
from optsched.errors import InputError
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
