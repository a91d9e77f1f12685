from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.sites.site import Partition, Site
from optsched.sites.site_file import read_site_file, write_site_file
from optsched.sites.topology import Blocks, Tree

DEPARTMENT = """
name = "department"

[[nodes]]
names = "c[01-40]"
cores = 16
memory = "64G"
features = ["ib", "skylake"]

[[nodes]]
names = "g[1-4]"
cores = 32
memory = 256000
gpus = {a100 = 4}
features = ["ib", "a100"]

[[partitions]]
name = "batch"
nodes = "c[01-40]"
default = true
max_time = "2-00:00:00"

[[partitions]]
name = "gpu"
nodes = "g[1-4]"

[licences]
matlab = 10

[topology]
kind = "tree"
switches = {leaf1 = "c[01-20]", leaf2 = "c[21-40],g[1-4]", spine = ["leaf1", "leaf2"]}
"""


@pytest.fixture
def department(tmp_path):
    path = tmp_path / "department.toml"
    path.write_text(DEPARTMENT)
    return path


def test_a_file_as_a_person_writes_it(department):
    site = read_site_file(department)
    assert (site.name, len(site.nodes), site.resources) == (
        "department",
        44,
        ("cores", "memory", "gpu", "gpu:a100"),
    )
    assert site.capacity[0].tolist() == [16, 65_536, 0, 0]
    assert site.capacity[-1].tolist() == [32, 256_000, 4, 4]
    assert site.partition("batch").max_time == 2 * 86_400
    assert site.partition("gpu").nodes.tolist() == [40, 41, 42, 43]
    assert site.licences == {"matlab": 10}
    tree = site.topology()
    assert [tree.switches[leaf] for leaf in site.leaves()[[0, 20, 43]]] == [
        "leaf1",
        "leaf2",
        "leaf2",
    ]
    assert site.matching("ib&a100").sum() == 4
    assert site.is_up.all()


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ('cores = 16\nmemory = "64G"', 'cores = 16\nmemory = "64 elephants"', "memory"),
        ("cores = 16", "cors = 16", "cors"),
        ("cores = 16", "cores = -1", "cores"),
        ('names = "g[1-4]"', 'names = "c[01-04]"', "c01"),
        ('nodes = "g[1-4]"', 'nodes = "g[1-3]"', "g4"),
        ('nodes = "g[1-4]"', 'nodes = "g[1-5]"', "g5"),
        ("c[21-40],g[1-4]", "c[21-40]", "on no switch"),
        ('["leaf1", "leaf2"]', '["leaf1", "leaf3"]', "leaf3"),
        ('"2-00:00:00"', '"two days"', "max_time"),
        ('kind = "tree"', 'kind = "tre"', "kind"),
        ("matlab = 10", 'matlab = "many"', "matlab"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_place(department, wrong, right, message):
    assert wrong in DEPARTMENT
    department.write_text(DEPARTMENT.replace(wrong, right, 1))
    with pytest.raises(InputError, match=message) as raised:
        read_site_file(department)
    assert "department.toml" in str(raised.value)
    assert "expected" in str(raised.value) or "known" in str(raised.value)


def same(one, other):
    assert other.name == one.name
    assert other.nodes == one.nodes
    assert other.resources == one.resources
    assert np.array_equal(other.capacity, one.capacity)
    assert other.features == one.features
    assert other.states == one.states
    assert dict(other.licences) == dict(one.licences)
    assert other.partitions == one.partitions
    assert dict(other.topologies) == dict(one.topologies)


def test_written_and_read_again_it_is_the_same(department, tmp_path):
    site = read_site_file(department)
    write_site_file(site, tmp_path / "again.toml")
    same(site, read_site_file(tmp_path / "again.toml"))


@st.composite
def sites(draw):
    count = draw(st.integers(1, 12))
    nodes = tuple(f"n{number:02}" for number in range(count))
    kinds = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    capacity = np.array([[8 << kind, 1000 * (kind + 1), 4 * (kind == 2)] for kind in kinds])
    members = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    groups = draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    tree = Tree(("a", "b", "top"), np.array([2, 2, -1]), np.array(groups))
    blocks = Blocks(("a", "b"), np.array(groups))
    return Site(
        "drawn",
        nodes,
        ("cores", "memory", "gpu"),
        capacity,
        features=tuple(("ib", f"kind{kind}") for kind in kinds),
        states=tuple(draw(st.sampled_from(["up", "down", "drained", "reserved"])) for _ in nodes),
        partitions=(
            Partition("all", np.arange(count), default=True),
            Partition("some", np.flatnonzero(members), max_time=3600, exclusive=True),
        ),
        licences={"matlab": draw(st.integers(0, 5))},
        topologies={"net": draw(st.sampled_from([tree, blocks]))},
    )


@given(site=sites())
def test_every_site_survives_its_file(site, tmp_path_factory):
    path = tmp_path_factory.mktemp("site") / "site.toml"
    write_site_file(site, path)
    same(site, read_site_file(path))


def test_ten_thousand_nodes_are_read(tmp_path):
    path = tmp_path / "large.toml"
    path.write_text('[[nodes]]\nnames = "n[00001-10000]"\ncores = 64\nmemory = "512G"\n')
    assert read_site_file(path).capacity[:, 0].sum() == 640_000
