"""Textbook statement of gang scheduling: sets of columns as masks, the matrix of the machine.

Its only purpose is to be compared with `optsched.policies.gang`.
"""

import math
from functools import partial
from itertools import accumulate

from optsched.column_sets import loads
from optsched.machines.matrix import Slice
from optsched.models.gang_packing import NOT_PLACED, GangPacking
from optsched.policies.gang import Gang
from optsched.simulator.policy import Move, Share, Start, Wake

# A sharing gives the share of time of each job, from the slice that each job holds, the columns in
# use of each row, and the useful part of a time slice after a context switch.


def by_turns(held, rows, useful, fill=False):
    """Give rows equal turns; a job runs in its own row.

    To fill, it also runs in rows in which all its columns are idle; jobs do so in the order of
    submission. A job that runs in every row is never switched; any other job is switched at each of
    its turns.
    """
    used = [row for row in rows if row]
    if len(used) <= 1:
        return dict.fromkeys(held, 1.0)
    turns = dict.fromkeys(held, 0)
    for row, busy in enumerate(rows):
        for job in sorted(held) if busy else ():
            place = held[job]
            if place.row == row or (fill and not busy & place.columns):
                busy |= place.columns
                turns[job] += 1
    return {
        job: 1.0 if count == len(used) else useful * count / len(used)
        for job, count in turns.items()
    }


def by_nodes(held, rows, useful):
    """Share each processor's time among its jobs; a job has the speed of its busiest processor.

    This is a relaxation: no processor is used more than all the time, but a schedule in which all
    processes of a job run together need not exist. Three jobs that share processors pairwise have
    half of the time each; as gangs, in turn, they would have a third.
    """
    levels = loads(rows)
    shares = {}
    for job, place in held.items():
        load = 1
        while load < len(levels) and levels[load] & place.columns:
            load += 1
        shares[job] = 1.0 if load == 1 else useful / load
    return shares


SHARINGS = {"rows": by_turns, "fill": partial(by_turns, fill=True), "nodes": by_nodes}


class TextbookGang(Gang):
    """Gang scheduling in the engine."""

    def begin(self, system):
        """Forget the shares of an earlier run."""
        self._shares, self._wakes_at = {}, 0.0
        self._row, self._turn_ends = None, math.inf
        self._useful = 1.0 - self.context_switch / self.time_slice

    def decide(self, system):
        """Compact and schedule, then share the time among the jobs."""
        rows, before = system.machine.rows, dict(system.held)
        by_turns = self.sharing == "turns"
        if not by_turns or system.submitted or system.ended:  # otherwise a turn ends
            yield from self._fill_rows(system)
        if by_turns:
            yield from self._take_turns(system)
        elif system.ended or system.held != before:
            shares = SHARINGS[self.sharing](system.held, rows, self._useful)
            for column in range(min(system.machine.size, 70)):
                here = [job for job, place in system.held.items() if place.columns >> column & 1]
                assert sum(shares[job] for job in here) <= 1 + 1e-12
            yield from self._share(shares)

    def _fill_rows(self, system):
        """Compact and schedule; nothing fits if the queue head had no place, and no job ended."""
        waited = len(system.queue) > len(system.submitted)
        blocked = self.admission == "fcfs" and waited and not system.ended
        candidates = [] if blocked else self._candidates(system)
        spare = self.compact and bool(system.ended) and has_spare_row(system.machine)
        while candidates or spare:
            placed = yield from self._pack(system, candidates)
            spare = False
            if placed < len(candidates):
                break
            # if all are placed, jobs behind the window may fit, too
            candidates = self._candidates(system)

    def _candidates(self, system):
        """Return the waiting jobs that may get a place now, judged by sizes alone."""
        processors, matrix = system.processors, system.machine
        free = self.mpl * matrix.size - sum(row.bit_count() for row in matrix.rows)
        window = system.queue[: self.window]
        if self.admission == "skip":
            return [job for job in window if processors[job] <= free]
        totals = accumulate(processors[job] for job in window)
        return [job for job, total in zip(window, totals) if total <= free]

    def _pack(self, system, candidates):
        """Pose the packing of running and waiting jobs; return the number of jobs started."""
        held = system.held
        running = list(held)
        packing = system.pose(
            GangPacking(
                columns=system.machine.size,
                rows=self.mpl,
                running=[held[job].columns for job in running],
                rows_of_running=[held[job].row for job in running],
                waiting=[system.processors[job] for job in candidates],
                admission=self.admission,
                rerow=self.compact,
                running_jobs=[system.job_id[job] for job in running],
                waiting_jobs=[system.job_id[job] for job in candidates],
            )
        )
        moves = {
            job: Slice(row, held[job].columns)
            for job, row in zip(running, packing.rows_of_running)
            if row != held[job].row
        }
        if moves:
            yield Move(moves)
        places = zip(packing.rows_of_waiting, packing.columns_of_waiting)
        for job, (row, columns) in zip(candidates, places):
            if row != NOT_PLACED:
                yield Start(job, Slice(row, columns))
        return sum(row != NOT_PLACED for row in packing.rows_of_waiting)

    def _take_turns(self, system):
        """Let the jobs of the row on turn run, until its turn ends.

        A row that is alone in use has one turn after the other. If the row on turn becomes empty,
        the turn of the next one begins at once.
        """
        used = [row for row, columns in enumerate(system.machine.rows) if columns]
        if self._row not in used or system.now >= self._turn_ends:
            late = self._row in used and (system.now - self._turn_ends) % self.time_slice
            self._turn_ends = system.now - late + self.time_slice
            if not late:  # else the row was alone until now
                last = -1 if self._row is None else self._row
                self._row = min(used, key=lambda row: (row <= last, row), default=None)
        share = self._useful if len(used) > 1 else 1.0
        yield from self._share(
            {job: share if place.row == self._row else 0.0 for job, place in system.held.items()}
        )
        if len(used) > 1 and self._turn_ends != self._wakes_at:
            self._wakes_at = self._turn_ends
            yield Wake(self._turn_ends)

    def _share(self, shares):
        """Yield the shares of time that have changed."""
        old, self._shares = self._shares, shares
        for job, share in shares.items():
            if old.get(job, 1.0) != share:
                yield Share(job, share)


def has_spare_row(matrix):
    """Return whether fewer rows might suffice, by the busiest column and by all processors held."""
    used = [row for row in matrix.rows if row]
    total = sum(row.bit_count() for row in used)
    return len(used) > max(len(loads(used)), -(-total // matrix.size))
