"""The page of the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from optsched.report.page import Figure, Page, Section, Table
from optsched.studies.gonthier_2024.evaluation import (
    ALL,
    FILE_TIME,
    improvement,
    of,
    reduction,
    run_of,
    workloads,
)
from optsched.studies.gonthier_2024.plan import (
    DAY,
    DAYS_AFTER,
    DAYS_BEFORE,
    EFT,
    FCFS,
    HIGH,
    HOLES,
    LEA,
    LEM,
    LEO,
    LOW,
    SAMPLE,
    THROTTLED,
)
from optsched.studies.gonthier_2024.published import DAY_RESULTS, THROTTLE, WEEKS
from optsched.studies.gonthier_2024.tables import (
    absent_logs,
    claims_table,
    compare_with_authors,
    day_table,
    reduction_tables,
    session_table,
    variants_table,
    workload_table,
)

if TYPE_CHECKING:
    import pandas as pd

OPEN_ENDS = (
    f"The logs of the paper's {WEEKS} weeks cannot be had: one day of Rackham is public, with the "
    "authors' results of four schedulers, weekly sums, and their results of single jobs for three "
    "weeks. So weeks of other logs stand in: RICC, Gaia, SDSC-BLUE and CTC, chosen for many small "
    "jobs, known users and requested times that are not just the run times (a job whose request is "
    "its run time would be cut by the loading of its file). One week of each, from three "
    "or four that were looked at before anything was run: the one with most input files of RICC, "
    "with the highest demand of Gaia, and of SDSC-BLUE and CTC the one in which loading takes the "
    "fewest jobs to their requested time, still every fifth and seventh.",
    "Times are those of the logs, so that sessions and shared files are: the load is set by the "
    f"number of nodes. It is {LOW:g} or {HIGH:g} in the evaluated week if every job loads its "
    "file; jobs that find theirs lower it. Jobs come in bursts, so there are queues at the lower "
    "load too, as the mean stretch with FCFS shows. A processor of a log counts as a core, though "
    "it is a node in CTC. Jobs of more than 20 cores are cut into jobs of 20 and a rest, as in the "
    "paper. In RICC and SDSC-BLUE more than half of what is run then takes a whole node; in the "
    "paper 0.3 % of the jobs were of several nodes.",
    f"As in Figure 1: the cluster is empty {DAYS_BEFORE} days before the evaluated week, and jobs "
    f"come for {DAYS_AFTER} day after it. On the authors' day it starts with what ran and waited.",
    "Input files are inferred as in section V.B: jobs that follow each other, of the same user and "
    "size, at most 800 s apart, 6.4 GB for each core.",
    "A session is what a user submits within five minutes of its first job, as the paper says, in "
    "the logs; on the authors' day it is what a user submits one after the other, as in their "
    "plots, since users have new names there after each job of another. Its stretch is the sum of "
    "those of its jobs.",
    "The paper says that everything is planned anew at every submission and end. In the authors' "
    "program of November 2022 an end makes a new plan if jobs wait, and submissions are added to "
    "it: so in all runs, beside their results of that form; the day is run as the paper says too "
    "(all anew). A file is in a node's memory while jobs use it, as in their program; in the text "
    "(section III, case 2) it stays until another job starts there: so on the day, planned anew at "
    "every event, in the rows 'as written'. Their published weeks were made with a later program "
    f"that plans only at ticks of {THROTTLE} s, for what happens in that very second, and else "
    "waits for the next event at a tick. The day is run in that form too, and judged beside the "
    "others.",
    "LEM saves loads once every node runs a job, as the paper has it; the authors' results of the "
    "day have 80 % of the nodes.",
    "Two claims name no measure: that saturated clusters benefit more, and that backfilling leaves "
    "smaller improvements. Each is judged by two, since means hang on a few sessions.",
)


def page(
    frame: pd.DataFrame, pictures: Mapping[str, str], versions: Mapping[str, str], *, quick: bool
) -> Page:
    """Return the page; its first paragraph says whether the authors' numbers are found again.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `evaluation.prepare` returns.
    pictures : mapping of str to str
        The SVG of each picture.
    versions : mapping of str to str
        What the runs were made with.
    quick : bool
        Whether it is the small part, of which nothing can be concluded.
    """
    there = workloads(frame)
    runs, jobs = len(frame), int(frame["jobs"].sum())
    lead = f"{_lead(frame)} All from {runs:,} simulations of {jobs:,} jobs."
    if quick:
        lead = (
            "A quick look at a generated workload: nothing can be concluded from it, so no claim "
            f"is judged here. {lead}"
        )
    varied = next((name for name in (DAY.name, SAMPLE.name) if name in there), None)
    day = [day_table(frame)] if DAY.name in there else []
    if varied is not None:
        day.append(variants_table(frame, varied))
    judged = [] if quick else [Section("What becomes of the claims", [claims_table(frame)])]
    return Page(
        title="Gonthier et al. 2024: data-driven locality-aware batch scheduling, run again",
        lead=lead,
        sections=[
            *judged,
            *([Section("The authors' day" if DAY.name in there else "Variants", day)] * bool(day)),
            Section("Tables I to III", reduction_tables(frame)),
            Section("Sessions without backfilling", _without(frame, pictures)),
            Section("Sessions with backfilling", _with(frame, pictures)),
            Section("What was run", [workload_table(frame, [] if quick else absent_logs(frame))]),
            Section("What the paper leaves open, and what was chosen", list(OPEN_ENDS)),
        ],
        repeat=f"optsched study gonthier-2024 {'--quick' if quick else '--traces TRACES'} -o DIR",
        versions=versions,
    )


def _lead(frame: pd.DataFrame) -> str:
    """Return whether the authors' numbers are found again, and what the schedulers gain."""
    lem, lea = improvement(frame, LEM), improvement(frame, LEA)
    backfilled = improvement(frame, LEM + HOLES)
    told = (
        "Does placing jobs where their files are pay? The paper has a median session 7.5 % better "
        "with LEM than with FCFS, and 7.1 % less transfer time. Here, over all sessions of "
        f"{len(workloads(frame))} workloads, the median improves by {_plus(lem.median)} and the "
        f"mean by {_plus(lem.mean)}, {lem.faster:.0%} are faster and {lem.slower:.0%} slower (LEA: "
        f"{_plus(lea.median)}, {_plus(lea.mean)}, {lea.faster:.0%} and {lea.slower:.0%}); transfer "
        f"time falls by {reduction(frame, LEM, FILE_TIME):.1%} with LEM, "
        f"{reduction(frame, LEA, FILE_TIME):.1%} with LEA. With backfilling LEM makes "
        f"{backfilled.faster:.0%} faster and {backfilled.slower:.0%} slower than FCFS does."
    )
    if DAY.name not in workloads(frame):
        return told
    own = {name: run_of(frame, DAY.name, name) for name in (*DAY_RESULTS, next(iter(THROTTLED)))}
    same = sum(compare_with_authors(own[n], p)[1] == "" for n, p in DAY_RESULTS.items())
    throttled = own[next(iter(THROTTLED))]["mean_stretch"]
    return (
        f"On the authors' published day {same} of their {len(DAY_RESULTS)} results are found "
        f"again; FCFS has a mean stretch of {own[FCFS]['mean_stretch']:.6f} there, and "
        f"{throttled:.2f} with plans at ticks of {THROTTLE} s only, as in the program of the "
        f"published weeks. {told}"
    )


def _plus(ratio: float) -> str:
    return f"{ratio - 1:+.1%}"


def _without(frame: pd.DataFrame, pictures: Mapping[str, str]) -> list[Figure | Table]:
    shown = (EFT, LEA, LEO, LEM)
    shares = [
        f"{name} {one.slower:.0%} slower, {one.faster:.0%} faster"
        for name in shown
        for one in [improvement(frame, name)]
    ]
    medians = [f"{name} {improvement(frame, name).median:.3g}" for name in shown]
    eighths = [
        f"{name} {one.whisker_low:.3g} and {one.whisker_high:.3g}"
        for name in shown
        for one in [improvement(frame, name)]
    ]
    return [
        *_picture(
            pictures,
            "figure-2-7",
            f"Sessions of all workloads: {'; '.join(shares)}.",
            "Figures 2 and 7: sessions slower, equal (within 1 %) and faster than with FCFS; in "
            "the bars the mean improvement of the slower and of the faster ones.",
        ),
        *_picture(
            pictures,
            "figure-8",
            f"Median improvements over all workloads: {'; '.join(medians)}.",
            "Figure 8: improvement of sessions over FCFS. Boxes from 25 to 75 %, whiskers at 12.5 "
            "and 87.5 %, the median, and the mean as a triangle; logarithmic. Below, what the "
            "authors' results of single jobs give.",
        ),
        *_picture(
            pictures,
            "figure-9",
            f"Improvements at 12.5 and 87.5 % of all sessions: {'; '.join(eighths)}.",
            "Figure 9: share of the sessions up to each improvement over FCFS.",
        ),
        session_table(
            frame,
            "",
            "Improvement of sessions, the stretch with FCFS over that with the scheduler. "
            "Published weeks: from the authors' results of single jobs, made at ticks of "
            f"{THROTTLE} s.",
        ),
    ]


def _with(frame: pd.DataFrame, pictures: Mapping[str, str]) -> list[Figure | Table]:
    shown = (EFT, LEA, LEO, LEM)
    medians = [f"{n} {improvement(frame, n + HOLES).median:.3g}" for n in shown]
    means = [
        f"{name} {of(frame, name, 'mean_stretch').mean():.3g} and "
        f"{of(frame, name + HOLES, 'mean_stretch').mean():.3g}"
        for name in (FCFS, *shown)
    ]
    return [
        *_picture(
            pictures,
            "figure-10",
            f"Median improvements over all workloads: {'; '.join(medians)}.",
            "Figure 10: improvement of sessions over FCFS-BF, all with the authors' backfilling; "
            "drawn as Figure 8.",
        ),
        *_picture(
            pictures,
            "figure-11",
            f"Mean stretch of a job, without and with backfilling, mean of {ALL} workloads: "
            f"{'; '.join(means)}.",
            "Figure 11: mean stretch of the jobs of a session without (crosses) and with "
            "backfilling (circles): that of the median session, and the mean over sessions.",
        ),
        session_table(
            frame,
            HOLES,
            "Improvement of sessions with backfilling, the stretch with FCFS-BF over that with the "
            "scheduler.",
        ),
    ]


def _picture(pictures: Mapping[str, str], name: str, alt: str, caption: str) -> list[Figure]:
    return [Figure(pictures[name], alt, caption)] if name in pictures else []
