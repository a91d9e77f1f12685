"""What a proven defragmentation would win back: whole idle nodes, and the fewest jobs to move.

A share is what a running job has on one node. Two programs of one statement have the answer. In
the first, alike nodes are one: it is small at every scale, and bounds what can be won. Nodes that
it empties are then emptied one by one, each share onto the fullest node that holds it. Where that
does not reach the bound, and there are few shares, the second program decides on every node.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.models.integer_program import IntegerProgram
from optsched.models.stated import Symbols
from optsched.sites.job_request import MEMORY, UnplaceableError
from optsched.slurm.access import NO_RULES
from optsched.slurm.hold_problem import is_stoppable
from optsched.slurm.limits import Limits
from optsched.slurm.queue import QueuedJob, SlurmQueue
from optsched.slurm.requests import alternatives
from optsched.slurm.running import end_of, held_alone, hidden_amounts
from optsched.slurm.supply import Supply
from optsched.solvers.result import Budget
from optsched.solvers.solving import solve

LARGEST = 15_000
"""Most pairs of alike shares and alike nodes, of the first program, for which it is solved."""

MOST_PAIRS = 1_500
"""Most pairs of alike shares and nodes, of the second program, for which it is solved."""

WORK = 100  # work limit of each program, in nodes of branch and bound
MOST_ALIKE = 500  # most alike nodes that are one in the first program

MOST_UNITS = 400_000
"""Most units of a resource on alike nodes: beyond that the tolerance of solvers hides single ones.
"""

CUTS = (1, 2, 3)
"""Numbers of shares above the half, the third and the quarter of a node that are counted."""

CLOSED = "a node of it is reserved, not in service, completing a job, or not known in full"
"""Why a job stays: for the last, more or less is in use than the jobs there hold, or it is not
stated whether one of them shares its nodes."""

FILLS = "it has all cores of its nodes, and only like nodes could hold it"
"""Why it is of no use to move a job."""


class Move(NamedTuple):
    """A share of a running job that goes from one node to another."""

    job: QueuedJob
    source: str
    target: str


@dataclass(frozen=True)
class Defragmentation:
    """What moving running jobs would win."""

    moves: tuple[Move, ...]  # of the plan
    emptied: tuple[str, ...]  # nodes that are idle after the plan, and not now
    won: int  # how many more nodes are idle after the plan: of those idle now, some may be used
    most: int  # bound on what any plan wins
    fewest: int  # bound on the jobs of any plan that wins as much
    movable: int  # running jobs that may be moved
    stay: Mapping[str, int]  # number of running jobs that may not, by the reason, most first
    unclear: int  # nodes of which more or less is in use than the jobs that are shown hold
    too_large: bool = False  # whether nothing was computed

    @property
    def jobs(self) -> int:
        """Number of jobs that the plan moves."""
        return len({move.job.job_id for move in self.moves})


class _Shares(NamedTuple):
    """The shares that may be moved, and the nodes between which they may be."""

    nodes: Ints  # places of the nodes in the site
    room: Ints  # amounts on each node beside the jobs that stay there, shape (nodes, resources)
    empties: Flags  # whether a node is idle once its shares have left
    kinds: Ints  # nodes of one kind have equal capacities, and are open to the same shares
    jobs: list[QueuedJob]
    job: Ints  # place in `jobs` of each share, as the next
    home: Ints  # place in `nodes` where it is
    amounts: Ints  # shape (shares, resources)
    alone: Flags  # whether the job has no other share
    types: Ints  # shares are alike if amounts, open nodes and, unless alone, jobs are
    may: Flags  # whether a share of each type may be on each node, shape (types, nodes)

    def score(self, at: Ints) -> tuple[int, int]:
        """Return how many nodes are won with the shares on some nodes, and minus the jobs moved."""
        now, then = (np.bincount(each, minlength=len(self.nodes)) > 0 for each in (self.home, at))
        won = int((now & self.empties).sum()) - int((then & self.empties).sum())
        return won, -len(np.unique(self.job[at != self.home]))

    def is_sound(self, at: Ints) -> bool:
        """Return whether each node has room for the shares on it, and may have them, one a job."""
        left = self.room.copy()
        np.subtract.at(left, at, self.amounts)
        apart = len({*zip(self.job.tolist(), at.tolist())}) == len(at)
        return bool(apart and (left >= 0).all() and self.may[self.types, at].all())


def defragment(queue: SlurmQueue, supply: Supply, is_open: Flags) -> Defragmentation:
    """Return the most whole nodes that moves of running jobs win, and the fewest jobs to move.

    A job keeps its amounts on each of its nodes, and no two of its shares go to one node. There is
    room for all moves together in the end, perhaps in no order of single ones. Nothing is done; the
    plan is verified on the amounts of each node, and the bounds are proven by solvers.

    `supply`: what is free now, as running jobs allow others; `is_open`: whether each node is in
    service and not reserved.
    """
    shares, stay, unclear = _shares(queue, supply, is_open)
    known = (len(shares.jobs), dict(stay.most_common()), unclear)
    best, bound, alike = shares.home, (0, 0), _alike(shares)
    if len(shares.may) * len(np.unique(alike)) > LARGEST:
        return Defragmentation((), (), 0, 0, 0, *known, too_large=True)
    if shares.jobs:
        idle, _, bound = _solved(shares, alike)
        in_use = np.isin(np.arange(len(idle)), shares.home)
        for receives in (in_use & ~idle, ~idle):  # without and with nodes that are idle now
            emptied = _emptied(shares, idle & in_use, receives)
            if shares.is_sound(emptied):
                best = max(best, emptied, key=shares.score)
        if shares.score(best) < bound and shares.may.sum() <= MOST_PAIRS:
            _, found, other = _solved(shares, np.arange(len(shares.nodes)), best, bound[0])
            bound = min(bound, other)
            if shares.is_sound(found):
                best = max(best, found, key=shares.score)
    names = np.array(supply.site.nodes, dtype=object)[shares.nodes]
    moves = tuple(
        Move(shares.jobs[shares.job[one]], names[shares.home[one]], names[best[one]])
        for one in np.flatnonzero(best != shares.home)
    )
    left = shares.empties & np.isin(np.arange(len(names)), shares.home)
    left &= ~np.isin(np.arange(len(names)), best)
    won = shares.score(best)[0]
    return Defragmentation(moves, tuple(names[left]), won, bound[0], -bound[1], *known)


def _shares(queue: SlurmQueue, supply: Supply, is_open: Flags) -> tuple[_Shares, Counter[str], int]:
    """Return the shares that may be moved, how many jobs stay by reason, and unclear nodes."""
    site = supply.site
    counts = [n for n, name in enumerate(site.resources) if supply.counts_memory or name != MEMORY]
    capacity, threads = site.capacity[:, counts], supply.threads
    held = held_alone(queue.running, supply)
    is_clear = ~hidden_amounts(held, supply)[:, counts].any(axis=1)
    unclear = int((is_open & ~is_clear).sum())
    is_open = is_open & is_clear & ~supply.completing
    for job, own in zip(queue.running, held):
        if job.exclusive is None:  # of its nodes, others may have nothing
            is_open[own.nodes] = False
    # a running job has met its limits, and no node is closed to the job that is there
    asked = replace(supply, limits=Limits(), completing=np.zeros_like(supply.completing))
    stay: Counter[str] = Counter()
    stays_on = np.zeros(len(is_open), dtype=bool)
    found: list[tuple[QueuedJob, Ints, Ints, Flags]] = []
    for job, own in zip(queue.running, held):
        try:
            if not is_open[own.nodes].all():
                raise UnplaceableError(CLOSED)
            may = _open_to(job, own.nodes, asked) & is_open & ~supply.taken
        except UnplaceableError as error:
            stay[str(error)] += 1
            stays_on[own.nodes] = True
        else:
            found.append((job, own.nodes, own.amounts[:, counts], may))
    masks = {may.tobytes(): may for *_, may in found}
    rows = np.column_stack((capacity, threads, *masks.values()))
    kinds = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    moving = []
    for job, nodes, amounts, may in found:
        others = may & (kinds != kinds[nodes[0]]) & np.isin(threads, threads[nodes])
        others &= capacity[:, 0] >= amounts[:, 0].min()
        if (amounts[:, 0] == capacity[nodes, 0]).all() and not others.any():
            stay[FILLS] += 1
            stays_on[nodes] = True
        else:
            moving.append((job, nodes, amounts, may))
    return _between(moving, supply, counts, is_open & ~supply.taken, stays_on, kinds), stay, unclear


def _open_to(job: QueuedJob, nodes: Ints, supply: Supply) -> Flags:
    """Return the nodes to which shares of a running job may be moved, with those where it is."""
    if job.state != "RUNNING" or not is_stoppable(job):
        raise UnplaceableError("it is suspended, ending, or a part of a heterogeneous job")
    if not 0 < len(nodes) == len(job.allocations):
        raise UnplaceableError("the site does not have its nodes")
    if job.reservation:
        raise UnplaceableError("it runs in a reservation")
    rules = [supply.access.get(name, NO_RULES) for name in job.partitions]
    if any(rule.shares or rule.cores_per_node for rule in rules):
        raise UnplaceableError("its partition lets jobs share cores, or limits them on a node")
    gpus = sum(each.gres.get("gpu", 0) for each in job.allocations)
    if any(each.shares for each in job.allocations) or gpus < job.tres.get("gres/gpu", 0):
        raise UnplaceableError("it has shares of GPUs, or it is not stated where it has GPUs")
    # what it asks for as if it started now, for the rest of its time
    limit = job.limit if job.end is None else end_of(job, supply.time) - supply.time
    found = alternatives(replace(job, limit=limit, switches_wait=math.inf), supply)
    if any(each.exclusive for each in found):
        raise UnplaceableError("it shares its nodes with no other job, or those of its user alone")
    if any(each.span != "anywhere" or each.limits for each in found):
        raise UnplaceableError("switches, blocks or a torus hold its nodes together")
    if len(nodes) > 1:  # all of them in one partition, and of one choice of features
        found = tuple(each for each in found if each.nodes[nodes].all())[:1]
    may: Flags = np.any([each.nodes for each in found], axis=0)
    if not (found and may[nodes].all()):
        raise UnplaceableError("it could not start on its nodes now")
    return may


def _between(
    moving: Sequence[tuple[QueuedJob, Ints, Ints, Flags]],
    supply: Supply,
    counts: Sequence[int],  # the resources that count
    is_open: Flags,
    stays_on: Flags,  # nodes of jobs that stay
    kinds: Ints,
) -> _Shares:
    """Return the shares of jobs that may be moved, and the nodes that matter for them."""
    capacity, free = supply.site.capacity[:, counts], supply.free[:, counts]
    job = np.repeat(np.arange(len(moving)), [len(nodes) for _, nodes, _, _ in moving])
    home = np.array([node for _, nodes, _, _ in moving for node in nodes.tolist()], dtype=np.int64)
    amounts = np.array([row for _, _, rows, _ in moving for row in rows.tolist()], dtype=np.int64)
    amounts = amounts.reshape(len(home), len(counts))
    room = free.copy()
    np.add.at(room, home, amounts)
    empties = is_open & ~stays_on & (room == capacity).all(axis=1)
    has_shares = np.zeros(len(is_open), dtype=bool)
    has_shares[home] = True
    spare = empties & ~has_shares
    different = {may.tobytes(): may for *_, may in moving}
    numbers = {key: number for number, key in enumerate(different)}
    masks = np.array([*different.values()], dtype=bool).reshape(len(different), len(is_open))
    mask = np.array([numbers[may.tobytes()] for *_, may in moving], dtype=np.int64)
    matter = is_open & (has_shares | (free[:, 0] > 0)) & masks.any(axis=0)
    # an idle node is of use only if none of its kind is won, and less of them than are won
    emptied = kinds[empties & has_shares]
    for kind in np.unique(kinds[spare]).tolist():
        most = max(0, int((emptied != kind).sum()) - 1)
        matter[np.flatnonzero(spare & (kinds == kind))[most:]] = False
    nodes = np.flatnonzero(matter)
    place = np.cumsum(matter) - 1
    alone = np.bincount(job)[job] == 1
    threads = supply.threads
    key = np.column_stack((np.where(alone, -1, job), mask[job], threads[home], amounts))
    _, first, types = np.unique(key, axis=0, return_index=True, return_inverse=True)
    may = masks[mask[job[first]]][:, nodes]
    may &= threads[home[first], None] == threads[None, nodes]
    for column, amount in enumerate(amounts[first].T):
        may &= amount[:, None] <= room[nodes, column]
    return _Shares(
        nodes, room[nodes], empties[nodes], kinds[nodes], [each for each, *_ in moving], job,
        place[home], amounts, alone, types.ravel(), may,
    )  # fmt: skip


def _alike(shares: _Shares) -> Ints:
    """Return a group of each node, of nodes of one kind that all empty or all do not."""
    _, group = np.unique(2 * shares.kinds + shares.empties, return_inverse=True)
    order = np.argsort(group, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order)) - np.searchsorted(group[order], group[order])
    found: Ints = group * len(group) + rank // MOST_ALIKE
    return found


def _solved(
    shares: _Shares, group: Ints, best: Ints | None = None, most_won: int = 0
) -> tuple[Flags, Ints, tuple[int, int]]:
    """Return idle nodes, nodes of shares, and a bound on the score, by groups of nodes.

    Where each node is a group of its own, `best` are nodes of shares to start from, and no more
    than `most_won` can be won. Otherwise the nodes of shares are not known.
    """
    group = np.unique(group, return_inverse=True)[1].ravel()
    size = np.bincount(group)
    _, first, total = np.unique(shares.types, return_index=True, return_counts=True)
    # sizes are rounded so that the bound holds, and answers are verified without
    unit = np.maximum(1, -(-_sums(shares.room, group).max(axis=0) // MOST_UNITS))
    room, amounts = -(-shares.room // unit), shares.amounts[first] // unit
    fits = np.where(shares.may, np.where(shares.alone[first], total, 1)[:, None], 0)
    for column, amount in enumerate(amounts.T):
        wanted = np.flatnonzero(amount)
        fits[wanted] = np.minimum(fits[wanted], room[:, column] // amount[wanted, None])
    most = np.minimum(_sums(fits.T, group), total)
    at, of = np.nonzero(most)
    takes, wide = _with_cuts(amounts[of], at, room, group)
    # alike shares of one node, and how many of them are moved: of a job of several, all or none
    cells, now = np.unique(shares.types * len(group) + shares.home, return_counts=True)
    of_cell, node = np.divmod(cells, len(group))
    job, single = shares.job[first], shares.alone[first]
    key = np.where(single[of_cell], np.arange(len(cells)), len(cells) + job[of_cell])
    _, at_mover, mover = np.unique(key, return_index=True, return_inverse=True)
    by_node = best is not None
    pair = np.full((len(size), len(total)), -1)
    pair[at, of] = np.arange(len(of))
    home = pair[group[node], of_cell][: len(cells) if by_node else 0]
    stays = home[~single[of_cell]] if by_node else home
    own = np.flatnonzero(~single[of])
    job_at, own_key = np.unique(job[of[own]] * len(size) + at[own], return_inverse=True)
    each = 1 + len(stays)

    spare = int((shares.empties & ~np.isin(np.arange(len(group)), shares.home)).sum())

    state = Symbols()
    placed = state.integer("placed", len(of), upper=most[at, of])
    idle = state.binary("idle", len(group), upper=shares.empties.astype(np.int64))
    moved = state.integer("moved", len(at_mover), upper=now[at_mover])
    gain = each * (int(now[at_mover].sum()) + 1)
    state.maximize(gain * idle.sum() - each * moved.sum() + (placed[stays] - 1).sum())
    state.require("placed", placed.sum_by(of, len(total)) == total)
    used = (placed[:, None] * takes).sum_by(at, len(size))
    lost = (idle[:, None] * wide).sum_by(group, len(size))
    state.require("room", used + lost <= _sums(wide, group))
    state.require("apart", placed[own].sum_by(own_key, len(job_at)) <= size[job_at % len(size)])
    state.require("empty", moved[mover] - now * idle[node] >= 0)
    state.require("home", placed[home] + moved[mover][: len(home)] >= now[: len(home)])
    if by_node:
        state.require("most", idle.sum() <= most_won + spare)

    program = state.program()
    hint: tuple[int, ...] | None = None
    if best is not None:
        there = np.zeros_like(most)
        np.add.at(there, (best, shares.types), 1)
        kept = there[node, of_cell]
        start = np.zeros(program.num_variables, dtype=np.int64)
        start[state.variables["placed"]] = there[at, of]
        start[state.variables["idle"]] = shares.empties & ~there.any(axis=1)
        np.maximum.at(start, state.variables["moved"][mover], np.maximum(0, now - kept))
        hint = tuple(start.tolist())
    problem = IntegerProgram.of(program)
    result = solve(problem, "highs", budget=Budget(work=WORK), hint=hint, interruptible=False)
    won, jobs = int(shares.empties.sum()) - spare, 0
    if result.bound is not None:
        limit = round(result.bound)
        won = -(-limit // gain) - spare
        jobs = max(0, (gain * (won + spare) - limit) // each)
    if result.solution is None:
        return np.zeros(len(group), dtype=bool), shares.home, (won, -jobs)
    x = np.array(result.solution)
    there = np.zeros_like(most)
    there[at, of] = x[state.variables["placed"]]
    ends = _ends(shares, there) if best is not None else shares.home
    return x[state.variables["idle"]] > 0, ends, (won, -jobs)


def _with_cuts(amounts: Ints, at: Ints, room: Ints, group: Ints) -> tuple[Ints, Ints]:
    """Return amounts of pairs and room of nodes with columns that count large shares.

    Of the shares above a half of a node, one fits there; above a third, two. The columns are 0 in
    groups of nodes of unequal room.
    """
    _, first = np.unique(group, return_index=True)
    equal = np.ones(len(first), dtype=bool)
    equal[group[(room != room[first][group]).any(axis=1)]] = False
    takes, wide = [amounts], [room]
    for count in CUTS:
        cut = (count + 1) * amounts // (room[first][at] + 1)
        takes.append(np.where(equal[at, None], cut, 0))
        wide.append(np.repeat(np.where(equal[group], count, 0)[:, None], room.shape[1], axis=1))
    return np.hstack(takes), np.hstack(wide)


def _sums(rows: Ints, group: Ints) -> Ints:
    found = np.zeros((int(group.max()) + 1, rows.shape[1]), dtype=np.int64)
    np.add.at(found, group, rows)
    return found


def _ends(shares: _Shares, there: Ints) -> Ints:
    """Return the node of each share in the end, by how many of each type are on each node."""
    left, ends = there.copy(), shares.home.copy()
    leave = []
    for share, (node, kind) in enumerate(zip(shares.home.tolist(), shares.types.tolist())):
        if left[node, kind]:
            left[node, kind] -= 1
        else:
            leave.append((share, kind))
    for share, kind in leave:
        ends[share] = node = int(left[:, kind].argmax())
        left[node, kind] -= 1
    return ends


def _emptied(shares: _Shares, first: Flags, receives: Flags) -> Ints:
    """Return the node of each share once nodes are emptied one by one, some of them first."""
    at, own = shares.home, np.bincount(shares.home, minlength=len(shares.nodes))
    left = shares.room.copy()
    np.subtract.at(left, at, shares.amounts)
    receives = receives.copy()
    order = np.lexsort((-left[:, 0], own))
    for chosen in (first, shares.empties):
        for node in order[chosen[order]].tolist():
            if (at == node).any():
                receives[node] = False
                found = _without(shares, node, at, left, receives)
                at, left = found or (at, left)
                receives[node] = found is None  # as it cannot be emptied
    return at


def _without(
    shares: _Shares, node: int, at: Ints, left: Ints, receives: Flags
) -> tuple[Ints, Ints] | None:
    """Return the nodes of shares, and what is left there, without those of a node; None if full."""
    at, left = at.copy(), left.copy()
    inside = np.flatnonzero(at == node)
    for share in inside[np.argsort(-shares.amounts[inside, 0], kind="stable")].tolist():
        amounts = shares.amounts[share]
        fits = receives & shares.may[shares.types[share]] & (left >= amounts).all(axis=1)
        fits[at[shares.job == shares.job[share]]] = False
        where = np.flatnonzero(fits)
        if not len(where):
            return None
        rest = ((left[where] - amounts) / np.maximum(shares.room[where], 1)).sum(axis=1)
        at[share] = target = where[rest.argmin()]
        left[target] -= amounts
        left[node] += amounts
    return at, left
