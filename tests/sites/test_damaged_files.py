"""Damaged files of sites give a site, or one line per mistake with the file."""

import json
from random import Random

import pytest
from fuzz.captures import CAPTURES, CONFIGURATION, TOPOLOGIES
from fuzz.mutation import damaged, damaged_tree, to_json

from optsched.content import bundled
from optsched.errors import InputError
from optsched.sites.loading import load_site
from optsched.sites.site_file import read_site_file, write_site_file

TIME, MEMORY = ({"set": True, "infinite": False, "number": number} for number in (60, 7))
PARTITION = {"name": "batch", "nodes": {"configured": "c[1-4]"}, "topology": ""}
PARTITION |= {"priority": {"tier": 3, "job_factor": 1}, "partition": {"state": ["UP"]}}
PARTITION |= {"maximums": {"time": TIME, "nodes": TIME | {"infinite": True}, "shares": 0}}
PARTITION |= {"defaults": {"partition_memory_per_cpu": MEMORY}}
META = {"plugin": {"data_parser": "data_parser/v0.0.42"}}
LEFT_OUT = ("squeue.json", "jobs.txt", "now", "reservations.json")
"""Of a queue, or with what a file of a site does not hold."""

JSON, TEXT = (
    {name: data for name, data in files.items() if name not in LEFT_OUT}
    for files in (CAPTURES[0], CAPTURES[2])
)
JSON["partitions.json"] = to_json({"meta": META, "partitions": [PARTITION]})
del JSON["partitions.txt"]
SEEDS = {
    "shown as JSON": JSON,
    "shown as text": TEXT,
    "configured": CONFIGURATION | {"topology.yaml": TOPOLOGIES},
    "written": {"campus.toml": (bundled("sites") / "campus.toml").read_bytes()},
}


@pytest.mark.parametrize("files", SEEDS.values(), ids=SEEDS)
def test_a_damaged_file_is_a_site_or_one_line(files, tmp_path):
    errors = []
    for seed in range(100):
        rng = Random(seed)
        chosen = rng.choice(sorted(files))
        for name, data in files.items():
            if name == chosen:
                as_tree = name.endswith(".json") and rng.random() < 0.6
                tree = damaged_tree(rng, json.loads(data)) if as_tree else None
                data = to_json(tree) if as_tree else damaged(rng, data)
            (tmp_path / name).write_bytes(data)
        try:
            site = load_site(tmp_path / chosen if len(files) == 1 else tmp_path)
        except InputError as error:
            errors.append(error)
            continue
        write_site_file(site, tmp_path / "again.toml")
        assert read_site_file(tmp_path / "again.toml") == site
    assert 0 < len(errors) < 100
    assert all(error.file for error in errors)
    assert not [line for error in errors for line in error.lines() if "\n" in line]
