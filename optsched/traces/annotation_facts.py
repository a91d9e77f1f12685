"""Statistics of the annotations of a trace: input files, categories, demands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from optsched.traces.demands import split_demands
from optsched.traces.rackham import MB_PER_GB
from optsched.traces.trace import Trace

CATEGORIES = {
    -2: "running at the start",
    -1: "waiting at the start",
    0: "before",
    1: "evaluated",
    2: "after",
}
"""Meaning of the values of the annotation ``category``."""

MOST_LEVELS = 8
"""Largest number of different demands that are listed one by one; more are shown as quantiles."""


def file_facts(trace: Trace) -> dict[str, Any] | None:
    """Return the number, sizes and reuse of input files; None without any.

    Sizes are in MB, each file counted once. ``reuse_share`` is the share of the jobs with a file
    that are not the first to use that file.
    """
    if not {"file", "file_size"} <= trace.annotations.keys():
        return None
    with_file = trace.annotations["file"] > 0
    _, first, jobs = np.unique(
        trace.annotations["file"][with_file], return_index=True, return_counts=True
    )
    if not len(jobs):
        return None
    size = trace.annotations["file_size"][with_file][first]
    return {
        "files": len(jobs),
        "jobs": int(with_file.sum()),
        "without_file": int((~with_file).sum()),
        "size": {
            "min": int(size.min()),
            "median": float(np.median(size)),
            "max": int(size.max()),
            "sum": int(size.sum()),
        },
        "shared_files": int((jobs > 1).sum()),
        "jobs_per_file": {
            "mean": float(jobs.mean()),
            "median": float(np.median(jobs)),
            "max": int(jobs.max()),
        },
        "reuse_share": float(1 - len(jobs) / with_file.sum()),
    }


def category_facts(trace: Trace) -> dict[str, int] | None:
    """Return the number of jobs by category number; None without categories."""
    if "category" not in trace.annotations:
        return None
    values, counts = np.unique(trace.annotations["category"], return_counts=True)
    return {str(value): int(count) for value, count in zip(values, counts)}


def demand_facts(trace: Trace) -> dict[str, Any]:
    """Return the statistics of the demand of a process, by the name of the resource.

    ``mean`` is over all processes. ``levels`` has the share of the jobs and the share of the
    processor-seconds at each demand, the highest first; None if there are more than `MOST_LEVELS`
    demands.
    """
    work = trace.runtime.astype(np.float64) * trace.processors
    facts = {}
    for name, column in split_demands(trace)[0].items():
        amounts, level = np.unique(column, return_inverse=True)
        levels = None
        if len(amounts) <= MOST_LEVELS:
            jobs = np.bincount(level) / len(trace)
            work_share = np.bincount(level, weights=work) / work.sum()
            levels = [
                {"demand": int(amount), "share": float(share), "work_share": float(of_work)}
                for amount, share, of_work in zip(amounts[::-1], jobs[::-1], work_share[::-1])
            ]
        facts[name] = {
            "min": int(column.min()),
            "median": float(np.median(column)),
            "max": int(column.max()),
            "mean": float(np.average(column, weights=trace.processors)),
            "levels": levels,
        }
    return facts


def annotation_lines(facts: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Return label and text of each row of a page, from what `optsched.traces.facts` returned."""
    files, categories = facts["files"], facts["categories"]
    rows: list[tuple[str, str | None]] = []
    if files is not None:
        size, jobs = files["size"], files["jobs_per_file"]
        gigabytes = [f"{size[name] / MB_PER_GB:,.4g}" for name in ("min", "median", "max")]
        rows.append(
            ("input files", f"{files['files']:,}, {' / '.join(gigabytes)} GB (min/median/max)")
        )
        rows.append(
            (
                "file groups",
                f"{files['shared_files']:,} files of several jobs, {jobs['mean']:.1f} jobs a file, "
                f"{jobs['max']:,} at most; {files['reuse_share']:.1%} of the jobs reuse one",
            )
        )
    if categories is not None:
        texts = [
            f"{categories[str(number)]:,} {name}"
            for number, name in CATEGORIES.items()
            if str(number) in categories
        ]
        rows.append(("categories", ", ".join(texts)))
    for name, demand in facts["demands"].items():
        rows.append(("demand", f"{name}, {demand['mean']:,.4g} a process on average"))
        rows.append(("", _spread(demand)))
    return rows


def _spread(demand: Mapping[str, Any]) -> str:
    """Return the levels of a demand, or its quantiles."""
    if demand["levels"] is None:
        amounts = " / ".join(f"{demand[name]:,.6g}" for name in ("min", "median", "max"))
        return f"{amounts} (min/median/max of the jobs)"
    amounts, jobs, work = (
        " / ".join(format(level[name], form) for level in demand["levels"])
        for name, form in (("demand", ","), ("share", ".1%"), ("work_share", ".1%"))
    )
    return f"{amounts} in {jobs} of the jobs, {work} of the processor-seconds"
