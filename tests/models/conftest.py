"""Files to read, and what is said about wrong ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from optsched.errors import InputError
from optsched.models.snapshot_file import read_snapshot


@pytest.fixture
def file_of(tmp_path) -> Callable[..., Path]:
    """Return the function that writes a text, or bytes, and gives the path of the file."""

    def write(text: str | bytes, name: str = "file.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


@pytest.fixture(scope="session")
def mistakes_of() -> Callable[..., list[str]]:
    """Return the function that calls another one, and gives the mistakes that this complains of."""

    def call(refusing, *values, **fields) -> list[str]:
        with pytest.raises(InputError) as raised:
            refusing(*values, **fields)
        return list(raised.value.mistakes)

    return call


@pytest.fixture(scope="session")
def refused() -> Callable[[Path | str], str]:
    """Return the function that reads a wrong snapshot, and gives what is said about it."""

    def read(path: Path | str) -> str:
        with pytest.raises(InputError) as raised:
            read_snapshot(path)
        return str(raised.value)

    return read
