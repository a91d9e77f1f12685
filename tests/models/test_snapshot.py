from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
from copy import deepcopy
from functools import cached_property
from random import Random

import numpy as np
import pytest
from hypothesis import given

from optsched import load_snapshot, registry, save_snapshot
from optsched.content import bundled
from optsched.errors import InputError
from optsched.models import WindowMKP
from optsched.models.snapshot import FORMAT, Snapshot
from optsched.models.snapshot_file import read_snapshot, snapshot_files
from optsched.solvers.comparison.claims import read_known
from optsched.testing import window_mkps

PROBLEM = WindowMKP([6, 4], [3, 6], [5, 4], jobs=["A", 7], slots=[0, 10])
REFERENCE = bundled("models")
HOLDING = {"node": 0, "processes": 1, "start": 0, "end": 9, "demand": [1, 1]}
ODD = (None, True, -1, 0, 1.5, 1e400, 10**13, 10**30, "", "x", [], [[]], [[1], [2, 3]], {})


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_what_is_saved_is_read_again(tmp_path, name):
    snapshot = Snapshot(
        PROBLEM,
        origin={"trace": "sample", "time": 30.0},
        known={"objective": 9, "bound": 9, "solution": {"slot_of_job": [2, None]}},
    )
    save_snapshot(snapshot, tmp_path / name)
    read = read_snapshot(tmp_path / name)
    assert read.to_json() == snapshot.to_json()
    assert (read.origin, read.known) == (snapshot.origin, snapshot.known)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@given(window_mkps())
def test_every_problem_survives_its_file(problem):
    written = json.dumps(Snapshot(problem).to_json())
    assert Snapshot.from_json(json.loads(written)).problem.to_json() == problem.to_json()


def test_the_same_problem_gives_the_same_bytes(tmp_path):
    for name in ("a.json.gz", "b.json.gz"):
        save_snapshot(PROBLEM, tmp_path / name)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def test_a_bare_problem_has_kind_and_format_first(tmp_path):
    save_snapshot(PROBLEM, tmp_path / "a.json")
    written = json.loads((tmp_path / "a.json").read_text())
    assert list(written)[:2] == ["kind", "format"]
    assert (written["kind"], written["format"]) == ("window-mkp", FORMAT)
    assert load_snapshot(tmp_path / "a.json").to_json() == PROBLEM.to_json()


def refused(path) -> str:
    with pytest.raises(InputError) as raised:
        read_snapshot(path)
    message = str(raised.value)
    assert str(path) in message
    return message.replace(str(path), "FILE")


def test_three_mistakes_are_all_named_with_their_lines(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(
        '{"kind": "window-mkp",\n "weights": [1, 2,\n  -4,\n  "x", 5],\n "capacities": [3.5]}'
    )
    assert refused(path).splitlines() == [
        "FILE: 3 mistakes",
        "  - line 3, weights[2]: -4; expected an integer of at least 0",
        "  - line 4, weights[3]: 'x'; expected an integer of at least 0",
        "  - line 5, capacities[0]: 3.5; expected an integer of at least 0",
    ]


def test_a_mistake_deep_inside_a_field_has_its_own_line(tmp_path):
    path = tmp_path / "bad.json"
    fields = json.loads((REFERENCE / "threshold-allocation" / "worked-example.json").read_text())
    fields["origin"] = {"held": "the name of a field, elsewhere"}
    fields["held"] = [HOLDING, HOLDING | {"processes": 0}, HOLDING | {"demand": [1, -2]}, []]
    fields["capacity"], fields["demand"] = [1, 1], [1, 1]
    path.write_text(json.dumps(fields, indent=0))
    lines = path.read_text().splitlines()
    for mistake, line in (
        ("held[1].processes: 0; expected", lines.index('"processes": 0,')),
        ("held[2].demand[1]: -2; expected", lines.index("-2")),
        ("held[3]: expected an object", lines.index("[]")),
    ):
        assert f"line {line + 1}, {mistake}" in refused(path)


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("threshold-allocation", {"held": [[]]}, "held[0]: expected an object with node"),
        ("threshold-allocation", {"held": [HOLDING | {"demand": []}]}, "held[0].demand: 0 values"),
        ("window-mkp", {"weights": [[]]}, "weights: expected a list of integers"),
    ],
)
def test_a_list_that_is_empty_inside_is_refused_with_its_line(tmp_path, name, fields, words):
    path = tmp_path / "bad.json"
    example = min((REFERENCE / name).glob("*example.json"))
    path.write_text(json.dumps(json.loads(example.read_text()) | fields, indent=1))
    line = next(part for part in refused(path).splitlines() if words in part)
    assert re.search(rf"line \d+, {re.escape(words)}", line)


def test_no_snapshot_with_values_deleted_or_replaced_gives_anything_but_mistakes(tmp_path):
    random = Random(7)
    path = tmp_path / "bad.json"
    for folder in sorted(path for path in REFERENCE.iterdir() if path.is_dir()):
        example = min(snapshot_files(folder), key=lambda file: file.stat().st_size)
        whole = json.loads(example.read_text())
        for _ in range(40):
            fields = deepcopy(whole)
            for _ in range(random.randint(1, 3)):
                change(fields, random)
            path.write_text(json.dumps(fields))
            with contextlib.suppress(InputError):
                snapshot = read_snapshot(path)
                solution = read_known(snapshot, path).solution
                if solution is not None and not snapshot.problem.violations(solution):
                    snapshot.problem.describe(solution)


def change(value, random) -> None:
    """Delete or replace something in an object or a list, however deep."""
    key = random.choice([*value] if isinstance(value, dict) else range(len(value)))
    if isinstance(value[key], dict | list) and value[key] and random.random() < 0.7:
        change(value[key], random)
    elif random.random() < 0.3:
        del value[key]
    else:
        value[key] = deepcopy(random.choice(ODD))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind": "window-mkp",\n\n "weights": [1,}', "FILE, line 3: not JSON: Expecting value"),
        ("", "FILE, line 1: not JSON: Expecting value"),
        ('{"weights": ' + "[" * 100_000, "FILE: nested too deeply"),
        ('{"weights": [' + "9" * 5000, "FILE: not JSON: a number has too many digits"),
        ('{"known": {"bound": NaN}}', "FILE: NaN; expected a finite number"),
        (
            '{"kind": "window-mkp", "weights": [], "capacities": [],\n"origin": {"a": '
            + "[" * 300
            + "]" * 300
            + "}}",
            "FILE: line 2, origin: nested deeper than 20 levels",
        ),
        ("[1, 2]", "FILE: expected a JSON object with a kind and the fields of the problem"),
        ('{"weights": [1]}', "FILE, kind: expected the kind of problem, a string"),
        ('{"kind": 3}', "FILE, kind: expected the kind of problem, a string"),
        (
            '{"kind": "window-mpk", "weights": [1]}',
            "FILE: unknown model 'window-mpk'; did you mean window-mkp?",
        ),
        (
            '{"kind": "window-mkp", "weights": [1],\n"weights": [2], "capacities": []}',
            "FILE: weights: given more than once",
        ),
        (
            '{"kind": "window-mkp",\n "format": 9, "weights": [1], "capacities": [1]}',
            f"FILE: line 2, format: 9; this version reads format {FORMAT}",
        ),
    ],
)
def test_a_file_that_is_no_snapshot(tmp_path, text, message):
    path = tmp_path / "bad.json"
    path.write_text(text)
    assert refused(path) == message


def test_files_that_cannot_be_read(tmp_path):
    assert refused(tmp_path / "none.json") == "FILE: no such file"
    assert (
        refused(tmp_path) == "FILE: is a folder; expected one of its files (compare takes folders)"
    )
    minizinc = tmp_path / "a.mzn"
    minizinc.write_text("var 0..1: x;")
    expected = "expected JSON, or a file that ends in .txt, .csv, .lp or .mps"
    assert refused(minizinc) == f"FILE: of no known format; {expected}"
    minizinc.write_text('\n{"kind": [}')
    assert refused(minizinc).startswith("FILE, line 2: not JSON")
    whole = gzip.compress(json.dumps(Snapshot(PROBLEM).to_json()).encode())
    packed = tmp_path / "a.json.gz"
    packed.write_bytes(whole[:-12])
    assert refused(packed) == "FILE: the gzip file is truncated"
    packed.write_bytes(whole[:30] + bytes(byte ^ 255 for byte in whole[30:60]) + whole[60:])
    assert refused(packed).startswith("FILE: the gzip data are damaged")
    packed.write_bytes(b"plain text")
    assert refused(packed).startswith("FILE, line 1: not JSON")
    packed.write_bytes(gzip.compress(b"\xff\xfe\x00"))
    assert refused(packed) == "FILE: not text; expected JSON"


def test_a_pipe_and_a_gzipped_file_of_any_name_are_read(tmp_path):
    packed = gzip.compress(json.dumps(Snapshot(PROBLEM).to_json()).encode())
    (tmp_path / "packed.json").write_bytes(packed)
    assert load_snapshot(tmp_path / "packed.json").to_json() == PROBLEM.to_json()
    reading, writing = os.pipe()
    os.write(writing, packed)
    os.close(writing)
    assert load_snapshot(f"/dev/fd/{reading}").to_json() == PROBLEM.to_json()
    os.close(reading)


def test_a_name_that_is_not_utf8_is_refused(tmp_path):
    name = os.fsdecode(b"a\xff.json")
    with pytest.raises(InputError, match="name is not UTF-8"):
        save_snapshot(PROBLEM, tmp_path / name)
    with pytest.raises(InputError, match="name is not UTF-8"):
        load_snapshot(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named_and_nothing_is_left(tmp_path):
    with pytest.raises(InputError, match="cannot be written: No such file"):
        save_snapshot(PROBLEM, tmp_path / "none" / "a.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
def test_numbers_that_are_not_finite_are_refused_wherever_they_are(tmp_path, number):
    path = tmp_path / "a.json"
    fields = Snapshot(PROBLEM, origin={"load": 1.5}).to_json()
    path.write_text(json.dumps(fields))
    assert read_snapshot(path).origin == {"load": 1.5}
    path.write_text(json.dumps(fields).replace("1.5", number))
    with pytest.raises(InputError, match=f"a.json: {number}; expected a finite number"):
        read_snapshot(path)


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
    for path in snapshot_files(REFERENCE / model):
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
