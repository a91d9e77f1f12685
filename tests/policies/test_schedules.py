"""Schedules: equal to independent statements, and to what other simulators computed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import registry, simulate
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

PROCESSORS = 8

workloads = st.lists(
    st.tuples(
        st.integers(0, 6),  # seconds since the job before
        st.integers(1, 12),  # run time
        st.integers(0, 8),  # by how much the request exceeds it
        st.integers(1, PROCESSORS),
    ),
    min_size=1,
    max_size=25,
)


def trace_of(workload):
    gaps, runtime, slack, processors = (np.array(column) for column in zip(*workload))
    return clean(
        Trace(
            job_id=np.arange(1, len(gaps) + 1),
            submit=np.cumsum(gaps),
            runtime=runtime,
            requested_time=runtime + slack,
            processors=processors,
            wait=slack,
        )
    )


def columns(trace):
    names = ("submit", "runtime", "requested_time", "processors")
    return [getattr(trace, name).tolist() for name in names]


VARIANTS = [
    ("fcfs", "batched", "fcfs", {}),
    ("fcfs", "one-by-one", "fcfs", {}),
    ("easy", "batched", "easy", {}),
    ("easy", "one-by-one", "easy", {"one_by_one": True}),
    ("easy-sjbf", "batched", "easy", {"shortest_first": True}),
    ("easy-sjbf", "one-by-one", "easy", {"one_by_one": True, "shortest_first": True}),
    ("conservative", "batched", "conservative", {}),
]


@pytest.mark.parametrize(("policy", "order", "statement", "options"), VARIANTS)
def test_schedules_equal_the_textbook(policy, order, statement, options, textbook):
    @given(workloads)
    @settings(max_examples=60, deadline=None)
    def compare(workload):
        trace = trace_of(workload)
        run = simulate(trace, f"nodes:{PROCESSORS}", policy, event_order=order, check=True)
        wanted = getattr(textbook, statement)(*columns(trace), PROCESSORS, **options)
        assert run.start.tolist() == wanted

    compare()


@pytest.mark.parametrize("policy", sorted(registry.policies))
def test_invariants_hold_under_every_policy(policy):
    kind, *_ = sorted(registry.policies[policy].machines)  # a line of nodes where a site is too
    machines = {
        "torus": "torus:2x2x2",
        "cluster": f"cluster:1x{PROCESSORS}",
        "smp": f"smp:2x{PROCESSORS // 2}",
        "site": "site:sample-site",
    }
    machine = machines.get(kind, f"{kind}:{PROCESSORS}")

    @given(workloads, st.sampled_from(["batched", "one-by-one"]))
    @settings(max_examples=25, deadline=None)
    def check(workload, order):
        trace = trace_of(workload)
        trace = trace.annotated(priority=trace.wait)
        if kind == "cluster":
            nothing = np.zeros(len(trace), np.int64)
            trace = trace.annotated(file=nothing - 1, file_size=nothing)
        if kind == "smp":
            trace = trace.annotated(bandwidth=np.zeros(len(trace), np.int64))
        run = simulate(trace, machine, policy, event_order=order, check=True)
        summary = run.summary
        accounted = ("finished", "killed", "rejected", "waiting")
        assert sum(summary[state] for state in accounted) == summary["jobs"] == len(trace)
        assert (run.start >= trace.submit).all()
        assert run.schedule.run_time == pytest.approx(trace.runtime, rel=1e-12)

    check()


ORACLES = [
    (f"{log}.{kind}5000", machine, policy)
    for log, machine in (("SDSC-SP2-1998-4.2-cln", 128), ("CTC-SP2-1996-3.1-cln", 338))
    for kind in ("", "perfect.")
    for policy in ("fcfs", "easy", "easy-sjbf", "conservative")
    if kind == "" or policy in ("easy", "conservative")
]


@pytest.mark.parametrize(("window", "machine", "policy"), ORACLES)
def test_schedules_equal_those_of_another_simulator(window, machine, policy, shared):
    given_jobs = pd.read_csv(shared(f"oracles/{window}.input.csv.gz"))
    wanted = pd.read_csv(shared(f"oracles/{window}.pyss-{policy}.csv.gz")).set_index("job")
    trace = clean(
        Trace(
            job_id=given_jobs.job.to_numpy(),
            submit=given_jobs.submit.to_numpy(),
            runtime=given_jobs.runtime.to_numpy(),
            requested_time=given_jobs.estimate.to_numpy(),
            processors=given_jobs.processors.to_numpy(),
        )
    )
    run = simulate(trace, f"nodes:{machine}", policy, event_order="one-by-one")
    assert int((run.start != wanted.start.loc[trace.job_id].to_numpy()).sum()) == 0


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_the_reader_and_the_schedule_equal_the_oracle_from_the_log_itself(policy, shared):
    log = "SDSC-SP2-1998-4.2-cln"
    wanted = pd.read_csv(shared(f"oracles/{log}.5000.pyss-{policy}.csv.gz")).set_index("job")
    path = shared(f"traces/{log}.swf.gz")
    run = simulate(path, policy=policy, jobs=(1, 5000), event_order="one-by-one")
    assert sorted(run.trace.job_id) == sorted(wanted.index)
    assert int((run.start != wanted.start.loc[run.trace.job_id].to_numpy()).sum()) == 0


@pytest.mark.parametrize(
    ("log", "jobs", "differences"),
    [
        ("SDSC-SP2-1998-4.2-cln", None, 3237),
        ("CTC-SP2-1996-3.1-cln", None, 24083),
        ("SDSC-BLUE-2000-4.2-cln", (1, 20000), 873),
    ],
)
def test_the_event_orders_differ_in_as_many_jobs_as_was_measured(log, jobs, differences, shared):
    # counted with other programs, see oracles/README.md
    trace = read_trace(shared(f"traces/{log}.swf.gz"))
    batched = simulate(trace, policy="easy", jobs=jobs)
    one_by_one = simulate(trace, policy="easy", jobs=jobs, event_order="one-by-one")
    assert int((batched.start != one_by_one.start).sum()) == differences
