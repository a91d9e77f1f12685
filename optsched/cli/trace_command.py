"""``optsched trace``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from optsched.cli.annotate_command import annotate
from optsched.cli.options import Integer, Json, Number, Output, TraceName, TraceOutput
from optsched.cli.terminal import print_hanging, print_json, print_lines, print_table, say_note
from optsched.cli.trace_files import read_to_write, say_file, write
from optsched.errors import InputError
from optsched.files import check_output
from optsched.numbers import parse_integer

if TYPE_CHECKING:
    from optsched.workloads.trace_fit import FittedTimes, WorkloadFit

command = App(
    name="trace",
    help="Inspect, clean, convert, scale, annotate, find, fit and generate traces.",
)
command.command(annotate)


@command.command
def info(
    trace: TraceName,
    /,
    *,
    processors: Integer | None = None,
    unknown_negative: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
) -> None:
    """Print facts about a trace: jobs, span, load, sizes, run times, and the cleaning.

    Parameters
    ----------
    processors
        Processors of the machine, if the trace does not state them.
    unknown_negative
        Read negative times of SWF as unknown, and count them.
    """
    from optsched.traces.facts import facts, lines
    from optsched.traces.reading import read_trace

    read = read_trace(trace, unknown_negative=unknown_negative)
    say_file(read)
    known = facts(read, processors)
    if json:
        print_json(known)
    else:
        for line in lines(known):
            print_hanging(line, 16)


@command.command
def clean(trace: TraceName, /, *, output: TraceOutput) -> None:
    """Write the cleaned trace: the jobs that a simulation runs, in its order."""
    cleaned = read_to_write(trace, output)
    write(cleaned, output)
    assert cleaned.cleaning is not None
    for line in cleaned.cleaning.lines():
        say_note(line)


@command.command
def convert(
    trace: TraceName,
    /,
    *,
    columns: str | None = None,
    unknown_negative: Annotated[bool, Parameter(negative=())] = False,
    output: TraceOutput,
) -> None:
    """Write a trace in another format, without cleaning.

    Parameters
    ----------
    columns
        Columns of a table (CSV, Parquet) that have other names there: NAME=COLUMN,NAME=COLUMN,
        submit=submit_time for instance.
    unknown_negative
        Read negative times of SWF as unknown, and count them.
    """
    renamed = _columns(columns)
    read = read_to_write(
        trace, output, clean=False, columns=renamed, unknown_negative=unknown_negative
    )
    write(read, output)
    for what, count in read.oddities.items():
        say_note(f"{what}: {count:,}")


@command.command
def scale(
    trace: TraceName,
    /,
    *,
    to: Integer,
    processors: Annotated[Integer | None, Parameter(name="--from")] = None,
    unit: Integer = 1,
    load: Number = 1.0,
    output: TraceOutput,
) -> None:
    """Scale a trace to a machine of another size, and to another load.

    Parameters
    ----------
    to
        Processors of the new machine: sizes are multiplied by --to over --from.
    processors
        Processors of the original machine; by default those of the header.
    unit
        Sizes are rounded up to multiples of this number.
    load
        Divisor of the interarrival times, and so about the factor of the offered load.
    """
    from optsched.traces.facts import facts
    from optsched.traces.scaling import scale_trace

    read = read_to_write(trace, output, clean=False)
    scaled = scale_trace(read, to, processors=processors, unit=unit, load=load)
    machines = scaled.processors, to
    loads = [facts(*one)["offered_load"] for one in zip((read, scaled.trace), machines)]
    changed = [
        ("machine", " to ".join(f"{size:,}" for size in machines) + " processors"),
        ("offered load", " to ".join(map(_load, loads))),
        ("by rounding", f"{scaled.rounding:+.2%} work"),
    ]
    write(scaled.trace, output, changed)
    for count, what in scaled.changes:
        say_note(f"{what}: {count:,}")


@command.command
def catalogue(*, json: Json = False) -> None:
    """List the public traces of the catalogue, with their files where these are found."""
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
    say_note("Searched folders: OPTSCHED_TRACES; `optsched trace download NAME` fetches a trace.")


@command.command
def download(name: str, /, *, output: Output = Path()) -> None:
    """Download a trace of the catalogue, verified by its checksum.

    Parameters
    ----------
    name
        A name from the catalogue.
    output
        The folder to write to; by default the current one.
    """
    from optsched.traces.catalogue import download as fetch
    from optsched.traces.catalogue import find

    entry = find(name)
    path = fetch(entry, output)
    print_lines([("written", path), ("cite as", entry.citation)])


@command.command
def fit(
    trace: TraceName,
    /,
    *,
    boundaries: str | None = None,
    fewest: Integer = 30,
    sizes: Literal["observed", "uniform"] = "observed",
    processors: Integer | None = None,
    json: Json = False,
    output: Output | None = None,
) -> None:
    """Fit a workload model: classes of jobs by size, with Hyper-Erlang times.

    Parameters
    ----------
    boundaries
        Processors of the largest job of each class, 8,16,32,64,128,256 for instance; by default
        all powers of two.
    fewest
        Smallest number of jobs of a class; a class of fewer is merged into the next smaller one.
    sizes
        Distribution of sizes within a class: as observed in the trace, or uniform.
    processors
        Processors of the machine, if the trace does not state them.
    output
        The workload spec to write, a TOML file.
    """
    from optsched.traces.reading import read_trace
    from optsched.workloads.spec_file import write_workload
    from optsched.workloads.trace_fit import fit_workload

    if output is not None:
        check_output(output)
    read = read_trace(trace)
    say_file(read)
    fitted = fit_workload(
        read,
        boundaries=None if boundaries is None else _whole_numbers(boundaries),
        fewest=fewest,
        sizes=sizes,
        processors=processors,
    )
    if output is not None:
        check_output(output, read.path)
        write_workload(fitted.model, output)
    if json:
        print_json(fitted.to_json())
    else:
        _print_fit(fitted)
        if output is not None:
            print()
            print_lines([("written", output)])
    for note in fitted.notes:
        say_note(note)


@command.command
def generate(
    workload: str,
    /,
    *,
    jobs: Integer,
    seed: Integer = 0,
    interarrival_factor: Number = 1.0,
    service_factor: Number = 1.0,
    output: TraceOutput,
) -> None:
    """Generate a trace from a workload model.

    Parameters
    ----------
    workload
        A workload spec, a TOML file, or the name of a bundled one (see `optsched list workloads`).
    jobs
        Number of jobs.
    seed
        Seed of all random choices.
    interarrival_factor
        Factor of the interarrival times; the random numbers stay the same.
    service_factor
        Factor of the run times; the random numbers stay the same.
    """
    from optsched.traces.facts import facts
    from optsched.workloads.generating import generate_workload

    check_output(output)
    trace = generate_workload(
        workload,
        jobs=jobs,
        seed=seed,
        interarrival_factor=interarrival_factor,
        service_factor=service_factor,
    )
    known = facts(trace)
    generated = [
        ("span", f"{known['span_days']:.1f} days"),
        ("machine", f"{known['machine_size']:,} processors"),
        ("offered load", _load(known["offered_load"])),
    ]
    write(trace, output, generated)
    for what, count in trace.oddities.items():
        say_note(f"{what}: {count:,}")


def _whole_numbers(text: str) -> list[int]:
    try:
        return [parse_integer(word) for word in text.split(",")]
    except ValueError:
        expected = "whole numbers with commas between them"
        raise InputError(f"boundaries: {text!r}; expected {expected}") from None


def _columns(text: str | None) -> dict[str, str]:
    """Return the names of columns in a table by their names in a trace."""
    columns: dict[str, str] = {}
    for word in [] if text is None else text.split(","):
        name, equals, column = word.partition("=")
        if not (name and equals and column) or name in columns:
            expected = "expected NAME=COLUMN with commas between them, each name once"
            raise InputError(f"columns: {word!r}; {expected}")
        columns[name] = column
    return columns


def _load(offered: float | None) -> str:
    return "-" if offered is None else f"{offered:.3f}"


def _print_fit(fitted: WorkloadFit) -> None:
    """Print both tables of a fit in the form of Franke et al. 1999."""
    columns = ["N_min", "N_max", "lambda1", "lambda2", "n", "p1", "E4 %", "jobs %", "family"]
    for title, part in (
        ("interarrival times (s)", "interarrival"),
        ("\nrun times (s)", "service"),
    ):
        rows = []
        for one in fitted.classes:
            times: FittedTimes = getattr(one, part)
            lambda1, lambda2 = times.distribution.rates
            row: list[Any] = [one.smallest, one.largest, f"{lambda1:.2e}", f"{lambda2:.2e}"]
            row += [times.distribution.order, f"{times.distribution.p1:.2e}"]
            row += [f"{times.e4:.0f}", f"{one.share:.2f}", times.distribution.family]
            rows.append(row)
        print(title)
        print_table(columns, rows)
