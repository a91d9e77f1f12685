from collections.abc import Callable
from pathlib import Path

import pytest

from optsched.errors import InputError
from optsched.traces.reading import read_trace


@pytest.fixture(scope="session")
def refusal() -> Callable[..., str]:
    """Return a function that reads a wrong trace and returns what is said about it, on one line."""

    def said(path: Path, **columns: str) -> str:
        with pytest.raises(InputError) as caught:
            read_trace(path, clean=False, columns=columns)
        message = str(caught.value)
        assert message.startswith(str(path))
        assert "\n" not in message
        return message.removeprefix(str(path))

    return said


@pytest.fixture(scope="session")
def swf_line() -> Callable[..., str]:
    """Return a maker of job lines: columns by their number from 1, the others unknown."""

    def make(job: int, **columns: object) -> str:
        words = [str(job), *["-1"] * 17]
        for name, value in columns.items():
            words[int(name.removeprefix("c")) - 1] = str(value)
        return " ".join(words)

    return make


@pytest.fixture
def small_swf(tmp_path: Path) -> Path:
    """Return a file with every case that cleaning knows, in an order of submission with a flaw."""
    path = tmp_path / "small.swf"
    path.write_text(
        """\
; Version: 2.2
; Computer: Toy
; MaxNodes: 16 (4 of them for tests)
; MaxProcs: 32
; UnixStartTime: 100
; Note: the first note,
;       in two lines
; Note: the second note
;
1   0  5  100   4   90.50  -1  4  200 -1 1 7 1 -1 1 -1 -1 -1
2  10  0    0   4   -1     -1  4  200 -1 0 7 1 -1 1 -1 -1 -1
3  20  0   50  -1   -1     -1  8  -1  -1 1 8 1 -1 1 -1 -1 -1
5  40  0   60   2   -1     -1  2  30  -1 1 8 1 -1 1 -1 -1 -1
4  30  0   70   1   -1     -1  1  70  -1 1 9 1 -1 1 -1 -1 -1
6  50 -1   -1  -1   -1     -1 -1  50  -1 5 9 1 -1 1 -1 -1 -1
7  60  0   10   0   -1     -1  0  50  -1 9 9 1 -1 1 -1 -1 -1
8  -1  0   10   1   -1     -1  1  50  -1 1 9 1 -1 1 -1 -1 -1
""",
        encoding="utf-8",
    )
    return path
