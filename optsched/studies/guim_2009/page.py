"""The page of the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from optsched.machines.smp import BANDWIDTH
from optsched.report.page import Figure, Page, Section
from optsched.studies.guim_2009.evaluation import METRICS, by_draw, centres, change, mean, mixes
from optsched.studies.guim_2009.figures import AGAINST, SHOWN, SLOWDOWN, rua_name, trade_off_name
from optsched.studies.guim_2009.plan import (
    CENTRES,
    FOR_ALL,
    INSTEAD_OF,
    REQUESTED_OF,
    SAME_OBJECTIVE,
    SEEDS,
)
from optsched.studies.guim_2009.published import FF, HIGH, KILLED, LC, LCT, MED, RUA, TABULATED
from optsched.studies.guim_2009.tables import (
    claims_table,
    exact_table,
    limits_table,
    percentiles_table,
    problems_table,
    published_tables,
    rua_table,
    schedulers_table,
    workload_table,
)
from optsched.traces.bandwidth import LEVELS

if TYPE_CHECKING:
    import pandas as pd

PROCESSORS = 4
"""Of a node."""

WORST = max(1.0, PROCESSORS * LEVELS["high"] / BANDWIDTH)
"""The penalty factor of a node on which all processes demand much."""

OPEN_ENDS = (
    "The paper does not say which jobs it runs: here they are the first "
    f"{CENTRES[0].jobs:,} of each cleaned log. The first half fills the machine, the second is "
    "evaluated, and the machine runs on until the last of them has ended.",
    f"Processors of CTC are not given. {CENTRES[0].machine} has about as many as the whole batch "
    "partition of that machine once had, 430; the log's own header says 338. With 338, EASY with "
    "shortest-job backfilling has a 95th percentile of the bounded slowdown of 115 on the same "
    "jobs even without any penalty, with 430 one of 27; the paper has 2.2 to 4.2 with First Fit.",
    f"What a high demand is has been lost from the paper's text: {LEVELS['high']:,} MB/s for each "
    f"process is a choice. {PROCESSORS} such processes on a node have a penalty factor of "
    f"{WORST:.3g}, the highest that there is, so larger thresholds allow everything: with 1.5, "
    "jobs go where First Fit puts them.",
    "All jobs of SDSC that are run have a multiple of four processors. So with First Fit each has "
    "its nodes to itself: its penalty is its own, known at the start, and a raised limit is never "
    "reached. If it was so in the paper, its mean penalties with First Fit, 15.1 % where 80 % of "
    "the jobs demand much and 10.2 % where half of them do, speak of a demand of about 1,800 MB/s; "
    "5.2 % where a tenth does speaks against it.",
    "With one seed, the jobs that demand much in LOW are among those of MED, and these among those "
    f"of HIGH. There are {len(SEEDS)} draws. Intervals are those of Student's t distribution over "
    "the draws, so they tell what the draw does, and nothing of other jobs.",
    "Bounded slowdown is waiting time and the time that the job ran over the latter, penalties "
    "included, of which less than 10 s count as 10 s, and at least 1. It, the waiting time and the "
    "penalised runtime are of jobs that finished; so a policy that kills fewer jobs is judged by "
    "more of them. The percentage of penalised runtime is what sharing added to the run time of a "
    "job over its run time in the log.",
    "The paper's means are above its 95th percentiles in all of Tables 1 to 4 for CTC and in most "
    "of Tables 5 and 6 for SDSC, where four numbers of MED stand in both. Both kinds are judged "
    "where a claim names none.",
    "Limits: the paper raises a job's requested time by the penalty factor that RUA promises it at "
    "its start. Whether other policies do so is not said; First Fit knows nothing of penalties. So "
    "claims are judged three times: all limits raised, all but First Fit's, and none.",
    "LessConsume, with a threshold or without, and RUA are described in words; how they were read "
    "is said in the documentation of the policies and of the solvers. Two sentences do not go with "
    'that reading: LessConsume may start "substantially later" than First Fit, and a threshold may '
    'bring an "earlier start". As read here, in the same state of the machine LessConsume never '
    "starts later than First Fit, nor earlier with a threshold than without. So the paper's own "
    "section 8.1 has it: the threshold looks further ahead, and waits grow as it falls.",
    "What is promised and what comes differ even if nobody comes later. A promise, and with it the "
    "limit, is by the paper's section 3.3 the penalty of the node that loses most in all; a job "
    "runs as slowly as the worst of its nodes at each instant. Where that is one node now and "
    "another later it loses more, and may be killed at its raised limit.",
)


def page(
    frame: pd.DataFrame, pictures: Mapping[str, str], versions: Mapping[str, str], *, quick: bool
) -> Page:
    """Return the page; its first paragraph says what is saved, and what exact selection adds.

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
    found = _lead(frame)
    if quick:
        found = (
            "A quick look at a generated workload: nothing can be concluded from it, so no claim "
            "is judged here."
        )
    lead = f"{found} All from {len(frame):,} simulations of {frame['jobs'].sum():,} jobs."
    judged = [] if quick else [Section("What becomes of the claims", [claims_table(frame)])]
    return Page(
        title="Guim, Rodero and Corbalan 2009: resource usage aware backfilling, run again",
        lead=lead,
        sections=[
            *judged,
            Section("Tables 1 to 7", [*published_tables(frame), *_like_first_fit(frame)]),
            Section("What a threshold costs and saves", _trade_offs(frame, pictures)),
            Section(
                "RUA beside shortest-job backfilling",
                [*_of_rua(frame, pictures), rua_table(frame)],
            ),
            Section(
                "Is exact selection worth it?",
                [exact_table(frame), *_like_less_consume(frame), problems_table(frame)],
            ),
            Section("Whose limits are raised", [limits_table(frame)]),
            Section("All policies", [schedulers_table(frame), percentiles_table(frame)]),
            Section("What was run", [workload_table(frame)]),
            Section("What the paper leaves open, and what was chosen", list(OPEN_ENDS)),
        ],
        repeat=f"optsched study guim-2009 {'--quick' if quick else '--traces TRACES'} -o DIR",
        versions=versions,
    )


def _lead(frame: pd.DataFrame) -> str:
    """Return what the policies do to killed jobs and slowdowns, and exact selection to both."""
    pressed = frame[frame["mix"].isin([HIGH, MED])]
    free = {name: _times(pressed, name, FF, KILLED) for name in (LC, RUA)}
    stated = {name: _times(pressed, name, REQUESTED_OF[FF], KILLED) for name in (LC, RUA)}
    slower = {name: _times(frame, name, FF, SLOWDOWN) for name in (LC, RUA)}
    exact = {
        one: f"{one}, has {_times(frame, one, name, KILLED)} times the killed jobs and "
        f"{_times(frame, one, name, SLOWDOWN)} times the slowdown of {name}"
        for one, name in INSTEAD_OF.items()
        if name not in LCT
    }
    ties = [told for one, told in exact.items() if one in SAME_OBJECTIVE]
    others = [told for one, told in exact.items() if one not in SAME_OBJECTIVE]
    return (
        "Does it pay to look where jobs share memory bandwidth? The paper has a quarter of the "
        "killed jobs with LessConsume, and a third to a fifth with RUA at a slowdown within 5 % of "
        f"First Fit's. Here, where demands are high or medium, LessConsume has {free[LC]} times, "
        f"RUA {free[RUA]} times the killed jobs of First Fit if its limits are raised like theirs, "
        f"{stated[LC]} and {stated[RUA]} times if they are not; the 95th percentile of the bounded "
        f"slowdown is {slower[LC]} times that of First Fit with LessConsume, {slower[RUA]} times "
        "with RUA. LessConsume already finds the least penalty at its time, so exact selection can "
        f"differ in ties alone: {'; '.join(ties)}. With another objective, {'; '.join(others)}."
    )


def _like_first_fit(frame: pd.DataFrame) -> list[str]:
    """Say why the largest threshold has the results of First Fit, where it has."""
    name = LCT[-1]
    if not _same(frame, name, FF):
        return []
    return [
        f"{name} is First Fit by construction here: no penalty factor is above {WORST:.3g}, so no "
        "process is moved, and no job waits for less penalty."
    ]


def _like_less_consume(frame: pd.DataFrame) -> list[str]:
    """Say why what is best for all jobs has the results of LessConsume, where it has."""
    if not _same(frame, FOR_ALL, LC):
        return []
    others = PROCESSORS - 1
    return [
        f"{FOR_ALL}, is {LC} by construction here: {others} processes ask {others} x "
        f"{LEVELS['high']:,} of {BANDWIDTH:,} MB/s at most, so only a node all of whose processors "
        f"are in use loses something, and all jobs there {PROCESSORS} times what one of its "
        "processes does. LessConsume ends with as few such nodes as possible, and those that lose "
        "least. Were demands higher, the two could differ."
    ]


def _same(frame: pd.DataFrame, one: str, other: str) -> bool:
    """Return whether two schedulers have the same results in all runs."""
    return all(by_draw(frame, one, what).equals(by_draw(frame, other, what)) for what in METRICS)


def _times(frame: pd.DataFrame, one: str, other: str, metric: str) -> str:
    return f"{change(frame, one, other, metric).mean:.2f}"


def _trade_offs(frame: pd.DataFrame, pictures: Mapping[str, str]) -> list[Figure]:
    shown = []
    for of, label in AGAINST.items():
        for centre in centres(frame):
            told = []
            for mix in mixes(frame):
                points = (
                    f"{name} {mean(frame, centre, mix, name, of).mean:.3g} and "
                    f"{mean(frame, centre, mix, name, SLOWDOWN).mean:.3g}"
                    for name in TABULATED
                )
                told.append(f"{mix}: {', '.join(points)}")
            shown += _picture(
                pictures,
                trade_off_name(centre, of),
                f"{label} and bounded slowdown, {centre}. {'; '.join(told)}.",
                f"{centre}: bounded slowdown, 95th percentile, against {label}, a curve through "
                "the thresholds, First Fit and LessConsume apart. Above what was measured, means "
                "over the draws; below what was published.",
            )
    return shown


def _of_rua(frame: pd.DataFrame, pictures: Mapping[str, str]) -> list[Figure]:
    shown = []
    for centre in centres(frame):
        told = []
        for metric, label in SHOWN.items():
            for name in (FF, LC, RUA):
                found = (f"{mean(frame, centre, m, name, metric).mean:.3g}" for m in mixes(frame))
                told.append(f"{label}, {name}: {', '.join(found)}")
        shown += _picture(
            pictures,
            rua_name(centre),
            f"{centre}, by mix ({', '.join(mixes(frame))}). {'; '.join(told)}.",
            f"{centre}: shortest-job backfilling with First Fit and with LessConsume, and RUA; "
            "means over the draws, and their 95% intervals.",
        )
    return shown


def _picture(pictures: Mapping[str, str], name: str, alt: str, caption: str) -> list[Figure]:
    return [Figure(pictures[name], alt, caption)] if name in pictures else []
