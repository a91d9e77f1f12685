import gzip
import hashlib
import os

import pytest

from optsched.errors import InputError
from optsched.stored import read_bytes, read_head, write_bytes


def test_gzip_is_told_by_content_not_by_name(tmp_path):
    (tmp_path / "plain.gz").write_bytes(b"plain")
    (tmp_path / "packed").write_bytes(gzip.compress(b"packed"))
    assert read_bytes(tmp_path / "plain.gz")[0] == b"plain"
    assert read_bytes(tmp_path / "packed")[0] == b"packed"
    assert read_head(tmp_path / "packed") == b"packed"


def test_the_checksum_is_that_of_the_file_as_it_is(tmp_path):
    stored = gzip.compress(b"text")
    (tmp_path / "a.gz").write_bytes(stored)
    assert read_bytes(tmp_path / "a.gz")[1] == hashlib.sha256(stored).hexdigest()


def test_several_gzip_members_are_one_text(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one ") + gzip.compress(b"two"))
    assert read_bytes(tmp_path / "a.gz")[0] == b"one two"


def test_writing_the_same_data_gives_the_same_file(tmp_path):
    write_bytes(tmp_path / "a.gz", b"text" * 1000)
    write_bytes(tmp_path / "b.gz", b"text" * 1000)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text" * 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.gz", "b.gz"]


def test_a_failed_write_leaves_nothing(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match="taken"):
        write_bytes(tmp_path / "taken", b"text")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
    with pytest.raises(InputError, match="No such file"):
        write_bytes(tmp_path / "missing" / "a", b"text")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda stored: stored[:-20], "ends before its end"),
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


def test_missing_files_and_folders_are_told(tmp_path):
    for read in (read_bytes, read_head):
        with pytest.raises(InputError, match="No such file"):
            read(tmp_path / "missing")
        with pytest.raises(InputError, match="directory"):
            read(tmp_path)


def test_a_pipe_is_not_looked_into(tmp_path):
    """Whoever reads the whole after the head would miss the head."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a pipe or a device; expected a file"):
        read_head(tmp_path / "pipe")
