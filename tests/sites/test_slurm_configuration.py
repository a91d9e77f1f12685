import numpy as np
import pytest

from optsched.sites.loading import read_configuration, read_shown_site
from optsched.sites.parts import Torus

CONFIGURATION = """
ClusterName=here
# a comment
Licenses=lab:3,abaqus@server:40
DefMemPerCPU=1000
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityFlags=ACCRUE_ALWAYS
NodeName=DEFAULT RealMemory=64000 State=UNKNOWN
NodeName=DEFAULT Feature=ib
NodeName=c[01-04] Sockets=2 CoresPerSocket=8 CoreSpecCount=2 MemSpecLimit=4000
Include more.conf
DownNodes=c[02-03] State=DRAIN Reason="new disk"
NodeSet=fast Feature=a100
NodeSet=first Nodes=c[01-02]
PartitionName=DEFAULT MaxTime=1-00:00:00 State=UP
PartitionName=batch Nodes=first,c[03-04] Default=YES \\
    MaxTime=2:00:00 PriorityJobFactor=7
PartitionName=gpu Nodes=fast OverSubscribe=EXCLUSIVE DefMemPerCPU=4000
PartitionName=every Nodes=ALL MaxNodes=2 State=INACTIVE
"""
MORE = """
nodename=g[1-2] CPUs=32 ThreadsPerCore=2 CoresPerSocket=8 Sockets=2 gres=gpu:4 feature=a100,ib
NodeName=x1 CPUs=4 State=DOWN Reason=old
"""


@pytest.fixture
def write(tmp_path):
    """Return a function that writes files and returns the folder."""

    def write(**files: str):
        for name, text in files.items():
            (tmp_path / f"{name}.conf").write_text(text)
        return tmp_path

    return write


def has(there, node):
    row = there.site.capacity[there.site.index[node]]
    return dict(zip(there.site.resources, row.tolist()))


def test_a_configuration(write):
    there = read_configuration(write(slurm=CONFIGURATION, more=MORE))
    site = there.site
    assert (site.name, site.licences) == ("here", {"lab": 3, "abaqus@server": 40})
    assert site.nodes == ("c01", "c02", "c03", "c04", "g1", "g2", "x1")
    assert has(there, "c01") == {"cores": 14, "memory": 60_000, "gpu": 0}
    assert has(there, "g1") == {"cores": 32, "memory": 64_000, "gpu": 4}
    assert there.threads.tolist() == [1, 1, 1, 1, 2, 2, 1]
    assert site.features[0] == ("ib",)
    assert site.features[4] == ("a100", "ib")
    assert site.states == ("up", "drained", "drained", "up", "up", "up", "down")
    assert (site.reasons[1], site.reasons[6]) == ("new disk", "old")
    batch, gpu, every = site.partitions
    assert (batch.name, batch.nodes.tolist(), batch.default) == ("batch", [0, 1, 2, 3], True)
    assert (batch.max_time, batch.priority_factor, batch.memory_per_core) == (7200, 7, 1000)
    assert (gpu.nodes.tolist(), gpu.exclusive, gpu.memory_per_core) == ([4, 5], True, 4000)
    assert (gpu.max_time, gpu.up) == (86_400, True)
    assert (every.nodes.tolist(), every.max_nodes, every.up) == (list(range(7)), 2, False)
    assert {k: v for k, v in there.settings.items() if k.startswith("priority")} == {
        "prioritytype": "priority/multifactor",
        "priorityweightage": "1000",
        "priorityflags": "ACCRUE_ALWAYS",
    }
    assert (there.free == site.capacity).all()
    assert there.notes == ()


def test_gres_conf_has_the_types(write):
    gres = "NodeName=g1 Name=gpu Type=a100 File=/dev/nvidia[0-3]\nName=gpu Type=h100 Count=3\n"
    there = read_configuration(write(slurm=CONFIGURATION, more=MORE, gres=gres))
    assert has(there, "g1")["gpu:a100"] == 4
    assert has(there, "g2") == {"cores": 32, "memory": 64_000, "gpu": 4, "gpu:a100": 0}
    assert "gpu:h100" not in there.site.resources
    assert there.notes == ("1 node (g2): gres.conf has 3 gpu, slurm.conf 4; taken from slurm.conf",)


def test_large_amounts_are_counted_in_units(write):
    gres = "NodeName=c1 Name=tmp Type=ssd Count=844G\n"
    text = "NodeName=c1 Gres=tmp:844G,scratch:2TB,few:4\nPartitionName=p Nodes=ALL\n"
    there = read_configuration(write(slurm=text, gres=gres))
    has_now = has(there, "c1")
    assert has_now["tmp"] == has_now["tmp:ssd"] == 844 * 1024
    assert (has_now["scratch"], has_now["few"]) == (10**6, 4)
    assert {"tmp: counted in units of 1,048,576", "scratch: counted in units of 2,000,000"} <= {
        *there.notes
    }


@pytest.mark.parametrize(
    ("line", "cores", "threads"),
    [
        ("", 1, 1),
        ("CPUs=12", 12, 1),
        ("CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", 8, 1),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=4", 16, 1),
        ("Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CoreSpecCount=1", 14, 2),
        ("CPUs=8 CpuSpecList=0,2-3", 5, 1),
    ],
)
def test_cores_are_cpus_without_those_of_the_system(write, line, cores, threads):
    there = read_configuration(write(slurm=f"NodeName=c1 {line}\n"))
    assert (there.site.capacity[0].tolist(), there.threads[0]) == ([cores, 1], threads)


def test_what_a_site_does_not_say_as_slurm_does_is_noted(write):
    node = "NodeName=c[1-2] CPUs=5 Sockets=2 CoresPerSocket=4\nPartitionName=p Nodes=c[1-2]\n"
    text = f"SelectType=select/linear\n{node}DownNodes=c[2-3]\n"
    there = read_configuration(write(slurm=text))
    assert there.site.capacity[:, 0].tolist() == [8, 8]
    assert there.site.states == ("up", "down")
    assert there.site.partition("p").exclusive
    down, cpus, exclusive = sorted(there.notes)
    assert down == "1 node (c3): in DownNodes, not among the nodes"
    assert "2 nodes (c[1-2]): CPUs=5" in cpus
    assert exclusive == "exclusive partitions, as select/linear gives whole nodes"


@pytest.mark.parametrize("version", ["22.05.8", "24.11.5", "26.05.5"])
def test_the_configuration_describes_what_slurm_shows(shared, version):
    folder = shared(f"slurm/fixtures/{version}")
    ours, shown = read_configuration(folder), read_shown_site(folder)
    order = ours.site.places(shown.site.nodes)
    assert ours.site.resources == shown.site.resources
    assert np.array_equal(ours.site.capacity[order], shown.site.capacity)
    assert np.array_equal(ours.threads[order], shown.threads)
    assert tuple(ours.site.features[place] for place in order) == shown.site.features
    assert ours.site.licences == shown.site.licences
    for one, other in zip(ours.site.partitions, shown.site.partitions, strict=True):
        assert sorted(order[other.nodes]) == one.nodes.tolist()
        names = ("name", "default", "max_time", "max_nodes", "exclusive", "up", "priority_tier")
        for name in (*names, "priority_factor", "memory_per_core", "topology"):
            assert getattr(one, name) == getattr(other, name), (one.name, name)
    assert list(ours.site.topologies) == list(shown.site.topologies)
    for name, topology in ours.site.topologies.items():
        other = shown.site.topologies[name]
        if isinstance(topology, Torus):
            assert [order[place] for place in other.nodes] == topology.nodes.tolist()
        else:
            assert np.array_equal(topology.group[order], other.group)
