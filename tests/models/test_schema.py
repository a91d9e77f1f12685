import contextlib
import json
from copy import deepcopy
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from optsched import registry, testing
from optsched.cli import run as optsched
from optsched.content import SCHEMA_FILE, bundled
from optsched.errors import InputError
from optsched.models import WindowMKP
from optsched.models.pages import with_table, write_pages
from optsched.models.snapshot import Snapshot, has_schema, snapshot_schema
from optsched.models.snapshot_file import snapshot_files
from optsched.solvers.comparison.claims import read_known

MODELS = [model for model in registry.models if has_schema(model)]
ODD = (
    *(None, True, -1, 0, 1.5, 1e400, 10**13, 10**30, "", "x", "0-3", "1x1x1@0,0,0", "٣"),
    *([], [[]], [[1], [2, 3]], [True, False], [0, 0, 0, 1, 1, 1], {}, "corners", "next", "skip"),
)


def is_accepted(fields) -> bool:
    """Return whether a snapshot is read; what it knows may be wrong, but not break anything."""
    try:
        snapshot = Snapshot.from_json(deepcopy(fields))
    except InputError:
        return False
    with contextlib.suppress(InputError):
        solution = read_known(snapshot, "a.json").solution
        if solution is not None and not snapshot.problem.violations(solution):
            snapshot.problem.describe(solution)
    return True


def smallest(model):
    """Return the smallest snapshot of a model, as on file."""
    files = snapshot_files(bundled("models") / model)
    return json.loads(min(files, key=lambda file: file.stat().st_size).read_text())


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
    home = bundled("models") / "window-mkp"
    (tmp_path / "window-mkp").mkdir()
    page = tmp_path / "window-mkp" / "README.md"
    page.write_text((home / "README.md").read_text().replace("`weights`", "`old`"))
    write_pages(tmp_path)
    for name in ("README.md", SCHEMA_FILE):
        assert (page.parent / name).read_text() == (home / name).read_text()
    page.write_text("no place for it")
    with pytest.raises(InputError, match=r"README.md: expected <!-- fields"):
        write_pages(tmp_path)


@pytest.mark.parametrize("model", MODELS)
def test_a_damaged_snapshot_is_refused_at_least_where_its_schema_refuses_it(model):
    random = Random(model)
    validator = Draft202012Validator(snapshot_schema(model))
    whole = smallest(model)
    optional = [f.name for f in registry.models[model].schema.fields if not f.is_required]
    refused = 0
    for _ in range(400):
        fields = deepcopy(whole)
        if random.random() < 0.5:
            fields[random.choice([*optional, "colour"])] = deepcopy(random.choice(ODD))
        else:
            change(fields, random)
        is_read = is_accepted(fields)
        if not validator.is_valid(fields):
            refused += 1
            assert fields.get("kind") != model or not is_read, fields
    assert refused > 100


@pytest.mark.parametrize("model", MODELS)
def test_all_reference_snapshots_are_written_as_the_schema_says(model):
    """What is left out on file has its default; null is written only where it is read."""
    cls, schema = registry.models[model], snapshot_schema(model)
    Draft202012Validator.check_schema(schema)
    for file in snapshot_files(bundled("models") / model):
        written = json.loads(file.read_text())
        Draft202012Validator(schema).validate(written)
        problem = Snapshot.from_json(written).problem
        Draft202012Validator(schema).validate(Snapshot(problem).to_json())
        given = {field.name: getattr(problem, field.name) for field in cls.schema.fields}
        assert cls(**given).to_json() == problem.to_json()


OF_ARRAYS = {
    "data-placement": testing.data_placements(),
    "threshold-allocation": testing.threshold_allocations(),
}


@pytest.mark.parametrize("model", OF_ARRAYS)
@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_arrays_are_accepted_just_where_lists_are(model, data):
    problem = data.draw(OF_ARRAYS[model])
    values = {field.name: getattr(problem, field.name) for field in problem.schema.fields}
    arrays = [name for name, value in values.items() if isinstance(value, np.ndarray)]
    again = type(problem)(**values)
    assert all(getattr(again, name) is values[name] for name in arrays)
    if "resident" in arrays and data.draw(st.booleans()):
        # files of high numbers are compared in another way
        values["files"] = np.where(values["files"] > 0, values["files"] + 10**7, values["files"])
        values["resident"] = values["resident"] + [0, 10**7, 0, 0, 0]
    name = data.draw(st.sampled_from([*values]))
    if name not in arrays:
        values[name] = data.draw(st.sampled_from([-1, 0, 1, 5, 1000, None, "start", True]))
    elif data.draw(st.integers(0, 3)) == 0:
        values[name] = values[name][..., :-1]
    elif values[name].size:
        values[name] = values[name].copy()
        place = tuple(data.draw(st.integers(0, size - 1)) for size in values[name].shape)
        values[name][place] = data.draw(st.integers(-1, 7) | st.sampled_from([10**13, -(10**13)]))
    lists = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}
    told = []
    for fields in (values, lists):
        try:
            told.append(type(problem)(**fields).to_json())
        except InputError as error:
            told.append(error.mistakes)
    assert told[0] == told[1]


def test_a_constructor_takes_its_fields_as_any_other():
    for values, named, message in (
        ((), {}, "missing a required argument: 'weights'"),
        (([1],), {"capacities": [1], "weights": [1]}, "multiple values for argument 'weights'"),
        (([1], [1]), {"colour": 1}, "unexpected keyword argument 'colour'"),
        (([1], [1], None, None, None, 7), {}, "too many positional arguments"),
    ):
        with pytest.raises(TypeError, match=message):
            WindowMKP(*values, **named)


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
