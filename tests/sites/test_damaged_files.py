"""Damaged files of sites give a site, or one line per mistake with the file."""

import json
from random import Random

import pytest
from fuzz.mutation import damaged, damaged_tree, to_json
from sites.records import NODE

from optsched.content import bundled
from optsched.errors import InputError
from optsched.sites.loading import load_site
from optsched.sites.site_file import read_site_file, write_site_file

NODES = [NODE | {"name": name, "gres_drained": "N/A"} for name in ("g1", "g2")]
TIME, MEMORY = ({"set": True, "infinite": False, "number": number} for number in (60, 7))
ANY = {"set": False, "infinite": True, "number": 0}
PARTITION = {"name": "batch", "nodes": {"configured": "g[1-2]"}, "topology": ""}
PARTITION |= {"priority": {"tier": 3, "job_factor": 1}, "partition": {"state": ["UP"]}}
PARTITION |= {"maximums": {"time": TIME, "nodes": ANY, "shares": 0}}
PARTITION |= {"defaults": {"partition_memory_per_cpu": MEMORY}}
LICENCES = [{"LicenseName": "lab", "Total": 3, "Free": 2}]
META = {"plugin": {"data_parser": "data_parser/v0.0.42"}}
JSON = {
    "nodes.json": {"meta": META, "nodes": NODES},
    "partitions.json": {"meta": META, "partitions": [PARTITION]},
    "licenses.json": {"meta": META, "licenses": LICENCES},
}
SHOWN = {name: json.dumps(tree).encode() for name, tree in JSON.items()} | {
    "topology.txt": b"SwitchName=l1 Level=0 Nodes=g1\nSwitchName=l2 Level=0 Nodes=g2\n",
    "config.txt": b"ClusterName = here\nDefMemPerCPU = 1000\n",
}
TEXT = {
    "nodes.txt": b"NodeName=g1 CPUEfctv=4 CPUTot=4 RealMemory=10 CPUAlloc=1 AllocMem=2 State=IDLE"
    b" Gres=gpu:a100:2 GresUsed=gpu:a100:1(IDX:0) ActiveFeatures=ib MemSpecLimit=1 Reason=a b\n",
    "partitions.txt": b"PartitionName=p Nodes=g1 MaxTime=1-00:00:00 MaxNodes=2 PriorityTier=1\n",
    "licenses.txt": b"LicenseName=lab Total=10 Used=5 Free=5 Reserved=0 Remote=no\n",
}
CONFIGURED = {
    "slurm.conf": b"ClusterName=here\nLicenses=lab:3\nNodeName=DEFAULT RealMemory=10 Feature=ib\n"
    b"NodeName=g[1-4] Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CoreSpecCount=1 Gres=gpu:2\n"
    b'DownNodes=g3 State=DRAIN Reason="new disk"\nNodeSet=s Feature=ib\n'
    b"PartitionName=p Nodes=s,g1 MaxTime=1:00:00 Default=YES DefMemPerCPU=2 MaxNodes=3\n",
    "gres.conf": b"NodeName=g[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-1]\n",
    "topology.conf": b"SwitchName=l1 Nodes=g[1-2]\nSwitchName=l2 Nodes=g[3-4]\n"
    b"SwitchName=top Switches=l[1-2]\n",
}
WRITTEN = {"campus.toml": (bundled("sites") / "campus.toml").read_bytes()}


@pytest.mark.parametrize("files", [SHOWN, TEXT, CONFIGURED, WRITTEN], ids=lambda each: min(each))
def test_a_damaged_file_is_a_site_or_one_line(files, tmp_path):
    errors = []
    for seed in range(100):
        rng = Random(seed)
        chosen = rng.choice(sorted(files))
        for name, data in files.items():
            if name == chosen:
                as_tree = name in JSON and rng.random() < 0.6
                data = to_json(damaged_tree(rng, JSON[name])) if as_tree else damaged(rng, data)
            (tmp_path / name).write_bytes(data)
        try:
            site = load_site(tmp_path / chosen if files is WRITTEN else tmp_path)
        except InputError as error:
            errors.append(error)
            continue
        write_site_file(site, tmp_path / "again.toml")
        assert read_site_file(tmp_path / "again.toml") == site
    assert 0 < len(errors) < 100
    assert all(error.file for error in errors)
    assert not [line for error in errors for line in error.lines() if "\n" in line]
