"""Page of the state of Slurm: what is free where, what could start, who waits and why."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from optsched.numbers import counted, moment, short
from optsched.report import style
from optsched.report.page import (
    Cell,
    Figure,
    Page,
    Part,
    Section,
    Table,
    Value,
    cell,
    duration,
    share,
)
from optsched.simulator.scenario import versions
from optsched.sites.site import some
from optsched.sites.slurm_notation import host_list
from optsched.slurm.defragmentation import Defragmentation
from optsched.slurm.state import WEEK, Group, State, idle_while_waiting, largest_first, weekly_waits
from optsched.slurm.supply import MEMORY
from optsched.traces.trace import Trace

MOST_BARS = 40
"""Most groups of nodes in a picture."""

MOST_MOVES = 20
"""Most moves of running jobs that are listed one by one."""

WEEKS = 12
"""Most weeks of a table."""


def page(state: State, history: Trace | None) -> Page:
    """Return the page of a state, and with jobs that have ended also of the weeks before."""
    sections = [
        Section("What is free", list(_free(state))),
        Section("What could start now", list(_largest(state))),
        Section("What a defragmentation would win", list(_defragmentation(state))),
        Section("Reservations", list(_reservations(state))),
        Section("Who waits", list(_waits(state))),
    ]
    if history is not None and len(history):
        sections.append(Section("The weeks before", list(_weeks(state, history))))
    return Page(
        title=f"{state.supply.site.name} on {moment(state.supply.time, is_short=True)}",
        lead=_lead(state),
        sections=[section for section in sections if section.parts],
        repeat="optsched slurm report -o report.html",
        versions=versions(),
        summary=[*state.supply.notes, *state.queue.notes],
    )


def _lead(state: State) -> str:
    """Return the finding: idle nodes, waiting jobs, the largest job that could start."""
    site, waiting = state.everywhere, sum(state.reasons.values())
    words = [
        f"{site.idle:,} of {counted(site.in_service, 'node')} in service are idle, and "
        f"{counted(waiting, 'job')} {'waits' if waiting == 1 else 'wait'}."
    ]
    if state.largest:
        most = max(state.largest, key=lambda one: (one.whole_nodes, one.nodes))
        words.append(
            f"The largest job that could start now has {counted(most.whole_nodes, 'whole node')}, "
            f"in partition {most.partition}."
        )
    if state.stranded:
        total = sum(state.stranded.values())
        what = " and ".join(state.stranded)
        words.append(f"Of {counted(total, 'free GPU')}, nodes lack {what} for any job.")
    if state.defragmentation.won:
        words.append(_won(state.defragmentation))
    return " ".join(words)


def _free(state: State) -> Iterator[Part]:
    """Yield what is free, by leaf switch and by partition."""
    names = state.supply.site.resources
    leaves = largest_first(state.by_leaf)
    if leaves:
        yield _bars(
            "free-by-leaf",
            "Cores by leaf switch: in use, and free",
            leaves[:MOST_BARS],
            "leaf switches or blocks" if leaves[1:] else "the leaf switch or block",
        )
        yield _groups("Leaf switches, those with most idle nodes first.", "leaf", leaves, names)
    yield _groups("Partitions.", "partition", state.by_partition, names)


def _groups(caption: str, label: str, groups: Sequence[Group], names: Sequence[str]) -> Table:
    whole = [place for place, name in enumerate(names) if ":" not in name]
    columns: list[str | tuple[str, str]] = [label, "nodes", "in service", "idle"]
    columns += [("free", "memory, GB" if name == MEMORY else name) for name in names]
    columns += [("share that is free", names[place]) for place in whole]
    rows: list[list[Value]] = [
        [
            group.name,
            group.nodes,
            group.in_service,
            group.idle,
            *(
                free // 1024 if name == MEMORY else free
                for name, free in zip(names, group.free.tolist())
            ),
            *(
                share(int(group.free[place]) / int(group.total[place]))
                if group.total[place]
                else cell(None)
                for place in whole
            ),
        ]
        for group in groups
    ]
    return Table(caption, columns, rows)


def _largest(state: State) -> Iterator[Part]:
    rows: list[list[Value]] = [[*one] for one in state.largest]
    yield Table(
        "Largest job that could start now by partition: most whole nodes, most nodes with a free "
        "core, most cores and GPUs on one node.",
        ["partition", "whole nodes", "nodes", "cores on a node", "GPUs on a node"],
        rows,
    )
    if state.stranded:
        words = [f"{count:,} for want of {name}" for name, count in state.stranded.items()]
        yield (
            f"Stranded GPUs: {', '.join(words)}. Their nodes have less for each free GPU than the "
            "least that any job of the queue asks for one."
        )


def _won(found: Defragmentation) -> str:
    """Return how many nodes moves of running jobs would win."""
    more = f"{found.won:,} more whole {'node' if found.won == 1 else 'nodes'}"
    return f"{more} would be idle if {counted(found.jobs, 'running job')} could be moved."


def _defragmentation(state: State) -> Iterator[Part]:
    """Yield what moves of running jobs would win, what of that is proven, and the moves."""
    found = state.defragmentation
    yield " ".join(_proven(found))
    if found.moves:
        place = state.supply.site.index
        moves = sorted(found.moves, key=lambda move: place[move.source])
        left = len(moves) - MOST_MOVES
        rest = f" {counted(left, 'more move')} {'is' if left == 1 else 'are'} not listed."
        rows: list[list[Value]] = [
            [move.job.label, move.job.user, ",".join(move.job.partitions), move.source, move.target]
            for move in moves[:MOST_MOVES]
        ]
        yield Table(
            f"Moves of what a job has on a node, by the node that it leaves.{rest * (left > 0)}",
            ["job", "user", "partition", "from", "to"],
            rows,
        )
    if found.stay:
        yield Table(
            "Running jobs that are taken to stay where they are, by the reason.",
            ["reason", "jobs"],
            [[reason, count] for reason, count in found.stay.items()],
        )
    if found.unclear:
        yield (
            f"On {counted(found.unclear, 'node')} more or less is in use than the jobs there hold "
            "that are shown: nothing is moved from there or to there."
        )


def _proven(found: Defragmentation) -> Iterator[str]:
    """Yield what moves would win, in sentences, each of them with what is proven."""
    if found.too_large:
        yield (
            f"This is not computed: {counted(found.movable, 'running job')} of too many different "
            "sizes could be moved."
        )
    elif not found.movable:
        yield "No running job could be moved."
    elif not found.most:
        yield "Moving running jobs would not win a whole node: that is proven."
    elif not found.won:
        yield (
            "No moves of running jobs were found that win a whole node; it is proven that no more "
            f"than {counted(found.most, 'node')} could be won."
        )
    else:
        more = len(found.emptied) - found.won
        then = f", and takes {counted(more, 'node')} that {'is' if more == 1 else 'are'} idle now"
        yield f"{_won(found)} That empties {some(found.emptied)}{then * (more > 0)}."
        if found.won < found.most:
            yield f"It is proven that no more than {counted(found.most, 'node')} could be won."
        elif found.jobs > found.fewest:
            yield (
                "It is proven that no moves win more, and that as much takes moves of at least "
                f"{counted(found.fewest, 'job')}."
            )
        else:
            yield "It is proven that no moves win more, and that no fewer jobs win as much."
        yield (
            "This is advice: nothing is done, and Slurm itself moves no running job. All moves "
            "together fit; jobs keep their amounts on each node, and go where partition, features "
            "and the states of nodes allow it."
        )


def _reservations(state: State) -> Iterator[Part]:
    """Yield the reservations: when, of what, and for whom."""
    rows: list[list[Value]] = []
    for each in sorted(state.supply.reservations, key=lambda one: (one.start, one.name)):
        whom = (f"{kind.replace('_', ' ')} {', '.join(them)}" for kind, them in each.admits.items())
        kept = (f"{count:,} {name}" for name, count in each.licences.items())
        first = f"always in {short(each.ahead)}" if each.ahead is not None else _known(each.start)
        rows.append(
            [
                each.name,
                first,
                _known(each.end),
                len(each.nodes),
                host_list(each.nodes),
                ", ".join(kept),
                "; ".join(whom),
                ", ".join(each.flags),
            ]
        )
    if rows:
        yield Table(
            "Reservations, the first ones first; a dash for a time that is not known.",
            ["reservation", "from", "to", "nodes", "which", "licences", "for", "flags"],
            rows,
        )


def _known(seconds: float) -> Value:
    """Return a time; none where it is not finite."""
    if not math.isfinite(seconds):
        return None
    return Cell(moment(seconds, is_short=True), seconds)


def _waits(state: State) -> Iterator[Part]:
    """Yield who waits, and the reasons that Slurm names."""
    if not state.reasons:
        yield "No job waits."
        return
    reasons = list(state.reasons.items())
    yield Table(
        "Jobs, and tasks of job arrays, by the reason that Slurm names.",
        ["reason", "jobs"],
        [[name, count] for name, count in reasons],
    )
    for name, label in (("partitions", "partition"), ("account", "account"), ("user", "user")):
        rows: list[list[Value]] = [
            [value or "-", jobs, nodes, duration(age)]
            for value, jobs, nodes, age in state.waiting_by(name)
        ]
        yield Table(
            f"Waiting jobs by {label}: how many, nodes that they ask for, longest age.",
            [label, "jobs", "nodes", "longest age"],
            rows,
        )


def _weeks(state: State, history: Trace) -> Iterator[Part]:
    """Yield the waits of the last weeks, and idle nodes while jobs waited."""
    nodes = len(state.supply.site.nodes)
    idle = idle_while_waiting(history, nodes)[:WEEKS]
    yield Table(
        "By week: hours in which some job waited, and node-hours that were idle then.",
        ["week from (UTC)", "hours with waiting jobs", "idle node-hours", "idle nodes then"],
        [
            [_week(week), round(hours, 1), round(unused), unused / hours if hours else None]
            for week, hours, unused in idle
        ],
    )
    for column, label in (("partition_name", "partition"), ("account", "account"), ("qos", "QOS")):
        waits = weekly_waits(history, column)
        first = waits[0].week - WEEKS * WEEK if waits else 0.0
        rows: list[list[Value]] = [
            [
                _week(each.week),
                each.name or "-",
                each.jobs,
                duration(each.median),
                duration(each.longest_tenth),
            ]
            for each in waits
            if each.week > first
        ]
        yield Table(
            f"Waits of the jobs that started in a week, by {label}: median, and the longest tenth "
            "above.",
            ["week from (UTC)", label, "jobs", "median wait", "longest tenth from"],
            rows,
        )


def _week(seconds: float) -> Cell:
    return Cell(datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d"), seconds)


def _bars(name: str, title: str, groups: Sequence[Group], what: str) -> Figure:
    """Draw the cores of groups of nodes, in use and free, for a wide page and for a phone."""
    pictures = [_drawn(groups, width) for width in (9.17, 3.75)]
    free = sum(int(group.free[0]) for group in groups)
    return Figure(
        name,
        pictures[0],
        f"{title}, of {what}: {free:,} cores are free.",
        f"{title}, of {what}.",
        narrow=pictures[1],
    )


@style.applied()
def _drawn(groups: Sequence[Group], width: float) -> str:
    from matplotlib.figure import Figure as Canvas

    figure = Canvas((width, 0.8 + 0.22 * len(groups)), layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(len(groups))
    free = np.array([group.free[0] for group in groups])
    used = np.array([group.total[0] for group in groups]) - free
    axes.barh(places, used, color=style.FAINT, label="in use")
    axes.barh(places, free, left=used, color=style.FILLS[0], label="free")
    axes.set(yticks=places, yticklabels=[group.name for group in groups], xlabel="cores")
    axes.invert_yaxis()
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False)
    with tempfile.TemporaryDirectory(prefix="optsched-") as folder:
        path = Path(folder) / "picture.svg"
        style.save_as(figure, path)
        return path.read_text(encoding="utf-8")
