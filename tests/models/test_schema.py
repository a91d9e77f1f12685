from __future__ import annotations

import json
from copy import deepcopy
from random import Random

import pytest
from jsonschema import Draft202012Validator

from optsched import registry
from optsched.cli import run as optsched
from optsched.content import SCHEMA_FILE, bundled
from optsched.errors import InputError
from optsched.models import GangPacking, PartitionMKP, WindowMKP
from optsched.models.pages import with_table, write_pages
from optsched.models.snapshot import Snapshot, has_schema, snapshot_schema
from optsched.models.snapshot_file import snapshot_files

MODELS = [model for model in registry.models if has_schema(model)]
ODD = (
    *(None, True, -1, 0, 1.5, 10**13, 10**30, "", "x", "0-3", "1x1x1@0,0,0", "٣"),
    *([], [[]], [[1], [2, 3]], [True, False], [0, 0, 0, 1, 1, 1], {}, "corners", "next", "skip"),
)


def is_accepted(fields) -> bool:
    try:
        Snapshot.from_json(deepcopy(fields))
    except InputError:
        return False
    return True


def change(value, random) -> None:
    """Delete, add or replace something in an object or a list, however deep."""
    key = random.choice([*value] if isinstance(value, dict) else range(len(value)))
    if isinstance(value[key], dict | list) and value[key] and random.random() < 0.7:
        change(value[key], random)
    elif random.random() < 0.2:
        del value[key]
    else:
        value[key] = deepcopy(random.choice(ODD))


@pytest.mark.parametrize("model", MODELS)
def test_page_and_schema_file_are_what_the_declarations_say(model):
    """Otherwise: make pages."""
    home = bundled("models") / model
    page = (home / "README.md").read_text()
    assert with_table(page, model) == page
    assert json.loads((home / SCHEMA_FILE).read_text()) == snapshot_schema(model)


def test_pages_are_written_from_the_declarations(tmp_path):
    (tmp_path / "window-mkp").mkdir()
    page = tmp_path / "window-mkp" / "README.md"
    page.write_text("before\n<!-- fields: make pages -->\nold\n<!-- end of fields -->\nafter\n")
    write_pages(tmp_path)
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    weights = "| n, w_j | `weights` | list of integers from 0 | size of each job, in nodes |"
    assert weights in lines
    assert "old" not in lines
    assert json.loads((tmp_path / "window-mkp" / SCHEMA_FILE).read_text())
    page.write_text("no place for it")
    with pytest.raises(InputError, match=r"README.md: expected <!-- fields"):
        write_pages(tmp_path)


@pytest.mark.parametrize("model", MODELS)
def test_a_schema_accepts_all_reference_snapshots(model):
    schema = snapshot_schema(model)
    Draft202012Validator.check_schema(schema)
    for file in snapshot_files(bundled("models") / model):
        Draft202012Validator(schema).validate(json.loads(file.read_text()))


@pytest.mark.parametrize("model", MODELS)
def test_what_a_schema_refuses_the_reader_refuses_too(model):
    random = Random(model)
    validator = Draft202012Validator(snapshot_schema(model))
    example = min(snapshot_files(bundled("models") / model), key=lambda file: file.stat().st_size)
    whole = json.loads(example.read_text())
    optional = [f.name for f in registry.models[model].schema.fields if not f.is_required]
    refused = 0
    for _ in range(400):
        fields = deepcopy(whole)
        if random.random() < 0.5:
            fields[random.choice([*optional, "colour"])] = deepcopy(random.choice(ODD))
        else:
            change(fields, random)
        if not validator.is_valid(fields):
            refused += 1
            assert fields.get("kind") != model or not is_accepted(fields), fields
    assert refused > 100


@pytest.mark.parametrize("model", MODELS)
def test_a_missing_field_is_named_alone(model):
    cls = registry.models[model]
    example = min(snapshot_files(bundled("models") / model), key=lambda file: file.stat().st_size)
    whole = Snapshot.from_json(json.loads(example.read_text())).problem.to_json()
    required = [field.name for field in cls.schema.fields if field.is_required]
    assert required
    for name in required:
        with pytest.raises(InputError) as raised:
            cls.from_json({other: value for other, value in whole.items() if other != name})
        assert raised.value.mistakes == (f"{name}: missing",)


@pytest.mark.parametrize("model", MODELS)
def test_every_problem_of_a_schema_is_written_as_the_schema_says(model):
    """What is left out on file has its default; null is written only where it is read."""
    cls = registry.models[model]
    for file in snapshot_files(bundled("models") / model):
        problem = Snapshot.from_json(json.loads(file.read_text())).problem
        fields = Snapshot(problem).to_json()
        Draft202012Validator(snapshot_schema(model)).validate(fields)
        given = {field.name: getattr(problem, field.name) for field in cls.schema.fields}
        assert cls(**given).to_json() == problem.to_json()


@pytest.mark.parametrize(
    ("values", "named", "message"),
    [
        ((), {}, "missing a required argument: 'weights'"),
        (([1],), {"capacities": [1], "weights": [1]}, "multiple values for argument 'weights'"),
        (([1], [1]), {"colour": 1}, "unexpected keyword argument 'colour'"),
        (([1], [1], None, None, None, 7), {}, "too many positional arguments"),
    ],
)
def test_a_constructor_takes_its_fields_as_any_other(values, named, message):
    with pytest.raises(TypeError, match=message):
        WindowMKP(*values, **named)


def test_the_docstring_of_a_problem_lists_its_fields():
    sections = GangPacking.__doc__.partition("Parameters\n    ----------\n")[2]
    parameters = sections.partition("\n    Raises\n")[0]
    for field in GangPacking.schema.fields:
        assert f"    {field.name} : " in parameters
    assert 'admission : {"fcfs", "skip"}, optional' in parameters
    torus_first = PartitionMKP.__doc__.index("torus : (int, int, int)")
    assert (
        torus_first < PartitionMKP.__doc__.index("bins : ") < PartitionMKP.__doc__.index("wrap :")
    )


def test_the_command_prints_the_schema(capsys):
    assert optsched(["snapshot", "schema", "window-mkp"]) == 0
    assert json.loads(capsys.readouterr().out) == snapshot_schema("window-mkp")
    assert optsched(["snapshot", "schema", "window-mpk"]) == 1
    assert "did you mean window-mkp?" in capsys.readouterr().err


def test_a_folder_of_snapshots_may_hold_their_schema(capsys):
    folder = bundled("models") / "window-mkp"
    assert SCHEMA_FILE not in [file.name for file in snapshot_files(folder)]
    assert optsched(["snapshot", "check", str(folder), str(folder / SCHEMA_FILE)]) == 0
    assert SCHEMA_FILE not in capsys.readouterr().out
