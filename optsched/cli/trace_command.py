"""``optsched trace``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from optsched.cli.annotate_command import annotate
from optsched.cli.options import Integer, Number, Output
from optsched.cli.terminal import (
    listed,
    print_json,
    print_line,
    print_lines,
    print_table,
    say,
    say_file,
)
from optsched.errors import InputError
from optsched.files import check_output
from optsched.numbers import parse_integer

if TYPE_CHECKING:
    from optsched.traces.trace import Trace
    from optsched.workloads.trace_fit import FittedTimes, WorkloadFit

command = App(
    name="trace",
    help="Inspect, clean, convert, scale, annotate, find, fit and generate traces.",
)
command.command(annotate)


@command.command
def info(trace: str, /, *, processors: Integer | None = None, json: bool = False) -> None:
    """Print facts about a trace: jobs, span, load, sizes, run times, and the cleaning.

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
        for line in lines(known):
            print_line(line)


@command.command
def clean(trace: str, /, *, output: Output) -> None:
    """Write the cleaned trace: the jobs that a simulation runs, in its order.

    Parameters
    ----------
    trace
        A trace file or a name from the catalogue.
    output
        The file to write; the suffix states the format, .gz compresses.
    """
    from optsched.traces.reading import read_trace

    check_output(output)
    cleaned = read_trace(trace)
    _write(cleaned, output)
    assert cleaned.cleaning is not None
    for line in cleaned.cleaning.lines():
        say(line)


@command.command
def convert(trace: str, /, *, output: Output) -> None:
    """Write a trace in another format, without cleaning.

    Parameters
    ----------
    trace
        A trace file or a name from the catalogue.
    output
        The file to write; the suffix states the format, .gz compresses.
    """
    from optsched.traces.reading import read_trace

    check_output(output)
    _write(read_trace(trace, clean=False), output)


@command.command
def scale(
    trace: str,
    /,
    *,
    to: Integer,
    processors: Annotated[Integer | None, Parameter(name="--from")] = None,
    unit: Integer = 1,
    load: Number = 1.0,
    output: Output,
) -> None:
    """Scale a trace to a machine of another size, and to another load.

    Parameters
    ----------
    trace
        A trace file or a name from the catalogue.
    to
        Processors of the new machine: sizes are multiplied by --to over --from.
    processors
        Processors of the original machine; by default those of the header.
    unit
        Sizes are rounded up to multiples of this number.
    load
        Divisor of the interarrival times, and so about the factor of the offered load.
    output
        The file to write; the suffix states the format, .gz compresses.
    """
    from optsched.traces.facts import facts
    from optsched.traces.reading import read_trace, write_trace
    from optsched.traces.scaling import scale_trace

    check_output(output)
    read = read_trace(trace, clean=False)
    check_output(output, read.path)
    say_file(read)
    scaled = scale_trace(read, to, processors=processors, unit=unit, load=load)
    files = write_trace(scaled.trace, output)
    machines = scaled.processors, to
    loads = [facts(*one)["offered_load"] for one in zip((read, scaled.trace), machines)]
    print_lines(
        [
            ("jobs", f"{len(scaled.trace):,}"),
            ("machine", " to ".join(f"{size:,}" for size in machines) + " processors"),
            ("offered load", " to ".join("-" if one is None else f"{one:.3f}" for one in loads)),
            ("by rounding", f"{scaled.rounding:+.2%} work"),
            ("written", listed(files)),
        ]
    )
    for count, what in scaled.changes:
        say(f"{count:>9,} {what}")


@command.command
def catalogue(*, json: bool = False) -> None:
    """List the public traces of the catalogue, with their files where these are found.

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
    say("Searched folders: OPTSCHED_TRACES; `optsched trace download NAME` fetches a trace.")


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
    trace: str,
    /,
    *,
    boundaries: str | None = None,
    fewest: Integer = 30,
    sizes: Literal["observed", "uniform"] = "observed",
    processors: Integer | None = None,
    json: bool = False,
    output: Output | None = None,
) -> None:
    """Fit a workload model: classes of jobs by size, with Hyper-Erlang times.

    Parameters
    ----------
    trace
        A trace file or a name from the catalogue.
    boundaries
        Processors of the largest job of each class, 8,16,32,64,128,256 for instance; by default
        all powers of two.
    fewest
        Smallest number of jobs of a class; a class of fewer is merged into the next smaller one.
    sizes
        Distribution of sizes within a class: as observed in the trace, or uniform.
    processors
        Processors of the machine, if the trace does not state them.
    json
        Print one JSON object.
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
        say(note)


@command.command
def generate(
    workload: str,
    /,
    *,
    jobs: Integer,
    seed: Integer = 0,
    interarrival_factor: Number = 1.0,
    service_factor: Number = 1.0,
    output: Output,
) -> None:
    """Generate a trace from a workload model.

    Parameters
    ----------
    workload
        A workload spec, a TOML file, or the name of a bundled one; `optsched list workloads`.
    jobs
        Number of jobs.
    seed
        Seed of all random choices.
    interarrival_factor
        Factor of the interarrival times; the random numbers stay the same.
    service_factor
        Factor of the run times; the random numbers stay the same.
    output
        The file to write; the suffix states the format, .gz compresses.
    """
    from optsched.traces.facts import facts
    from optsched.traces.reading import write_trace
    from optsched.workloads.generating import generate_workload

    check_output(output)
    trace = generate_workload(
        workload,
        jobs=jobs,
        seed=seed,
        interarrival_factor=interarrival_factor,
        service_factor=service_factor,
    )
    write_trace(trace, output)
    known = facts(trace)
    load = known["offered_load"]
    print_lines(
        [
            ("jobs", f"{len(trace):,}"),
            ("span", f"{known['span_days']:.1f} days"),
            ("machine", f"{known['machine_size']:,} processors"),
            ("offered load", "-" if load is None else f"{load:.3f}"),
            ("written", output),
        ]
    )
    for what, count in trace.oddities.items():
        say(f"{count:,} {what}")


def _whole_numbers(text: str) -> list[int]:
    try:
        return [parse_integer(word) for word in text.split(",")]
    except ValueError:
        expected = "whole numbers with commas between them"
        raise InputError(f"boundaries: {text!r}; expected {expected}") from None


def _print_fit(fitted: WorkloadFit) -> None:
    """Print both tables of a fit in the form of Franke et al. 1999."""
    columns = ["N_min", "N_max", "lambda1", "lambda2", "n", "p1", "E4 %", "jobs %", "family"]
    for title, part in (
        ("interarrival times (s)", "interarrival"),
        ("run times (s)", "service"),
    ):
        rows = []
        for one in fitted.classes:
            times: FittedTimes = getattr(one, part)
            lambda1, lambda2 = times.distribution.rates
            row: list[Any] = [one.smallest, one.largest, f"{lambda1:.2e}", f"{lambda2:.2e}"]
            row += [times.distribution.order, f"{times.distribution.p1:.2e}"]
            row += [f"{times.e4:.0f}", f"{one.share:.2f}", times.distribution.family]
            rows.append(row)
        print(title if part == "interarrival" else f"\n{title}")
        print_table(columns, rows)


def _write(trace: Trace, output: Path) -> None:
    from optsched.traces.reading import write_trace

    check_output(output, trace.path)
    say_file(trace)
    files = write_trace(trace, output)
    print_lines([("jobs", f"{len(trace):,}"), ("written", listed(files))])
