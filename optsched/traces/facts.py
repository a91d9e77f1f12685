"""Statistics of a trace: load, sizes, times, input files, categories, demands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Floats, Ints
from optsched.errors import InputError
from optsched.numbers import spoken
from optsched.traces.cleaning import clean
from optsched.traces.rackham import MB_PER_GB
from optsched.traces.requests import split_demands
from optsched.traces.trace import SECONDS_PER_DAY, UNKNOWN, CleaningReport, Trace

QUANTILES = {"min": 0.0, "p10": 0.1, "p25": 0.25, "median": 0.5}
QUANTILES |= {"p75": 0.75, "p90": 0.9, "p99": 0.99, "max": 1.0}
SHOWN = ("min", "p10", "median", "p90", "p99", "max")  # quantiles shown on the page for a terminal

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


def facts(trace: Trace, machine_size: int | None = None) -> dict[str, Any]:
    """Return the statistics of a trace, as values that JSON can hold.

    The offered load is the sum over jobs of run time times processors, divided by the machine's
    processors times the span of the submit times. The accuracy of a request is the run time over
    the requested time that the file states; jobs without a stated time do not count. Logged waits
    are those that the file states. The coefficient of variation is that of the whole sample
    (standard deviation over mean, divisor n).

    `trace`: the trace; a raw one is cleaned first. `machine_size`: processors of the machine; those
    of the header if left out. Times are in seconds, shares between 0
    and 1; unknown values are None.
    """
    trace = clean(trace)
    assert trace.cleaning is not None
    if machine_size is None:
        machine_size = trace.header.max_procs
    elif machine_size < 1:
        raise InputError(f"{machine_size}; expected a whole number from 1", field="processors")
    work = trace.runtime.astype(np.float64) * trace.processors
    span = float(trace.submit.max() - trace.submit.min())
    capacity = machine_size * span if machine_size else 0.0
    category, waited = trace.annotations.get("category"), trace.wait != UNKNOWN
    return {
        "name": trace.name,
        "path": None if trace.path is None else str(trace.path),
        "sha256": trace.sha256,
        "demands_sha256": trace.demands_sha256,
        "jobs": len(trace),
        "span_days": span / SECONDS_PER_DAY,
        "unix_start_time": trace.header.unix_start_time,
        "machine_size": machine_size,
        "machine_nodes": trace.header.max_nodes,
        "work": float(work.sum()),
        "offered_load": float(work.sum()) / capacity if capacity else None,
        "sizes": _sizes(trace.processors, work, machine_size),
        "run_time": _distribution(trace.runtime),
        "requested_time": _requests(trace),
        "logged_wait": {
            "known_share": float(waited.mean()),
            "known": _distribution(trace.wait[waited]),
        },
        "interarrival": _distribution(np.diff(trace.submit)),
        "users": _distinct(trace.user),
        "groups": _distinct(trace.group),
        "status": _counts(trace.status),
        "files": file_facts(trace),
        "categories": None if category is None else _counts(category),
        "demands": demand_facts(trace),
        "cleaning": trace.cleaning.to_json(),
        "oddities": dict(trace.oddities),
        "header": [list(fact) for fact in trace.header.facts],
    }


def _distribution(sample: NDArray[Any]) -> dict[str, float] | None:
    if not len(sample):
        return None
    mean = float(sample.mean())
    quantiles = np.quantile(sample, list(QUANTILES.values()))
    return {
        "mean": mean,
        "cv": float(sample.std()) / mean if mean else 0.0,
        **dict(zip(QUANTILES, quantiles.tolist())),
    }


def _sizes(processors: Ints, work: Floats, machine_size: int | None) -> dict[str, Any]:
    """Return the distribution of job sizes, in classes of sizes above 2^(k-1), up to 2^k."""
    exponent = np.frexp(processors - 0.5)[1].clip(min=0)
    jobs = np.bincount(exponent)
    work_per_class = np.bincount(exponent, weights=work)
    classes = [
        {
            "from": 2 ** (k - 1) + 1 if k else 1,
            "to": 2**k,
            "jobs": int(jobs[k]),
            "share": float(jobs[k] / len(processors)),
            "work_share": float(work_per_class[k] / work.sum()),
        }
        for k in range(len(jobs))
    ]
    return {
        **(_distribution(processors) or {}),
        "serial_share": float((processors == 1).mean()),
        "power_of_two_share": float(((processors & (processors - 1)) == 0).mean()),
        "larger_than_machine": int((processors > machine_size).sum()) if machine_size else None,
        "classes": classes,
    }


def _requests(trace: Trace) -> dict[str, Any]:
    """Return a comparison of the requested times that the file states with the run times."""
    stated = trace.stated_time > 0
    accuracy = trace.runtime[stated] / trace.stated_time[stated]
    return {
        "stated_share": float(stated.mean()),
        "stated": _distribution(trace.stated_time[stated]),
        "accuracy": _distribution(accuracy),
        "overrun_share": float((accuracy > 1).mean()) if len(accuracy) else None,
        "exact_share": float((accuracy == 1).mean()) if len(accuracy) else None,
    }


def _distinct(column: Ints) -> int | None:
    known = column[column != UNKNOWN]
    return len(np.unique(known)) if len(known) else None


def _counts(column: Ints) -> dict[str, int]:
    values, counts = np.unique(column, return_counts=True)
    return dict(zip(map(str, values.tolist()), counts.tolist()))


def lines(facts: Mapping[str, Any]) -> list[str]:
    """Return the lines of a page for a terminal, from the result of `facts`."""
    page = [facts["name"], *_overview(facts)]
    page += ["", f"{'processors':<16}{'jobs':>10}{'share':>9}{'of work':>9}"]
    for row in facts["sizes"]["classes"]:
        if row["jobs"]:
            sizes = " to ".join(f"{size:,}" for size in sorted({row["from"], row["to"]}))
            page.append(
                f"{sizes:<16}{row['jobs']:>10,}{row['share']:>9.1%}{row['work_share']:>9.1%}"
            )
    page += ["", f"{'':<16}" + "".join(f"{name:>10}" for name in SHOWN)]
    requests = facts["requested_time"]
    for label, distribution, form in (
        ("run time, s", facts["run_time"], ",.0f"),
        ("requested, s", requests["stated"], ",.0f"),
        ("run / requested", requests["accuracy"], ".3f"),
        ("interarrival, s", facts["interarrival"], ",.0f"),
        ("logged wait, s", facts["logged_wait"]["known"], ",.0f"),
    ):
        if distribution is not None:
            page.append(
                f"{label:<16}" + "".join(f"{distribution[name]:>10{form}}" for name in SHOWN)
            )
    page += ["", "cleaning", *CleaningReport.from_json(facts["cleaning"]).lines()]
    if facts["oddities"]:
        page += ["", "read, with oddities"]
        page += [f"{what}: {count:,}" for what, count in facts["oddities"].items()]
    return page


def _overview(facts: Mapping[str, Any]) -> list[str]:
    sizes, requests, header = facts["sizes"], facts["requested_time"], dict(facts["header"])
    machine = [
        f"{facts[key]:,} {unit}"
        for key, unit in (("machine_size", "processors"), ("machine_nodes", "nodes"))
        if facts[key] is not None
    ]
    load, gaps = facts["offered_load"], facts["interarrival"]
    powers = f"{sizes['power_of_two_share']:.1%}"
    stated = f"stated by {requests['stated_share']:.1%} of the jobs"
    if requests["stated"] is not None:
        stated += f"; {requests['overrun_share']:.1%} of them ran longer, "
        stated += f"{requests['exact_share']:.1%} exactly as long"
    waits, logged = facts["logged_wait"], None
    if waits["known"] is not None:
        mean = f"{waits['known']['mean']:,.0f} s on average"
        logged = f"of {waits['known_share']:.1%} of the jobs, {mean}"
    known = ("Computer", "Installation", "Acknowledge")
    rows = (
        *((key.lower(), header.get(key, "").replace("\t", " ")) for key in known),
        ("machine", " in ".join(machine)),
        ("jobs", f"{facts['jobs']:,} in {spoken(facts['span_days'] * SECONDS_PER_DAY)}"),
        ("users", None if facts["users"] is None else f"{facts['users']:,}"),
        ("offered load", None if load is None else f"{load:.3f}"),
        ("sizes", f"{sizes['serial_share']:.1%} serial, {powers} powers of two"),
        ("larger jobs", sizes["larger_than_machine"] and f"{sizes['larger_than_machine']:,}"),
        ("requested time", stated),
        ("logged waits", logged),
        ("arrivals", gaps and f"coefficient of variation {gaps['cv']:.2f}"),
        *annotation_lines(facts),
    )
    return [f"{label:<16}{text}" for label, text in rows if text]


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
        "size": _range(size) | {"sum": int(size.sum())},
        "shared_files": int((jobs > 1).sum()),
        "jobs_per_file": {
            "mean": float(jobs.mean()),
            "median": float(np.median(jobs)),
            "max": int(jobs.max()),
        },
        "reuse_share": float(1 - len(jobs) / with_file.sum()),
    }


def _range(column: Ints) -> dict[str, Any]:
    return {
        "min": int(column.min()),
        "median": float(np.median(column)),
        "max": int(column.max()),
    }


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
        mean = float(np.average(column, weights=trace.processors))
        facts[name] = _range(column) | {"mean": mean, "levels": levels}
    return facts


def annotation_lines(facts: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Return label and text of each row of a page, from the result of `facts`."""
    files, categories = facts["files"], facts["categories"]
    rows: list[tuple[str, str | None]] = []
    if files is not None:
        size, jobs = files["size"], files["jobs_per_file"]
        gigabytes = [f"{size[name] / MB_PER_GB:,.4g}" for name in ("min", "median", "max")]
        groups = (
            f"{files['shared_files']:,} files of several jobs, {jobs['mean']:.1f} jobs a file, "
            f"{jobs['max']:,} at most; {files['reuse_share']:.1%} of the jobs reuse one"
        )
        rows += [
            ("input files", f"{files['files']:,}, {' / '.join(gigabytes)} GB (min/median/max)"),
            ("file groups", groups),
        ]
    if categories is not None:
        names = {str(number): name for number, name in CATEGORIES.items()}
        texts = [f"{categories[key]:,} {name}" for key, name in names.items() if key in categories]
        rows.append(("categories", ", ".join(texts)))
    for name, demand in facts["demands"].items():
        mean = f"{name}, {demand['mean']:,.4g} a process on average"
        rows += [("demand", mean), ("", _spread(demand))]
    return rows


def _spread(demand: Mapping[str, Any]) -> str:
    if demand["levels"] is None:
        amounts = " / ".join(f"{demand[name]:,.6g}" for name in ("min", "median", "max"))
        return f"{amounts} (min/median/max of the jobs)"
    amounts, jobs, work = (
        " / ".join(format(level[name], form) for level in demand["levels"])
        for name, form in (("demand", ","), ("share", ".1%"), ("work_share", ".1%"))
    )
    return f"{amounts} in {jobs} of the jobs, {work} of the processor-seconds"
