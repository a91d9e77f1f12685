"""The functions of the study of Weng et al. 2023, on small clusters and on the stored answers."""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from optsched import registry
from optsched.cli import run as optsched
from optsched.content import bundled
from optsched.errors import InputError
from optsched.solvers.node_placement.fit_rules import BestFit, FirstFit
from optsched.studies.folder import StudyFolder, read_results

STUDIED = "openb-2023"
STUDY = StudyFolder(bundled("studies") / STUDIED)
NAMES = ("answers", "cluster", "trace")
ANSWERS, CLUSTER, TRACE = (sys.modules[f"{STUDY._module.__name__}.{name}"] for name in NAMES)
Answers, EXACT, Cluster = ANSWERS.Answers, ANSWERS.EXACT, CLUSTER.Cluster
coming_and_going, in_batches = CLUSTER.coming_and_going, CLUSTER.in_batches

T4, T4_PAIR = (8, 1, "T4"), (8, 2, "T4")

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,1000,0,\nn1,8000,500,2,T4\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
    "p0,4000,10,1,300,T4|G2,LS,Running,5,20,\n"
    "p1,1000,20,2,1000,,BE,Failed,6,6,6\n"
    "p2,500,30,0,0,,BE,Pending,7,9,\n"
)


def pods_of(*pods):
    """Pods as (cores, thousandths of GPUs, created, deleted), each with models it may use."""
    cores, share, created, deleted = np.array([pod[:4] for pod in pods]).T
    models = tuple(frozenset(pod[4:]) for pod in pods)
    return TRACE.Pods(np.stack([cores, 0 * cores], axis=1), share, models, created, deleted)


def nodes_of(*nodes):
    """Nodes as (cores, GPUs, model)."""
    cores, gpus = np.array([node[:2] for node in nodes]).T
    models = tuple(node[2] for node in nodes)
    return TRACE.Nodes(np.stack([cores, 0 * cores], axis=1), gpus, models)


def test_nodes_and_pods_are_read_from_gzip_files_too(tmp_path):
    of_nodes, of_pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    of_nodes.write_bytes(gzip.compress(NODES.encode()))
    of_pods.write_text(PODS)
    nodes, pods = TRACE.read_nodes(of_nodes), TRACE.read_pods(of_pods)
    assert nodes.total.tolist() == [[32000, 1000], [8000, 500]]
    assert (nodes.gpus.tolist(), nodes.models) == ([0, 2], ("none", "T4"))
    assert pods.demand.tolist() == [[4000, 10], [1000, 20], [500, 30]]
    assert pods.share.tolist() == [300, 2000, 0]
    assert pods.models == (frozenset({"T4", "G2"}), frozenset(), frozenset())
    assert (pods.created.tolist(), pods.deleted.tolist()) == ([5, 6, 7], [20, 6, 9])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("num_gpu", "gpus", "line 1: no column num_gpu; expected one"),
        ("p0,4000", "p0,4.5", "line 2, cpu_milli: '4.5'; expected a whole number from 0 to 9007"),
        ("p1,1000", "p1", "line 3: 10 columns; expected 11, as in line 1"),
        ("2,1000", "2,500", "line 3, gpu_milli: '500'; expected 1 to 1000, and 1000 for several"),
        ("7,9", "7,6", "line 4, deletion_time: '6'; expected a time not before creation_time"),
        (PODS[PODS.index("p0") :], "", "pods.csv: no rows; expected one at least"),
        ("p0,", '"p0,', "pods.csv: not CSV; expected a line of column names"),
    ],
)
def test_what_is_wrong_with_a_file_is_named_in_one_line(old, new, message, tmp_path):
    file = tmp_path / "pods.csv"
    file.write_text(PODS.replace(old, new, 1))
    with pytest.raises(InputError) as raised:
        TRACE.read_pods(file)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_problem_has_what_is_free_and_models_that_exist():
    cluster = Cluster(nodes_of(T4_PAIR, (4, 0, "none")))
    pods = pods_of((1, 300, 0, 1, "T4", "G9"), (2, 2000, 0, 1), (3, 0, 0, 1))
    cluster.take(pods, 0, 0, [1])
    problem = cluster.problem(pods)
    assert problem.free.tolist() == [[7, 0], [4, 0]]
    assert problem.devices == ((1000, 700), ())
    assert problem.weights.tolist() == problem.share.tolist() == [300, 2000, 0]
    assert problem.allowed == (("T4",), None, None)
    cluster.take(pods, 0, 0, [1], -1)
    assert cluster.problem(pods, pods.chosen([1])).weights.tolist() == [600, 4000, 0, 2000]
    assert cluster.shares == 2000


MODELS = st.sampled_from(("T4", "G2"))
SHARES = st.sampled_from([0, 200, 500, 900, 1000, 2000])


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), MODELS), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 3), SHARES, st.sets(MODELS)), min_size=1, max_size=6),
)
def test_a_pod_fits_exactly_where_first_fit_places_it(nodes, pods):
    nodes = nodes_of(*nodes)
    asked = pods_of(*((cores, share, 0, 1, *models) for cores, share, models in pods))
    cluster = Cluster(nodes)
    for pod in range(len(pods)):
        [at], _ = FirstFit().place(cluster.problem(asked.chosen([pod])))
        fits = [CLUSTER.devices_for(cluster, asked, pod, node) for node in range(len(nodes.gpus))]
        first = next((node for node, devices in enumerate(fits) if devices is not None), None)
        assert at == (() if first is None else (first,))
        if first is not None:
            cluster.take(asked, pod, first, fits[first])
    assert (cluster.free >= 0).all()


def test_partly_busy_nodes_have_room_for_what_the_queue_asks():
    nodes = nodes_of(*[(16, 2, "T4")] * 5)
    pods = pods_of(*[(2, share, 0, 1) for share in (300, 1000, 500, 2000)] * 10)
    (cluster, queue), (again, _) = (CLUSTER.partly_busy(nodes, pods, 0.9, 0.5, 1) for _ in "12")
    assert cluster.devices == again.devices
    assert 0 < cluster.shares < 10_000
    assert int(queue.share[:-1].sum()) < cluster.shares <= int(queue.share.sum())
    full, _ = CLUSTER.partly_busy(nodes, pods, 0.9, 0.0, 1)
    assert full.shares <= 1000


def test_one_batch_is_all_at_once_and_every_batch_stays():
    nodes = nodes_of(T4_PAIR, T4)
    pods = pods_of((1, 600, 0, 1), (1, 600, 0, 1), (1, 1000, 0, 1), (1, 400, 0, 1), (9, 0, 0, 1))
    problem = Cluster(nodes).problem(pods)
    for size, rule in ((5, FirstFit()), (5, BestFit()), (1, FirstFit())):
        found = in_batches(Cluster(nodes), pods, size, rule.place)
        assert found == rule.place(problem)
    assert found.nodes[4] == ()
    exact = Answers(EXACT, 1.0)
    for size in (1, 2, 3, 5):
        forecast = ANSWERS.drawing(pods.chosen(range(4)), np.random.default_rng(1))
        found = in_batches(Cluster(nodes), pods, size, exact, forecast)
        assert problem.violations(found) == []
        assert len(found.nodes) == 5
    assert problem.objective(in_batches(Cluster(nodes), pods, 5, exact)) == 2600


def test_a_forecast_keeps_room_for_what_comes():
    """The share goes to the node whose GPU is in use, if whole GPUs are to be expected."""
    nodes, pods = nodes_of(T4, T4), pods_of((1, 500, 0, 1), (1, 500, 0, 1), (1, 1000, 0, 1))
    posed = []

    def answer(problem):
        posed.append(problem.share.tolist())
        return Answers(EXACT, 1.0)(problem)

    found = in_batches(Cluster(nodes), pods, 1, answer, lambda shares: pods.chosen([2]))
    assert posed[0] == [500, 1000]
    assert found.nodes[0] == found.nodes[1] != found.nodes[2] != ()


def test_pods_that_come_and_go_wait_for_room():
    pods = pods_of((1, 1000, 0, 10), (1, 600, 2, 5), (1, 0, 3, 4), (1, 600, 4, 24), (1, 300, 4, 6))
    started, decisions = coming_and_going(nodes_of(T4), pods, FirstFit().place)
    # at 10 the second pod starts, with the last one; the fourth follows at 13
    assert (started.tolist(), decisions) == ([0, 10, 3, 13, 10], 7)
    pods = pods_of((1, 1000, 5, 5), (1, 1000, 5, 8))  # the first one leaves at once
    assert coming_and_going(nodes_of(T4), pods, FirstFit().place)[0].tolist() == [5, 5]


def test_the_exact_solver_is_asked_where_fgd_leaves_pods_out():
    cluster, answers = Cluster(nodes_of(T4)), Answers(ANSWERS.LEFT_OUT, 1.0)
    both, one = pods_of((1, 300, 0, 1), (1, 700, 0, 1)), pods_of((1, 600, 0, 1), (1, 1000, 0, 1))
    assert answers(cluster.problem(both)).nodes == ((0,), (0,))
    before = answers.cost["nominal_seconds"]
    assert answers(cluster.problem(one)).nodes == ((), (0,))
    spent = answers.cost["nominal_seconds"] - before
    assert spent >= registry.solvers[EXACT.solver].seconds_per_solve
    # pods that no idle node can hold are left out
    pods = pods_of((1, 2000, 0, 1), (1, 3000, 0, 1), (5, 0, 0, 1), (1, 0, 0, 1, "G2"))
    assert ANSWERS.fitting(nodes_of((4, 2, "T4")), pods).share.tolist() == [2000]


def test_leaves_are_read_and_some_of_their_hosts_are_free(tmp_path):
    file = tmp_path / "topo.csv"
    file.write_text("ip,DSW,PSW,ASW\na,D,P1,S1\nb,D,P2,S1\nc,D,P1,S1\n")
    assert CLUSTER.read_leaves(file) == [2, 1]
    case = {"jobs": 4, "sizes": [1, 2], "fill": 0.9}
    free = CLUSTER.whole_nodes([8] * 4, 1, busy=0.0, blocks=0, **case)
    assert (len(free.free), free.span) == (32, ("anywhere",) * 4)
    assert free.weights.tolist() == [1] * 4
    blocks = CLUSTER.whole_nodes([8] * 4, 1, busy=0.5, blocks=2, **case)
    assert 0 < len(blocks.free) < 32
    assert set(blocks.blocks) == {"0", "1"}
    assert blocks.weights.tolist() == blocks.chunks.tolist()
    assert int(blocks.chunks.sum()) <= 0.9 * len(blocks.free)


def draws(placed, fragmentation=None, part="ties"):
    """Answers to draws of the list default, from the GPUs placed in each by way."""
    return pd.DataFrame(
        {"part": part, "list": "default", "seed": seed, "order": seed, "way": way, "placed": value}
        | {"fragmentation": (fragmentation or placed)[way][seed]}
        for way, values in placed.items()
        for seed, value in enumerate(values)
    )


def test_claims_are_judged_over_draws():
    rules = {"first fit": [0, 0, 0], "best fit": [5900, 5910, 5920]}
    rules |= {"GPU packing": [5890, 5912, 5921], "FGD, 40 types": [5880, 5880, 5880]}
    less = {"FGD": [10, 10, 10], "first fit": [12, 14, 16], "best fit": [13, 13, 13]}
    less |= {"GPU packing": [99, 99, 99], "FGD, 40 types": [99, 99, 99]}
    runs = draws({"FGD": [5910, 5922, 5934]} | rules, less)

    def of(name, reading="random", runs=runs, **more):
        return STUDY.call(name, runs, reading, pods="default", **more)

    gain = of("more", rule="best fit")
    assert gain[0] == 12
    assert gain[1:3] == pytest.approx(stats.t.interval(0.95, 2, 12, 2 / 3**0.5))
    assert of("more", "few", rule="best fit").mean == -30
    assert of("left").mean == pytest.approx(6212 - np.mean([5900, 5912, 5921]))
    assert of("less_fragmentation").mean == pytest.approx(np.mean([2, 3, 3]))
    assert of("as_published").mean == pytest.approx(5922 - 0.9539 * 6212)
    # the first of equal nodes is another part; several orders of a draw are one unit
    listed = draws({"FGD": [5900, 5900, 5900]} | rules, less, "arrivals")
    more = draws({"FGD": [0, 0, 0]} | rules, less).assign(order=9)
    every = pd.concat([runs, listed, more])
    assert of("more", "listed", every, rule="best fit").mean == -10
    assert of("more", "random", every, rule="best fit") == gain


def test_stored_answers_are_within_their_bounds_and_never_behind(frame, found):
    exact = frame[(frame["way"] == "exact") & frame["bound"].notna()]
    assert len(exact) == 33 + 15
    assert (exact["placed"] <= exact["bound"] + 1e-9).all()
    keys = ["part", "list", "nodes", "seed"]
    whole = frame[frame["part"].isin(["busy", "whole", "arrivals"])].fillna({"seed": 0})
    best = whole.groupby(keys)["placed"].max()
    of_exact = whole[whole["way"] == "exact"].set_index(keys)["placed"]
    assert (of_exact >= best.loc[of_exact.index] - 1e-9).all()
    # the noise floor is that of orders of the nodes
    own = frame[(frame["part"] == "ties") & (frame["list"] == "default") & (frame["seed"] == 1)]
    wide = own.pivot(index="order", columns="way", values="placed")
    gains = wide["FGD"] - wide["GPU packing"]
    low, high = stats.t.interval(0.95, 7, scale=gains.std(ddof=1) * (9 / 8) ** 0.5)
    assert found.values["noise.packing.default.smallest"] == pytest.approx((high - low) / 2)


def test_shares_of_batches_are_those_of_all_at_once():
    rows = [("exact", np.nan, 10.0), ("exact", 1, 8.0), ("exact with a forecast", 16, 9.0)]
    rows.append(("FGD", np.nan, 12.0))
    frame = pd.DataFrame(rows, columns=["way", "size", "placed"])
    found = STUDY.call("of_best", frame.assign(part="batches", nodes=4, seed=1)).loc[4, 1]
    ways = [("exact", 0), ("exact", 1), ("exact with a forecast", 16), ("FGD", 0)]
    assert [found[way] for way in ways] == pytest.approx([100, 80, 90, 120])


@pytest.mark.long
def test_the_quick_study_from_the_command_line(shared, tmp_path):
    traces = shared("traces/clusters/openb_node_list_all_node.csv.gz").parents[1]
    command = ["study", "openb-2023", "--quick", "--traces", str(traces), "-o", str(tmp_path)]
    assert optsched(command) == 0
    frame = read_results(tmp_path / "results")
    assert set(frame["part"]) == set(ANSWERS.PARTS_OF)
    exact = frame[(frame["way"] == "exact") & frame["bound"].notna()]
    assert len(exact) >= 6
    assert (exact["placed"] <= exact["bound"]).all()


def test_the_study_needs_its_files(tmp_path, capsys):
    words = ["study", "openb-2023", "--traces", str(tmp_path), "-o", str(tmp_path / "o")]
    assert optsched(words) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "openb_node_list_all_node.csv.gz: not in" in error
    assert not (tmp_path / "o").exists()
