"""Commands as a user types them, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
from collections.abc import Callable, Mapping
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from pathlib import Path
from types import SimpleNamespace

import pytest

from optsched.cli import COMMANDS
from optsched.content import bundled

COMPILING = (
    "optsched: compiling kernels, once on this machine; first commands take up to a minute longer\n"
)
SCRIPT = Path(__file__).parent / "in_a_fork.py"

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        *(f"optsched.cli.{command}_command" for command in COMMANDS),
        *("optsched.report.style", "optsched.simulator.simulate", "optsched.solvers.generic"),
        *("cyclopts", "jinja2", "numba", "pandas", "pyarrow.parquet", "yaml"),
        *(f"matplotlib.{part}" for part in ("backends.backend_agg", "backends.backend_svg")),
        *("matplotlib.figure", "matplotlib.style", "rich.progress", "rich.table"),
        "kernels_at_hand",
    ]
)


@pytest.fixture(scope="session")
def forks() -> BaseContext:
    """Start the process that commands are forked from; it finds a module of this folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(SCRIPT.parent), prepend=os.pathsep)
        forkserver.ensure_running()
    return FORKS


@pytest.fixture
def optsched(
    tmp_path_factory: pytest.TempPathFactory, forks: BaseContext
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command as a user does: another process, its exit code, stdout and stderr.

    The process is a fork of one that has imported what takes seconds to import, and has kernels.
    """

    def run(
        *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        words = [*map(str, arguments)]
        folder = tmp_path_factory.mktemp("streams")
        given = SimpleNamespace(
            arguments=words, folder=folder, cwd=cwd or Path.cwd(), env=dict(env or os.environ)
        )
        process = forks.Process(
            target=runpy.run_path, args=(str(SCRIPT), {"given": given}, "__main__")
        )
        process.start()
        process.join(300)
        assert process.exitcode is not None, words
        said = (folder / "err").read_text().replace(COMPILING, "")  # on a fresh machine, anywhere
        out = (folder / "out").read_text()
        return subprocess.CompletedProcess(words, process.exitcode, out, said)

    return run


@pytest.fixture
def sample() -> Path:
    return bundled("traces") / "samples" / "sample-256.swf"


@pytest.fixture
def example() -> Path:
    return bundled("models") / "window-mkp" / "yang-2014-example.json"
