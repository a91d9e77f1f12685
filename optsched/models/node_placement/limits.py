"""Check of the nodes of one job against its own limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from optsched.models.problem import Violation


def beyond_limits(
    name: str,  # what messages call the job
    nodes: Sequence[int],  # the node of each chunk
    *,
    # Kind of each node of the problem, and the kinds that the job may use; None for all
    kinds: Sequence[str] | None,
    allowed: Sequence[str] | None,
    most_per_node: int,  # most chunks on a node, 0 for no limit
    # The switch or block of each node if one must hold the job, named `span`
    groups: Sequence[str] | None,
    span: str,
) -> list[Violation]:
    """Return where the chunks of a job are on nodes on which they may not be."""
    found = []
    if kinds is not None and allowed is not None:
        wrong = [node for node in nodes if kinds[node] not in allowed]
        if wrong:
            detail = f"{name} is on node {wrong[0]} of kind {kinds[wrong[0]]}"
            found.append(Violation("kind", detail))
    for node, count in Counter(nodes).most_common(1):
        if most_per_node and count > most_per_node:
            detail = f"{name} has {count} chunks on node {node}, more than {most_per_node}"
            found.append(Violation("per node", detail))
    if groups is not None and len(spanned := {groups[node] for node in nodes}) > 1:
        found.append(Violation("span", f"{name} is in {len(spanned)} of {span}"))
    return found
