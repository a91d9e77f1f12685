"""Snapshots on file, their mistakes, and tables of known values beside them."""

import gzip
import json
import os
import re
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from optsched import compare, load_snapshot, registry
from optsched.cli import run as optsched
from optsched.content import bundled
from optsched.errors import InputError
from optsched.files import read_bytes
from optsched.models import IntegerProgram, WindowMKP
from optsched.models.snapshot import FORMAT, Snapshot
from optsched.models.snapshot_file import TABLE, read_snapshot, save_snapshot, snapshot_files

PROBLEM = WindowMKP([6, 4], [3, 6], [5, 4], jobs=["A", 7], slots=[0, 10])
THRESHOLD = "threshold-allocation/worked-example"
HOLDING = {"node": 0, "processes": 1, "start": 0, "end": 9, "demand": [1, 1]}


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_what_is_saved_is_read_again_and_the_same_bytes_each_time(tmp_path, suffix):
    known = {"objective": 9, "bound": 9, "solution": {"slot_of_job": [2, None]}}
    snapshot = Snapshot(PROBLEM, origin={"trace": "sample", "time": 30.0}, known=known)
    one, other = (tmp_path / f"{name}{suffix}" for name in "ab")
    for path in (one, other):
        save_snapshot(snapshot, path)
    read = read_snapshot(one)
    assert read.to_json() == snapshot.to_json()
    assert (read.origin, read.known) == (snapshot.origin, snapshot.known)
    assert one.read_bytes() == other.read_bytes()
    assert sorted(tmp_path.iterdir()) == [one, other]
    save_snapshot(PROBLEM, one)
    assert load_snapshot(one).to_json() == PROBLEM.to_json()
    assert read_bytes(one)[0].startswith(b'{\n "kind": "window-mkp",\n "format": %d,' % FORMAT)


def test_three_mistakes_are_all_named_with_their_lines(file_of, refused):
    text = '{"kind": "window-mkp",\n "weights": [1, 2,\n  -4,\n  "x", 5],\n "capacities": [3.5]}'
    path = file_of(text, "bad.json")
    assert refused(path).splitlines() == [
        f"{path}: 3 mistakes",
        "  - line 3, weights[2]: -4; expected an integer of at least 0",
        "  - line 4, weights[3]: 'x'; expected an integer of at least 0",
        "  - line 5, capacities[0]: 3.5; expected an integer of at least 0",
    ]


def test_a_mistake_deep_inside_a_field_has_its_own_line(file_of, refused):
    fields = Snapshot(load_snapshot(THRESHOLD)).to_json()
    fields["origin"] = {"held": "the name of a field, elsewhere"}
    wrong = ({"processes": 0}, {"demand": [1, -2]}, {"demand": []})
    fields["held"] = [HOLDING, *(HOLDING | one for one in wrong), []]
    fields["capacity"], fields["demand"] = [1, 1], [1, 1]
    path = file_of(json.dumps(fields, indent=0), "bad.json")
    lines = path.read_text().splitlines()
    for mistake, line in (
        ("held[1].processes: 0; expected", lines.index('"processes": 0,')),
        ("held[2].demand[1]: -2; expected", lines.index("-2")),
        ("held[3].demand: 0 values", lines.index('"demand": []')),
        ("held[4]: expected an object", lines.index("[]")),
    ):
        assert f"line {line + 1}, {mistake}" in refused(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind": "window-mkp",\n\n "weights": [1,}', ", line 3: not JSON: Expecting value"),
        ("", ", line 1: not JSON: Expecting value"),
        ('{"weights": ' + "[" * 100_000, ": nested too deeply"),
        ('{"weights": [' + "9" * 5000, ": not JSON: a number has too many digits"),
        (
            '{"kind": "window-mkp", "weights": [], "capacities": [],\n"origin": {"a": '
            f"{300 * '['}{300 * ']'}}}}}",
            ": line 2, origin: nested deeper than 20 levels",
        ),
        ("[1, 2]", ": expected a JSON object with a kind and the fields of the problem"),
        ('{"weights": [1]}', ", kind: expected the kind of problem, a string"),
        ('{"kind": "window-mpk"}', ": unknown model 'window-mpk'; did you mean window-mkp?"),
        (
            '{"kind": "window-mkp", "weights": [1],\n"weights": [2], "capacities": []}',
            ": weights: given more than once",
        ),
        (
            '{"kind": "window-mkp",\n "format": 9, "weights": [1], "capacities": [1]}',
            f": line 2, format: 9; this version reads format {FORMAT}",
        ),
        (
            '{"kind": "window-mkp", "weights": [1], "capacities": [1],\n "known": {"objectve": 1}}',
            ": line 2, known.objectve: unknown key 'objectve'; did you mean objective?",
        ),
    ],
)
def test_a_file_that_is_no_snapshot(file_of, refused, text, message):
    path = file_of(text, "bad.json")
    assert refused(path) == f"{path}{message}"


WHOLE = gzip.compress(json.dumps(Snapshot(PROBLEM).to_json()).encode())
FORMATS = "expected JSON, or a file that ends in .txt, .csv, .lp or .mps"


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.mzn", "var 0..1: x;", f": of no known format; {FORMATS}"),
        ("a.mzn", '\n{"kind": [}', ", line 2: not JSON"),
        ("a.json.gz", WHOLE[:-12], ": the gzip file is truncated"),
        ("a.json.gz", "plain text", ", line 1: not JSON"),
        ("a.json.gz", gzip.compress(b"\xff\xfe\x00", mtime=0), ": not text; expected JSON"),
    ],
)
def test_files_that_cannot_be_read(file_of, refused, name, data, message):
    path = file_of(data, name)
    assert refused(path).startswith(f"{path}{message}")


def test_folders_and_files_that_are_not_there_are_no_snapshots(tmp_path, refused):
    assert refused(tmp_path / "none.json").endswith("none.json: no such file")
    expected = "expected one of its files (compare takes folders)"
    assert refused(tmp_path) == f"{tmp_path}: is a folder; {expected}"


def test_a_pipe_and_a_gzipped_file_of_any_name_are_read(tmp_path):
    (tmp_path / "packed.json").write_bytes(WHOLE)
    assert load_snapshot(tmp_path / "packed.json").to_json() == PROBLEM.to_json()
    reading, writing = os.pipe()
    os.write(writing, WHOLE)
    os.close(writing)
    assert load_snapshot(f"/dev/fd/{reading}").to_json() == PROBLEM.to_json()
    os.close(reading)


def test_a_name_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / os.fsdecode(b"a\xff.json")
    for use in (lambda: save_snapshot(PROBLEM, path), lambda: load_snapshot(path)):
        with pytest.raises(InputError, match="name is not UTF-8"):
            use()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
def test_numbers_that_are_not_finite_are_refused_wherever_they_are(file_of, refused, number):
    text = json.dumps(Snapshot(PROBLEM, origin={"load": 1.5}).to_json())
    assert read_snapshot(file_of(text, "a.json")).origin == {"load": 1.5}
    path = file_of(text.replace("1.5", number), "a.json")
    assert f"a.json: {number}; expected a finite number" in refused(path)


def test_a_snapshot_that_does_not_fit_into_memory_is_told(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    save_snapshot(PROBLEM, tmp_path / "a.json")
    monkeypatch.setattr(json, "loads", fail)
    with pytest.raises(InputError, match=r"a.json: does not fit into memory"):
        read_snapshot(tmp_path / "a.json")


@pytest.mark.parametrize("model", list(registry.models))
def test_a_copy_has_the_fields_alone_read_only_as_they_are(model):
    """Compiled kernels tell read-only arrays from others, and would be compiled once more."""
    for path in snapshot_files(bundled("models") / model):
        problem = read_snapshot(path).problem
        before = vars(problem.copy())
        for name in dir(type(problem)):
            if isinstance(getattr(type(problem), name), cached_property):
                getattr(problem, name)
        after = vars(problem.copy())
        assert before.keys() == after.keys()
        for name, value in vars(problem).items():
            if name in after and isinstance(value, np.ndarray):
                assert np.array_equal(after[name], value)
                assert not np.shares_memory(after[name], value) or not value.size
                assert after[name].flags.writeable == value.flags.writeable


HERE = Path(__file__).parent
MISTAKES = (HERE / "mistakes.txt").read_text().strip().split("\n\n")
"""Cases of an example and of wrong fields for it, and below that what is said about them."""

WRONG_SOLUTIONS = (HERE / "wrong_solutions.txt").read_text().splitlines()
"""An example each, and what is no solution of it on file."""


@pytest.mark.parametrize("case", WRONG_SOLUTIONS)
def test_solutions_of_another_form_are_refused(case):
    name, _, written = case.partition(" ")
    with pytest.raises(InputError, match="expected"):
        load_snapshot(name).solution_from_json(json.loads(written))


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.partition(" ")[0])
def test_all_mistakes_in_fields_are_told_at_once(case, mistakes_of):
    changed, *mistakes = case.splitlines()
    name, _, fields = changed.partition(" ")
    problem = load_snapshot(name)
    assert mistakes_of(problem.from_json, problem.to_json() | json.loads(fields)) == mistakes


EXAMPLE = WindowMKP([6, 4, 3, 1, 2], [3, 6, 6])  # optimum 15


@pytest.fixture
def folder(tmp_path):
    """Return a function that writes a table beside two snapshots."""
    save_snapshot(EXAMPLE, tmp_path / "a.json")
    save_snapshot(Snapshot(EXAMPLE, known={"bound": 16}), tmp_path / "own.json.gz")

    def write(*lines, columns="instance,lower_bound,upper_bound"):
        (tmp_path / TABLE).write_text("\n".join((columns, *lines)) + "\n")
        return tmp_path

    return write


def test_values_of_the_table_are_known_unless_the_snapshot_has_its_own(folder):
    home = folder("a,15,15.5", "own,3,4")
    known = {"objective": 15, "bound": 15.5, "source": f"{TABLE}, line 2"}
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
    assert re.search(f"{TABLE}[,:] {re.escape(told)}", refused(folder(*lines) / "a.json"))


def test_a_mistake_of_the_table_is_told_once_for_all_snapshots(folder):
    with pytest.raises(InputError) as raised:
        compare(folder("a,x,2"), ["greedy"])
    assert str(raised.value).count("expected a number") == 1


def test_a_value_better_than_a_proven_optimum_is_a_contradiction_of_the_table(folder):
    home = folder("a,17,", "none,1,1", "nil,1,1")
    found = compare(home, ["branch-and-bound"])
    assert found.contradictions == (
        f"a: {TABLE}, line 2 states the objective 17; branch-and-bound claims the bound 15",
    )
    [about] = found.config["known_values"]
    assert (about["snapshots"], about["unused"]) == (1, ["none", "nil"])
    assert found.config["snapshots"][0]["known"]["objective"] == 17


def test_the_command_tells_wrong_names_and_wrong_values(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder("a,14,14", "b,1,1"))
    assert optsched(["compare", ".", "--solvers", "greedy", "-o", "out"]) == 1
    told = capsys.readouterr().err
    assert f"a: {TABLE}, line 2 states the bound 14; greedy has a verified solution of 15" in told
    assert f"{TABLE}: 1 name of no instance beside it: b" in told
    folder("a,15,15")
    assert optsched(["solve", "a.json", "-o", TABLE]) == 1
    assert "is the input; expected another file" in capsys.readouterr().err
    assert optsched(["snapshot", "show", "a.json"]) == 0
    assert f"known source     {TABLE}, line 2" in capsys.readouterr().out
