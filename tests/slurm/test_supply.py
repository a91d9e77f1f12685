from __future__ import annotations

import numpy as np
import pytest

from optsched.errors import InputError


def test_columns_of_threads_bind_on_their_nodes_alone(supply):
    there = supply()
    assert there.columns[4:] == ("cores of 2 threads", "memory of 2 threads")
    threads = np.array([2, 2, 2, 2, 1, 2, 2])
    assert (there.amounts[:, 4:] == there.free[:, :2] * threads[:, None]).all()
    assert supply(threads=np.ones(7, dtype=int)).columns == there.site.resources


def test_busy_nodes_are_by_default_those_with_cores_in_use(supply):
    free = supply().site.capacity.copy()
    free[2, 0] -= 1
    assert supply(free=free).busy.tolist() == [False, False, True, False, False, False, False]


def test_groups_name_switches_and_blocks(supply):
    there = supply()
    assert there.switches == (
        *("leaf1", "leaf1", "leaf2", "leaf2", "leaf2", "none of g1", "none of g2"),
    )
    assert there.blocks[4:] == ("none of m1", "b1", "b1")
    assert (there.tree, there.block_topology) == ("tree", "blocks")
    flat = supply(topologies={}, partitions=())
    assert (flat.switches, flat.blocks) == (None, None)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"free": np.ones((6, 4), dtype=int)}, "free"),
        ({"free": -np.ones((7, 4), dtype=int)}, "free"),
        ({"threads": np.ones(6, dtype=int)}, "threads"),
        ({"threads": np.zeros(7, dtype=int)}, "threads"),
        ({"busy": np.ones(6, dtype=bool)}, "busy"),
    ],
)
def test_what_does_not_match_the_site_is_refused(supply, fields, field):
    with pytest.raises(InputError) as error:
        supply(**fields)
    assert error.value.field == field
