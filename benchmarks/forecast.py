"""Forecasts of a real queue beside the real starts, Slurm's own estimates and a second run.

    python benchmarks/forecast.py -o benchmarks/results

Protocol: a Slurm of 64 nodes runs on the loopback interface of this machine, with the shortest
cycles, as in ``real_slurm.py``. Random jobs are submitted at once, with the time limits of users:
in the mean five times as long as the jobs run. At each of the times ``--at`` after that, the state
of Slurm is captured as ``optsched slurm forecast`` does. How long like jobs run is known from other
jobs, drawn alike with another seed, in place of accounting. Of all jobs that waited at the time,
the forecast starts are compared with those that the same Slurm then made: the median of the draws,
the interval of 80 % of them, the start by the time limits, the ``StartTime`` that Slurm had planned
where it had, and the starts in a second run of that Slurm with the same jobs.

Errors are in seconds, forecast less real; "within" is the share of the real starts that are in the
interval, which Slurm's states to the second.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from real_slurm import CYCLES, GPUS, HAVE, SETTINGS, Job, drawn, jobs_of, table
from results import Times, circumstances, keep, shown

from optsched.slurm.capture import capture
from optsched.slurm.forecast import RunTimes, forecast
from optsched.slurm.future import Future
from optsched.slurm.running import read_captured

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from slurm.real_slurm import RealSlurm, why_not

DRAWS = 100


class Ran(NamedTuple):
    """What a real Slurm did: the starts of its jobs in seconds since 1970, and captured states."""

    starts: dict[int, float]
    began: float
    states: list[Path]


def run_really(jobs: Sequence[Job], at: Sequence[float], folder: Path) -> Ran:
    """Run jobs on a real Slurm, all submitted at once, and capture its state at some times."""
    slurm = RealSlurm(folder / "slurm", CYCLES["shortest"], SETTINGS, HAVE, gres=GPUS)
    os.environ |= slurm.variables
    states = []
    try:
        slurm.start()
        columns = {}
        for job in shown(jobs, len(jobs)):
            columns[int(slurm.submit(*job.options, seconds=job.seconds))] = job.columns
        began = time.time()
        for seconds in at:
            time.sleep(max(0.0, began + seconds - time.time()))
            state = folder / f"at-{seconds:g}"
            state.mkdir()
            capture(state)
            states.append(state)
        while slurm.call("squeue", "-h"):
            time.sleep(1)
        printed = folder / "jobs.txt"
        printed.write_text(slurm.call("scontrol", "-o", "show", "jobs"))
    finally:
        slurm.stop()
    ran = jobs_of(printed, columns)
    starts = [datetime.fromisoformat(str(at)).timestamp() for at in ran.start]  # of this machine
    return Ran(dict(zip(ran.job_id.tolist(), starts)), began, states)


def history(seed: int, count: int) -> RunTimes:
    """Return the shares of the limits that other jobs of the same kind take."""
    jobs = drawn(seed, 60.0, 10.0)[:count]
    shares = np.array([job.seconds / int(job.columns["requested_time"]) for job in jobs])
    limits = [f"{int(job.columns['requested_time'])}" for job in jobs]
    same = {"user": "root", "account": "", "partition": "batch"}
    texts = {name: [text] * len(jobs) for name, text in same.items()}
    return RunTimes(shares, texts | {"limit": limits})


def judged(
    state: Path, real: Ran, again: Ran, times: RunTimes
) -> tuple[list[dict[str, Any]], float]:
    """Return the rows of a captured state, and the seconds of its forecast."""
    queue, supply = read_captured(state)
    began = time.perf_counter()
    found = forecast(Future(queue, supply), times, draws=DRAWS, seed=1)
    seconds = time.perf_counter() - began
    starts = [one for one in found.starts if one.job.job_id in real.starts]
    there = np.array([real.starts[one.job.job_id] for one in starts])
    shift = real.began - again.began
    columns = {
        "median of draws": [one.median for one in starts],
        "by the limits": [one.by_limits for one in starts],
        "Slurm's StartTime": [one.job.start or np.nan for one in starts],
        "real again": [again.starts[one.job.job_id] + shift for one in starts],
    }
    low, high = (np.array([getattr(one, name) for one in starts]) for name in ("low", "high"))
    rows = []
    for name, values in columns.items():
        row = {"at_s": round(supply.time - real.began), "forecast": name}
        rows.append(row | _errors(np.array(values, dtype=np.float64) - there))
    rows[0]["within"] = float(((low <= there + 1) & (there - 1 <= high)).mean())
    rows[0]["width_s"] = float(np.median(high - low))
    return rows, seconds


def _errors(apart: NDArray[np.float64]) -> dict[str, Any]:
    known = apart[~np.isnan(apart)]
    return {
        "jobs": len(known),
        "mean_error_s": float(known.mean()) if len(known) else np.nan,
        "mean_abs_s": float(np.abs(known).mean()) if len(known) else np.nan,
        "median_abs_s": float(np.median(np.abs(known))) if len(known) else np.nan,
        "within": np.nan,
        "width_s": np.nan,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=1, help="number of workloads")
    parser.add_argument("--at", default="5,40,80", help="seconds after the submission")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    if reason := why_not():
        sys.exit(f"no real Slurm: {reason}")
    measured_on = circumstances()
    at = [float(each) for each in options.at.split(",")]
    times, rows = Times(), list[dict[str, Any]]()
    known = history(1000, 500)
    for seed in range(1, options.seeds + 1):
        jobs = drawn(seed, 60.0, 10.0)[: options.jobs]
        with tempfile.TemporaryDirectory() as folder:
            real, again = (run_really(jobs, at, Path(folder) / name) for name in ("a", "b"))
            for state in real.states:
                own, seconds = judged(state, real, again, known)
                rows += [{"seed": seed, **row} for row in own]
                times.add(f"seed {seed}, {state.name}", seconds)
    keep(options.output, "forecast", measured_on, table(rows), rows, times)


if __name__ == "__main__":
    main()
