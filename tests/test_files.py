import gzip
import hashlib
import os
import stat

import pytest

from optsched.errors import InputError
from optsched.files import in_memory, read_bytes, read_head, sha256_of


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
