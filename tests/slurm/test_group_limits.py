"""What Slurm asks of blocks, places on a torus, and switches.

The figures were seen on a real Slurm 26.05.5 of 64 nodes in eight blocks.
"""

from __future__ import annotations

import numpy as np
import pytest

from optsched.models.node_placement.problem import NodePlacement, Placements
from optsched.sites.parts import Blocks, Places, Torus
from optsched.sites.slurm_notation import hosts_of
from optsched.slurm.division import block_limits, torus_limit
from optsched.slurm.queue import LeftToSlurmError

NAMES = [f"n{number:02}" for number in range(1, 65)]


def eight(*sizes):
    return Blocks(tuple(f"b{n + 1}" for n in range(8)), np.arange(64) // 8, sizes)


def admits(limits, nodes):
    """Return whether one node after the other is all that a job may have, by the model."""
    problem = NodePlacement(
        ["nodes"],
        [[1]] * 64,
        [len(nodes)],
        [[1]],
        levels=[limit.level for limit in limits],
        groups=[limit.groups for limit in limits],
        most_groups=[[limit.most for limit in limits]],
        segments=[[limit.segment for limit in limits]],
    )
    return not problem.violations(Placements((tuple(nodes),), (((),) * len(nodes),)))


def at(text):
    return sorted(NAMES.index(name) for name in hosts_of(text))


@pytest.mark.parametrize(
    ("sizes", "asked", "together", "nodes", "other"),
    [
        ((8, 16, 32), (12,), False, "n[49-52,57-64]", "n[41-48,49-52]"),
        ((8, 16, 32), (8, 4), False, "n[41-44,53-56]", "n[41-43,53-57]"),
        ((8, 16, 32), (12, 4), True, "n[33-40,45-48]", "n[25-32,33-36]"),
        ((8, 16, 32), (24, 12), False, "n[01-02,05-06,09-16,33-40,45-48]", "n[01-08,17-32]"),
        # one block of 32, and at most three blocks of 8
        ((8, 32), (20,), False, "n[03-04,07-08,17-32]", "n[01-05,09-13,17-21,25-29]"),
        ((8, 32), (20,), False, "n[01-20]", "n[17-36]"),
        # no block is large enough: at most three blocks of 8, wherever they are
        ((8,), (20,), False, "n[41-44,49-64]", "n[01-05,17-21,33-37,57-61]"),
        ((8,), (20,), False, "n[01-08,25-28,57-64]", "n[01-06,25-30,41-46,63-64]"),
        # sizes that are not stated: 8, 16, 32, 64 and 128
        ((), (20,), False, "n[01-20]", "n[25-44]"),
    ],
)
def test_a_job_may_have_what_slurm_gave_it(sizes, asked, together, nodes, other):
    size, *segment = asked
    limits = block_limits(eight(*sizes), "racks", size, *segment, together=together)
    assert len(at(nodes)) == len(at(other)) == size
    assert admits(limits, at(nodes))
    assert not admits(limits, at(other))


def test_levels_and_groups_are_named():
    (limit,) = block_limits(eight(8, 16, 32), "racks", 12)
    assert limit.level == "blocks of 16 nodes of racks"
    assert sorted({*limit.groups}) == ["b[1-2]", "b[3-4]", "b[5-6]", "b[7-8]"]
    assert block_limits(eight(8, 16), "racks", 12, 12) == (limit,)  # one segment
    assert block_limits(eight(8, 16), "racks", 12, 16) == (limit,)  # larger ones are ignored
    together = block_limits(eight(8, 16, 32), "racks", 24, 8, together=True)
    levels = [(limit.level.split()[2], limit.most, limit.segment) for limit in together]
    assert levels == [("32", 1, 0), ("8", 0, 8)]


def cube(*places):
    return Torus((4, 3, 3), np.arange(36), tuple(Places(*each) for each in places))


ORIGIN = (0, 0, 0)


def test_a_job_has_one_place_of_its_size_on_a_torus():
    torus = cube(((4, 3, 1), ORIGIN, (4, 3, 1)), ((2, 3, 1), ORIGIN, (2, 3, 1)))
    limit = torus_limit(torus, "cube", 12, names=NAMES)
    assert sorted({*limit.groups}) == ["", "n[01-12]", "n[13-24]", "n[25-36]"]
    assert (limit.most, limit.segment) == (1, 0)
    limit = torus_limit(torus, "cube", 12, 6, names=NAMES)
    assert limit.groups[12] == "n[13-14,17-18,21-22]"  # planned by Slurm for a job of 6
    assert (limit.most, limit.segment) == (0, 6)
    # places wrap around
    torus = cube(((2, 3, 1), (1, 0, 0), (2, 3, 1)))
    assert torus_limit(torus, "cube", 6, names=NAMES).groups[0] == "n[01,04-05,08-09,12]"


def test_what_has_no_limit_is_left_to_slurm():
    with pytest.raises(LeftToSlurmError, match="its 6 nodes are no multiple of its segments of 4"):
        block_limits(eight(8, 16), "racks", 6, 4)
    with pytest.raises(LeftToSlurmError, match="its segments of 20 nodes need several blocks"):
        block_limits(eight(8), "racks", 40, 20)
    torus = cube(((2, 2, 1), ORIGIN, (2, 2, 1)))
    with pytest.raises(LeftToSlurmError, match="the places of 4 nodes on its torus overlap"):
        torus_limit(torus, "cube", 4, names=NAMES)
    with pytest.raises(LeftToSlurmError, match="its torus has no place of 5 nodes"):
        torus_limit(torus, "cube", 5, names=NAMES)
