"""Execution models: scattered jobs, files to load, memory that is short, and shared resources."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from policies.workloads import jobs_with

from optsched import simulate
from optsched.column_sets import columns_on_file
from optsched.errors import InputError
from optsched.executions.paging import Paging
from optsched.machines.matrix import Matrix
from optsched.models.data_placement import DataPlacement
from optsched.models.data_placement.fields import Plan


def scattered_third(make_trace):
    # two jobs leave the nodes 0-1 and 4-5 free: the third is scattered, the fourth is not
    return make_trace(
        (0, 50, 50, 2), (0, 200, 200, 2), (0, 50, 50, 2), (60, 100, 100, 4), (300, 100, 100, 4)
    )


def run_of(trace, *, policy="fcfs", machine="nodes:6", **given):
    settings = {"alpha": 0.25, "beta": 1.0} | given
    options = {"execution": "contiguity", "check": True, "compiled_from": 0}
    return simulate(trace, machine, policy, settings=settings, **options)


def test_a_contiguous_allocation_saves_sensitive_jobs_alpha_of_the_run_time(make_trace):
    run = run_of(scattered_third(make_trace))
    assert run.resources[3] == "0-1 4-5"
    assert (run.end - run.start).tolist() == pytest.approx([37.5, 150, 37.5, 100, 75])
    assert run.jobs["lost_time"].tolist() == [0, 0, 0, 25, 0]
    assert run.summary["sensitive_jobs"] == 5
    assert run.summary["sensitive_scattered"] == 1
    assert run.summary["lost_processor_hours"] == pytest.approx(25 * 4 / 3600)
    run = run_of(scattered_third(make_trace), beta=0.0)
    assert (run.end - run.start).tolist() == [50, 200, 50, 100, 100]
    assert run.summary["sensitive_jobs"] == 0


@pytest.mark.parametrize("stated", ["scattered", "contiguous"])
def test_nodes_that_links_of_the_torus_connect_are_contiguous_on_request(stated, make_trace):
    trace = scattered_third(make_trace)
    runs = {
        (machine, adjacency): run_of(trace, machine=machine, stated=stated, adjacency=adjacency)
        for machine in ("torus:1x1x6", "torus:1x1x6:wrap=none")
        for adjacency in ("line", "torus")
    }
    assert {run.resources[3] for run in runs.values()} == {"0-1 4-5"}  # router 5 is beside router 0
    scattered = {key: run.summary["sensitive_scattered"] for key, run in runs.items()}
    assert list(scattered.values()) == [1, 0, 1, 1]
    for key, run in runs.items():
        by_model = (75.0, 100.0) if stated == "scattered" else (100.0, 100 / 0.75)
        assert run.end[3] - run.start[3] == pytest.approx(by_model[scattered[key]])
    with pytest.raises(InputError, match=r"adjacency=torus .* kind torus, not nodes:6"):
        run_of(trace, stated=stated, adjacency="torus")


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_both_readings_are_one_run_if_the_traces_state_the_same_times(alpha, policy, make_trace):
    rng = np.random.default_rng(3)
    submit, runtime, size = (rng.integers(*ends, 80) for ends in ((0, 3000), (1, 40), (1, 5)))
    runs = []
    for stated, time in (("contiguous", 12 * runtime), ("scattered", 12 * runtime / (1 - alpha))):
        rows = zip(np.sort(submit), time.astype(int), time.astype(int), size)
        runs.append(run_of(make_trace(*rows), stated=stated, alpha=alpha, policy=policy))
    assert runs[0].start == pytest.approx(runs[1].start)
    assert runs[0].end == pytest.approx(runs[1].end)
    assert runs[0].jobs["lost_time"].tolist() == pytest.approx(runs[1].jobs["lost_time"].tolist())
    assert runs[0].summary["sensitive_scattered"] > 0


def test_the_draw_of_sensitive_jobs_is_exact_seeded_and_nested(make_trace):
    trace = make_trace(*[(k, 10, 10, 1) for k in range(200)])
    chosen = {
        (beta, draw): run_of(trace, beta=beta, draw=draw, machine="nodes:8").jobs["sensitive"]
        for beta in (0.1, 0.25)
        for draw in (0, 1)
    }
    assert [int(column.sum()) for column in chosen.values()] == [20, 20, 50, 50]
    assert (chosen[0.1, 0] <= chosen[0.25, 0]).all()
    assert not np.array_equal(chosen[0.1, 0], chosen[0.1, 1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 1}, "expected a share from 0 and below 1"),
        ({"beta": 1.5}, "expected a share from 0 to 1"),
        ({"draw": -1}, "expected a seed from 0"),
        ({"stated": "both"}, "expected one of scattered, contiguous"),
        ({"adjacency": "ring"}, "expected one of line, torus"),
        ({"gamma": 1}, "setting 'gamma' of policy 'window' and execution model 'contiguity'"),
    ],
)
def test_settings_of_contiguity_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        simulate("unread.swf", policy="window", execution="contiguity", settings=settings)


def test_policy_and_model_take_their_own_settings(make_trace):
    settings = {"window": "7", "alpha": "0.5"}
    trace = scattered_third(make_trace)
    run = simulate(trace, "nodes:6", "window", execution="contiguity", settings=settings)
    assert run.config["settings"]["window"] == 7
    defaults = {"beta": 0.3, "draw": 0, "stated": "scattered", "adjacency": "line"}
    assert run.config["execution_settings"] == {"alpha": 0.5} | defaults


def loaded(trace, solver="fcfs", machine="cluster:2x2", **settings):
    return simulate(trace, machine, "locality", solver=solver, settings=settings, check=True)


def test_a_job_loads_or_waits_or_finds_its_file(jobs_with_files):
    trace = jobs_with_files(
        (0, 100, 500, 1, 7), (10, 100, 500, 1, 7), (20, 50, 500, 2, 8), (164, 10, 90, 1, 7)
    )
    found = loaded(trace)
    assert found.start.tolist() == [0, 10, 20, 164]
    assert found.end.tolist() == [164, 164, 20 + 128 + 50, 174]
    assert found.jobs["transfer_time"].tolist() == [64, 0, 128, 0]
    assert found.jobs["waiting_for_a_load"].tolist() == [0, 54, 0, 0]
    summary = found.summary
    assert summary["transfer_time"] == 192
    assert summary["waiting_for_a_load"] == 54
    assert summary["data_reuse"] == 2
    assert summary["core_time"] == 164 + 154 + 2 * 178 + 10
    stretch = [164 / 164, 154 / 164, 178 / 178, 10 / 74]
    assert found.jobs["stretch"].tolist() == pytest.approx(stretch)
    assert summary["mean_bounded_stretch"] == pytest.approx((164 + 154 + 178 + 10) / 300 / 4)


JOB = st.tuples(
    st.integers(0, 60), st.integers(1, 30), st.integers(1, 2), st.sampled_from([-1, 1, 2])
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(JOB, min_size=1, max_size=12),
    st.sampled_from(["users", "next"]),
    st.sampled_from(["none", "holes", "conservative"]),
)
def test_jobs_load_as_the_maths_say_of_their_starts(jobs_with_files, jobs, kept, backfill):
    """Every job runs to its limit, so that what is planned is what happens."""
    jobs = sorted(jobs)
    load = {-1: 0, 1: 7, 2: 3}
    trace = jobs_with_files(
        *((submit, seconds, seconds, cores, file) for submit, seconds, cores, file in jobs),
        file_size=np.array([100 * load[file] for *_, file in jobs]),
    )
    found = loaded(trace, "lea", f"cluster:2x2:kept={kept}", backfill=backfill)
    node = [int(text.split("-")[0]) // 2 for text in found.jobs["allocated_resources"]]
    _, walltimes, processors, files = np.array(jobs).T
    loads = [load[file] for file in files.tolist()]
    problem = DataPlacement([[0, 0]] * 2, processors, walltimes, files, loads, kept=kept)
    plan = Plan(node, found.start.astype(np.int64), np.ones(len(jobs)))
    times = found.jobs["transfer_time"] + found.jobs["waiting_for_a_load"]
    assert times.tolist() == problem.load_times(plan).tolist()


def test_loading_counts_against_the_limit(jobs_with_files):
    found = loaded(jobs_with_files((0, 100, 150, 1, 7)))
    assert (found.end.tolist(), found.summary["killed"]) == ([150], 1)


def test_only_the_evaluated_jobs_count(jobs_with_files):
    jobs = [(submit, 10, 90, 1, 1 + submit) for submit in range(3)]
    summary = loaded(jobs_with_files(*jobs, category=np.array([0, 1, 2]))).summary
    assert (summary["evaluated"], summary["transfer_time"]) == (1, 64)


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"file": [1.0, 2.0]}, "file: expected whole numbers"),
        ({"file": [1, -2]}, "file: -2 in job 2; expected a number from 0 to"),
        ({"file_size": [-1, 1]}, "file_size: -1 in job 1; expected MB from 0"),
        ({"file": [-1, 1]}, "file_size: 6400 in job 1; expected 0 where there is no file"),
        ({"file": [1, 1], "file_size": [64, 65]}, "file_size: 65 in job 2; expected the size"),
        ({"category": [5, 0]}, "category: 5 in job 1; expected a whole number from -2 to 2"),
        ({"category": [-2, 0], "history_start": [0, -1]}, "history_node: trace 'trace': missing"),
    ],
)
def test_annotations_that_cannot_be_are_refused(jobs_with_files, annotations, said):
    trace = jobs_with_files((0, 9, 9, 1, 1), (9, 9, 9, 1, 2))
    with pytest.raises(InputError, match=said):
        loaded(trace.annotated(**{name: np.array(column) for name, column in annotations.items()}))


def test_what_files_need_is_told(jobs_with_files, make_trace):
    trace = jobs_with_files((0, 9, 9, 1, 1))
    with pytest.raises(InputError, match="file_size: trace 'trace': its files have no sizes"):
        loaded(replace(trace, annotations={"file": trace.annotations["file"]}))
    with pytest.raises(InputError, match="'optsched trace annotate files TRACE' infers"):
        loaded(make_trace((0, 10, 20, 1)))
    with pytest.raises(InputError, match="is for clusters, not nodes:4"):
        simulate(trace, "nodes:4", "easy", execution="file-loading")


def test_jobs_without_files_reuse_none(jobs_with_files):
    trace = jobs_with_files((0, 9, 99, 1, -1), (0, 9, 99, 1, 7), (1, 9, 99, 1, 7), (2, 9, 99, 1, 8))
    sizes = np.array([0, 6400, 6400, 99])  # the last takes no whole second
    found = loaded(trace.annotated(file_size=sizes), machine="cluster:1x4")
    assert found.summary["data_reuse"] == 1


def test_sessions_are_what_a_user_submits_within_five_minutes(jobs_with_files):
    jobs = [(submit, 100, 100, 2, -1) for submit in (0, 1, 300, 301)]
    trace = jobs_with_files(*jobs, category=np.ones(4, dtype=int))
    summary = loaded(trace, machine="cluster:1x2").summary  # the second of each waits for 99 s
    assert (summary["sessions"], summary["mean_session_stretch"]) == (2, pytest.approx(2.99))
    nobody = replace(trace, user=np.full(4, -1))
    assert "sessions" not in loaded(nobody, machine="cluster:4x2").summary


def paged(trace, columns=1, mpl=3, **settings):
    settings = {"mpl": mpl, "sharing": "nodes"} | settings
    machine = f"matrix:{columns}"
    return simulate(trace, machine, "gang", settings=settings, execution="paging", check=True)


@pytest.mark.parametrize(
    ("memory", "jobs", "expected"), [(128, 2, 200), (256, 2, 200), (256, 3, 300), (128, 3, 1050)]
)
def test_three_jobs_of_45_mb_page_in_128_mb_as_in_figure_9(memory, jobs, expected, make_trace):
    trace = make_trace(*[(0, 100, 100, 1)] * jobs)
    run = paged(trace, node_memory=memory, job_memory=45)
    assert run.end.tolist() == pytest.approx([expected] * jobs)
    assert run.summary["paged_jobs"] == (jobs if expected > 300 else 0)


def test_a_job_pages_while_one_of_its_nodes_is_short(make_trace):
    # the first job holds both nodes; the second shares one from 10 s on, for as long as it needs
    trace = make_trace((0, 100, 100, 2), (10, 15, 15, 1))
    run = paged(trace, columns=2, node_memory=100, job_memory=60, slowdown=3.0)
    # both at 1/2 and 1/3: 15 s of work take 90 s; the first has done 10 + 15 s of work by then
    assert run.end.tolist() == pytest.approx([175, 100])
    # in its 45 s of turns it did 15 s of work
    assert run.jobs.paging_time.tolist() == pytest.approx([30, 30])
    assert run.summary["paging_processor_hours"] == pytest.approx((30 * 2 + 30) / 3600)


def test_the_memory_that_a_trace_states_counts(make_trace):
    trace = make_trace((0, 100, 100, 1), (0, 100, 100, 1))
    stated = replace(trace, memory=np.array([700 * 1024, -1]))
    assert paged(stated, node_memory=1000, job_memory=200).summary["paged_jobs"] == 0
    assert paged(stated, node_memory=1000, job_memory=400).summary["paged_jobs"] == 2


def test_on_nodes_of_its_own_a_job_pages_when_it_is_too_large_alone(make_trace):
    trace = replace(make_trace((0, 10, 40, 1), (0, 10, 40, 1)), memory=np.array([2048, 512]))
    settings = {"node_memory": 1.0}
    run = simulate(trace, "nodes:2", "fcfs", settings=settings, execution="paging", check=True)
    assert run.end.tolist() == [35, 10]
    assert run.jobs.paged.tolist() == [1, 0]


row = st.tuples(st.integers(0, 40), st.integers(1, 30), st.integers(1, 4), st.integers(1, 9))


@given(st.lists(row, min_size=1, max_size=10).map(sorted))
def test_only_jobs_on_short_nodes_page(make_trace, jobs):
    memory = np.array([job[-1] for job in jobs])
    trace = make_trace(*((submit, time, time, size) for submit, time, size, _ in jobs))
    trace = replace(trace, memory=memory * 1024)
    run = paged(trace, columns=4, mpl=4, node_memory=12.0)
    assert run.summary["finished"] == len(jobs)
    lost = run.jobs.paging_time.to_numpy()
    assert run.schedule.run_time == pytest.approx(run.trace.runtime + lost)
    assert ((lost > 1e-9) <= (run.jobs.paged == 1)).all()
    if 4 * memory.max() <= 12:
        assert not run.jobs.paged.any()
    held = [columns_on_file(text, 4) for text in run.resources]
    for one, other in combinations(range(len(jobs)), 2):
        together = min(run.end[one], run.end[other]) > max(run.start[one], run.start[other])
        if together and held[one] & held[other] and memory[one] + memory[other] > 12:
            assert run.jobs.paged[one]
            assert run.jobs.paged[other]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"node_memory": 0}, "node_memory 0.* expected MB above 0"),
        ({"job_memory": "-1"}, "job_memory -1.0; expected MB above 0"),
        ({"slowdown": 0.5}, "slowdown 0.5; expected a number from 1"),
        ({"slowdown": 1001.0}, "slowdown .*; expected"),
        ({"variation": -0.5}, "variation -0.5; expected a number from 0"),
        ({"draw": -1}, "draw -1; expected a whole number from 0"),
    ],
)
def test_settings_of_paging_that_make_no_sense_are_refused(settings, message, make_trace):
    with pytest.raises(InputError, match=message):
        paged(make_trace((0, 10, 10, 1)), **settings)


def test_a_job_may_need_any_memory_that_a_trace_can_state(make_trace):
    trace = make_trace(*[(0, 100, 100, 1)] * 3)
    run = paged(replace(trace, memory=np.full(3, 2**53)), node_memory=1e9)
    assert run.summary["paged_jobs"] == 3
    assert run.end.tolist() == pytest.approx([1050] * 3)


def test_drawn_memory_has_the_mean_and_variation_that_are_asked_for(make_trace):
    trace = make_trace(*[(0, 1, 1, 1)] * 20_000)
    execution = Paging(node_memory=1e6, job_memory=100.0, variation=2.0, draw=3)
    system = SimpleNamespace(machine=Matrix(1))
    execution.begin(system, trace)
    memory = np.array(execution._memory) / 1024
    assert memory.mean() == pytest.approx(100, rel=0.05)
    assert memory.std() / memory.mean() == pytest.approx(2.0, rel=0.05)
    execution.begin(system, replace(trace, memory=np.full(len(trace), 7 * 1024)))
    assert set(execution._memory) == {7 * 1024}


def test_jobs_that_page_are_those_of_the_draw(make_trace):
    trace = make_trace(*[(0, 100, 100, 1)] * 12)

    def paged_jobs(**settings):
        run = paged(trace, columns=12, node_memory=100.0, job_memory=90.0, **settings)
        return run.jobs["paged"].tolist()

    assert not any(paged_jobs())
    one, again, other = (paged_jobs(variation=1.0, draw=draw) for draw in (1, 1, 2))
    assert any(one)
    assert one == again != other


def shared_run(trace, machine="smp:1x4", policy="fcfs"):
    return simulate(trace, machine, policy, execution="resource-sharing", check=True)


def test_two_jobs_over_the_capacity_of_a_node():
    # from 50 s on they demand 8,000 of 6,000 MB/s: both run at 3/4 of their speed
    found = shared_run(jobs_with((0, 300, 9999, 2, 2000), (50, 100, 9999, 2, 2000)))
    assert found.end.tolist() == pytest.approx([50 + 100 / 0.75 + 150, 50 + 100 / 0.75])
    assert found.jobs["penalised_time"].tolist() == pytest.approx([100 / 3, 100 / 3])
    assert found.jobs["penalised_percent"].tolist() == pytest.approx([100 / 9, 100 / 3])
    summary = found.summary
    assert summary["penalised_jobs"] == 2
    assert summary["mean_penalised_percent"] == pytest.approx((100 / 9 + 100 / 3) / 2)
    assert summary["penalised_processor_hours"] == pytest.approx(4 * 100 / 3 / 3600)


def test_a_job_is_as_slow_as_on_the_worst_of_its_nodes():
    # processors 0-3 and 4-5; the second job saturates the second node only
    found = shared_run(jobs_with((0, 100, 999, 6, 1500), (0, 100, 999, 2, 6000)), "smp:2x4")
    speed = 1 / ((2 * 1500 + 2 * 6000) / 6000)
    assert found.end.tolist() == pytest.approx([100 / speed, 100 / speed])


def test_penalties_of_several_resources_add_up():
    trace = jobs_with((0, 100, 999, 4, 2000), network=[100])
    machine = "smp:1x4:bandwidth=6000:network=256"
    penalty = (8000 / 6000 - 1) + (400 / 256 - 1)
    assert shared_run(trace, machine).end.tolist() == pytest.approx([100 * (1 + penalty)])


def test_what_resource_sharing_needs_is_told():
    trace = jobs_with((0, 1, 1, 1, 1))
    with pytest.raises(InputError, match=r"is for nodes that share resources \(smp\), not nodes:4"):
        shared_run(trace, "nodes:4")
    with pytest.raises(InputError, match="bandwidth: expected whole numbers"):
        shared_run(trace.annotated(bandwidth=np.array([0.5])))


@pytest.mark.parametrize(
    ("jobs", "machine", "said"),
    [
        ([(0, 1, 1, 1, 10**9 + 1)], "smp:1x4", "bandwidth: 1000000001 in job 1; expected a demand"),
        ([(0, 1, 1, 1, 10**9)], "smp:1x1:bandwidth=1:x=999999937", "too large to be counted"),
    ],
)
@pytest.mark.parametrize("policy", ["easy", "sjbf"])
def test_numbers_that_no_problem_can_hold_are_refused_at_once(jobs, machine, said, policy):
    with pytest.raises(InputError) as raised:
        shared_run(jobs_with(*jobs), machine, policy)
    assert said in str(raised.value)


def rows(latest, longest, limits, widest, demands):
    """Return the strategy that draws jobs, of limits and demands among those given."""
    times = st.integers(0, latest), st.integers(1, longest), st.sampled_from(limits)
    row = st.tuples(*times, st.integers(1, widest), st.sampled_from(demands))
    return st.lists(row, min_size=1, max_size=8)


@given(
    jobs=rows(50, 100, [100, 10**5, 10**7, 10**9], 6, [0, 1, 10**3, 10**6, 10**9]),
    capacity=st.sampled_from([1, 7, 6000, 10**6, 10**9]),
    policy=st.sampled_from(["sjbf", "rua"]),
)
def test_what_is_not_refused_at_once_runs_to_its_end(jobs, capacity, policy):
    trace, machine = jobs_with(*jobs), f"smp:2x3:bandwidth={capacity}"
    try:
        shared_run(trace, machine, "fcfs")
    except InputError:  # the execution model looks first, whatever the policy
        with pytest.raises(InputError, match="too large to be counted"):
            shared_run(trace, machine, policy)
    else:
        found = shared_run(trace, machine, policy)
        assert found.summary["waiting"] == found.fallbacks == 0


def in_all(trace, machine, policy="fcfs", **other):
    chosen = {"settings": {"worst_node": "in-all"}, "execution": "resource-sharing"}
    return simulate(trace, machine, policy, **chosen, **other)


def test_penalties_of_different_nodes_at_different_times_do_not_add_up():
    # job 2 has a process on each node; job 3 doubles the time on the second node up to 20 s, and
    # job 4, in the place of job 1, that on the first from 50 to 70 s
    jobs = [(0, 50, 999, 1, 0), (0, 100, 999, 2, 1000), (0, 10, 999, 1, 5000)]
    trace, machine = jobs_with(*jobs, (50, 10, 999, 1, 5000)), "smp:2x2:bandwidth=3000"
    assert shared_run(trace, machine).end.tolist() == pytest.approx([50, 100 + 10 + 10, 20, 70])
    found = in_all(trace, machine, check=True)
    assert found.end.tolist() == pytest.approx([50, 100 + 10, 20, 70])
    assert found.jobs["penalised_time"].tolist() == pytest.approx([0, 10, 10, 10])


def ends_of_processes(found, nodes, processors, capacity):
    """Return the exact ends of the jobs of a run, by its starts and places alone."""
    jobs = found.jobs
    demand = found.trace.annotations["bandwidth"].tolist()
    width = nodes * processors
    held = [columns_on_file(str(text), width) for text in jobs["allocated_resources"]]
    node = (1 << processors) - 1
    counts = [[(of >> n * processors & node).bit_count() for n in range(nodes)] for of in held]
    start = [Fraction(one) for one in found.start.tolist()]
    limit = [Fraction(int(one)) for one in found.trace.requested_time]
    left = {
        (job, node): Fraction(int(found.trace.runtime[job]))
        for job, held in enumerate(counts)
        for node, count in enumerate(held)
        if count
    }
    ends = {}
    now = min(start)
    while len(ends) < len(start):
        on = [job for job in range(len(start)) if start[job] <= now and job not in ends]
        done = [job for job in on if all(left.get((job, n), 0) <= 0 for n in range(nodes))]
        done += [job for job in on if job not in done and now >= start[job] + limit[job]]
        if done:
            ends |= dict.fromkeys(done, now)
            continue
        slow = [
            max(Fraction(sum(counts[job][n] * demand[job] for job in on), capacity), Fraction(1))
            for n in range(nodes)
        ]
        steps = [one - now for one in start if one > now]
        steps += [start[job] + limit[job] - now for job in on]
        steps += [left[job, n] * slow[n] for job, n in left if job in on and left[job, n] > 0]
        step = min(steps)
        for job, n in left:
            if job in on:
                left[job, n] -= step / slow[n]
        now += step
    return [float(ends[job]) for job in range(len(start))]


@given(jobs=rows(40, 60, [1, 2, 9], 8, [500, 1000, 2000, 4000]))
def test_jobs_whose_processes_run_for_themselves_end_as_by_hand(jobs):
    jobs = sorted((submit, run, run * slack, width, mb) for submit, run, slack, width, mb in jobs)
    found = in_all(jobs_with(*jobs), "smp:4x2:bandwidth=3000", check=True)
    assert found.end.tolist() == pytest.approx(ends_of_processes(found, 4, 2, 3000))
    single = jobs_with(*((s, r, q, min(p, 2), mb) for s, r, q, p, mb in jobs))
    instant = shared_run(single, "smp:1x4:bandwidth=3000").end.tolist()
    assert in_all(single, "smp:1x4:bandwidth=3000").end.tolist() == pytest.approx(instant)
