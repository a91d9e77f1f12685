"""Who may use nodes, and what of them is free: small clusters as Slurm shows them."""

import pytest

from optsched.slurm.explain import explain
from optsched.slurm.queue import read_queue
from optsched.slurm.running import supply_at, unseen_on_nodes
from optsched.slurm.snapshot import placement_problem
from optsched.slurm.supply import read_supply
from optsched.solvers.solving import solve

from .test_explain import answer, names

NOW = 1_800_000_000


def node(name="c1", used=0, **fields):
    """A node of 16 cores and 64,000 MB."""
    state = ["IDLE"] if not used else ["MIXED"] if used < 16 else ["ALLOCATED"]
    usual = {"name": name, "cpus": 16, "effective_cpus": 16, "real_memory": 64000, "state": state}
    used = {"alloc_cpus": used, "alloc_memory": 1000 * used}
    return {**usual, **used, "partitions": ["batch"], "threads": 1, **fields}


def pending(number, cores=1, **fields):
    usual = {"job_id": number, "job_state": ["PENDING"], "user_name": "u1", "partition": "batch"}
    asks = {"cpus": cores, "tasks": cores, "node_count": 1, "memory_per_cpu": 1000}
    return {**usual, **asks, "time_limit": 60, "priority": 1000 - number, **fields}


def running(number, at="c1", cores=4, gres="", limit=3600, **fields):
    """A job that started 600 s ago."""
    sockets = [{"cores": [{"status": ["ALLOCATED"]}] * cores}]
    has = {"name": at, "memory": {"allocated": 1000 * cores}, "sockets": sockets}
    usual = {"job_state": ["RUNNING"], "user_name": "u2", "requeue": True, "batch_flag": True}
    usual |= {"start_time": NOW - 600, "end_time": NOW - 600 + limit}
    usual |= {"job_resources": {"nodes": {"allocation": [has]}}}
    return pending(number, cores) | usual | {"gres_detail": [gres] if gres else []} | fields


@pytest.fixture
def cluster(tmp_path, write_dump):
    """Return a function that writes a cluster and reads its queue, and what it has free."""

    def write(nodes, jobs, *, version=42, reservations=None, partitions="", config="", text=""):
        name = "sinfo.json" if version == 38 else "nodes.json"
        kept = {"name": "reservations.json", "key": "reservations", "last_update": NOW}
        write_dump(version, *nodes, name=name, key="nodes", last_update=NOW)
        write_dump(version, *jobs, last_update=NOW)
        if reservations is not None:
            write_dump(version, *reservations, **kept)
        for file, words in (("partitions", partitions), ("config", config), ("nodes", text)):
            (tmp_path / f"{file}.txt").write_text(words)
        return read_queue(tmp_path), read_supply(tmp_path, NOW)

    return write


def plan(queue, supply):
    """The nodes of each job that the best plan starts."""
    posed = placement_problem(queue, supply)
    result = solve(posed.problem, "column-generation")
    assert not posed.problem.violations(result.solution)
    nodes = supply.site.nodes
    return {
        row.label: list(dict.fromkeys(nodes[each] for each in at))
        for row, at in zip(posed.rows, result.solution.nodes)
        if at
    }


def least(queue, supply, job):
    """The earliest start in seconds from now, what is lifted, and the seconds of a node lost."""
    found = explain(queue, supply, str(job))
    earliest, best = found.earliest and found.earliest - NOW, answer(found)
    return earliest, best and names(best.lifted), best and best.lost / 1e6


def test_a_node_of_a_user_is_closed_to_others(cluster):
    jobs = [pending(1, 4), pending(2, 4, user_name="u2"), running(9, shared=["user"])]
    queue, supply = cluster([node(used=4, owner="u2")], jobs)
    assert plan(queue, supply) == {"2": ["c1"]}
    found = explain(queue, supply, "1")
    assert ("not owned by another user", 0) in found.shortage.filters
    assert not found.shortage_of_idle.is_proof
    # a quarter of the node is lost for 600 s
    assert least(queue, supply, 1) == (3000, ["requeue 9"], 150)
    # all jobs that close it are in the way
    owner = {"shared": ["user"], "cores": 2}
    both = [pending(1), running(8, **owner), running(9, limit=5400, **owner)]
    found = least(*cluster([node(used=4, owner="u2")], both), 1)
    assert found == (4800, ["requeue 8", "requeue 9"], 150)
    # the running job says so where the node does not
    assert plan(*cluster([node(used=4)], jobs)) == {"2": ["c1"]}
    # nobody knows when the owner leaves that has no visible job
    queue, supply = cluster([node(used=4, owner="u2")], jobs[:2])
    assert plan(queue, supply) == {"2": ["c1"]}
    assert least(queue, supply, 1) == (None, None, None)
    then = supply_at(supply, queue, NOW)
    assert [bool(unseen_on_nodes(job, queue, then)) for job in queue.pending] == [True, False]


def test_a_job_that_shares_with_its_user_joins_running_jobs_of_its_user(cluster):
    nodes = [node(name, 4) for name in ("c1", "c2", "c3")]
    own = running(8, user_name="u1")
    others = running(9, "c2"), running(10, "c3", user_name="u4", shared=["user"])
    jobs = [pending(1, 12, shared=["user"]), pending(2, 4, user_name="u3"), own]
    assert plan(*cluster(nodes, [*jobs, *others])) == {"1": ["c1"], "2": ["c2"]}
    # there is no other place for job 2, and a pending job is not joined
    assert plan(*cluster(nodes[:1], jobs)) == {"1": ["c1"]}
    # an exclusive job joins nobody, nor is a node joined on which others run, perhaps unseen
    assert plan(*cluster(nodes[:1], [pending(1, shared=["none"]), own])) == {}
    one = pending(1, shared=["user"])
    assert plan(*cluster([node("c1", 8)], [one, own])) == {}
    queue, supply = cluster([node("c1", 8)], [one, own, running(9)])
    assert plan(queue, supply) == {}
    assert least(queue, supply, 1)[1] == ["requeue 9"]


@pytest.mark.parametrize("rule", ["ExclusiveUser=YES", "Exclusive=USER"])
def test_partitions_whose_jobs_share_with_their_user(cluster, rule):
    nodes = [node(name, partitions=["own"]) for name in ("c1", "c2")]
    line = f"PartitionName=own Nodes=c[1-2] {rule} State=UP\n"
    jobs = [pending(1, partition="own"), pending(2, user_name="u2", partition="own")]
    found = plan(*cluster(nodes, jobs, partitions=line))
    assert sorted(found.values()) == [["c1"], ["c2"]]
    # a running job owns its node, also against jobs of other partitions
    both = f"{line}PartitionName=batch Nodes=c1 State=UP\n"
    jobs = [pending(1), pending(2, user_name="u2"), running(9, partition="own")]
    assert plan(*cluster([node("c1", 4), nodes[1]], jobs, partitions=both)) == {"2": ["c1"]}


def test_a_node_of_an_exclusive_job_has_nothing_free(cluster):
    queue, supply = cluster([node(used=4)], [pending(1), running(9, shared=["none"])])
    assert plan(queue, supply) == {}
    assert least(queue, supply, 1) == (3000, ["requeue 9"], 150)
    assert plan(*cluster([node(used=4) | {"state": ["ALLOCATED"]}], [pending(1)])) == {}


def test_nodes_of_a_label_are_for_its_jobs(cluster):
    jobs = [pending(1), pending(2, mcs_label="secret"), running(9, mcs_label="secret")]
    queue, supply = cluster([node(used=4, mcs_label="secret")], jobs)
    assert plan(queue, supply) == {"2": ["c1"]}
    (what,) = unseen_on_nodes(queue.pending[0], queue, supply)
    assert what == "when no job of another MCS label is on 1 node (c1)"
    # one with a label joins no others where labels decide
    config = "MCSParameters = enforced,select\n"
    jobs = [pending(1, mcs_label="secret"), running(9)]
    assert plan(*cluster([node(used=4)], jobs, config=config)) == {}
    assert plan(*cluster([node(used=4)], jobs)) == {"1": ["c1"]}


GPUS = {"gres": "gpu:a100:4,shard:16"}


def asking(number, gres, **fields):
    return pending(number, tres_per_node=gres, **fields)


@pytest.mark.parametrize(
    ("used", "jobs", "starts"),
    [
        # three GPUs are whole, so the shards of one are left
        ("gpu:a100:3(IDX:0-2),shard:0(-/4,-/4,-/4,0/4)", ["shard:8", "shard:4"], "2"),
        ("gpu:a100:3(IDX:0-2),shard:0(0/4,0/4,0/4,0/4)", ["gpu:1", "shard:4"], "1"),
        # shards of each GPU are in use
        ("gpu:a100:0(IDX:N/A),shard:4(1/4,1/4,1/4,1/4)", ["gpu:1"], ""),
        ("gpu:a100:0(IDX:N/A),shard:4(4/4,0/4,0/4,0/4)", ["gpu:3", "gpu:1"], "1"),
        # as many GPUs as there may be, where Slurm does not say of which the shards are
        ("gpu:a100:0(IDX:N/A),shard:3", ["gpu:2", "gpu:1"], "2"),
        # Slurm 22.05
        ("gpu:a100:0(IDX:N/A),shard:5(IDX:0-1)", ["gpu:3", "gpu:2"], "2"),
        # two jobs of shards count as two GPUs, as Slurm may take two
        ("", ["shard:1", "shard:1", "gpu:3"], "12"),
        ("", ["gpu:a100:2", "shard:2", "gpu:1"], "123"),
    ],
)
def test_a_gpu_is_whole_or_shared(cluster, used, jobs, starts):
    asked = [asking(number, f"gres/{each}") for number, each in enumerate(jobs, 1)]
    assert "".join(plan(*cluster([node(**GPUS, gres_used=used)], asked))) == starts


def test_jobs_of_which_slurm_alone_knows_the_gpus_are_left_to_it(cluster):
    asked = [
        asking(1, "gres/mps:50"),
        pending(2, tres_per_task="gres/shard:1"),
        asking(4, "gres/shard:2,gres/gpu:1"),
        asking(5, "gres/shard:2"),
    ]
    queue, supply = cluster([node(gres="gpu:a100:2,shard:8,mps:200")], asked)
    posed = placement_problem(queue, supply)
    assert list(posed.left) == ["1", "2", "4"]
    assert posed.left["1"] == "it asks for mps, and only Slurm knows of which GPUs"
    assert "what it lacks of them is not modelled" in explain(queue, supply, "5").left


def test_shares_in_use_free_a_gpu_when_the_last_job_ends(cluster):
    one = [asking(1, "gres/gpu:2"), running(9, gres="shard:2(0/4,2/4)", cores=1)]
    has = {"gres": "gpu:a100:2,shard:8", "gres_used": "gpu:a100:0(IDX:N/A),shard:2(0/4,2/4)"}
    queue, supply = cluster([node(used=1, **has)], one)
    assert least(queue, supply, 1) == (3000, ["requeue 9"], 150)  # 2 of 8 shards
    assert not unseen_on_nodes(queue.pending[0], queue, supply)
    two = [*one, running(8, gres="shard:1(0/4,1/4)", cores=1, limit=5400)]
    queue, supply = cluster([node(used=2, **has)], two)
    assert least(queue, supply, 1)[0] == 4800
    # to requeue one of them frees no GPU, and both together are not modelled
    (what,) = unseen_on_nodes(queue.pending[0], queue, supply)
    assert what == "when GPUs of 1 node (c1) are free, of which several jobs have shares"


MIG = {"gres": "gpu:3g.20gb:2,gpu:1g.5gb:4", "gres_used": "gpu:3g.20gb:1(IDX:0),gpu:1g.5gb:0"}


def test_a_job_of_any_type_leaves_a_type_to_later_jobs(cluster):
    untyped, typed = "gres/gpu:2", "gres/gpu:3g.20gb:1"
    mig, wide = node(**MIG), node(gres="gpu:a:3,gpu:b:3")
    other = node("c2", gres="gpu:a100:2", gres_used="gpu:a100:0")
    for nodes, first, second, expected in (
        # the first may get the last slice of the second, which starts before the third
        ([mig], untyped, typed, {"1": ["c1"]}),
        ([mig], typed, untyped, {"1": ["c1"], "2": ["c1"]}),
        ([mig, other], untyped, typed, {"1": ["c2"], "2": ["c1"]}),
        # there are enough of each type for whatever Slurm takes
        ([wide], untyped, "gres/gpu:a:1", {"1": ["c1"], "2": ["c1"]}),
    ):
        assert plan(*cluster(nodes, [asking(1, first), asking(2, second)])) == expected
    # those of unstated types in use count for every type
    has = {"gres": "gpu:a:2,gpu:b:2", "gres_used": "", "tres_used": "cpu=1,gres/gpu=2"}
    jobs = [asking(1, "gres/gpu:a:1"), asking(2, "gres/gpu:2")]
    assert plan(*cluster([node(**has)], jobs)) == {"2": ["c1"]}


@pytest.mark.parametrize(
    ("has", "used", "asked", "starts"),
    [
        ("tmp:844G", "tmp:0", ["tmp:100G", "tmp:700G", "tmp:800G"], "12"),
        ("nvme:3200G,tmp:844G", "nvme:0,tmp:800G", ["nvme:3200G", "tmp:44G", "tmp:1"], "12"),
        ("disk:2T", "disk:0", ["disk:1T", "disk:1023G", "disk:1G", "disk:1"], "123"),
        ("scratch:2TB", "scratch:0", ["scratch:1TB", "scratch:1000GB"], "12"),
        ("b:10000000000", "b:0", ["b:5000000000", "b:5000000000"], "12"),
        ("t:a:900G,t:b:100G", "t:a:0,t:b:0", ["t:a:900G", "t:b:100G", "t:1"], "12"),
        ("craynetwork:4", "craynetwork:1", ["craynetwork:3", "craynetwork:99999999999999"], "1"),
        ("huge:9P", "huge:0", ["huge:9P"], "1"),
    ],
)
def test_amounts_of_any_size(cluster, has, used, asked, starts):
    jobs = [asking(number, f"gres/{each}") for number, each in enumerate(asked, 1)]
    assert "".join(plan(*cluster([node(gres=has, gres_used=used)], jobs))) == starts


def test_large_amounts_are_free_again_when_a_job_ends(cluster):
    jobs = [asking(1, "gres/tmp:500G"), running(9, gres="tmp:800G")]
    queue, supply = cluster([node(used=4, gres="tmp:844G", gres_used="tmp:800G")], jobs)
    assert supply.units == {"tmp": 1024**2}
    assert "tmp: counted in units of 1,048,576" in supply.notes
    assert least(queue, supply, 1)[:2] == (3000, ["requeue 9"])


def test_what_is_shown_in_other_units_than_its_use_is_left_out(cluster):
    # Slurm 22.05 shows 900 for 900G
    used = {"c1": "scratch:966367641600", "c2": "scratch:0"}
    nodes = [node(name, gres="scratch:900", gres_used=each) for name, each in used.items()]
    queue, supply = cluster(nodes, [asking(1, "gres/scratch:1"), pending(2)])
    assert "scratch: left out, as what there is has no unit, unlike the rest" in supply.notes
    assert list(placement_problem(queue, supply).left) == ["1"]
    assert plan(queue, supply) == {"2": ["c1"]}


def test_cores_of_the_system_are_not_free_in_slurm_22(cluster):
    # sinfo --json has 16 CPUs, of which 2 are kept
    whole = node(used=0) | {"state": "idle", "tres": "cpu=14,mem=64000M"}
    del whole["effective_cpus"]
    text = "NodeName=c1 CPUTot=16 CPUEfctv=14 RealMemory=64000 MemSpecLimit=4000 State=IDLE\n"
    for cores, memory, start in ((14, 1000, True), (15, 1, False), (14, 4286, False)):
        job = pending(1, cores, memory_per_cpu=memory, job_state="PENDING")
        assert bool(plan(*cluster([whole], [job], version=38, text=text))) == start
    # without the text the cores are those of the TRES, and the memory is not known
    supply = cluster([whole], [], version=38)[1]
    assert supply.site.capacity.tolist() == [[14, 64000]]
    assert "no nodes.txt: memory kept for the system (MemSpecLimit) is not known" in supply.notes
    # all 14 are allocated, though two are idle
    full, job = whole | {"state": "allocated", "alloc_cpus": 14}, pending(1, job_state="PENDING")
    assert plan(*cluster([full], [job], version=38, text=text)) == {}


def reservation(name, start, end, *flags):
    return {"name": name, "node_list": "c1", "start_time": start, "end_time": end, "flags": flags}


RESERVED = {"state": ["IDLE", "RESERVED"]}
FLOATS = reservation("floats", NOW + 3600, NOW + 7200, "TIME_FLOAT")


def test_a_floating_reservation_keeps_long_jobs_alone(cluster):
    limits = {1: 45, 2: 90, 3: 60}
    jobs = [pending(number, time_limit=limit) for number, limit in limits.items()]
    queue, supply = cluster([node(**RESERVED)], jobs, reservations=[FLOATS])
    assert list(plan(queue, supply)) == ["1", "3"]
    assert least(queue, supply, 2)[0] is None
    # jobs of the reservation do not start, as it never holds
    mine = [pending(1, resv_name="floats")]
    queue, supply = cluster([node(**RESERVED)], mine, reservations=[FLOATS])
    assert placement_problem(queue, supply).blocked == {"1": "reservation floats does not hold now"}
    # a second one holds now
    now = reservation("maint", NOW - 600, NOW + 1800, "MAINT")
    queue, supply = cluster([node(**RESERVED)], jobs, reservations=[FLOATS, now])
    assert plan(queue, supply) == {}
    assert least(queue, supply, 1)[0] == 1800
    # the word in the state of the node does not count where times are known
    later = reservation("later", NOW + 7200, NOW + 9000)
    for kept, expected in (([later], {"1": ["c1"]}), ([], {})):
        found = plan(*cluster([node(**RESERVED)], [pending(1)], reservations=kept))
        assert found == expected


SUSPENDED = {"job_state": ["SUSPENDED"], "pre_sus_time": 540, "suspend_time": NOW - 60}


def test_a_suspended_job_has_no_end_and_loses_what_it_held(cluster):
    jobs = [pending(1, 16), pending(2, 16, memory_per_cpu=3500)]
    jobs.append(running(9, cores=16, **SUSPENDED))
    queue, supply = cluster([node() | {"alloc_memory": 16000}], jobs)
    assert plan(queue, supply) == {"1": ["c1"]}
    assert least(queue, supply, 2) == (None, ["requeue 9"], 540)
    # it does not close its node while it is suspended, but it owns it
    for shared, expected in (("none", {"1": ["c1"]}), ("user", {})):
        jobs = [pending(1), running(9, shared=[shared], **SUSPENDED)]
        assert plan(*cluster([node()], jobs)) == expected
    # once it is resumed, it has run without its suspension
    resumed = {"pre_sus_time": 100, "suspend_time": NOW - 60, "end_time": NOW + 3440}
    jobs = [pending(2, 16), running(9, cores=16, **resumed)]
    assert least(*cluster([node(used=16)], jobs), 2) == (3440, ["requeue 9"], 160)


def test_jobs_start_on_nodes_that_boot(cluster):
    boots = ["MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"]
    queue, supply = cluster([node(used=8) | {"state": boots}], [pending(1, 8), pending(2, 8)])
    assert plan(queue, supply) == {"1": ["c1"]}
    assert any(note.startswith("1 node (c1): booting") for note in supply.notes)
