from __future__ import annotations

import pytest

from optsched.errors import InputError
from optsched.models.snapshot_file import read_snapshot

TABLE = "kind,size,profit,name\nknapsack,10,,left\nitem,4,9,a\nitem,5,8,b\n"


@pytest.fixture
def file_of(tmp_path):
    def write(text):
        path = tmp_path / "cargo.csv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def test_items_are_jobs_and_knapsacks_slots(file_of):
    snapshot = read_snapshot(file_of(TABLE))
    assert snapshot.problem.to_json() == {
        "weights": [4, 5],
        "capacities": [10],
        "profits": [9, 8],
        "jobs": ["a", "b"],
        "slots": ["left"],
    }
    assert snapshot.origin == {"file": "cargo.csv"}


def test_profits_and_names_may_be_left_out_and_columns_in_any_order(file_of):
    text = "\ufeffsize,kind\r\n4,item\r\n\r\n10,knapsack\r\n"
    assert read_snapshot(file_of(text)).problem.to_json() == {"weights": [4], "capacities": [10]}
    assert read_snapshot(file_of("kind,size\n")).problem.size == "0x0"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ": is empty; expected the columns kind, size, profit, name"),
        (TABLE.replace("size", "weight"), ", line 1: 2 mistakes\n  - unknown column 'weight'"),
        (TABLE.replace(",", ";"), ", line 1: the columns are separated by ';'; expected commas"),
        ("kind,kind,size\n", ", line 1: a column is there twice"),
        (TABLE.replace("item,4", "box,4"), ": line 3, kind: 'box'; expected item or knapsack"),
        (TABLE.replace("item,4", "item,-1"), ": line 3, size: '-1'; expected an integer from 0 to"),
        (TABLE.replace("item,4", "item,4.5"), ": line 3, size: '4.5'; expected an integer from 0"),
        (TABLE.replace("4,9", "4,-9"), ": line 3, profit: '-9'; expected an integer from 0 to"),
        (TABLE.replace("4,9", "4,"), ": profit: missing in 1 of 2; expected all or none"),
        (TABLE.replace("9,a", "9,"), ": name of items: missing in 1 of 2; expected all or none"),
        (TABLE.replace("10,,", "10,3,"), ": line 2, profit: '3'; a knapsack has none"),
        (TABLE.replace("4,9,a", "4,9"), ": line 3: 3 values; expected 4, one for each column"),
        (b"\xff\xfe", ": not text; expected CSV"),
        ('kind,size\nitem,"4', ", line 2: not CSV: unexpected end of data"),
    ],
)
def test_mistakes_are_told_with_line_and_column(file_of, text, told):
    path = file_of(text)
    with pytest.raises(InputError) as raised:
        read_snapshot(path)
    assert str(raised.value).startswith(f"{path}{told}")


def test_not_hundreds_of_mistakes(file_of):
    with pytest.raises(InputError) as raised:
        read_snapshot(file_of("kind,size\n" + "item,x\n" * 100))
    assert raised.value.mistakes[-1] == "95 more mistakes"
