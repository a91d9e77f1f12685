"""``optsched trace``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from optsched.cli.options import Integer, Json, Number, Output, TraceName, TraceOutput, as_options
from optsched.cli.terminal import print_hanging, print_json, print_lines, print_table, say_note
from optsched.errors import InputError
from optsched.files import check_output
from optsched.numbers import LARGEST, parse_integer, parse_span
from optsched.traces.catalogue import samples

if TYPE_CHECKING:
    from optsched.traces.trace import Trace
    from optsched.workloads.hyper_erlang import FittedTimes, WorkloadFit


def say_file(trace: Trace) -> None:
    """Print the file of a trace of the catalogue on stderr."""
    if trace.published is not None and trace.published not in samples():
        say_note(f"{trace.published}: {trace.path}")


def read_to_write(trace: str, output: Path, **options: Any) -> Trace:
    """Read a trace, of which the command writes another form to `output`.

    The options are those of `optsched.read_trace`.
    """
    from optsched.traces.reading import read_trace

    check_output(output)
    read = read_trace(trace, **options)
    check_output(output, read.path)
    say_file(read)
    return read


def write(trace: Trace, output: Path, facts: Sequence[tuple[str, Any]] = ()) -> None:
    """Write a trace, and print the number of its jobs, facts with labels, and the files."""
    from optsched.traces.reading import write_trace

    files = " and ".join(map(str, write_trace(trace, output)))
    print_lines([("jobs", f"{len(trace):,}"), *facts, ("written", files)])


annotate = App(name="annotate", help="Add input files or bandwidth demands to the jobs of a trace.")


@annotate.command
def files(
    trace: TraceName,
    /,
    *,
    window: Integer = 800,
    per_processor: Integer = 6400,
    cores: Integer = 20,
    sharing: Literal["consecutive", "interleaved"] = "consecutive",
    evaluate: str | None = None,
    output: Output,
) -> None:
    """Infer the input files of jobs, as Gonthier et al. 2024 do.

    Parameters
    ----------
    window
        The longest time between two jobs that share a file, in seconds.
    per_processor
        Size of a file, in MB for each processor of its jobs.
    cores
        Cores of a node; a larger job is split into jobs of one node each.
    sharing
        Whether a job of another user or size ends a series of jobs that share a file (consecutive),
        or may come between them (interleaved).
    evaluate
        FROM:TO, the days whose jobs are evaluated, counted from the first submission as day 1,
        both included; by default all days.
    output
        The file to write, .rackham or .rackham.gz.
    """
    from optsched.traces.facts import annotation_lines, facts, file_facts
    from optsched.traces.formats import without_gz
    from optsched.traces.rackham import RackhamWorkload
    from optsched.traces.trace import SECONDS_PER_DAY
    from optsched.traces.transformations import evaluate as evaluated
    from optsched.traces.transformations import infer_files, split_jobs

    days = None if evaluate is None else _days(evaluate)
    if without_gz(output).suffix not in RackhamWorkload.suffixes:
        expected = "expected .rackham or .rackham.gz, which states input files"
        raise InputError(f"unknown suffix; {expected}", file=output)
    read = read_to_write(trace, output)
    with as_options(("cores", "window", "per_processor", "evaluate")):
        split = split_jobs(read, cores)
        annotated = infer_files(
            split.trace, window=window, per_processor=per_processor, sharing=sharing
        )
        if days is not None:
            (first, last), begin = days, annotated.submit.min()
            since, until = begin + (first - 1) * SECONDS_PER_DAY, begin + last * SECONDS_PER_DAY
            annotated = evaluated(annotated, since, until)
    write(annotated, output, annotation_lines(facts(annotated)))
    if stated := file_facts(read):
        say_note(f"{stated['files']:,} files that {stated['jobs']:,} jobs stated are replaced")
    if split.jobs:
        say_note(
            f"{split.jobs:,} jobs of more than {cores:,} processors in {split.pieces:,} pieces"
        )


@annotate.command
def bandwidth(
    trace: TraceName,
    /,
    *,
    mix: str,
    seed: Integer = 0,
    levels: str = "high=2000,medium=1000,low=500",
    output: Output,
) -> None:
    """Draw the memory bandwidth that jobs demand, as Guim et al. 2009 do.

    Parameters
    ----------
    mix
        HIGH, MED or LOW, the mixes of the paper; or percent of the jobs with high, medium and low
        demand, 80:10:10 for instance.
    seed
        Seed of the random choices.
    levels
        MB/s that each process of a job demands.
    output
        The file to write; the suffix states the format, .gz compresses. The demands are written to
        a second file beside it.
    """
    from optsched.traces.facts import annotation_lines, facts
    from optsched.traces.transformations import drawn

    shares, amounts = _shares(mix), _amounts(levels)
    read = read_to_write(trace, output)
    with as_options(("mix", "seed", "levels")):
        annotated = drawn(read, shares, seed, amounts)
    write(annotated, output, annotation_lines(facts(annotated)))


def _shares(text: str) -> str | tuple[int, int, int]:
    """Return the percentages of a mix, or the unchanged text, such as HIGH, if it has none."""
    try:
        high, medium, low = map(parse_integer, text.split(":"))
    except ValueError:
        return text
    return high, medium, low


def _amounts(text: str) -> dict[str, int]:
    pairs = [word.partition("=") for word in text.split(",")]
    try:
        amounts = {name: parse_integer(amount) for name, _, amount in pairs}
    except ValueError:
        amounts = {}
    if len(amounts) < len(pairs):
        expected = "expected high=2000,medium=1000,low=500 for instance"
        raise InputError(f"{text!r}; {expected}", field="--levels")
    return amounts


def _days(text: str) -> tuple[int, int]:
    from optsched.traces.trace import SECONDS_PER_DAY

    try:
        days = parse_span(text)
    except ValueError:
        days = 0, 0
    latest = LARGEST // SECONDS_PER_DAY
    if days[1] > latest:
        raise InputError(f"{text!r}; expected days of at most {latest:,}", field="--evaluate")
    if not 1 <= days[0] <= days[1]:
        expected = "expected the days FROM:TO, 2:8 for instance"
        raise InputError(f"{text!r}; {expected}", field="--evaluate")
    return days


command = App(
    name="trace", help="Inspect, clean, convert, scale, annotate, find, fit and generate traces."
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
    say_note(*cleaned.cleaning.lines())


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
    options = {"columns": _columns(columns), "unknown_negative": unknown_negative}
    read = read_to_write(trace, output, clean=False, **options)
    write(read, output)
    say_note(*(f"{what}: {count:,}" for what, count in read.oddities.items()))


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
    from optsched.traces.transformations import scale_trace

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
    say_note(*(f"{what}: {count:,}" for count, what in scaled.changes))


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
    from optsched.workloads.hyper_erlang import fit_workload
    from optsched.workloads.spec_file import write_workload

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
    say_note(*fitted.notes)


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
    from optsched.workloads.spec_file import generate_workload

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
    say_note(*(f"{what}: {count:,}" for what, count in trace.oddities.items()))


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
    for title, part in (("interarrival times (s)", "interarrival"), ("\nrun times (s)", "service")):
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
