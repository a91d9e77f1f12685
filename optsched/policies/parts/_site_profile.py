"""Availability profile of the nodes of a site: what is free on each of them over time, compiled.

From ``time[i]`` to ``time[i + 1]``, what is free is in the entries ``row[i]``, and in those of the
last row indefinitely. Rows are copied and given back, but never shifted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._site_nodes import NOWHERE, Asked, Free, Numbers, Place

Times = NDArray[np.float64]


@by_reference
class Profile(NamedTuple):
    """What is free over time, and on how many reservations each time depends."""

    time: Times
    row: Numbers
    rows: Numbers  # one entry: number of rows in use; row[rows:] are the others
    ends: Numbers  # reservations that begin or end at the time of each row
    amount: Numbers  # shape (rows, nodes, resources)
    jobs: Numbers  # jobs on each node; -1 for one that shares it with no other
    licences: Numbers
    total: Numbers  # sums of the amounts of all nodes


def new_profile(free: Free, now: float, rows: int = 64) -> Profile:
    """Return the profile of a site on which no job runs, with space for that many rows."""
    profile = Profile(
        np.zeros(rows),
        np.arange(rows),
        np.ones(1, dtype=np.int64),
        np.zeros(rows, dtype=np.int64),
        np.zeros((rows, *free.amount.shape), dtype=np.int64),
        np.zeros((rows, len(free.jobs)), dtype=np.int64),
        np.zeros((rows, len(free.licences)), dtype=np.int64),
        np.zeros((rows, len(free.total)), dtype=np.int64),
    )
    profile.time[0] = now
    profile.amount[0], profile.licences[0] = free.amount, free.licences
    profile.total[0] = free.total
    return profile


def with_space(profile: Profile, rows: int) -> Profile:
    """Return the same profile with space for a number of further rows."""
    if profile.rows[0] + rows <= len(profile.row):
        return profile
    more = len(profile.row) + rows
    row = np.concatenate((profile.row, np.arange(len(profile.row), len(profile.row) + more)))

    def longer(array: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.concatenate((array, np.zeros((more, *array.shape[1:]), dtype=np.int64)))

    time = np.concatenate((profile.time, np.zeros(more)))
    rest = (longer(array) for array in profile[3:])
    return Profile(time, row, profile.rows, *rest)


@kernel(allocates=False)
def split(profile: Profile, at: float) -> int:
    """Ensure a row that begins at a time, which is not before the first; return its position."""
    low, high = 0, profile.rows[0]
    while low < high:
        middle = (low + high) // 2
        if profile.time[middle] <= at:
            low = middle + 1
        else:
            high = middle
    if profile.time[low - 1] == at:
        return low - 1
    rows = profile.rows[0]
    new, old = profile.row[rows], profile.row[low - 1]
    for entry in range(rows, low, -1):
        profile.time[entry], profile.row[entry] = profile.time[entry - 1], profile.row[entry - 1]
    profile.time[low], profile.row[low], profile.ends[new] = at, new, 0
    profile.rows[0] = rows + 1
    for node in range(profile.amount.shape[1]):
        profile.jobs[new, node] = profile.jobs[old, node]
        for resource in range(profile.amount.shape[2]):
            profile.amount[new, node, resource] = profile.amount[old, node, resource]
    for licence in range(profile.licences.shape[1]):
        profile.licences[new, licence] = profile.licences[old, licence]
    for resource in range(profile.total.shape[1]):
        profile.total[new, resource] = profile.total[old, resource]
    return low


@kernel(allocates=False)
def drop(profile: Profile, first: int, count: int) -> None:
    """Give back `count` rows from the position `first` on."""
    rows = profile.rows[0]
    for _ in range(count):
        unused = profile.row[first]
        for entry in range(first, rows - 1):
            profile.time[entry] = profile.time[entry + 1]
            profile.row[entry] = profile.row[entry + 1]
        rows -= 1
        profile.row[rows] = unused
    profile.rows[0] = rows


@kernel(allocates=False)
def forget(profile: Profile, now: float) -> None:
    """Let the profile begin now."""
    drop(profile, 0, split(profile, now))


@kernel(allocates=False)
def book(
    profile: Profile, asked: Asked, one: int, place: Place, start: float, end: float, sign: int
) -> None:
    """Take (1) or free (-1) a place from `start`, or from the first row, to `end`."""
    first = split(profile, max(start, profile.time[0]))
    last = split(profile, end)
    for position in range(first, last):
        row = profile.row[position]
        for entry in range(len(place.node)):
            node = place.node[entry]
            for resource in range(profile.amount.shape[2]):
                amount = place.chunks[entry] * asked.demand[one, resource]
                profile.amount[row, node, resource] -= sign * amount
                profile.total[row, resource] -= sign * amount
            if asked.exclusive[one]:
                profile.jobs[row, node] = -1 if sign > 0 else 0
            else:
                profile.jobs[row, node] += sign
        for licence in range(profile.licences.shape[1]):
            profile.licences[row, licence] -= sign * asked.licences[one, licence]
    profile.ends[profile.row[last]] += sign
    if start >= profile.time[first]:
        profile.ends[profile.row[first]] += sign
    if profile.ends[profile.row[last]] == 0:  # it is as the row before
        drop(profile, last, 1)
    if first > 0 and profile.ends[profile.row[first]] == 0:
        drop(profile, first, 1)


@kernel(allocates=False)
def most_in(profile: Profile, asked: Asked, one: int, row: int, node: int) -> int:
    """Return the most chunks of an alternative that fit on a node in a row."""
    jobs = profile.jobs[row, node]
    if jobs < 0 or (asked.exclusive[one] and jobs > 0):
        return 0
    most = asked.most_per_node[one]
    for resource in range(profile.amount.shape[2]):
        needs, there = asked.demand[one, resource], profile.amount[row, node, resource]
        if there < needs:
            return 0
        if most * needs > there:
            most = there // needs
    return int(most)


@kernel(allocates=False)
def room_in(profile: Profile, asked: Asked, one: int, row: int) -> int:
    """Return the chunks of an alternative for which there is room in a row; 0 if too few."""
    for licence in range(profile.licences.shape[1]):
        if asked.licences[one, licence] > profile.licences[row, licence]:
            return 0
    for resource in range(profile.total.shape[1]):
        if asked.chunks[one] * asked.demand[one, resource] > profile.total[row, resource]:
            return 0
    room, group = 0, asked.nodes[one]
    for member in range(asked.first_member[group], asked.first_member[group + 1]):
        room += most_in(profile, asked, one, row, asked.member[member])
        if room >= asked.chunks[one]:
            break
    return room


@kernel(allocates=False)
def place_from(
    profile: Profile, asked: Asked, one: int, first: int, last: int, place: Place
) -> int:
    """Place an alternative in the rows from `first` to before `last`; return the nodes, or 0."""
    missing, used, group = asked.chunks[one], 0, asked.nodes[one]
    for member in range(asked.first_member[group], asked.first_member[group + 1]):
        node, most = asked.member[member], missing
        for position in range(first, last):
            most = min(most, most_in(profile, asked, one, profile.row[position], node))
            if most == 0:
                break
        if most > 0:
            place.node[used], place.chunks[used] = node, most
            used += 1
            missing -= most
            if missing == 0:
                return used
    return 0


@kernel(allocates=False)
def earliest_of(
    profile: Profile, asked: Asked, one: int, duration: float, before: float, place: Place
) -> tuple[float, int]:
    """Return the earliest start of an alternative before a time, and its number of nodes or 0."""
    rows, first, last = profile.rows[0], 0, 0
    while first < rows and profile.time[first] < before:
        # a sum, not a difference: a reservation ends at this very sum, so its old hole fits
        end = profile.time[first] + duration
        last = max(last, first)
        while last < rows and profile.time[last] < end:
            if room_in(profile, asked, one, profile.row[last]) < asked.chunks[one]:
                break
            last += 1
        if last < rows and profile.time[last] < end:
            first = last + 1  # every start before covers this row
            continue
        used = place_from(profile, asked, one, first, last, place)
        if used > 0:
            return profile.time[first], used
        first += 1
    return np.inf, 0


@kernel(allocates=False)
def earliest(
    profile: Profile,
    asked: Asked,
    request: int,
    duration: float,
    before: float,
    place: Place,
    other: Place,
) -> tuple[float, int, int]:
    """Return the earliest start of a job before a time, its alternative and its number of nodes.

    Of alternatives that can start at one time the first. The nodes are in `place`; `other` is for
    the search. The alternative is `NOWHERE` if there is no start before that time.
    """
    start, chosen, number = before, NOWHERE, 0
    for one in range(asked.first[request], asked.first[request + 1]):
        at, used = earliest_of(profile, asked, one, duration, start, other)
        if used > 0:
            start, chosen, number = at, one, used
            for entry in range(used):
                place.node[entry], place.chunks[entry] = other.node[entry], other.chunks[entry]
    return start, chosen, number
