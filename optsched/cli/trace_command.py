"""``optsched trace``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from optsched.cli.terminal import print_json, print_lines, print_table, say, say_file
from optsched.files import check_not_read

if TYPE_CHECKING:
    from optsched.traces.trace import Trace

command = App(name="trace", help="Look at traces, clean them, convert them, find them.")

Output = Annotated[Path, Parameter(alias="-o")]


@command.command
def info(trace: str, /, *, processors: int | None = None, json: bool = False) -> None:
    """Print a page of facts: jobs, span, load, sizes, run times, what was dropped and why.

    Parameters
    ----------
    trace
        A trace file or a name from the catalogue.
    processors
        Processors of the machine, if the trace does not state them.
    json
        Print one JSON object.
    """
    from optsched.traces.facts import facts, lines
    from optsched.traces.reading import read_trace

    read = read_trace(trace)
    say_file(read)
    known = facts(read, processors)
    if json:
        print_json(known)
    else:
        print("\n".join(lines(known)))


@command.command
def clean(trace: str, /, *, output: Output) -> None:
    """Write the cleaned trace: the jobs that a simulation runs, in its order.

    Parameters
    ----------
    trace
        A trace file or a name from the catalogue.
    output
        The file to write; its suffix says the format, .gz compresses.
    """
    from optsched.traces.reading import read_trace

    cleaned = read_trace(trace)
    _write(cleaned, output)
    assert cleaned.cleaning is not None
    for line in cleaned.cleaning.lines():
        say(line)


@command.command
def convert(trace: str, /, *, output: Output) -> None:
    """Write the trace in another format, as it is: no job is dropped.

    Parameters
    ----------
    trace
        A trace file or a name from the catalogue.
    output
        The file to write; its suffix says the format, .gz compresses.
    """
    from optsched.traces.reading import read_trace

    _write(read_trace(trace, clean=False), output)


@command.command
def catalogue(*, json: bool = False) -> None:
    """List the public traces that are known by name, and which are at hand.

    Parameters
    ----------
    json
        Print one JSON object.
    """
    from optsched.traces.catalogue import entries, search

    found = [(entry, search(entry)) for entry in entries()]
    if json:
        listed = [
            {"name": entry.name, "url": entry.url, "file": path and str(path)}
            for entry, path in found
        ]
        print_json({"traces": listed})
        return
    rows = [[entry.name, entry.jobs, entry.processors, str(path or "-")] for entry, path in found]
    print_table(["trace", "jobs", "processors", "file"], rows)
    say("Folders that are searched: OPTSCHED_TRACES; `optsched trace download NAME` fetches one.")


@command.command
def download(name: str, /, *, output: Output = Path()) -> None:
    """Download a trace of the catalogue, verified by its checksum.

    Parameters
    ----------
    name
        A name from the catalogue.
    output
        The folder to write to; the present one if left out.
    """
    from optsched.traces.catalogue import download as fetch
    from optsched.traces.catalogue import find

    entry = find(name)
    path = fetch(entry, output)
    print_lines([("written", path), ("cite as", entry.citation)])


def _write(trace: Trace, output: Path) -> None:
    from optsched.traces.reading import write_trace

    check_not_read(output, trace.path)
    say_file(trace)
    write_trace(trace, output)
    print_lines([("jobs", f"{len(trace):,}"), ("written", output)])
