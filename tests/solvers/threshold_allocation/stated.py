"""What the compiled kernels of threshold allocation compute, stated plainly."""

from __future__ import annotations

from optsched.models import ThresholdAllocation


def windows(problem: ThresholdAllocation, node: int, start: int) -> list[tuple[int, int, list]]:
    """Return seconds, processes and demands of each second on a node from start on."""
    found = []
    for second in range(start, start + problem.walltime):
        rows = [r for r in problem.held.tolist() if r[0] == node and r[2] <= second < r[3]]
        demands = [sum(row[1] * row[4 + r] for row in rows) for r in range(len(problem.capacity))]
        found.append((1, sum(row[1] for row in rows), demands))
    return found


def free(problem: ThresholdAllocation, start: int) -> list[int]:
    """Return the processors of each node that are free for the walltime."""
    return [
        problem.processors - max(count for _, count, _ in windows(problem, node, start))
        for node in range(problem.nodes)
    ]


def overload(problem: ThresholdAllocation, demands: list[int]) -> int:
    """Return the penalty of a demand in units."""
    return sum(
        max(0, demand - capacity) * problem.unit // capacity
        for demand, capacity in zip(demands, problem.capacity.tolist())
    )


def with_job(problem: ThresholdAllocation, demands: list[int], count: int) -> list[int]:
    """Return the demands with so many processes of the job."""
    return [demand + count * own for demand, own in zip(demands, problem.demand.tolist())]


def lost(problem: ThresholdAllocation, node: int, start: int, count: int) -> int:
    """Return A_n(k), what the job loses with so many processes on a node."""
    return count and sum(
        length * overload(problem, with_job(problem, demands, count))
        for length, _, demands in windows(problem, node, start)
    )


def added(problem: ThresholdAllocation, node: int, start: int, count: int) -> int:
    """Return what so many processes of the job add for everybody on a node."""
    return sum(
        length
        * (
            (held + count) * overload(problem, with_job(problem, demands, count))
            - held * overload(problem, demands)
        )
        for length, held, demands in windows(problem, node, start)
    )


def cheapest(costs: list[list[int]], asked: int) -> list[int]:
    """Return how many of the cheapest processes each node has; of equal ones the first."""
    every = sorted((cost, node) for node, steps in enumerate(costs) for cost in steps)
    return [sum(node == chosen for _, chosen in every[:asked]) for node in range(len(costs))]


def first_fit(problem: ThresholdAllocation, start: int) -> list[int] | None:
    """Return the processes on each node, on free processors in order; none if there are too few."""
    left, processes = problem.asked, []
    for room in free(problem, start):
        processes.append(min(room, left))
        left -= processes[-1]
    return None if left else processes


def moved(problem: ThresholdAllocation, start: int, processes: list[int], enough: int) -> list[int]:
    """Return the processes after each unused processor was offered, until enough is reached."""
    processes = processes.copy()
    buckets = [
        node
        for node, (room, used) in enumerate(zip(free(problem, start), processes))
        for _ in range(room - used)
    ]
    for bucket in buckets:
        losses = [lost(problem, node, start, count) for node, count in enumerate(processes)]
        if max(losses) <= enough:
            break
        # a node without processes is never the worst while something is lost
        worst = losses.index(max(losses))
        if lost(problem, bucket, start, processes[bucket] + 1) < max(losses):
            processes[worst] -= 1
            processes[bucket] += 1
    return processes


def is_within(problem: ThresholdAllocation, start: int, processes: list[int]) -> bool:
    """Return whether the factor is at most the threshold."""
    most = max(lost(problem, node, start, count) for node, count in enumerate(processes))
    requested = problem.walltime * problem.unit
    return problem.threshold is None or 1000 * (requested + most) <= problem.threshold * requested


def by_rule(problem: ThresholdAllocation, rule: str) -> tuple[int, list[int]] | None:
    """Return start and processes by a published rule; none if it has no answer."""
    for start in problem.starts.tolist():
        processes = first_fit(problem, start)
        if processes is None:
            continue
        if rule == "less-consume-threshold" and problem.threshold is not None:
            enough = (problem.threshold - 1000) * problem.walltime * problem.unit // 1000
            processes = moved(problem, start, processes, enough)
            if not is_within(problem, start, processes):
                continue
        elif rule != "first-fit":
            processes = moved(problem, start, processes, 0)
        return (start, processes) if is_within(problem, start, processes) else None
    return None
