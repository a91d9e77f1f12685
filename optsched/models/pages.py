"""Generated parts of the pages of models: JSON Schemas and tables of fields.

``python -m optsched.models.pages`` writes both from the declarations, see `write_pages`.
"""

from __future__ import annotations

from pathlib import Path

from optsched.errors import InputError
from optsched.files import write_text
from optsched.json_text import json_text
from optsched.markdown import between_marks
from optsched.models.reference_snapshots import SCHEMA_FILE
from optsched.models.snapshot import has_schema, snapshot_schema
from optsched.registry import models


def with_table(page: str, model: str) -> str:
    """Return a model's page with the table of fields between its marks."""
    return between_marks(page, "fields", models[model].schema.table())


def write_pages(folder: str | Path) -> None:
    """Write the schema and the table of fields of each model to its folder in `folder`."""
    for model in models:
        home = Path(folder) / model
        if not has_schema(model) or not home.is_dir():
            continue
        page = home / "README.md"
        try:
            text = with_table(page.read_text(encoding="utf-8"), model)
        except InputError as error:
            raise error.within(page) from None
        schema = json_text(snapshot_schema(model), indent=1) + "\n"
        for file, content in ((page, text), (home / SCHEMA_FILE, schema)):
            write_text(file, content)


if __name__ == "__main__":
    from optsched.content import bundled

    write_pages(bundled("models"))
