"""How a case is run: in a fork of this process, which has imported everything, and in bounds."""

import contextlib
import multiprocessing
import os
import resource
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from numba.core import config, event

from fuzz.seeds import Here
from fuzz.target import Case

CONTEXT = multiprocessing.get_context("fork")
STATISTICS = Path("/proc/self/statm")  # where Linux says how much memory a process has
RUNS = 3  # of a sweep that are done
COMPILING = 900.0  # seconds on the clock more where kernels are compiled, once on a machine
COMPILED = "compiled"  # the file by which a case says that it does
GRACE = 100  # hundredths of a second to notice that the process that one served has ended


class Bounds(NamedTuple):
    """What a case may spend."""

    seconds: int = 60  # of processor time
    patience: float = 150.0  # seconds on the clock: who waits takes no processor time
    memory: int = 2 * 2**30  # bytes, beyond those of the process that it is a fork of


class Ended(NamedTuple):
    """How a case ended."""

    code: int  # or minus the signal that ended it
    out: str
    err: str
    seconds: float
    hung: bool = False  # it had to be ended
    orphans: bool = False  # processes that it started were still there


class Running:
    """A case under way in the folder ``case`` of a folder; streams and so on go beside that."""

    def __init__(self, case: Case, folder: Path, bounds: Bounds) -> None:
        (folder / "tmp").mkdir()
        self._folder = folder
        self._began = time.perf_counter()
        self._bounds = bounds
        self._process = CONTEXT.Process(target=_run, args=(case, folder, bounds))
        self._process.start()

    @property
    def sentinel(self) -> int:
        """What becomes ready when it ends."""
        return self._process.sentinel

    @property
    def left(self) -> float:
        """The seconds on the clock that it has left; more if it had to compile a kernel."""
        more = COMPILING if (self._folder / COMPILED).exists() else 0.0
        return self._bounds.patience + more - (time.perf_counter() - self._began)

    def ended(self) -> Ended | None:
        """Return how it ended; end it if its time is over; none if it may go on."""
        hangs = self._process.exitcode is None
        if hangs and self.left > 0:
            return None
        leader = self._process.pid
        assert leader is not None
        if hangs:
            os.killpg(leader, signal.SIGKILL)
        self._process.join()
        code = self._process.exitcode
        assert code is not None
        seconds = time.perf_counter() - self._began
        orphans = not hangs and _is_left_behind(leader)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGKILL)
        self._process.close()
        files = (self._folder / name for name in ("out", "err"))
        said = (file.read_text(encoding="utf-8", errors="backslashreplace") for file in files)
        return Ended(code, *said, seconds, hangs, orphans)


def _is_left_behind(group: int) -> bool:
    """Return whether a process of a group still runs after a moment; ended ones are none."""
    for _ in range(GRACE):
        running = 0
        for file in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # it has just ended
                state, _, its_group, *_ = file.read_text().rpartition(")")[2].split()
                running += int(its_group) == group and state != "Z"
        if not running:
            return False
        time.sleep(0.01)
    return True


def _run(case: Case, folder: Path, bounds: Bounds) -> None:
    """Run a case, in the fork."""
    os.setsid()
    if STATISTICS.exists():
        used = int(STATISTICS.read_text().split()[0]) * resource.getpagesize()
        _limit(resource.RLIMIT_AS, used + bounds.memory)
    _limit_time(bounds.seconds, folder / COMPILED)
    _limit(resource.RLIMIT_FSIZE, bounds.memory)
    _limit(resource.RLIMIT_CORE, 0)
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = open(folder / name[3:], "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115 (to the end)
        os.dup2(stream.fileno(), number)
        setattr(sys, name, stream)
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder / "tmp")
    os.chdir(folder / "case")
    _without_network()
    from optsched import content
    from optsched.cli import main, sweep_command
    from optsched.traces import catalogue

    sweep_command.start_engine = lambda *_given: Here(RUNS)
    if case.content is not None:
        content._PACKAGED = folder / "case" / case.content
        catalogue.entries.cache_clear()
    _confine(folder)
    main(case.arguments)


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    resource.setrlimit(what, (most, hard))


def _limit_time(seconds: int, compiled: Path) -> None:
    """Limit the processor time, without that which kernels take to be compiled."""

    class Compiling(event.Listener):
        def on_start(self, _event: event.Event) -> None:
            compiled.touch()
            _limit(resource.RLIMIT_CPU, int(time.process_time() + COMPILING))

        def on_end(self, _event: event.Event) -> None:
            _limit(resource.RLIMIT_CPU, int(time.process_time()) + seconds)

    event.register("numba:compile", Compiling())
    _limit(resource.RLIMIT_CPU, seconds)


CACHES = frozenset({"__pycache__", ".cache", "matplotlib"})  # that libraries keep for themselves


class OutsideError(Exception):
    """A command changes a file that is none of its business."""


def _confine(folder: Path) -> None:
    """Refuse whatever changes a file outside a folder, caches apart."""
    inside = [str(folder.resolve()) + os.sep]
    if config.CACHE_DIR:
        inside.append(os.path.realpath(config.CACHE_DIR) + os.sep)
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
    changes = {
        "os.rename": 2, "os.remove": 1, "os.mkdir": 1, "os.rmdir": 1, "os.link": 2, "os.symlink": 2,
        "os.truncate": 1, "os.chmod": 1, "os.chown": 1, "os.utime": 1, "shutil.rmtree": 1,
    }  # fmt: skip

    def look(event: str, given: tuple[Any, ...]) -> None:
        if event == "open":
            paths = given[:1] if given[2] & writing and given[0] != os.devnull else ()
        else:
            paths = given[: changes.get(event, 0)]
        for path in paths:
            if isinstance(path, int):
                continue
            parent, name = os.path.split(os.path.abspath(os.fsdecode(path)))
            place = os.path.join(os.path.realpath(parent), name)
            if event == "open":
                place = os.path.realpath(place)
            if not place.startswith(tuple(inside)) and CACHES.isdisjoint(place.split(os.sep)):
                raise OutsideError(f"{event} {place}")

    sys.addaudithook(look)


def _without_network() -> None:
    def refuse(*_given: object, **_named: object) -> NoReturn:
        raise OSError("the fuzzer has no network")

    for name in ("connect", "connect_ex", "bind", "sendto"):
        setattr(socket.socket, name, refuse)
    socket.getaddrinfo = refuse
