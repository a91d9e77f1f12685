"""Sample traces, which come with optsched, by name: ``sample-256``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from optsched.content import bundled
from optsched.traces.header import Header


@cache
def samples() -> dict[str, Path]:
    """Return the files of the sample traces by name."""
    return {file.stem: file for file in sorted((bundled("traces") / "samples").iterdir())}


def size_of(sample: Path) -> tuple[int, int | None]:
    """Return the jobs and the processors of a sample; no kernel has to be compiled for that."""
    lines = sample.read_text().splitlines()
    comments = [line[1:] for line in lines if line.startswith(";")]
    return len(lines) - len(comments), Header.from_comments(comments).max_procs
