"""Files that stay on a node until the next start."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from machines.memory import Memory, Use

FOUND = Use(0.0, loads=False)
LOADED = Use(60.0, loads=True)


def left_at(second: float) -> Memory:
    """Return a memory whose node 0 has file 7, used from 0 to a second."""
    memory = Memory(nodes=2, cores=2, kept="next")
    memory.use(0, 7, 60, 0.0, 500.0)
    memory.drop(0, 7, second)
    return memory


def test_a_file_waits_for_the_next_start_however_long():
    assert left_at(100.0).use(0, 7, 60, 9999.0, 10000.0) == FOUND
    memory = left_at(100.0)
    memory.start(1, 200.0)  # on another node
    assert memory.use(0, 7, 60, 9999.0, 10000.0) == FOUND


def test_a_job_without_a_file_evicts_it_too():
    memory = left_at(100.0)
    memory.start(0, 200.0)
    assert memory.use(0, 7, 60, 201.0, 900.0) == LOADED


def test_a_start_in_the_very_second_of_the_end_evicts_and_one_before_does_not():
    memory = left_at(100.0)
    memory.start(0, 100.0)
    assert memory.use(0, 7, 60, 101.0, 900.0) == LOADED
    memory = Memory(nodes=2, cores=2, kept="next")
    memory.use(0, 7, 60, 0.0, 500.0)
    memory.start(0, 99.0)
    memory.drop(0, 7, 100.0)
    assert memory.use(0, 7, 60, 101.0, 900.0) == FOUND


def test_starts_of_one_instant_do_not_evict_for_each_other():
    memory = left_at(100.0)
    memory.start(0, 200.0)
    memory.use(0, 8, 60, 200.0, 300.0)
    assert memory.use(0, 7, 60, 200.0, 300.0) == FOUND


def test_there_is_room_when_starts_are_charged_for_and_come_out_of_order():
    memory = Memory(nodes=1, cores=1, kept="next")
    for file in range(9):
        start = 100.0 - file
        assert memory.use(0, file, 60, start, 900.0) == LOADED
        memory.drop(0, file, float(file))


def test_residents_stay_listed_until_they_are_evicted():
    memory = left_at(100.0)
    assert memory.residents(150.0).tolist() == [[0, 7, 60, 0, 0]]
    memory.start(0, 200.0)
    assert memory.residents(200.0).tolist() == [[0, 7, 60, 0, 0]]
    assert memory.started(200.0).tolist() == [True, False]
    assert len(memory.residents(201.0)) == 0
    assert not memory.started(201.0).any()


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(-1, 4), st.integers(0, 3), st.integers(1, 5)),
        max_size=40,
    ),
    st.sampled_from(["users", "next"]),
)
@settings(deadline=None)
def test_memory_agrees_with_a_log_of_all_starts(events, kept):
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
        complete = now + load
        if file < 0:
            memory.start(node, now)
        else:
            there = [use for use in log if use[:2] == (node, file) and is_there(*use)]
            complete = max((use[4] for use in there), default=complete)
            found = memory.use(node, file, load, now, now + length)
            assert found == Use(max(0.0, complete - now), loads=not there)
        log.append((node, file, now, now + length, complete))
