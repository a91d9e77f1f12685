"""A case: a command, and what must be seen."""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

REVIEWS = Path(__file__).resolve().parents[3] / "shared" / "reviews"

INPUT = r"(^|:)(?=(cases|slurm-cases|attack)/)"

SECONDS = 900
MEMORY = 6_000_000_000
"""What a command may take, and bytes of address space, as some inputs are hostile."""

TELLING = ("optsched: ", "earliest", "least", "left", "status", "objective", "jobs")
"""Beginnings of the lines of output that a table shows."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended: exit code, both outputs, and the files that it wrote."""

    code: int
    out: str
    err: str
    files: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Both outputs, without the names of inputs."""
        return re.sub(rf"{REVIEWS}/[^\s,]*", "INPUT", f"{self.out}\n{self.err}")

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def brief(self) -> str:
        """Return in one line what was seen."""
        try:
            seen = self.json
        except ValueError:
            lines = (self.err if self.code else self.out).splitlines()
            kept = [" ".join(line.split()) for line in lines if line.startswith(TELLING)] or lines
            return "; ".join(kept).replace(f"{REVIEWS}/", "")[:300] or f"exit code {self.code}"
        if "jobs" in seen:
            placed = [f"{each['job']}@{','.join(each['nodes'])}" for each in seen["jobs"]]
            return " ".join(placed)[:300] or "no job placed"
        return f"{seen['solver']}: {seen['status']} {seen['objective']}; {seen['message'][:200]}"


@dataclass(frozen=True)
class Case:
    """A case with its right value in words, and with a look that returns what is wrong, or nothing.

    Words of the command that begin with ``cases/``, ``slurm-cases/`` or ``attack/`` are names of
    inputs. The first word ``python`` runs a script of the attacks, or a text, instead of optsched;
    in it, SCRATCH is the working folder.
    """

    name: str
    right: str
    command: str | tuple[str, ...]
    look: Callable[[Outcome], str]
    long: bool = False

    def run(self) -> Outcome:
        """Run the command, once for all cases with the same."""
        return _run(self.command)


@cache
def _run(command: str | tuple[str, ...]) -> Outcome:
    """Run a command in a folder of its own, within limits of memory and time."""
    words = command.split() if isinstance(command, str) else list(command)
    with tempfile.TemporaryDirectory() as folder:
        if words[0] == "python":
            named = REVIEWS / words[1]
            script = named.read_text() if named.suffix == ".py" else words[1]
            script = script.replace("SCRATCH", f"{folder}/scratch")
            words = [sys.executable, "-c", script, *words[2:]]
        else:
            words = [re.sub(INPUT, rf"\1{REVIEWS}/", word) for word in words]
            words = [sys.executable, "-m", "optsched", *words]
        try:
            done = subprocess.run(
                words,
                cwd=folder,
                env=os.environ | {"REVIEWS": str(REVIEWS), "COLUMNS": "200"},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
            )
        except subprocess.TimeoutExpired:
            return Outcome(-1, "", f"no end within {SECONDS} s")
        files = {
            str(path.relative_to(folder)): path.read_text()
            for path in sorted(Path(folder).rglob("*"))
            if path.name == "jobs.csv" and "scratch" not in path.parts
        }
    return Outcome(done.returncode, done.stdout, done.stderr, files)
