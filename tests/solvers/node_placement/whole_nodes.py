"""Problems of whole nodes, and their optima by trying everything."""

from hypothesis import strategies as st

from optsched.models.node_placement import NodePlacement


def whole_nodes(room, jobs, weights=None, *, blocks=None, span="anywhere"):
    """Return the problem of jobs on leaves with free nodes, which may be in blocks."""
    leaves = [leaf for leaf, nodes in enumerate(room) for _ in range(nodes)]
    return NodePlacement(
        ["cores"],
        [[8]] * len(leaves),
        jobs,
        [[8]] * len(jobs),
        weights=weights,
        then=("switches",),
        switches=[f"leaf {leaf}" for leaf in leaves],
        blocks=None if blocks is None else [f"block {blocks[leaf]}" for leaf in leaves],
        span=[span] * len(jobs),
    )


def ways(size, room):
    """Yield all ways to take a number of nodes from leaves, as a tuple with a number for each."""
    if not room:
        if size == 0:
            yield ()
        return
    for taken in range(min(size, room[0]) + 1):
        for rest in ways(size - taken, room[1:]):
            yield (taken, *rest)


def optimum_of(problem):
    """Try all ways of every job, by the data of the problem alone."""
    keys = [
        (
            problem.switches[node],
            "" if problem.blocks is None else problem.blocks[node],
            "" if problem.kinds is None else problem.kinds[node],
        )
        for node in range(len(problem.free))
    ]
    leaves = sorted({*keys})
    room = tuple(keys.count(leaf) for leaf in leaves)
    radix = problem.radices[0]

    def allowed(job, way):
        used = [leaf for leaf, taken in zip(leaves, way) if taken]
        kinds = problem.allowed[job]
        if kinds is not None and any(kind not in kinds for _, _, kind in used):
            return None
        switches, blocks = {leaf[0] for leaf in used}, {leaf[1] for leaf in used}
        span = problem.span[job]
        if (span == "switch" and len(switches) > 1) or (span == "block" and len(blocks) > 1):
            return None
        return len(switches)

    best = {room: 0}
    for job, size in enumerate(problem.chunks.tolist()):
        after = dict(best)
        for left, value in best.items():
            for way in ways(size, left):
                switches = allowed(job, way)
                if switches is not None:
                    rest = tuple(a - b for a, b in zip(left, way))
                    gain = value + int(problem.weights[job]) * radix - switches
                    after[rest] = max(after.get(rest, gain), gain)
        best = after
    return max(best.values())


@st.composite
def placements_of_whole_nodes(draw, pools=2):
    """Draw a problem that `switch-groups` accepts, with one pool of nodes or several."""
    room, blocks, kinds, jobs, weights, spans, allowed = [], [], [], [], [], [], []
    number = draw(st.integers(1, pools))
    for pool in range(number):
        leaves = draw(st.integers(1, 4 if number == 1 else 2))
        room += draw(st.lists(st.integers(1, 5), min_size=leaves, max_size=leaves))
        blocks += draw(st.lists(st.integers(0, 1), min_size=leaves, max_size=leaves))
        kinds += [f"kind {pool}"] * leaves
        here = draw(st.integers(0, 5 if number == 1 else 3))
        jobs += draw(st.lists(st.integers(1, 7), min_size=here, max_size=here))
        weight = st.just(1) | st.integers(0, 4)
        weights += draw(st.lists(weight, min_size=here, max_size=here))
        spans += [draw(st.sampled_from(["anywhere", "anywhere", "block", "switch"]))] * here
        allowed += [[f"kind {pool}"] if number > 1 else None] * here
    nodes = draw(st.permutations([leaf for leaf, free in enumerate(room) for _ in range(free)]))
    apart = draw(st.booleans())  # or leaves of several pools or blocks are on a switch
    return NodePlacement(
        ["cores"],
        [[8]] * len(nodes),
        jobs,
        [[8]] * len(jobs),
        weights=weights,
        then=("switches",),
        kinds=[kinds[leaf] for leaf in nodes],
        allowed=allowed,
        switches=[str(leaf if apart else leaf % 2) for leaf in nodes],
        blocks=[str(blocks[leaf]) for leaf in nodes],
        span=spans,
    )
