"""The files in the memory of nodes, as their kernels keep them."""

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optsched.machines import cluster as kernels
from optsched.machines.cluster import NodeMemory, residents


class Use(NamedTuple):
    """Seconds that a job waits for its file, and whether it loads the file itself."""

    seconds: float
    loads: bool


class Memory(NodeMemory):
    """The memory of nodes, with what jobs do to it."""

    def use(self, node: int, file: int, load: int, now: float, until: float) -> Use:
        """Begin the use of a file by a job."""
        held = (self.table, self.latest_start, self.kept == "next")
        return Use(*kernels.use(*held, node, file, load, float(now), float(until)))

    def start(self, node: int, now: float) -> None:
        """Note the start of a job that uses no file."""
        if self.kept == "next":
            kernels.forget(self.table, self.latest_start, True, node, float(now))

    def drop(self, node: int, file: int, now: float) -> None:
        """End the use of a file by a job."""
        kernels.drop(self.table, node, file, float(now))


def test_there_is_room_when_starts_are_charged_for_and_come_out_of_order():
    memory = Memory(nodes=1, cores=1, kept="next")
    for file in range(9):
        start = 100.0 - file
        assert memory.use(0, file, 60, start, 900.0) == Use(60.0, loads=True)
        memory.drop(0, file, float(file))


SLOTS = st.tuples(
    st.sampled_from([-1.0, 3.0, 4.0]),
    st.just(7.0),
    st.sampled_from([0.0, 4.5, 5.0, 6.25]),
    st.sampled_from([0.0, 3.0, 4.5, 5.0, 9.5]),
    st.sampled_from([0.0, 1.0]),
)


@given(
    st.lists(SLOTS, min_size=4, max_size=4),
    st.lists(st.sampled_from([-np.inf, 3.0, 4.5, 5.0]), min_size=2, max_size=2),
    st.sampled_from([4.5, 5.0, 5.5]),
    st.booleans(),
)
def test_the_kernel_of_residents_agrees_with_their_definition(slots, starts, now, until_next):
    table = np.array(slots).T.reshape(5, 2, 2).copy()
    latest = np.array(starts)
    file, load, loaded, until, users = table
    before = np.where(latest >= now, -np.inf, latest)[:, None]
    there = (users > 0) | (until >= now)
    if until_next:
        there |= until > before
    there &= file != -1
    seconds = np.ceil(np.maximum(np.array([loaded, until]) - now, 0.0))
    columns = [np.nonzero(there)[0], *(column[there] for column in (file, load, *seconds))]
    found = residents(table, latest, now, until_next)
    assert np.array_equal(found, np.column_stack(columns))


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(-1, 4), st.integers(0, 3), st.integers(1, 5)),
        max_size=40,
    ),
    st.sampled_from(["users", "next"]),
)
def test_memory_agrees_with_a_log_of_all_starts(events, kept):
    """A job finds its file where the rule left it, which is told from all starts and ends."""
    cores, load = 3, 4
    memory = Memory(2, cores, kept)
    log = []  # node, file, start, end, when the file is complete
    now = 0.0

    def is_there(node, file, start, end, _):
        starts = [other[2] for other in log if other[0] == node]
        left_alone = kept == "next" and not any(end <= s < now for s in starts)
        return end >= now or left_alone

    for node, file, gap, length in events:
        before, now = now, now + gap
        for other in sorted(log, key=lambda use: use[3]):
            if before < other[3] <= now and other[1] >= 0:
                memory.drop(other[0], other[1], other[3])
        if sum(use[0] == node and use[3] > now for use in log) == cores:
            continue
        listed = memory.residents(now)
        known = {(use[0], use[1]) for use in log if use[1] >= 0 and is_there(*use)}
        assert set(map(tuple, listed[:, :2].tolist())) == known
        if kept == "next":
            begun = [use[0] for use in log if use[2] == now]
            assert memory.started(now).tolist() == [0 in begun, 1 in begun]
        complete = now + load
        if file < 0:
            memory.start(node, now)
        else:
            there = [use for use in log if use[:2] == (node, file) and is_there(*use)]
            complete = max((use[4] for use in there), default=complete)
            found = memory.use(node, file, load, now, now + length)
            assert found == Use(max(0.0, complete - now), loads=not there)
        log.append((node, file, now, now + length, complete))
