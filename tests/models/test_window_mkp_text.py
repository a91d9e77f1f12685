"""The importer of multiple knapsack instances in the text format of the literature."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from optsched.errors import InputError
from optsched.models.snapshot_file import read_snapshot

INSTANCES = Path(__file__).parents[2] / "../shared/instances/mkp"

TEXT = "2\n3\n10\n12\n4\t9\n5 8\n  6   7\n"


@pytest.fixture
def file_of(tmp_path):
    def write(text):
        path = tmp_path / "instance.txt"
        path.write_text(text)
        return path

    return write


def test_items_become_jobs_and_knapsacks_slots(file_of):
    snapshot = read_snapshot(file_of(TEXT))
    assert snapshot.problem.weights.tolist() == [4, 5, 6]
    assert snapshot.problem.profits.tolist() == [9, 8, 7]
    assert snapshot.problem.capacities.tolist() == [10, 12]
    assert snapshot.origin == {"file": "instance.txt"}
    assert snapshot.known == {}


def test_blank_lines_do_not_count(file_of):
    snapshot = read_snapshot(file_of(TEXT.replace("\n", "\n\n") + "\n"))
    assert len(snapshot.problem.weights) == 3


def test_an_instance_may_be_empty(file_of):
    problem = read_snapshot(file_of("0\n0\n")).problem
    assert len(problem.weights) == len(problem.capacities) == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "ends before the numbers of knapsacks and items"),
        ("2\n", "ends before the numbers of knapsacks and items"),
        ("two\n3\n", "line 1, knapsacks: 'two'; expected an integer from 0 to 1000000000000"),
        ("2\n-3\n", "line 2, items: '-3'; expected an integer from 0"),
        (TEXT + "1 1\n", "8 lines that are not blank; expected 7: 2 counts, 2 capacities"),
        (TEXT.replace("12\n", "1.5\n"), "line 4, capacity: '1.5'; expected an integer from 0"),
        (TEXT.replace("12\n", "12 1\n"), "line 4: 2 values; expected capacity"),
        (TEXT.replace("5 8", "5"), "line 6: 1 value; expected weight and profit"),
        (TEXT.replace("5 8", "-1 8"), "line 6, weight: '-1'; expected an integer from 0"),
        (TEXT.replace("5 8", "5 " + "9" * 5000), "line 6, profit: '999"),
    ],
)
def test_a_mistake_is_told_with_its_line(file_of, text, told):
    path = file_of(text)
    with pytest.raises(InputError) as raised:
        read_snapshot(path)
    assert str(raised.value).startswith(f"{path}: {told}")


def test_all_mistakes_are_told_at_once_but_not_hundreds(file_of):
    text = TEXT.replace("12\n", "x\n").replace("5 8", "-1 y")
    with pytest.raises(InputError) as raised:
        read_snapshot(file_of(text))
    assert [mistake[:6] for mistake in raised.value.mistakes] == ["line 4", "line 6", "line 6"]
    with pytest.raises(InputError) as raised:
        read_snapshot(file_of("0\n100\n" + "-1 1\n" * 100))
    assert raised.value.mistakes[-1] == "95 more such lines"


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match=r"absent\.txt: no such file"):
        read_snapshot(tmp_path / "absent.txt")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text"):
        read_snapshot(tmp_path / "binary.txt")


def test_a_file_of_another_layout_is_said_to_be(file_of):
    with pytest.raises(InputError) as raised:
        read_snapshot(file_of("3 4 1 7\n2 3\n"))
    assert raised.value.mistakes[-1].startswith("begins like no text format that is read")


@pytest.mark.skipif(not INSTANCES.is_dir(), reason="needs ../shared/instances/mkp")
def test_the_instances_of_the_literature(tmp_path):
    with tarfile.open(INSTANCES / "SMALL.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    paths = sorted((tmp_path / "SMALL").glob("*.txt"))
    assert len(paths) == 180
    for path in paths:
        problem = read_snapshot(path).problem
        knapsacks, items = (int(part[1:]) for part in path.stem.split("_")[4:6])
        assert (len(problem.capacities), len(problem.weights)) == (knapsacks, items)
