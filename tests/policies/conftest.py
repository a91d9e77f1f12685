from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def textbook():
    """The independent statements of the schedulers."""
    spec = importlib.util.spec_from_file_location("textbook", Path(__file__).parent / "textbook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
