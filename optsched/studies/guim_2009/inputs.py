"""The workloads that are run: the first jobs of logs, with drawn demands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from optsched.content import bundled
from optsched.studies.guim_2009.plan import SAMPLE, Centre, workloads
from optsched.studies.study import find_log
from optsched.traces.bandwidth import drawn
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace


def inputs(folders: Sequence[Path], *, quick: bool) -> Mapping[str, Trace]:
    """Return all traces that are run, by the name of their file.

    Raises
    ------
    InputError
        If a log is damaged or not there.
    """
    wanted = workloads(quick=quick)
    first = {centre: first_jobs(centre, folders) for centre in dict.fromkeys(w[0] for w in wanted)}
    return {one.file: drawn(first[one.centre], one.mix, one.seed) for one in wanted}


def first_jobs(centre: Centre, folders: Sequence[Path]) -> Trace:
    """Return the jobs of a log that are run, without demands.

    Raises
    ------
    InputError
        If the log is damaged or not there.
    """
    own = bundled("traces") / centre.file if centre == SAMPLE else find_log(centre.file, folders)
    return read_trace(own).jobs(1, centre.jobs)
