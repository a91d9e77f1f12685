"""The traces that are run: the first jobs of a log, with demands, and in pieces with files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from optsched.content import bundled
from optsched.studies.study import find_log
from optsched.studies.systems.site import SAMPLE, Site
from optsched.studies.systems.worlds import DEMANDS, MIX, PIECES, SEED, WHOLE
from optsched.traces.bandwidth import drawn
from optsched.traces.input_files import infer_files
from optsched.traces.job_pieces import split_jobs
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace


def inputs(site: Site, folders: Sequence[Path]) -> Mapping[str, Trace]:
    """Return all traces that are run, by the name of their file.

    Raises
    ------
    InputError
        If the log is damaged or not there.
    """
    own = bundled("traces") / site.file if site == SAMPLE else find_log(site.file, folders)
    jobs = read_trace(own).jobs(1, site.jobs)
    return {
        WHOLE: jobs,
        DEMANDS: drawn(jobs, MIX, SEED),
        PIECES: infer_files(split_jobs(jobs, site.cores).trace),
    }
