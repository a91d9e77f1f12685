"""Places of jobs on lines, in matrices and on nodes, as texts, and the files in memory there."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import column_sets
from optsched.column_sets import interval_text, loads, lowest
from optsched.machines import cluster as kernels
from optsched.machines.cluster import Cluster, Cores, NodeMemory, residents
from optsched.machines.matrix import Matrix, Slice, runs_of, words_of
from optsched.machines.nodes import FreeRuns, Nodes
from optsched.machines.smp import Smp
from optsched.machines.texts import Texts, interval_runs


def test_every_broken_state_of_a_line_is_told():
    machine = Nodes(8)
    held = {1: machine.allocate(3), 2: machine.allocate(2)}
    assert machine.violations(held) == []
    assert machine.violations({1: held[1]}) == ["nodes 3-4 are lost"]
    for place, told in (
        ((3, 4), "nodes 3-3 are held by job 3 and by job 2"),
        ((7, 8), "nodes 7-7 are held by nobody and by job 3"),
        ((8, 9), "nodes from 8 are held by job 3; there are none"),
    ):
        assert machine.violations({**held, 3: (place,)}) == [told]
    machine.free = 4
    assert machine.violations(held) == ["4 nodes counted free, 3 are"]
    machine.free = 3
    machine.slots.starts, machine.slots.stops = [5, 6], [6, 8]
    assert machine.violations(held) == ["free runs touch at node 6"]


SIZE = 24


def runs_of_positions(free):
    """Return the maximal runs of a set of positions."""
    runs = []
    for position in sorted(free):
        if runs and runs[-1][1] == position:
            runs[-1] = (runs[-1][0], position + 1)
        else:
            runs.append((position, position + 1))
    return runs


@given(st.data())
def test_runs_are_those_of_a_set_of_positions(data):
    runs, free, held = FreeRuns(SIZE), set(range(SIZE)), []
    for _ in range(data.draw(st.integers(1, 25))):
        kind = data.draw(st.sampled_from(["first", "run", "give"]))
        if kind == "first" and free:
            size = data.draw(st.integers(1, len(free)))
            taken = runs.take_first(size)
            positions = {p for start, stop in taken for p in range(start, stop)}
            assert sorted(positions) == sorted(free)[:size]
            free -= positions
            held += taken
        elif kind == "run" and free:
            start, stop = data.draw(st.sampled_from(runs_of_positions(free)))
            start = data.draw(st.integers(start, stop - 1))
            stop = data.draw(st.integers(start + 1, stop))
            runs.take(start, stop)
            free -= set(range(start, stop))
            held.append((start, stop))
        elif kind == "give" and held:
            start, stop = held.pop(data.draw(st.integers(0, len(held) - 1)))
            runs.give(start, stop)
            free |= set(range(start, stop))
        assert list(zip(runs.starts, runs.stops)) == runs_of_positions(free)


def test_what_is_not_free_cannot_be_taken_and_what_is_free_cannot_be_given_back():
    runs = FreeRuns(10)
    runs.take(3, 6)
    for start, stop in ((2, 4), (3, 4), (4, 7), (8, 11), (7, 7)):
        with pytest.raises(ValueError, match="not all free"):
            runs.take(start, stop)
    with pytest.raises(ValueError, match="more than are free"):
        runs.take_first(8)
    for start, stop in ((2, 4), (5, 7), (0, 1), (3, 10)):
        with pytest.raises(ValueError, match="free already"):
            runs.give(start, stop)
    assert (runs.starts, runs.stops) == ([0, 6], [3, 10])


def test_a_place_is_a_row_and_columns():
    machine = Matrix(8)
    first = machine.claim(Slice(0, 0b11), 2)
    second = machine.claim(Slice(2, 0b110), 2)
    assert machine.free == 5
    assert machine.resources(second) == "1-2"
    assert machine.place_text(second) == "row 2: 1-2"
    assert machine.violations({1: first, 2: second}) == []
    machine.release(second)
    assert machine.rows == [0b11]  # rows behind the last job are gone


@pytest.mark.parametrize(
    ("place", "processors", "message"),
    [
        (Slice(0, 0b1), 1, "columns 0 of row 0 are not free"),
        (Slice(1, 0b11), 3, "a place of 2 columns for a job of 3"),
        (Slice(1, 0b10000), 1, "no place row 1: 4 in matrix:4"),
        (Slice(-1, 0b1), 1, "no place row -1"),
    ],
)
def test_a_place_that_is_none_is_refused(place, processors, message):
    machine = Matrix(4)
    machine.allocate(2)
    with pytest.raises(ValueError, match=message):
        machine.claim(place, processors)


def test_what_the_jobs_hold_is_compared_with_the_rows():
    machine = Matrix(4)
    held = {1: machine.allocate(3), 2: machine.allocate(2)}
    assert machine.violations({1: held[1]}) == ["columns 0-1 of row 1 are lost or invented"]
    assert machine.violations(held | {3: Slice(0, 0b100)}) == ["job 3 shares columns 2 of row 0"]
    machine.rows.append(0)
    assert machine.violations(held) == ["row 2 behind the last job is kept"]


@given(st.data())
def test_jobs_come_and_go_in_a_matrix_and_nothing_is_lost(data):
    machine, held = Matrix(7), {}
    for job in range(data.draw(st.integers(1, 25))):
        if held and data.draw(st.booleans()):
            machine.release(held.pop(data.draw(st.sampled_from(sorted(held)))))
        size = data.draw(st.integers(1, 7))
        held[job] = machine.allocate(size)
        assert held[job].columns.bit_count() == size
        assert machine.violations(held) == []
        assert machine.is_contiguous(held[job]) == (" " not in machine.resources(held[job]))
    for place in held.values():
        machine.release(place)
    assert (machine.rows, machine.free) == ([], 7)


def test_a_place_is_the_first_free_processors_of_each_node():
    machine = Smp(3, 4)
    first = machine.claim(machine.place([1, 0, 3]), 4)
    assert machine.resources(first) == "0 8-10"
    second = machine.claim(machine.place([3, 4, 1]), 8)
    assert machine.resources(second) == "1-7 11"
    assert machine.free == 0
    machine.release(first)
    assert machine.free_of.tolist() == [1, 0, 3]
    nodes, processes = machine.processes(second)
    assert (nodes.tolist(), processes.tolist()) == ([0, 1, 2], [3, 4, 1])
    with pytest.raises(ValueError, match="2 processes for 1 free processors"):
        machine.place([2, 0, 0])


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=30), st.randoms())
def test_free_processors_of_nodes_are_counted(steps, random):
    machine, held = Smp(4, 3), {}
    for job, (first_fit, size) in enumerate(steps):
        if size <= machine.free:
            if first_fit:
                held[job] = machine.allocate(size)
            else:
                free = [node for node in range(4) for _ in range(machine.free_of[node])]
                chosen = random.sample(free, size)
                place = machine.place(np.bincount(chosen, minlength=4))
                held[job] = machine.claim(place, size)
        elif held:
            machine.release(held.pop(random.choice(sorted(held))))
        assert machine.violations(held) == []
    for allocation in held.values():
        machine.release(allocation)
    assert machine.free_of.tolist() == [3] * 4


def test_jobs_hold_cores_of_one_node():
    machine = Cluster(2, 4)
    first = machine.allocate(3)
    second = machine.allocate(2)
    assert (first, second) == (Cores(0, 0b0111), Cores(1, 0b0011))
    assert machine.resources(second) == "4-5"
    assert machine.free == 3
    with pytest.raises(ValueError, match="no node has 3 free cores"):
        machine.allocate(3)
    for cores, said in ((0b0110, "cores 1 of node 1 are not free"), (0b0100, "a place of 1 cores")):
        with pytest.raises(ValueError, match=said):
            machine.claim(Cores(1, cores), 2)
    assert machine.is_free(Cores(1, 0b1100))
    assert not machine.is_free(Cores(1, 0b0110))
    contiguous = [machine.is_contiguous(Cores(0, cores)) for cores in (0b1, 0b1110, 0b101, 0b1011)]
    assert contiguous == [True, True, False, False]
    machine.release(second)
    assert machine.violations({0: first}) == []


def test_violations_of_a_cluster_name_what_is_wrong():
    machine = Cluster(2, 4)
    held = machine.allocate(3)
    assert machine.violations({}) == ["cores 0-2 of node 0 are lost"]
    found = machine.violations({0: held, 1: Cores(0, 0b0100), 2: Cores(1, 0b1)})
    assert found[0] == "cores 2 of node 0 are held twice, by job 1 too"
    assert found[1] == "cores 0 of node 1 are held twice, by job 2 too"
    machine.free = 7
    assert machine.violations({0: held}) == ["7 cores counted free, 5 are"]


runs = st.sets(st.integers(0, 12_000), max_size=6).map(
    lambda ends: list(zip(sorted(ends)[::2], sorted(ends)[1::2]))
)


@given(st.lists(runs, max_size=5))
def test_the_runs_that_are_read_are_those_that_were_written(allocations):
    machine = Nodes(12_001)
    stored = Texts.of([machine.resources(tuple(runs)) for runs in allocations])
    first, last, read = interval_runs(stored.text, stored.offset)
    assert [
        [tuple(run) for run in read[begin:end].tolist()] for begin, end in zip(first, last)
    ] == allocations


sets = st.integers(0, 2**192 - 1) | st.tuples(st.integers(0, 192), st.integers(0, 192)).map(
    lambda ends: abs((1 << ends[0]) - (1 << ends[1]))
)


@given(st.lists(sets, max_size=4))
def test_the_runs_of_sets_of_columns_are_those_of_their_masks(masks):
    first, last, found = runs_of(words_of(masks, 3))
    read = [[tuple(run) for run in found[a:b].tolist()] for a, b in zip(first, last)]
    assert read == [list(column_sets.runs_of(mask)) for mask in masks]


@given(st.lists(runs.map(lambda runs: " ".join(f"{i}-{j}" for i, j in runs))))
def test_texts_in_one_array_are_the_texts(texts):
    stored = Texts.of(texts)
    assert [*stored] == texts
    assert Texts.of(stored) is stored
    assert stored.filled.tolist() == [text != "" for text in texts]
    assert [*stored.without_empty()] == [text for text in texts if text]
    assert stored.occurrences(" ").tolist() == [text.count(" ") for text in texts]
    assert [*Nodes(9).job_measures(stored)["runs"]] == [1 + text.count(" ") for text in texts]


texts_of_few_kinds = st.lists(st.sampled_from(["", "0", "0-1", "0 1"]), max_size=3)


@given(texts_of_few_kinds, texts_of_few_kinds)
def test_texts_equal_the_sequences_of_the_same_texts(texts, others):
    stored, same = Texts.of(texts), texts == others
    longer = Texts.of([*others, "2"])
    begun = Texts(longer.text, longer.offset[:-1])
    for other in (others, tuple(others), Texts.of(others), begun):
        assert (stored == other) == (other == stored) == same
        assert (stored != other) == (other != stored) == (not same)


def test_texts_equal_nothing_else():
    for other in ("01", {"0", "1"}, ["0", 1], ["0", "é"], None, iter(["0", "1"])):
        assert Texts.of(["0", "1"]) != other


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
    """The rule decides by all starts and ends whether a job finds its file on a node."""
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


columns = st.frozensets(st.integers(0, 90), max_size=40)


def number(members):
    return sum(1 << member for member in members)


@given(columns, st.data())
def test_runs_and_intervals_make_up_the_set_and_the_lowest_are_the_first(these, data):
    runs = list(column_sets.runs_of(number(these)))
    assert {column for start, stop in runs for column in range(start, stop)} == these
    assert all(before < after for (_, before), (after, _) in pairwise(runs))
    ends = [word.split("-") for word in interval_text(number(these)).split()]
    assert [(int(named[0]), int(named[-1]) + 1) for named in ends] == runs
    count = data.draw(st.integers(0, len(these)))
    assert lowest(number(these), count) == number(sorted(these)[:count])


@given(st.lists(columns, max_size=6))
def test_loads_count_the_sets_over_each_column(sets):
    levels = loads(map(number, sets))
    for column in range(91):
        load = sum(column in one for one in sets)
        assert [level >> column & 1 for level in levels] == [load > at for at in range(len(levels))]
    assert all(levels)
