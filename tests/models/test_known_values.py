import re

import pytest

from optsched import compare
from optsched.cli import run as optsched
from optsched.errors import InputError
from optsched.models import IntegerProgram, WindowMKP
from optsched.models.snapshot import FILE, Snapshot
from optsched.models.snapshot_file import read_snapshot, save_snapshot

EXAMPLE = WindowMKP([6, 4, 3, 1, 2], [3, 6, 6])  # optimum 15


@pytest.fixture
def folder(tmp_path):
    """Return a function that writes a table beside two snapshots."""
    save_snapshot(EXAMPLE, tmp_path / "a.json")
    save_snapshot(Snapshot(EXAMPLE, known={"bound": 16}), tmp_path / "own.json.gz")

    def write(*lines, columns="instance,lower_bound,upper_bound"):
        (tmp_path / FILE).write_text("\n".join((columns, *lines)) + "\n")
        return tmp_path

    return write


def test_values_of_the_table_are_known_unless_the_snapshot_has_its_own(folder):
    home = folder("a,15,15.5", "own,3,4")
    known = {"objective": 15, "bound": 15.5, "source": f"{FILE}, line 2"}
    assert read_snapshot(home / "a.json").known == known
    assert read_snapshot(home / "own.json.gz").known == {"bound": 16}


def test_bounds_change_their_sides_where_the_objective_is_minimized(folder):
    home = folder("p,3,5")
    save_snapshot(IntegerProgram("min", [1], rows=[]), home / "p.json")
    known = read_snapshot(home / "p.json").known
    assert (known["objective"], known["bound"]) == (5, 3)


def test_instances_are_named_with_or_without_suffix_and_number(folder):
    home = folder("k.txt,9,", "m#2,1,1", "a.json,,15")
    (home / "k.txt").write_text("1\n1\n9\n9 9\n")
    (home / "m.txt").write_text("2\n" + "1 1 0\n1\n1\n1\n" * 2)
    assert read_snapshot(home / "k.txt").known["objective"] == 9
    assert read_snapshot(home / "m.txt#1").known == {}
    assert read_snapshot(home / "m.txt#2").known["bound"] == 1
    assert "objective" not in read_snapshot(home / "a.json").known


def test_values_are_those_of_the_file_before_its_decimals_are_scaled(folder, refused):
    home = folder("d,7.5,8.25", "a,15,15")
    program = "Maximize\n obj: 1.5 x + 2 y\nSubject To\n c: x + y <= 4\nBounds\n 0 <= x <= 3\n"
    (home / "d.lp").write_text(program + " 0 <= y <= 3\nGenerals\n x y\nEnd\n")
    known = read_snapshot(home / "d.lp").known
    assert (known["objective"], known["bound"]) == (75, 82.5)
    found = compare([home / "d.lp"], ["highs"])
    assert found.contradictions == ()
    assert found.results["best_objective"].tolist() == [75]
    folder("d,7.55,")
    assert "lower_bound: 7.55; expected a multiple of 0.1," in refused(home / "d.lp")


def test_other_columns_are_not_read_and_none_may_be_missing(folder, refused):
    home = folder("a,x,15,y,15", columns="instance,class,lower_bound,optimal,upper_bound")
    assert read_snapshot(home / "a.json").known["objective"] == 15
    folder("a,1", columns="instance,lower_bound")
    assert "line 1: column 'upper_bound' is missing" in refused(home / "a.json")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["a,1,2", "a,1,2"], "line 3, instance: 'a' again, as on line 2"),
        (["a.json,15,", "b,3,", "a,14,"], "line 4, instance: 'a' names the same file as line 2"),
        (["a,x,2"], "line 2, lower_bound: 'x'; expected a number"),
        (["a,3,2"], "line 2, lower_bound: 3; expected at most upper_bound, 2"),
        ([",3,4"], "line 2, instance: expected the name of an instance"),
        (["a,1.5,2"], "line 2, lower_bound: 1.5; expected an integer, the value of a solution"),
        (['a,1,"2'], "line 2: not CSV"),
    ],
)
def test_mistakes_are_told_with_their_line(folder, refused, lines, told):
    assert re.search(f"{FILE}[,:] {re.escape(told)}", refused(folder(*lines) / "a.json"))


def test_a_mistake_of_the_table_is_told_once_for_all_snapshots(folder):
    with pytest.raises(InputError) as raised:
        compare(folder("a,x,2"), ["greedy"])
    assert str(raised.value).count("expected a number") == 1


def test_a_value_better_than_a_proven_optimum_is_a_contradiction_of_the_table(folder):
    home = folder("a,17,", "none,1,1", "nil,1,1")
    found = compare(home, ["branch-and-bound"])
    assert found.contradictions == (
        f"a: {FILE}, line 2 states the objective 17; branch-and-bound claims the bound 15",
    )
    [about] = found.config["known_values"]
    assert (about["snapshots"], about["unused"]) == (1, ["none", "nil"])
    assert found.config["snapshots"][0]["known"]["objective"] == 17


def test_the_command_tells_wrong_names_and_wrong_values(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder("a,14,14", "b,1,1"))
    assert optsched(["compare", ".", "--solvers", "greedy", "-o", "out"]) == 1
    told = capsys.readouterr().err
    assert f"a: {FILE}, line 2 states the bound 14; greedy has a verified solution of 15" in told
    assert f"{FILE}: 1 name of no instance beside it: b" in told
    folder("a,15,15")
    assert optsched(["solve", "a.json", "-o", FILE]) == 1
    assert "is the input; expected another file" in capsys.readouterr().err
    assert optsched(["snapshot", "show", "a.json"]) == 0
    assert f"known source     {FILE}, line 2" in capsys.readouterr().out
