"""Knapsacks in the text format of the literature and as a table, and files of OR-Library.

The instances of OR-Library are made by hand, with their optima in comments.
"""

import pytest

from optsched import solve
from optsched.cli import run as optsched
from optsched.models.snapshot_file import read_snapshot, snapshot_files

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
        (TABLE.replace("4,9", "4,"), ": profit: missing in 1 of 2; expected all or none"),
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


# 1: of weights 4, 5, 6 within 10 and 2, 3, 4 within 6, worth 2, 3, 4: the first and the last, 6
# 2: one of two items of size 1 in 1; tenths of 75 and 80
KNAPSACKS = "2\n3 2 6\n2 3 4\n4 5 6\n2 3 4\n10 6\n2 1 0\n7.5 8\n1 1\n1\n"

# jobs of costs 1 and 9 at the first agent, 5 and 2 at the second; each agent holds one
ASSIGNMENT = "1\n2 2\n1 9\n5 2\n3 3\n4 4\n3 4\n"

# one resource of 2 for three items of size 1, one demand of at least 1 from items 1 and 2
DEMANDS = "1\n3 1\n1 1 1\n2\n1 1 0\n1\n" + "1 2 4\n" * 3 + "-1 -2 4\n" * 3

BINS = "2\n u4_00\n 10.0 4 2\n 6.5\n 3.5\n5\n5\n two\n 3 2 2\n2 2\n"


def optimum(path):
    snapshot = read_snapshot(path)
    return solve(snapshot).objective, snapshot.known.get("objective")


def test_multidimensional_knapsacks_and_their_optima(file_of):
    path = file_of(KNAPSACKS)
    first, second = snapshot_files(path)
    assert (first.name, second.name) == ("file.txt#1", "file.txt#2")
    assert optimum(first) == (6, 6)
    assert read_snapshot(first).origin == {"file": "file.txt", "instance": "1 of 2"}
    assert optimum(second) == (80, None)
    assert read_snapshot(second).scale == 10
    names = read_snapshot(first).problem
    assert (names.variable_names[0], names.row_names[1]) == ("x_item1", "capacity_resource2")


def test_line_breaks_of_or_library_have_no_meaning(file_of):
    head, tail = KNAPSACKS.split("2 3 4\n", 1)
    path = file_of(head + "2\n3\n4\n\n" + tail.replace("\n", " "))
    assert optimum(f"{path}#1") == (6, 6)


@pytest.mark.parametrize(
    ("name", "text", "best"),
    [
        ("gap1.txt", ASSIGNMENT, 14),
        ("gapa.txt", ASSIGNMENT, 3),
        ("e0202.txt", ASSIGNMENT.removeprefix("1\n"), 3),
    ],
)
def test_an_assignment_is_maximized_where_published_optima_are_maxima(file_of, name, text, best):
    path = file_of(text, name)
    assert snapshot_files(path) == [path]
    assert optimum(path) == (best, None)


def test_a_problem_with_demands_is_six_instances(file_of):
    files = snapshot_files(file_of(DEMANDS))
    # of one demand, none (1 // 2), and one; the last two of 1, 2, 4, or only the 4 if mixed
    assert [optimum(file)[0] for file in files] == [6, 6, 6, 3, 4, 3]


def test_bins_are_counted_and_their_sizes_may_have_decimals(file_of):
    first, second = snapshot_files(file_of(BINS))
    assert optimum(first) == (2, 2)
    assert read_snapshot(first).origin["name"] == "u4_00"
    assert optimum(second) == (2, 2)
    problem = read_snapshot(first).problem
    row = problem.rows[problem.row_names.index("capacity_bin1")]
    assert sorted(row.values()) == [-100, 35, 50, 50, 65]


def test_one_of_several_instances_must_be_named(file_of, refused):
    path, one = file_of(KNAPSACKS), file_of("1\n1\n5\n3 4\n", "one.txt")
    assert "holds 2 instances (multidimensional knapsack of OR-L" in refused(path)
    assert "holds 2 instances; there is no number 3" in refused(f"{path}#3")
    assert read_snapshot(f"{one}#1").problem.name == "window-mkp"
    assert "holds one instance; there is no number 2" in refused(f"{one}#2")
    odd = file_of("{}", "file.txt#1")  # a file of that very name goes first, and is no text
    assert "expected the kind of problem" in refused(odd)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (KNAPSACKS[:-2], "instance 2 of 2: ends after 0 of 1 capacities (multidimensional knap"),
        (KNAPSACKS + "7\n", "1 word after 2 instances (multidimensional knapsack of OR-Library)"),
        (KNAPSACKS.replace("2 1 0", "2 x 0"), "line 7, instance 2 of 2, number of resources: 'x'"),
        (ASSIGNMENT[:-2], "2 mistakes\n  - ends after 1 of 2 capacities (generalized assignment"),
        (BINS[:-2], "instance 2 of 2: ends after 1 of 2 sizes (bin packing of OR-Library)"),
        ("0\n1 1 1\n", "3 words after 0 instances"),
    ],
)
def test_a_file_that_does_not_add_up_is_refused_by_its_format(file_of, refused, text, told):
    path = file_of(text)
    assert snapshot_files(path) == [path]
    assert told in refused(path)


def test_numbers_are_checked_in_the_chosen_instance(file_of, refused):
    path = file_of(KNAPSACKS.replace("4 5 6", "4 five 6"))
    assert "file.txt, line 4, amounts: 'five'; expected a number" in refused(f"{path}#1")
    assert read_snapshot(f"{path}#2")
    path = file_of(KNAPSACKS.replace("7.5", "7.12345678"))
    assert "profits: 7.12345678; expected at most 6 decimals" in refused(f"{path}#2")


def test_commands_take_instances_and_do_not_overwrite_their_file(file_of, capsys, monkeypatch):
    path = file_of(KNAPSACKS)
    monkeypatch.chdir(path.parent)
    assert optsched(["solve", "file.txt"]) == 1
    assert "expected one of them, file.txt#1 to file.txt#2" in capsys.readouterr().err
    assert optsched(["solve", "file.txt#2"]) == 0
    assert "the objective is 10 times that of the file" in capsys.readouterr().out
    for words in (["solve", "file.txt#1", "-o"], ["snapshot", "export", "file.txt#1", "-o"]):
        assert optsched([*words, "file.txt"]) == 1
        assert "is the input; expected another file" in capsys.readouterr().err
    assert optsched(["snapshot", "check", "file.txt"]) == 0
    assert capsys.readouterr().out == "file.txt#1: good\nfile.txt#2: good\n"
