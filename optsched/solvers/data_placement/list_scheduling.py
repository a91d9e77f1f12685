"""Initial plans by list scheduling."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from optsched.column_sets import lowest
from optsched.models.data_placement import DataPlacement
from optsched.models.data_placement.fields import NO_FILE
from optsched.models.data_placement.solution import LEFT_OUT, Plan


def first_plan(problem: DataPlacement) -> Plan:
    """Return the best of three list schedules: in queue order, by Smith's rule, and by file.

    Smith's rule orders jobs by increasing work per weight. The third order keeps the jobs of a file
    together. Holes are not used, and neither are files that no job uses any longer.
    """
    work = problem.processors * problem.walltimes / problem.priorities
    files = problem.files
    first_of_file: dict[int, float] = {}
    for file, amount in sorted(zip(files.tolist(), work.tolist())):
        first_of_file.setdefault(file, amount)
    together = np.array([first_of_file[file] for file in files.tolist()])
    orders = (
        np.arange(len(work)),
        np.argsort(work, kind="stable"),
        np.lexsort((work, files, together)),
    )
    return min((_list_schedule(problem, order) for order in orders), key=problem.objective)


def _list_schedule(problem: DataPlacement, order: Iterable[int]) -> Plan:
    free = np.maximum(problem.available, 0)
    soonest = np.sort(free, axis=1)
    weight = problem.load_weight
    in_memory: dict[int, dict[int, tuple[int, int]]] = {}
    for node, file, _, loaded, until in problem.resident.tolist():
        in_memory.setdefault(file, {})[node] = (loaded, until)
    rows = np.full((3, len(problem.processors)), LEFT_OUT)
    rows[1:] = 0
    for job in order:
        size, walltime = int(problem.processors[job]), int(problem.walltimes[job])
        file, load = int(problem.files[job]), int(problem.loads[job])
        start = soonest[:, size - 1]
        cost = start + weight * load
        there = {} if file == NO_FILE else in_memory.setdefault(file, {})
        for node, (loaded, until) in there.items():
            if start[node] <= until:
                cost[node] = start[node] + weight * max(0, loaded - start[node])
        node = int(cost.argmin())
        at = int(start[node])
        if problem.partial and cost[node] > problem.horizon + weight * load:
            continue
        mask = lowest(sum(1 << c for c in np.flatnonzero(free[node] <= at).tolist()), size)
        rows[:, job] = node, at, mask
        free[node, [core for core in range(free.shape[1]) if mask >> core & 1]] = at + walltime
        soonest[node] = np.sort(free[node])
        loaded, until = there.get(node, (0, LEFT_OUT))
        there[node] = (loaded if at <= until else at + load, max(until, at + walltime))
    return Plan(*rows)
