from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from optsched.content import bundled

COMPILING = "optsched: compiling kernels, once on this machine\n"


@pytest.fixture
def optsched() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command as a user does: another process, its exit code, stdout and stderr."""

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "optsched", *map(str, arguments)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=300, **options
        )
        done.stderr = done.stderr.replace(COMPILING, "")  # on a fresh machine, anywhere
        return done

    return run


@pytest.fixture
def sample() -> Path:
    return bundled("traces") / "samples" / "sample-256.swf"


@pytest.fixture
def example() -> Path:
    return bundled("models") / "window-mkp" / "yang-2014-example.json"
