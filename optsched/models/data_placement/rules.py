"""What the maths say of a plan: which cores it may hold, and how long its jobs load."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.column_sets import interval_text
from optsched.models.data_placement.fields import NO_FILE
from optsched.models.data_placement.plan import LEFT_OUT, Plan
from optsched.models.fields import LARGEST
from optsched.models.problem import Violation

if TYPE_CHECKING:
    from optsched.models.data_placement.problem import DataPlacement

Ints = NDArray[np.int64]


def load_times(problem: DataPlacement, plan: Plan) -> Ints:
    """Return the seconds that each job loads or waits for a load, shape (jobs,).

    Equations (6) to (8) of the model's page: on each node the users of a file by their start, then
    by their number, behind the entry of the file if it is resident. A user finds the file if one of
    those before it keeps the file until then, or with ``next`` until a job starts on the node that
    is not before the last of them ends; otherwise it loads, and those behind wait for that.
    """
    times = problem.loads.copy()
    users = np.flatnonzero((plan.node >= 0) & (problem.files != NO_FILE))
    if not len(users):
        return times
    resident = problem.resident
    node = np.concatenate((resident[:, 0], plan.node[users]))
    file = np.concatenate((resident[:, 1], problem.files[users]))
    start = np.concatenate((np.full(len(resident), -1), plan.start[users]))
    until = np.concatenate((resident[:, 4], plan.start[users] + problem.walltimes[users]))
    loaded = np.concatenate((resident[:, 3], plan.start[users] + problem.loads[users]))
    order = np.lexsort((start, file, node))
    node, file, start, until, loaded = (a[order] for a in (node, file, start, until, loaded))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (node[1:] != node[:-1]) | (file[1:] != file[:-1])
    # the latest end so far, group by group: each group is lifted above the one before it
    lift = first.cumsum() * (until.max() + 2)
    left = np.maximum.accumulate(until + lift) - lift
    finds = np.zeros(len(order), dtype=bool)
    finds[1:] = ~first[1:] & (start[1:] <= left[:-1])
    if problem.kept == "next":
        late = np.flatnonzero(~first & ~finds)
        finds[late] = _quiet(problem, plan, node[late], left[late - 1], start[late])
    loader = np.maximum.accumulate(np.where(finds, 0, np.arange(len(order))))
    wait = np.where(finds, np.maximum(loaded[loader] - start, 0), loaded - start)
    job = order - len(resident)
    times[users[job[job >= 0]]] = wait[job >= 0]
    return times


def _quiet(
    problem: DataPlacement, plan: Plan, node: Ints, since: Ints, until: Ints
) -> NDArray[np.bool_]:
    """Return whether no job starts on a node from `since` to before `until`, shape (spans,)."""
    placed = plan.node >= 0
    began = np.flatnonzero(problem.started)
    where = np.concatenate((plan.node[placed], began))
    start = np.concatenate((plan.start[placed], np.zeros_like(began)))
    span = max(start.max(initial=0), until.max(initial=0)) + 1
    starts = np.sort(where * span + start)
    before = np.searchsorted(starts, node * span + until)
    quiet: NDArray[np.bool_] = before == np.searchsorted(starts, node * span + since)
    return quiet


def broken(problem: DataPlacement, plan: Plan) -> list[Violation]:
    """Return what is wrong with a plan, equations (2) to (5) of the model's page."""
    jobs = len(problem.processors)
    shapes = {array.shape for array in (plan.node, plan.start, plan.cores)}
    if shapes != {(jobs,)}:
        return [Violation("once", f"expected a node, a start and cores for each of {jobs} jobs")]
    nodes, cores = problem.available.shape
    found: list[Violation] = []

    def note(name: str, wrong: NDArray[np.bool_], detail: Callable[[int], str]) -> None:
        if wrong.any():
            found.extend(
                Violation(name, f"job {job + 1} {detail(job)}")
                for job in np.flatnonzero(wrong).tolist()
            )

    out = plan.node == LEFT_OUT
    if not problem.partial:
        note("once", out, lambda _: "is not placed")
    rest = out & ((plan.start != 0) | (plan.cores != 0))
    note("once", rest, lambda _: "is left out, but has a start or cores")
    nowhere = ~out & ((plan.node < 0) | (plan.node >= nodes))
    note("node", nowhere, lambda job: f"is on node {plan.node[job]}; there are {nodes}")
    never = ~out & ((plan.start < 0) | (plan.start > LARGEST))
    note("start", never, lambda job: f"starts after {plan.start[job]} s")
    placed = np.flatnonzero(~(out | nowhere | never))
    mask = plan.cores[placed]
    held = (mask[:, None] >> np.arange(cores)) & 1 == 1
    wrong = np.zeros(jobs, dtype=bool)
    wrong[placed] = (mask < 0) | (mask >> cores != 0)
    note("cores", wrong, lambda _: f"has cores that are not among the {cores} of a node")
    wrong[placed] = ~wrong[placed] & (held.sum(axis=1) != problem.processors[placed])
    note(
        "cores",
        wrong,
        lambda job: (
            f"asks {problem.processors[job]} cores and has {int(plan.cores[job]).bit_count()}"
        ),
    )
    node, start = plan.node[placed], plan.start[placed]
    end = start + problem.walltimes[placed]
    busy = held & (start[:, None] < problem.available[node])
    if problem.reserved is not None:
        busy &= end[:, None] > problem.reserved[node]
    wrong[:] = False
    wrong[placed] = busy.any(axis=1)
    taken = dict(zip(placed.tolist(), busy))
    note("free", wrong, lambda job: f"holds {_cores(taken[job], plan, job)} before they are free")
    found += _overlaps(placed, node, start, end, held)
    return found


def _overlaps(
    jobs: Ints, node: Ints, start: Ints, end: Ints, held: NDArray[np.bool_]
) -> Iterator[Violation]:
    """Yield the first clash on each core between neighbours in the order of their starts."""
    by_start = np.argsort(start, kind="stable")
    row, core = np.nonzero(held[by_start])
    of_core = node[by_start][row] * held.shape[1] + core
    # numbers of 16 bits are sorted by their digits, which is several times as fast
    narrow = of_core.astype(np.uint16) if of_core.max(initial=0) < 2**16 else of_core
    order = np.argsort(narrow, kind="stable")
    user, of_core = by_start[row[order]], of_core[order]
    clash = (of_core[1:] == of_core[:-1]) & (end[user[:-1]] > start[user[1:]])
    pairs: dict[tuple[int, int], int] = {}
    for place in np.flatnonzero(clash).tolist():
        pair = int(user[place]), int(user[place + 1])
        pairs[pair] = pairs.get(pair, 0) | 1 << int(of_core[place]) % held.shape[1]
    for (one, other), shared in pairs.items():
        yield Violation(
            "overlap",
            f"jobs {jobs[one] + 1} and {jobs[other] + 1} hold cores {interval_text(shared)} of "
            f"node {node[one]} at {start[other]} s",
        )


def _cores(held: NDArray[np.bool_], plan: Plan, job: int) -> str:
    mask = sum(1 << core for core in np.flatnonzero(held).tolist())
    return f"cores {interval_text(mask)} of node {plan.node[job]}"
