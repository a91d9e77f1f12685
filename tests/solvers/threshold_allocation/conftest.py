from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def stated():
    """The readable statement of the rules."""
    spec = importlib.util.spec_from_file_location("stated", Path(__file__).parent / "stated.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
