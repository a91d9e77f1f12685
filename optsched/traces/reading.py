"""Reading of traces by path, or by the name of a sample or in the catalogue, and writing."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from optsched.errors import InputError, UnknownNameError, no_such_file, path_of
from optsched.files import check_output, in_memory, read_head, write_bytes, written_bytes
from optsched.registry import readers
from optsched.sites.slurm_files import near_miss, with_commas
from optsched.traces import catalogue, cleaning
from optsched.traces.catalogue import samples
from optsched.traces.formats import TableFormat, TraceFormat, without_gz
from optsched.traces.requests import demands_file, encode_demands, split_demands, with_demands
from optsched.traces.swf import StandardWorkloadFormat, read_swf
from optsched.traces.trace import Trace


def read_trace(
    path_or_name: str | Path,
    *,
    clean: bool = True,
    folder: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    unknown_negative: bool = False,
) -> Trace:
    """Read a trace.

    Parameters
    ----------
    path_or_name : str or path
        A file in any registered format, gzipped or not, with the demands of its jobs if a demands
        file lies beside it (`optsched.traces.requests`); the name of a sample, ``sample-256``; or a
        name in the catalogue, whose file is searched for in `folder` and in the folders of
        ``OPTSCHED_TRACES``.
    clean : bool
        Whether to clean the trace; see `optsched.traces.cleaning.clean`.
    folder : path, optional
        Folder searched first for a trace of the catalogue.
    columns : mapping of str to str, optional
        For a table (CSV, Parquet), the name in the file of each column that has another name there:
        ``{"submit": "submit_time"}``.
    unknown_negative : bool
        Whether negative times of SWF count as unknown, as raw logs have them after a clock was set
        back; they are counted in `Trace.oddities`.

    Returns
    -------
    Trace
        The trace, cleaned and with a cleaning report unless `clean` is False.

    Raises
    ------
    InputError
        If there is no such file or name, the file is in no known format or has a mistake, no job
        is left after cleaning, a trace of the catalogue differs from what was published, or columns
        are named for a file that is no table, or negative times are allowed in another format.
    """
    expected = "expected a file or a name; optsched.trace_from_frame takes a DataFrame"
    path, published = find_trace(path_of(path_or_name, "trace", expected), folder)
    with in_memory(path):
        trace = replace(_read(path, columns, unknown_negative), published=published)
        trace = with_demands(trace, path)
        logging.getLogger("optsched").debug("read %s: %s jobs", path, f"{len(trace):,}")
        return cleaning.clean(trace) if clean else trace


def _read(path: Path, columns: Mapping[str, str] | None, unknown_negative: bool) -> Trace:
    if not columns and (said := with_commas(read_head(path))):
        raise InputError(said, file=path)
    kind = format_of(path)
    logging.getLogger("optsched").debug("reading %s as %s", path, kind.name)
    if unknown_negative:
        if not issubclass(kind, StandardWorkloadFormat):
            problem = f"{kind.name} has no negative times; expected swf"
            raise InputError(problem, file=path, field="unknown negative")
        return read_swf(path, unknown_negative=True)
    if not columns:
        return kind.read(path)
    if issubclass(kind, TableFormat):
        return kind.read(path, columns)
    tables = ", ".join(one.name for one in readers.values() if issubclass(one, TableFormat))
    problem = f"{kind.name} has fixed columns; expected {tables}"
    raise InputError(problem, file=path, field="columns")


def find_trace(
    path_or_name: str | Path, folder: str | Path | None = None, *, base: Path | None = None
) -> tuple[Path, str | None]:
    """Return the file of a path or name, and the name if it is one.

    A name is that of a sample, or one in the catalogue. A file of that name takes precedence, a
    folder, of runs of the trace for instance, does not. A trace of the catalogue is searched for in
    `folder` first. A relative path starts from `base`, by default from the current folder.
    """
    name = Path(path_or_name)
    path = name if base is None else base / name
    if os.path.exists(path) and not os.path.isdir(path):
        return path, None
    if os.path.islink(path):
        raise InputError("is a link to a file that is not there", file=path)
    if name.parent != Path():
        raise _no_trace(path, samples())
    if str(name) in samples():
        return samples()[str(name)], str(name)
    try:
        entry = catalogue.find(name.name)
    except UnknownNameError as error:
        what = "no such file, and no name in `optsched list traces`"
        raise _no_trace(path, [*samples(), *error.known], what) from None
    return catalogue.locate(entry, folder), entry.name


def _no_trace(path: Path, names: Iterable[str], what: str = "no such file") -> InputError:
    if os.path.isdir(path):
        return InputError("is a folder; expected a trace", file=path)
    return no_such_file(path, names, what)


def write_trace(trace: Trace, path: str | Path) -> tuple[Path, ...]:
    """Write a trace in the format that the suffix of `path` names; gzipped if it ends in ``.gz``.

    Demands of the jobs are written to a file beside the trace (`optsched.traces.requests`), unless
    the format holds annotations of all names. If there are none to write, such a file of an earlier
    trace is removed.

    The result is the files: the trace, and its demands file if there is one.
    """
    path = Path(path)
    written = [kind for kind in readers.values() if kind.encode is not None]
    kind = next((kind for kind in written if _has_suffix(path, kind)), None)
    if kind is None:
        suffixes = ", ".join(suffix for kind in written for suffix in kind.suffixes)
        raise InputError(f"unknown suffix; expected {suffixes}", file=path)
    assert kind.encode is not None
    demands, others = ({}, trace.annotations) if kind.any_annotation else split_demands(trace)
    beside = demands_file(path)
    text = encode_demands(demands, kind.job_numbers(trace), path) if demands else None
    with written_bytes(path, kind.encode(replace(trace, annotations=others), path)):
        # demands first, so that a trace never has the demands of another, or lacks its own
        if text is None:
            check_output(beside)
            beside.unlink(missing_ok=True)
        else:
            write_bytes(beside, text)
    return (path,) if text is None else (path, beside)


def format_of(path: Path) -> type[TraceFormat]:
    """Return the format of a file, by its first bytes and, in doubt, its suffix."""
    formats: list[type[TraceFormat]] = readers.values()
    first_bytes = read_head(path)
    said = near_miss(first_bytes)
    if said and first_bytes.strip():
        raise InputError(said, file=path)
    by_content = [kind for kind in formats if kind.recognizes(first_bytes, path)]
    by_suffix = [kind for kind in formats if _has_suffix(path, kind)]
    both = [kind for kind in by_suffix if kind in by_content]
    for candidates in (both, by_content, by_suffix):
        if candidates:
            return candidates[0]
    known = ", ".join(kind.name for kind in formats)
    raise InputError(said or f"not a known trace format; known: {known}", file=path)


def mistake_in(trace: Trace, job: int, field: str, value: object, expected: str) -> InputError:
    """Return the error of a wrong value of the job in a row, with its line if the file has lines.

    The text `expected` begins with that word.
    """
    job_id = int(trace.job_id[job])
    line = None if trace.path is None else format_of(trace.path).line_of(trace.path, job_id)
    wrong = f"{value} in job {job_id}; {expected}"
    return InputError(wrong, file=trace.path, line=line, field=field)


def _has_suffix(path: Path, trace_format: type[TraceFormat]) -> bool:
    return without_gz(path).suffix in trace_format.suffixes
