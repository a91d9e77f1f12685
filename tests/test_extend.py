"""`optsched.extend` has all that the pages for authors of plug-ins need."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from optsched import extend, registry

HOW_TO = Path(__file__).resolve().parents[1] / "docs" / "how-to"
PAGES = ("add-a-policy", "add-a-solver", "add-a-workload-model", "add-an-execution-model")


def test_every_name_is_there():
    assert [name for name in extend.__all__ if not hasattr(extend, name)] == []
    kinds = {kind for kind in vars(extend).values() if isinstance(kind, registry.Registry)}
    assert kinds == set(registry.all_kinds())


@pytest.mark.parametrize("page", PAGES)
def test_a_page_imports_nothing_else(page):
    text = (HOW_TO / f"{page}.md").read_text()
    imported = set(re.findall(r"^(?:from|import) (optsched[\w.]*)", text, re.MULTILINE))
    assert "optsched.extend" in imported
    allowed = {"optsched", "optsched.extend", "optsched.models", "optsched.testing"}
    assert imported - allowed - {"optsched.testing.points"} == set()
