"""Commands as a user types them, run in this process."""

import logging
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from optsched import cli
from optsched.content import bundled
from optsched.sweeps.engines import LocalProcesses, execute

COMPILING = (
    "optsched: compiling kernels, once on this machine; first commands take up to a minute longer\n"
)


class Done(NamedTuple):
    """What a command has said."""

    out: str
    err: str


def in_this_process(_engine, tasks):
    """Execute the runs of a sweep: a worker takes longer to start than most of them."""
    yield from map(execute, tasks)


@pytest.fixture
def optsched(capsys: pytest.CaptureFixture, forget: Callable[[], None]) -> Callable[..., Done]:
    """Return a function that runs a command and checks its exit code; texts are split as typed."""
    log = logging.getLogger("optsched")

    def run(
        *words: object, code: int = 0, cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> Done:
        texts = [word if isinstance(word, str) else shlex.quote(str(word)) for word in words]
        capsys.readouterr()
        level = log.level
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LocalProcesses, "execute_all", in_this_process)
            patch.chdir(cwd or Path.cwd())
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            cli._show_log()
            try:
                found = cli.run(shlex.split(" ".join(texts)))
            finally:
                log.removeHandler(log.handlers[-1])
                log.setLevel(level)
                forget()
        out, err = capsys.readouterr()
        err = err.replace(COMPILING, "")  # on a fresh machine, anywhere
        assert found == code, err
        return Done(out, err)

    return run


@pytest.fixture
def example() -> Path:
    return bundled("models") / "window-mkp" / "yang-2014-example.json"
