"""What may be read and written: a device or a pipe is refused, a link leads to what it names.

No test names a device of the machine: one that is needed is made in a temporary folder.
"""

import contextlib
import errno
import gzip
import hashlib
import json
import os
import re
import resource
import socket
import stat
import subprocess
from functools import partialmethod
from pathlib import Path

import pytest

import optsched
from optsched.cli import run
from optsched.content import bundled
from optsched.errors import InputError
from optsched.files import (
    check_output,
    in_memory,
    read_bytes,
    read_head,
    remove_leftovers,
    sha256_of,
    write_json,
    written,
    written_folder,
)
from optsched.folders import RUN
from optsched.studies.folder import StudyFolder
from optsched.studies.running import StudyRun
from optsched.traces.catalogue import entries
from optsched.traces.reading import read_trace, write_trace

FILES = (
    *("solve absent.json -o", "solve absent.json --picture"),
    *("snapshot export absent.json -o", "snapshot convert absent.json -o"),
    *("trace clean absent.swf -o", "trace convert absent.swf -o", "trace fit absent.swf -o"),
    *("trace scale absent.swf --to 8 -o", "trace generate absent.toml --jobs 5 -o"),
    *("trace annotate bandwidth absent.swf --mix HIGH -o", "trace annotate files absent.swf -o"),
)
FOLDERS = (
    *("simulate absent.swf -o", "simulate absent.swf -o out --capture", "compare absent.json -o"),
    *("sweep absent.toml -o", "study yang-2014 -o"),
)
OUTPUTS = dict.fromkeys(FILES, "a file") | dict.fromkeys(FOLDERS, "a folder")
"""What commands write. They look at it first: what they read is not even there."""

EXAMPLE = bundled("models") / "window-mkp" / "yang-2014-example.json"
SAMPLE = bundled("traces") / "samples" / "sample-256.swf"


def make_device(path):
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("device nodes cannot be made here")


def make_socket(path):
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as one:
        one.bind(path.name)


def make_link_to_pipe(path):
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


MADE = {
    "a device": make_device,
    "a pipe": os.mkfifo,
    "a socket": make_socket,
    "a loop": lambda path: path.symlink_to(path.name),
    "a link to a pipe": make_link_to_pipe,
    "a folder": Path.mkdir,
    "a file": Path.touch,
}


def told(what, path, expected):
    if what == "a loop":
        return f"optsched: {path}: cannot be written: {os.strerror(errno.ELOOP)}\n"
    what = "a pipe" if what == "a link to a pipe" else what
    return f"optsched: {path}: is {what}; expected {expected} to write to\n"


def entries_of(folder):
    """Return the names, kinds and identities of all files in a folder."""
    return {path.name: (path.lstat().st_mode, path.lstat().st_ino) for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("command", "what"), [(one, what) for one in OUTPUTS for what in MADE if what != OUTPUTS[one]]
)
def test_nothing_is_written_over_something_else(command, what, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    output = Path("node.rackham")
    MADE[what](output)
    before = entries_of(tmp_path)
    assert run([*command.split(), str(output)]) == 1
    assert capsys.readouterr().err == told(what, output, OUTPUTS[command])
    assert entries_of(tmp_path) == before


@pytest.mark.parametrize("what", ["a device", "a pipe", "a loop"])
def test_a_download_is_refused_before_it_is_fetched(what, tmp_path, capsys):
    entry = next(iter(entries()))
    MADE[what](tmp_path / entry.file)
    assert run(["trace", "download", entry.name, "-o", str(tmp_path)]) == 1
    assert capsys.readouterr().err == told(what, tmp_path / entry.file, "a file")


TWO_JOBS = (0, 10, 20, 1), (5, 10, 20, 2)


@pytest.fixture
def small_run_folder(make_trace, tmp_path):
    """Return the folder of a run, without pictures."""
    done = optsched.simulate(make_trace(*TWO_JOBS), "nodes:2", "easy")
    return optsched.save(done, tmp_path / "run", plots=False)


def test_a_page_is_not_written_over_a_pipe(small_run_folder, capsys):
    page = small_run_folder / "report.html"
    page.unlink(missing_ok=True)
    os.mkfifo(page)
    assert run(["report", str(small_run_folder)]) == 1
    assert capsys.readouterr().err == told("a pipe", page, "a file")
    assert stat.S_ISFIFO(page.lstat().st_mode)


@pytest.mark.parametrize("hidden", ["a pipe", "a folder", "a device", "a loop"])
def test_a_folder_with_something_else_in_it_is_not_replaced(hidden, small_run_folder):
    (small_run_folder / "jobs.csv").unlink()
    MADE[hidden](small_run_folder / "jobs.csv")
    before = entries_of(small_run_folder)
    expected = r"run: holds 'jobs\.csv', which is not a regular file; give another name"
    with pytest.raises(InputError, match=expected), written_folder(small_run_folder, RUN):
        pytest.fail("refused too late")
    assert entries_of(small_run_folder) == before


def test_what_was_put_into_a_folder_meanwhile_is_not_lost(tmp_path):
    output = tmp_path / "out"
    refused = pytest.raises(InputError, match=r"out: is a folder with other things in it")
    with refused, written_folder(output, RUN) as temporary:
        write_json(temporary / "run.json", {})
        output.mkdir()
        (output / "thesis.tex").write_text("years of work")
    assert (output / "thesis.tex").read_text() == "years of work"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("failure", [OSError(errno.EIO, "broken"), KeyboardInterrupt()])
def test_a_folder_whose_place_is_not_taken_stays(failure, small_run_folder, monkeypatch):
    rename = Path.rename

    def failing(path, target):
        if path.suffix == ".partial":
            raise failure
        return rename(path, target)

    before = entries_of(small_run_folder)
    monkeypatch.setattr(Path, "rename", failing)
    stopped = pytest.raises((InputError, KeyboardInterrupt))
    with stopped, written_folder(small_run_folder, RUN) as temporary:
        write_json(temporary / "run.json", {})
    assert entries_of(small_run_folder) == before
    assert list(small_run_folder.parent.iterdir()) == [small_run_folder]


@pytest.mark.parametrize("exists", [True, False])
def test_a_file_is_written_through_links(exists, tmp_path):
    real, link, outer = tmp_path / "there" / "a.json", tmp_path / "link", tmp_path / "outer"
    real.parent.mkdir()
    if exists:
        real.write_text("before")
    link.symlink_to("there/a.json")
    outer.symlink_to(link)
    assert run(["solve", str(EXAMPLE), "--solver", "greedy", "-o", str(outer)]) == 0
    assert json.loads(real.read_text())["kind"] == "window-mkp"
    assert (outer.is_symlink(), link.is_symlink()) == (True, True)
    assert [path.name for path in real.parent.iterdir()] == ["a.json"]


def test_a_link_into_a_folder_that_is_not_there_is_told(tmp_path, capsys):
    link = tmp_path / "link.swf"
    link.symlink_to("absent/a.swf")
    assert run(["trace", "convert", str(SAMPLE), "-o", str(link)]) == 1
    absent = os.strerror(errno.ENOENT)
    assert capsys.readouterr().err == f"optsched: {link}: cannot be written: {absent}\n"
    assert run(["trace", "info", str(link)]) == 1
    expected = f"optsched: {link}: is a link to a file that is not there\n"
    assert capsys.readouterr().err == expected


def test_demands_are_looked_at_too_and_go_with_the_trace_that_a_link_names(make_trace, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    (tmp_path / "link.swf").symlink_to("there/a.swf")
    trace = make_trace(*TWO_JOBS)
    os.mkfifo(there / "a.swf.demands.csv")
    with pytest.raises(InputError, match=r"a\.swf\.demands\.csv: is a pipe; expected a file"):
        write_trace(trace, tmp_path / "link.swf")
    assert [path.name for path in there.iterdir()] == ["a.swf.demands.csv"]
    (there / "a.swf.demands.csv").unlink()
    demanding = trace.changed(annotations={"bandwidth": trace.processors * 100})
    write_trace(demanding, tmp_path / "link.swf")
    for path in (tmp_path / "link.swf", there / "a.swf"):
        assert read_trace(path).annotations["bandwidth"].tolist() == [100, 200]
    write_trace(trace, tmp_path / "link.swf")
    assert [path.name for path in there.iterdir()] == ["a.swf"]


def test_a_folder_is_written_through_a_link(make_trace, tmp_path):
    link = tmp_path / "link"
    link.symlink_to("there")
    done = optsched.simulate(make_trace(*TWO_JOBS), "nodes:2", "easy")
    for _ in range(2):  # the folder is not there at first
        optsched.save(done, link, plots=False)
        assert (tmp_path / "there" / "run.json").is_file()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "there"]
        assert link.is_symlink()


@pytest.mark.parametrize(("name", "said"), [("", "its folder"), ("a.json", "the file")])
def test_what_is_read_only_is_told_before_the_work(name, said, tmp_path, monkeypatch):
    if name:
        (tmp_path / name).touch()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path / name)  # of root
    expected = rf"a\.json: cannot be written: {said} is read-only"
    for write in (check_output, lambda path: write_json(path, {})):
        with pytest.raises(InputError, match=expected):
            write(tmp_path / "a.json")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b""] * bool(name)


def test_an_answer_and_its_picture_are_two_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("b.svg").symlink_to("a.svg")
    for picture in ("a.svg", "b.svg"):
        command = ["solve", str(EXAMPLE), "--solver", "greedy", "-o", "a.svg", "--picture", picture]
        assert run(command) == 1
        expected = f"optsched: {picture}: is the output; expected another file to write to\n"
        assert capsys.readouterr().err == expected
        assert not Path("a.svg").exists()


def test_a_folder_that_cannot_be_listed_is_written_to(tmp_path, monkeypatch):
    listdir = os.listdir

    def refusing(folder):
        if Path(folder) == tmp_path:
            raise PermissionError(errno.EACCES, "no", str(folder))
        return listdir(folder)

    monkeypatch.setattr(os, "listdir", refusing)
    write_json(tmp_path / "a.json", {})
    with written_folder(tmp_path / "run", RUN) as temporary:
        write_json(temporary / "run.json", {})
    assert (tmp_path / "a.json").is_file()
    assert (tmp_path / "run" / "run.json").is_file()


@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken", "other"), TimeoutError("late")])
def test_another_error_while_a_file_is_written_stays_what_it_is(error, tmp_path):
    with pytest.raises(type(error)) as caught, written(tmp_path / "a"):
        raise error
    assert caught.value is error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o200])
def test_a_file_that_is_replaced_keeps_its_permissions(mode, tmp_path):
    file = tmp_path / "a.json"
    file.touch()
    file.chmod(mode)
    write_json(file, {})
    assert stat.S_IMODE(file.stat().st_mode) == mode


HOST = os.uname().nodename.partition(".")[0]


def dead_process():
    """Return the number of a process that has ended."""
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_left_overs_of_dead_writers_go_with_the_next_run_to_the_same_place(tmp_path):
    dead, own, parent = dead_process(), os.getpid(), os.getppid()
    began = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    lives = f"{parent}.{began}"
    gone = [
        f"{dead}",  # as older versions named them
        f"{dead}.77",
        f"{own}.77",  # the number is that of another process by now
        f"{parent}.77",
        f"{dead}.r0123456789ab",
        f"{own}.77.r0123456789ab",
    ]
    gone = [f".a.json.{HOST}-{writer}.partial" for writer in gone]
    living = (lives, f"{lives}.r0123456789ab", parent)
    stay = [f".a.json.{HOST}-{writer}.partial" for writer in living]
    stay += [f".b.json.{HOST}-{dead}.77.partial", f".a.json.elsewhere-{dead}.77.partial"]
    for name in gone + stay:
        (tmp_path / name).write_text("half")
    write_json(tmp_path / "a.json", {})
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", *stay}


def test_a_temporary_name_cannot_be_foreseen_and_nobody_else_enters_a_temporary_folder(tmp_path):
    names = set()
    for _ in range(2):
        with written(tmp_path / "a.json") as stream:
            stream.write(b"{}")
            names |= {path.name for path in tmp_path.iterdir() if path.suffix == ".partial"}
    assert len(names) == 2
    made = tmp_path / "mode"
    made.mkdir()
    with written_folder(tmp_path / "run", RUN) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == stat.S_IMODE(made.stat().st_mode) & 0o700
        write_json(temporary / "run.json", {})
    assert (tmp_path / "run").stat().st_mode == made.stat().st_mode


def test_a_link_under_a_temporary_name_is_not_followed(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(os, "urandom", bytes)  # as if the name were known
    with written(tmp_path / "a.json"):
        [known] = [path for path in tmp_path.iterdir() if path.suffix == ".partial"]
    (tmp_path / "a.json").unlink()
    known.symlink_to(victim)
    monkeypatch.setattr("optsched.files.remove_leftovers", lambda *_given, **_named: None)
    with pytest.raises(InputError, match="cannot be written: File exists"):
        write_json(tmp_path / "a.json", {})
    assert victim.read_text() == "mine"


def test_a_temporary_file_that_is_exchanged_is_not_given_the_name(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    refused = pytest.raises(InputError, match="somebody has replaced the temporary file")
    with refused, written(tmp_path / "a.json") as stream:
        [temporary] = [path for path in tmp_path.iterdir() if path.suffix == ".partial"]
        temporary.unlink()
        temporary.symlink_to(victim)
        stream.write(b"theirs")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"victim": "mine"}


def test_left_overs_in_a_study_go_when_it_begins(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "plan.toml").touch()
    (tmp_path / "mine" / "study.py").write_text("def cases(plan, folders):\n    return {}\n")
    study, runs = StudyFolder(tmp_path / "mine"), tmp_path / "runs"
    StudyRun(study, runs)
    before = {path.name for path in runs.iterdir()}
    (runs / f".page.md.{HOST}-{dead_process()}.partial").write_text("half")
    StudyRun(study, runs)
    assert {path.name for path in runs.iterdir()} == before


def test_a_folder_that_was_about_to_be_replaced_comes_back_unless_a_file_takes_its_place(tmp_path):
    for name in ("run", "a.json"):
        old = tmp_path / f".{name}.{HOST}-{dead_process()}.old"
        old.mkdir()
        (old / "run.json").write_text("{}")
    write_json(tmp_path / "a.json", {})
    assert (tmp_path / "a.json").is_file()
    assert old.is_dir()
    remove_leftovers(tmp_path)
    assert (tmp_path / "run" / "run.json").is_file()


@contextlib.contextmanager
def files_of_at_most(size):
    """Let writing fail where a file gets larger, as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("command", "path"),
    [
        (f"solve {EXAMPLE} --solver greedy -o", "a.json"),
        (f"solve {EXAMPLE} --solver greedy --picture", "a.svg"),
        (f"snapshot export {EXAMPLE} -o", "a.pb.txt"),
        (f"snapshot export {EXAMPLE} -o", "a.lp"),
        (f"snapshot export {EXAMPLE} -o", "a.mps"),
        (f"trace convert {SAMPLE} -o", "a.swf"),
        (f"simulate {SAMPLE} --jobs 1:50 --no-plots -o", "a"),
    ],
    ids=lambda text: text.split()[0],
)
def test_a_file_that_becomes_too_large_is_named_as_the_user_does(command, path, tmp_path, capsys):
    output = tmp_path / path
    with files_of_at_most(100):
        assert run([*command.split(), str(output)]) == 1
    [err] = capsys.readouterr().err.splitlines()
    assert err.startswith(f"optsched: {output}")
    assert err.endswith(f": cannot be written: {os.strerror(errno.EFBIG)}")
    assert ".partial" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1000, 3000, 6000])
def test_a_table_that_becomes_too_large_leaves_the_old_run_alone(size, make_trace, tmp_path):
    """Libraries that write tables do not say which file it was: its folder is named."""
    rows = [(k, 10 + k % 7, 60, 1 + k % 5) for k in range(200)]
    few = optsched.simulate(make_trace(*rows[:3]), "nodes:8", "easy")
    done = optsched.simulate(make_trace(*rows), "nodes:8", "easy")
    optsched.save(few, tmp_path / "out", plots=False)
    before = entries_of(tmp_path / "out")
    told = rf"{re.escape(str(tmp_path))}/out[\w/.]*: cannot be written: {os.strerror(errno.EFBIG)}"
    with files_of_at_most(size), pytest.raises(InputError) as caught:
        optsched.save(done, tmp_path / "out", plots=False)
    assert re.fullmatch(told, str(caught.value))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert entries_of(tmp_path / "out") == before


def test_what_has_its_name_is_on_the_disk(make_trace, tmp_path, monkeypatch):
    """Files and folders are synced before they are renamed, and after it where they lie."""
    happened = []
    fsync = os.fsync

    def sync(descriptor):
        fsync(descriptor)
        happened.append(os.fstat(descriptor).st_ino)

    def renaming(path, target, rename):
        parts = [path, *path.rglob("*")]
        happened.append((target, {part.stat().st_ino for part in parts}))
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", sync)
    for name in ("rename", "replace"):
        monkeypatch.setattr(Path, name, partialmethod(renaming, rename=getattr(Path, name)))
    trace = make_trace(*TWO_JOBS)
    write_trace(trace.changed(annotations={"bandwidth": trace.processors}), tmp_path / "a.swf")
    for _ in range(2):
        optsched.save(optsched.simulate(trace, "nodes:2", "easy"), tmp_path / "run", plots=False)
    named = [
        (at, *event)
        for at, event in enumerate(happened)
        if isinstance(event, tuple) and event[0].parent == tmp_path and event[0].name[0] != "."
    ]
    names = [target.name for _, target, _ in named]
    assert names == ["a.swf.demands.csv", "a.swf", "run", "run"]
    for at, target, parts in named:
        assert parts <= {event for event in happened[:at] if isinstance(event, int)}
        assert target.parent.stat().st_ino in happened[at:]


def test_gzip_is_told_by_content_not_by_name_and_the_checksum_is_of_the_file(tmp_path):
    stored = gzip.compress(b"one ") + gzip.compress(b"two")  # several members are one text
    (tmp_path / "plain.gz").write_bytes(b"plain")
    (tmp_path / "packed").write_bytes(stored)
    assert read_bytes(tmp_path / "plain.gz")[0] == b"plain"
    assert read_bytes(tmp_path / "packed") == (b"one two", hashlib.sha256(stored).hexdigest())
    assert read_head(tmp_path / "packed").startswith(b"one ")


def test_what_is_missing_is_told(tmp_path):
    for read in (read_bytes, read_head):
        with pytest.raises(InputError, match="No such file"):
            read(tmp_path / "missing")
        with pytest.raises(InputError, match="directory"):
            read(tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda stored: stored[:-20], "is truncated"),
        (lambda stored: stored[:40] + b"\xff" * 8 + stored[48:], "damaged"),
        (lambda stored: stored[:-8] + bytes(8), "damaged"),
        (lambda stored: stored + b"rubbish", "damaged"),
    ],
    ids=["truncated", "corrupted", "wrong checksum", "rubbish at the end"],
)
def test_damaged_gzip_files_are_told(tmp_path, damage, message):
    text = b" ".join(b"%d" % (number * number) for number in range(1000))
    path = tmp_path / "a.gz"
    path.write_bytes(damage(gzip.compress(text)))
    with pytest.raises(InputError, match=message) as caught:
        read_bytes(path)
    assert str(path) in str(caught.value)


def test_neither_a_pipe_is_looked_into_nor_a_device_read(tmp_path):
    """Whoever reads the whole after the head would miss the head; a device may have no end."""
    pipe, endless = tmp_path / "pipe", tmp_path / "zero"
    os.mkfifo(pipe)
    for read in (read_head, sha256_of):
        with pytest.raises(InputError, match="is a pipe or a device; expected a file"):
            read(pipe)
    try:
        os.mknod(endless, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("device nodes cannot be made here")
    for read in (read_bytes, read_head, sha256_of):
        with pytest.raises(InputError, match=r"zero: is a (pipe or a )?device; expected a file"):
            read(endless)


@pytest.mark.parametrize("packed", [False, True])
def test_no_more_is_read_than_may_be(tmp_path, packed):
    text = bytes(2**20)
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(text) if packed else text)
    assert read_bytes(path, 2**20)[0] == text
    path.write_bytes(gzip.compress(text + b"1") if packed else text + b"1")
    with pytest.raises(InputError, match="a: holds more than 1 MiB"):
        read_bytes(path, 2**20)


def test_a_pipe_is_read_as_a_file_is(tmp_path):
    stored = gzip.compress(b"text" * 10_000)
    reading, writing = os.pipe()
    os.write(writing, stored[:1])
    os.write(writing, stored[1:])
    os.close(writing)
    expected = (b"text" * 10_000, hashlib.sha256(stored).hexdigest())
    assert read_bytes(f"/dev/fd/{reading}") == expected
    os.close(reading)


def test_what_does_not_fit_into_memory_is_told_with_the_file():
    with (
        pytest.raises(InputError, match=r"big\.swf: does not fit into memory"),
        in_memory("big.swf"),
    ):
        raise MemoryError


def test_a_gzip_file_unpacks_to_no_more_than_a_multiple_of_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr("optsched.files.MOST", 10**6)
    (tmp_path / "usual.gz").write_bytes(gzip.compress(os.urandom(20_000) * 60))
    assert len(read_bytes(tmp_path / "usual.gz", 10**9)[0]) == 1_200_000
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(10**6)))
    assert read_bytes(tmp_path / "bomb.gz")[0] == bytes(10**6)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(10**6 + 1)))
    with pytest.raises(InputError, match=r"bomb\.gz: unpacks to .* 100 times its size"):
        read_bytes(tmp_path / "bomb.gz", 10**9)
