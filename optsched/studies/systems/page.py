"""The page of the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from optsched.report.page import Figure, Page, Section
from optsched.studies.systems.evaluation import GAIN, is_baseline, site_run
from optsched.studies.systems.figures import FARTHEST, PICTURE, SHOWN
from optsched.studies.systems.remarks import remarks, shortest, signed
from optsched.studies.systems.tables import overall_table, traces_table, world_table
from optsched.studies.systems.worlds import unplanned, worlds

if TYPE_CHECKING:
    import pandas as pd

CAUTIONS = (
    "Systems can be compared within a world: there the machine and what says how long jobs take "
    "are the same. Across worlds, seconds cannot be compared: run times differ (contiguous nodes, "
    "shared bandwidth, loading of files), the jobs themselves do where they are split, and so do "
    "the times at which a policy may decide. What can be read across is what a system gains over "
    "the baseline of its own world, and even there a baseline may be easier to beat than another.",
    "One part of one log, with one draw where something is drawn: a difference of some percent is "
    "no effect, as one other start changes all that follows. The studies of the papers repeat "
    "draws, logs and loads.",
    "Wait is from submission to start, response from submission to end. Bounded slowdown is the "
    "response over the time that the job ran, of which less than 10 s count as 10 s, and at least "
    "1: where a system slows jobs down, they ran longer, which makes slowdowns smaller. There, "
    "response is the figure to go by. All are of jobs that finished.",
    "Utilisation is of the whole makespan, in which the machine fills and drains; jobs that run "
    "longer because they share something count as longer use. The solver time is nominal, the same "
    "wherever the study is repeated: right within a factor of a few for small problems.",
)


def page(
    frame: pd.DataFrame, pictures: Mapping[str, str], versions: Mapping[str, str], *, quick: bool
) -> Page:
    """Return the page; its first paragraph names what is best in each world.

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
    site = site_run(frame)
    every = worlds(site)
    left_out = [
        f"{name} needs a machine of the kind {' or '.join(sorted(kinds))}, and is in no world here."
        for name, kinds in unplanned().items()
    ]
    return Page(
        title="All systems on the same jobs: what each gains and costs",
        lead=_lead(frame, quick=quick),
        sections=[
            Section("All systems", [*_picture(frame, pictures), overall_table(frame)]),
            *(
                Section(
                    f"{number}. {_capital(world.name)}",
                    [world.reading, *remarks(frame, world), world_table(frame, world)],
                )
                for number, world in enumerate(every, 1)
            ),
            Section("What can be compared, and what cannot", [*CAUTIONS, *left_out]),
            Section("What was run", [traces_table(frame)]),
        ],
        repeat=f"optsched study systems {'--quick' if quick else '--traces TRACES'} -o DIR",
        versions=versions,
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lead(frame: pd.DataFrame, *, quick: bool) -> str:
    site = site_run(frame)
    response, wait = (
        "; ".join(f"{one.name}: {shortest(frame, one, metric)}" for one in worlds(site))
        for metric in ("mean_response", "mean_wait")
    )
    found = (
        f"Every policy on the same {site.jobs:,} jobs of {site.name}, in {len(worlds(site))} "
        "worlds that differ in the machine and in how long jobs take. The shortest mean response "
        "of each, and by how much it is shorter than with a yardstick (with a minus: longer). "
        f"{_capital(response)}. The shortest mean wait, which says little where jobs start at once "
        f"and then share. {_capital(wait)}. All from {len(frame):,} simulations."
    )
    if quick:
        return f"A quick look at a generated workload: nothing can be concluded from it. {found}"
    return found


def _picture(frame: pd.DataFrame, pictures: Mapping[str, str]) -> list[Figure]:
    if PICTURE not in pictures:
        return []
    compared = frame[~is_baseline(frame)]
    told = (
        f"{run['system']} ({run['world']}): "
        + ", ".join(f"{signed(run[GAIN[metric]])}" for metric in SHOWN)
        for _, run in compared.iterrows()
    )
    return [
        Figure(
            pictures[PICTURE],
            "Gains in percent over the baseline, in mean wait, bounded slowdown and mean response. "
            f"{'; '.join(told)}.",
            "Mean wait, mean bounded slowdown and mean response of each system as multiples of "
            "those of its baseline, by world. Left of 1 is shorter. Arrows end beyond the edge, at "
            f"{FARTHEST:g} times or a {FARTHEST:g}th.",
        )
    ]
