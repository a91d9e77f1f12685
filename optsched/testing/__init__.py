"""Contract of solvers and problems, as checks for any implementation.

`check_solver` and `check_problem` raise an `AssertionError` that names the broken rule; the
strategies (`window_mkps` and others) make problems for property tests. A test of a solver in
another package is::

    from optsched.models import WindowMKP
    from optsched.testing import check_solver

    def test_my_solver_keeps_the_contract():
        check_solver(MySolver(), WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6]))
"""

from typing import TYPE_CHECKING, Any

from optsched.testing.contract import brute_force, check_answer, check_problem, check_solver

if TYPE_CHECKING:
    from optsched.testing.strategies import (
        box_placements,
        data_placements,
        gang_packings,
        holds,
        migrations,
        node_placements,
        partition_mkps,
        reconfigurations,
        threshold_allocations,
        window_mkps,
    )

__all__ = [
    "box_placements",
    "brute_force",
    "check_answer",
    "check_problem",
    "check_solver",
    "data_placements",
    "gang_packings",
    "holds",
    "migrations",
    "node_placements",
    "partition_mkps",
    "reconfigurations",
    "threshold_allocations",
    "window_mkps",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'optsched.testing' has no attribute {name!r}")
    from optsched.testing import strategies  # needs hypothesis, the checks do not

    return getattr(strategies, name)
