"""Named tuples that kernels take by reference."""

import sys
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel

Times = NDArray[np.float64]


class Inner(NamedTuple):
    factor: int
    added: Times


@by_reference
class Outer(NamedTuple):
    sums: Times
    flags: NDArray[np.bool_]
    inner: Inner
    table: NDArray[np.int64]


@kernel(allocates=False)
def add(outer: Outer, at: int) -> None:
    outer.sums[at] += outer.inner.factor * outer.inner.added[at] + outer.table[1, at]
    outer.flags[at] = True


@kernel
def add_all(outer: Outer) -> tuple[Times, Times]:
    for at in range(len(outer.sums)):
        add(outer, at)
    return outer.sums.copy(), outer.inner.added


def outer() -> Outer:
    inner = Inner(2, np.array([1.0, 2.0]))
    return Outer(np.zeros(2), np.array([False, False]), inner, np.array([[0, 0], [10, 20]]))


def counts(given: Outer) -> list[int]:
    return [sys.getrefcount(one) for one in (*given, given.inner.added)]


def test_kernels_read_fields_write_into_arrays_and_keep_none():
    given = outer()
    before = counts(given)
    copied, returned = add_all(given)
    assert given.sums.tolist() == copied.tolist() == [12, 24]
    assert given.flags.all()
    assert returned is given.inner.added
    del copied, returned
    add_all(given)
    assert counts(given) == before


def test_a_bound_kernel_keeps_its_tables_and_returns_arrays():
    given = outer()
    before = counts(given)
    one, every = add.bound(given, numbers=(0,)), add_all.bound(given)
    one(1)
    one(np.int64(1))
    assert given.sums.tolist() == [0, 48]
    for _ in range(3):
        copied, returned = every()
    assert copied.tolist() == [36, 120]
    assert returned is given.inner.added
    del copied, returned, one, every
    assert counts(given) == before


@by_reference
class Whole(NamedTuple):
    outer: Outer
    is_doubled: bool
    share: float
    number: int
    last: Times


@kernel(allocates=False)
def add_share(whole: Whole, at: int) -> float:
    add(whole.outer, at)
    whole.last[at] = whole.share * whole.number
    return whole.outer.sums[at] * (2.0 if whole.is_doubled else 1.0)


def test_a_bound_kernel_reads_what_calls_read():
    for is_doubled in (False, True):
        one, other = (Whole(outer(), is_doubled, 0.5, -7, np.zeros(2)) for _ in range(2))
        assert add_share.bound(one, numbers=(0,))(1) == add_share(other, 1) == 24 * (1 + is_doubled)
        assert one.last.tolist() == other.last.tolist() == [0, -3.5]
        assert one.outer.sums.tolist() == other.outer.sums.tolist() == [0, 24]


def test_other_classes_of_the_same_fields_are_other_types():
    values = outer()
    assert add_all(values)[0].tolist() == [12, 24]
    plain = NamedTuple("Plain", [(name, object) for name in Outer._fields])(*values)
    assert add_all(plain)[0].tolist() == [24, 48]


def test_classes_of_one_name_with_like_fields_are_told_apart():
    pairs = [[("first", Times), ("second", Times)], [("third", Times), ("fourth", Times)]]
    classes = [by_reference(NamedTuple("Pair", fields)) for fields in pairs]
    one, other = (numba.typeof(cls(np.zeros(1), np.zeros(1))) for cls in classes)
    assert one.name == other.name
    assert one != other
