"""Traces that commands read and write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.cli.terminal import print_lines, say_note
from optsched.files import check_output
from optsched.traces.catalogue import samples

if TYPE_CHECKING:
    from optsched.traces.trace import Trace


def say_file(trace: Trace) -> None:
    """Print the file of a trace of the catalogue on stderr."""
    if trace.published is not None and trace.published not in samples():
        say_note(f"{trace.published}: {trace.path}")


def read_to_write(
    trace: str,
    output: Path,
    *,
    clean: bool = True,
    columns: Mapping[str, str] | None = None,
    unknown_negative: bool = False,
) -> Trace:
    """Read a trace, of which the command writes another form to `output`.

    The trace is cleaned or not, columns are renamed, and negative times are allowed, as in
    `optsched.read_trace`.
    """
    from optsched.traces.reading import read_trace

    check_output(output)
    read = read_trace(trace, clean=clean, columns=columns, unknown_negative=unknown_negative)
    check_output(output, read.path)
    say_file(read)
    return read


def write(trace: Trace, output: Path, facts: Sequence[tuple[str, Any]] = ()) -> None:
    """Write a trace, and print the number of its jobs, facts with labels, and the files."""
    from optsched.traces.reading import write_trace

    files = " and ".join(map(str, write_trace(trace, output)))
    print_lines([("jobs", f"{len(trace):,}"), *facts, ("written", files)])
