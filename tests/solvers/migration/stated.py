"""Algorithm 3 on migrations, place by place, and packings, box by box, as they are stated."""

from __future__ import annotations

from itertools import product

from optsched.boxes.box import Box


def boxes_of(grid, extents):
    """Yield the boxes of extents on a grid: by extent, then in row-major order of anchors."""
    for extent in extents:
        for anchor in product(*map(range, grid.shape)):
            box = Box(*anchor, *extent)
            if not grid.mistake(box):
                yield box


def cells(grid, box):
    return frozenset(grid.cells(box).tolist())


def find_plan(problem, most):
    """Return destinations and place, or None; all places are listed and ordered."""
    grid = problem.grid
    held = [cells(grid, box) for box in problem.running]
    kept = frozenset().union(*(cells(grid, box) for box in problem.holes))
    kept = kept.union(*(held[job] for job in range(len(held)) if job not in problem.movers))
    places = []
    for number, box in enumerate(boxes_of(grid, problem.place_extents)):
        there = cells(grid, box)
        if not there & kept:
            met = frozenset(job for job in problem.movers if held[job] & there)
            places.append((sum(problem.costs[job] for job in met), number, box, met))
    free = frozenset(range(grid.routers)) - kept - frozenset().union(*held)
    examined = set()
    for _, _, place, victims in sorted(places, key=lambda one: one[:2])[:most]:
        if victims and victims <= examined:
            continue
        examined |= victims
        destinations = hosts(problem, free, held, cells(grid, place), victims)
        if destinations is not None:
            return destinations, place
    return None


def hosts(problem, free, held, place, victims):
    def largest_first(job):
        extents = problem.extents(job)
        return -min(x * y * z for x, y, z in extents), extents, job

    found, free = {}, free - place
    for job in sorted(victims, key=largest_first):
        free |= held[job] - place
        for box in boxes_of(problem.grid, problem.extents(job)):
            if cells(problem.grid, box) <= free:
                found[job] = box
                free -= cells(problem.grid, box)
                break
        else:
            return None
    return found


def can_be_packed(problem, jobs, place):
    """Return whether jobs can leave their boxes for disjoint ones in free routers or in these."""
    grid = problem.grid
    taken = [*problem.holes, *(b for j, b in enumerate(problem.running) if j not in jobs), place]
    free = frozenset(range(grid.routers)).difference(*(cells(grid, box) for box in taken))

    def pack(waiting, free):
        if not waiting:
            return True
        candidates = (cells(grid, box) for box in boxes_of(grid, problem.extents(waiting[0])))
        return any(pack(waiting[1:], free - there) for there in candidates if there <= free)

    return pack(jobs, free)
