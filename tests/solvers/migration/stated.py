"""Algorithm 3 on migrations, place by place, and packings, box by box, as they are stated."""

from __future__ import annotations

from boxes.trying_boxes import boxes_of


def cells(grid, box):
    return frozenset(grid.cells(box).tolist())


def find_plan(problem, most):
    """Return destinations and place, or None; all places are listed and ordered."""
    grid = problem.grid
    held = [cells(grid, box) for box in problem.running]
    kept = frozenset().union(*(cells(grid, box) for box in problem.holes))
    kept = kept.union(*(held[job] for job in range(len(held)) if job not in problem.movers))
    places = []
    for number, (box, there) in enumerate(boxes_of(problem, problem.place_extents)):
        if not there & kept:
            met = frozenset(job for job in problem.movers if held[job] & there)
            places.append((sum(problem.costs[job] for job in met), number, box, met))
    ending = frozenset().union(*(cells(grid, box) for box in problem.ending))
    free = frozenset(range(grid.routers)) - kept - ending - frozenset().union(*held)
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
    found, free = {}, free - place
    for job in largest_first(problem, victims):
        free |= held[job] - place
        for box, there in boxes_of(problem, problem.extents(job)):
            if there <= free:
                found[job] = box
                free -= there
                break
        else:
            return None
    return found


def largest_first(problem, jobs):
    extents = {job: problem.extents(job) for job in jobs}
    return sorted(jobs, key=lambda j: (-min(x * y * z for x, y, z in extents[j]), extents[j], j))
