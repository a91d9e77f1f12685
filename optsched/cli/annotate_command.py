"""``optsched trace annotate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cyclopts import App

from optsched.cli.options import Integer, Output, TraceName, as_options
from optsched.cli.terminal import say_note
from optsched.cli.trace_files import read_to_write, write
from optsched.errors import InputError
from optsched.numbers import LARGEST, parse_integer, parse_span

if TYPE_CHECKING:
    from optsched.traces.trace import Trace

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
    from optsched.traces.annotations import infer_files, split_jobs
    from optsched.traces.facts import annotation_lines, facts, file_facts
    from optsched.traces.formats import without_gz
    from optsched.traces.rackham import RackhamWorkload

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
            annotated = _evaluated(annotated, *days)
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
    from optsched.traces.annotations import drawn
    from optsched.traces.facts import annotation_lines, facts

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


def _evaluated(trace: Trace, first: int, last: int) -> Trace:
    from optsched.traces.annotations import evaluate
    from optsched.traces.trace import SECONDS_PER_DAY

    begins = trace.submit.min()
    return evaluate(trace, begins + (first - 1) * SECONDS_PER_DAY, begins + last * SECONDS_PER_DAY)


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
