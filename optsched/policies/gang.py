"""Gang scheduling on the Ousterhout matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from optsched.errors import InputError
from optsched.numbers import LONGEST
from optsched.registry import policies
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.policy import Answers, Policy


@policies.register("gang")
@dataclass
class Gang(Policy):
    """Jobs share the processors in time slices, all processes of a job in the same slice.

    At each submission and end the matrix is updated: ended jobs leave (clean), running jobs change
    rows but not columns, so that rows become empty (compact), waiting jobs get a row and columns
    (schedule), and jobs may also run in other rows in which their columns are idle (fill).
    Compaction and scheduling are one problem, for the chosen solver. No job is killed, since gang
    scheduling needs no estimates of run times.

    Parameters
    ----------
    mpl : int
        Multiprogramming level: the largest number of matrix rows.
    admission : {"fcfs", "skip"}
        Whether the jobs behind one that does not fit wait for that job, or may be placed.
    sharing : {"rows", "fill", "nodes", "turns"}
        Division of time. ``rows``: the rows take turns, and a job runs in its own row. ``fill``: a
        job also runs in other rows in which its columns are idle, in order of submission.
        ``nodes``: the jobs on a processor share its time, and a job runs at the speed of its
        slowest processor; a relaxation, since a schedule in which all processes of a job run
        together need not exist. These
        three are shares of the time, as of time slices that are short against run times.
        ``turns``: the rows take turns of `time_slice` seconds, and a job starts with its first.
    compact : bool
        Whether running jobs may change rows.
    window : int
        Number of jobs from the queue head that are packed together; if all get a place, the next
        ones follow.
    time_slice : float
        Seconds of a time slice, including the context switch.
    context_switch : float
        Seconds of each time slice that a job loses, unless the job runs in all rows.

    Raises
    ------
    InputError
        If there is no row or no job in the window, or the context switch takes a whole time slice.

    References
    ----------
    H. Franke, J. Jann, J. Moreira, P. Pattnaik, M. Jette, "An evaluation of parallel job scheduling
    for ASCI Blue-Pacific", Supercomputing 1999, sections 3 and 4.
    """

    mpl: int = 3
    admission: Literal["fcfs", "skip"] = "fcfs"
    sharing: Literal["rows", "fill", "nodes", "turns"] = "rows"
    compact: bool = True
    window: int = 100
    time_slice: float = 60.0
    context_switch: float = 0.0

    machines: ClassVar[frozenset[str]] = frozenset({"matrix"})
    models: ClassVar[Mapping[str, Answers]] = {"gang-packing": Answers("first-fit", "first-fit")}
    enforces_limits: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("mpl", "window"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)}; expected a whole number from 1")
        if not 0 < self.time_slice <= LONGEST:
            expected = f"expected seconds above 0 and at most {LONGEST:,}"
            raise InputError(f"time slice {self.time_slice}; {expected}")
        if not 0 <= self.context_switch < self.time_slice:
            expected = f"expected seconds from 0 and below the time slice of {self.time_slice}"
            raise InputError(f"context switch {self.context_switch}; {expected}")

    def compiled(self, run: CompiledRun) -> CompiledDecisions:
        """Bind the decision kernel to a run, with an empty matrix."""
        from optsched.policies._gang import ASK, SHARINGS, Rule
        from optsched.policies._gang_decisions import GangDecisions

        rule = Rule(
            columns=run.machine.size,
            rows=self.mpl,
            skips=self.admission == "skip",
            sharing=SHARINGS.index(self.sharing),
            compacts=self.compact,
            window=self.window,
            useful=1.0 - self.context_switch / self.time_slice,
            time_slice=float(self.time_slice),
            answer=ASK,
        )
        return GangDecisions(rule, run)
