"""Fixtures that all tests share."""

import os
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from optsched import registry
from optsched.traces.cleaning import clean
from optsched.traces.reading import write_trace
from optsched.traces.trace import Trace

# first calls compile kernels, and the machine may be busy
timeless = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", timeless, derandomize=True)
settings.register_profile("new", timeless, database=None)  # make test-all, with a seed
settings.load_profile("same")

# tests that go through the registries are about what belongs to optsched, whatever is installed
registry.entry_points = lambda **_: ()

MEMORY = Path("/dev/shm")
"""A file system in memory, where the thousands of files of the tests cost next to nothing."""

ROOM = 2 * 1024**3
"""Bytes that the tests want there; they use a quarter of it."""


def _holds_tests(folder: Path) -> bool:
    """Return whether there is room, and programs that a test writes may run there."""
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return False
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize > ROOM and not status.f_flag & os.ST_NOEXEC


if "TMPDIR" not in os.environ and _holds_tests(MEMORY):
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_collection_modifyitems(items) -> None:
    """Take a quarter of the examples of properties where they are the same every time."""
    if settings.get_current_profile_name() != "same":
        return
    for function in {item.function for item in items if "hypothesis" in item.keywords}:
        chosen = function._hypothesis_internal_use_settings  # no public name changes it
        fewer = settings(chosen, max_examples=-(-chosen.max_examples // 4))
        function._hypothesis_internal_use_settings = fewer


def pytest_terminal_summary(terminalreporter) -> None:
    """Say in one line what was skipped, and why."""
    skipped = terminalreporter.getreports("skipped")
    reasons = Counter(_short(report.longrepr[2]) for report in skipped)
    counts = [f"{number} {reason}" for reason, number in reasons.most_common()]
    terminalreporter.write_line(f"skipped: {'; '.join(counts) or 'nothing'}")


def _short(reason: str) -> str:
    """Return the reason of a skip without its details."""
    if "../shared" in reason:
        return "without ../shared"
    return re.split("[,:(]", reason.removeprefix("Skipped: "))[0].strip()


@pytest.fixture
def forget() -> Iterator[Callable[[], None]]:
    """Return a function that forgets the code of users; it is called after the test, too."""
    own_names = {kind: {*kind} for kind in registry.all_kinds()}

    def forget() -> None:
        registry._modules.clear()
        for kind, names in own_names.items():
            for name in {*kind._classes} - names:
                del kind._classes[name]

    yield forget
    forget()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let signals raise KeyboardInterrupt; a shell may have let SIGINT be ignored."""
    numbers = signal.SIGINT, signal.SIGTERM
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    yield
    for number, handler in zip(numbers, before):
        signal.signal(number, handler)


@pytest.fixture
def shared() -> Callable[[str], Path]:
    """Return a function that finds shared data (real logs, oracles), or skips the test."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"needs ../shared/{name}, which is not beside this checkout")
        return path

    return find


@pytest.fixture(scope="session")
def make_trace() -> Callable[..., Trace]:
    """Return a function that builds a cleaned trace from (submit, runtime, request, size) rows."""

    def make(*rows: tuple[float, float, float, int], name: str = "made") -> Trace:
        submit, runtime, requested, processors = (np.array(column) for column in zip(*rows))
        numbers = np.arange(1, len(rows) + 1)
        return clean(Trace(numbers, submit, runtime, requested, processors, name=name))

    return make


@pytest.fixture
def jobs_with_files() -> Callable[..., Trace]:
    """Return a function: jobs as (submit, run time, walltime, cores, file), 6400 MB a core."""

    def build(*jobs: tuple[int, ...], **annotations: np.ndarray) -> Trace:
        submit, runtime, walltime, cores, file = np.array(jobs).T
        numbers, users = np.arange(1, len(jobs) + 1), np.ones(len(jobs), dtype=np.int64)
        files = {"file": file, "file_size": np.where(file < 0, 0, 6400 * cores)} | annotations
        options = {"user": users, "limits_hold": True, "annotations": files}
        return clean(Trace(numbers, submit, runtime, walltime, cores, **options))

    return build


@pytest.fixture(scope="session")
def write_tiny(make_trace) -> Callable[[Path], None]:
    """Return the function that writes ``tiny.swf``, a trace of 30 jobs, into a folder."""
    trace = make_trace(*[(20 * k, 60 + 11 * k % 90, 200, 1 + (7 * k) % 9) for k in range(30)])
    return lambda folder: write_trace(trace, folder / "tiny.swf")


@pytest.fixture
def tiny(write_tiny, tmp_path, monkeypatch) -> Path:
    """Return the folder of ``tiny.swf``, which is the current one."""
    write_tiny(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Return the function that gives all files below a folder but those that hold times."""

    def read(folder: Path) -> dict[str, bytes]:
        return {
            str(file.relative_to(folder)): file.read_bytes()
            for file in sorted(folder.rglob("*"))
            if file.is_file() and file.name != "timing.json"
        }

    return read


@pytest.fixture(scope="module")
def browser():
    """Start a browser, or skip the test; its event loop ends with the module."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no browser is installed: looked for {', '.join(BROWSERS)}")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
