"""Multiple knapsacks in the text format of the literature, and as a table."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from optsched.models.snapshot_file import read_snapshot

INSTANCES = Path(__file__).parents[2] / "../shared/instances/mkp"

TEXT = "2\n3\n10\n12\n4\t9\n5 8\n  6   7\n"
TABLE = "kind,size,profit,name\nknapsack,10,,left\nitem,4,9,a\nitem,5,8,b\n"


def test_items_become_jobs_and_knapsacks_slots(file_of):
    for text in (TEXT, TEXT.replace("\n", "\n\n") + "\n"):  # blank lines do not count
        snapshot = read_snapshot(file_of(text))
        fields = {"weights": [4, 5, 6], "capacities": [10, 12], "profits": [9, 8, 7]}
        assert snapshot.problem.to_json() == fields
        assert (snapshot.origin, snapshot.known) == ({"file": "file.txt"}, {})
    assert read_snapshot(file_of("0\n0\n")).problem.size == "0x0"


def test_rows_of_a_table_become_jobs_and_slots(file_of):
    snapshot = read_snapshot(file_of(TABLE, "cargo.csv"))
    named = {"jobs": ["a", "b"], "slots": ["left"]}
    fields = {"weights": [4, 5], "capacities": [10], "profits": [9, 8]} | named
    assert snapshot.problem.to_json() == fields
    assert snapshot.origin == {"file": "cargo.csv"}


def test_profits_and_names_may_be_left_out_and_columns_in_any_order(file_of):
    text = "\ufeffsize,kind\r\n4,item\r\n\r\n10,knapsack\r\n"
    problem = read_snapshot(file_of(text, "cargo.csv")).problem
    assert problem.to_json() == {"weights": [4], "capacities": [10]}
    assert read_snapshot(file_of("kind,size\n", "cargo.csv")).problem.size == "0x0"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2\n", ": ends before the numbers of knapsacks and items"),
        ("two\n3\n", ": line 1, knapsacks: 'two'; expected an integer from 0 to 1000000000000"),
        ("2\n-3\n", ": line 2, items: '-3'; expected an integer from 0"),
        (TEXT + "1 1\n", ": 8 lines that are not blank; expected 7: 2 counts, 2 capacities"),
        (TEXT.replace("12\n", "12 1\n"), ": line 4: 2 values; expected capacity"),
        (TEXT.replace("5 8", "5"), ": line 6: 1 value; expected weight and profit"),
        (TEXT.replace("5 8", "-1 8"), ": line 6, weight: '-1'; expected an integer from 0"),
        (TEXT.replace("5 8", "5 " + "9" * 5000), ": line 6, profit: '999"),
        (b"\xff\xfe\x00", ": not text"),
    ],
)
def test_a_mistake_is_told_with_its_line(file_of, refused, text, told):
    path = file_of(text)
    assert refused(path).startswith(f"{path}{told}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ": is empty; expected the columns kind, size, profit, name"),
        (TABLE.replace("size", "weight"), ", line 1: 2 mistakes\n  - unknown column 'weight'"),
        (TABLE.replace(",", ";"), ", line 1: the columns are separated by ';'; expected commas"),
        ("kind,kind,size\n", ", line 1: a column is there twice"),
        (TABLE.replace("item,4", "box,4"), ": line 3, kind: 'box'; expected item or knapsack"),
        (TABLE.replace("item,4", "item,4.5"), ": line 3, size: '4.5'; expected an integer from 0"),
        (TABLE.replace("4,9", "4,-9"), ": line 3, profit: '-9'; expected an integer from 0 to"),
        (TABLE.replace("4,9", "4,"), ": profit: missing in 1 of 2; expected all or none"),
        (TABLE.replace("9,a", "9,"), ": name of items: missing in 1 of 2; expected all or none"),
        (TABLE.replace("10,,", "10,3,"), ": line 2, profit: '3'; a knapsack has none"),
        (TABLE.replace("4,9,a", "4,9"), ": line 3: 3 values; expected 4, one for each column"),
        ('kind,size\nitem,"4', ", line 2: not CSV: unexpected end of data"),
    ],
)
def test_a_mistake_in_a_table_is_told_with_line_and_column(file_of, refused, text, told):
    path = file_of(text, "cargo.csv")
    assert refused(path).startswith(f"{path}{told}")


def test_all_mistakes_are_told_at_once_but_not_hundreds(file_of, mistakes_of):
    text = TEXT.replace("12\n", "x\n").replace("5 8", "-1 y")
    told = mistakes_of(read_snapshot, file_of(text))
    assert [mistake[:6] for mistake in told] == ["line 4", "line 6", "line 6"]
    told = mistakes_of(read_snapshot, file_of("0\n100\n" + "-1 1\n" * 100))
    assert told[-1] == "95 more such lines"
    told = mistakes_of(read_snapshot, file_of("kind,size\n" + "item,x\n" * 100, "cargo.csv"))
    assert told[-1] == "95 more mistakes"


def test_a_file_of_another_layout_is_said_to_be(file_of, mistakes_of):
    told = mistakes_of(read_snapshot, file_of("3 4 1 7\n2 3\n"))
    assert told[-1].startswith("begins like no text format that is read")


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
