"""Targets: damaged captures of Slurm, and its configuration; planned, explained, simulated."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from random import Random

from fuzz.captures import CAPTURES, CONFIGURATION, TOPOLOGIES
from fuzz.mutation import TEXTS, damaged, damaged_bytes, damaged_text, damaged_tree, to_json
from fuzz.seeds import Seeds
from fuzz.target import Case, target

ODD = (
    "n[1-99999999]", "n[0-9][0-9][0-9][0-9][0-9][0-9]", "[", "a[1-", "c[4-1]", "0-99999999%1",
    "0-9:0", "ib&(fast|ib)", "[ib*2&fast*1]", "((((", "gpu:a100:99999999999", "gpu:1,(", "8T",
    "UNLIMITED", "INFINITE", "(null)", "N/A", "99:99:99", "1-00:00:00", "31+1", "cpu=,mem=", "ALL",
    "DEFAULT", "afterok:7+", "7_[0-3]", "lab:1|lab:2", "Unknown", "2026-13-45T99:99:99",
)  # fmt: skip
"""Texts of Slurm where others are expected, or that stand for very much."""


@target
def slurm_capture(rng: Random, folder: Path, seeds: Seeds) -> Case:
    held = _filled(rng, folder / "d", rng.choice(CAPTURES))
    job = rng.choice(("7", "8", "9", "9_[0,2,7]", "9_2", "12", "5", "31+1", "x"))
    steps = ("requeue", "requeue,hold,drain,migrate,resume", "resume")
    limit, weights = ("--time-limit", "0.1"), ("priority", "rank", "nodes", "cores", "gpus")
    asked = ("explain", job, *rng.choice(((), ("--json",), ("--actions", rng.choice(steps)))))
    commands: tuple[tuple[str, ...], ...] = (
        *(("plan", *limit), ("plan", *limit, "--json")),
        ("plan", *limit, "--weigh", rng.choice(weights)),
        *(("snapshot", "-o", "out.json"), ("apply", *limit), ("reset",), asked, asked),
    )
    words = ("slurm", *rng.choice(commands), "--from", "d")
    if held and rng.random() < 0.3:
        (folder / "t.swf").write_bytes(seeds.traces[".swf"])
        policy = rng.choice(("easy", "conservative", "multifactor", "placement"))
        words = ("simulate", "t.swf", "--machine", "site:d", "--policy", policy, "--no-plots")
        return Case((*words, "-o", "out"), ("out",))
    return Case(words, ("out.json",))


@target
def slurm_configuration(rng: Random, folder: Path, seeds: Seeds) -> Case:
    files = dict(CONFIGURATION)
    if rng.random() < 0.5:
        files["topology.yaml"] = TOPOLOGIES
    _filled(rng, folder / "d", files)
    (folder / "t.swf").write_bytes(seeds.traces[".swf"])
    words = ("simulate", "t.swf", "--policy", rng.choice(("easy", "conservative")), "--no-plots")
    machine = rng.choice(("site:d", "site:d/slurm.conf"))
    return Case((*words, "--machine", machine, "-o", "out"), ("out",))


def _filled(rng: Random, folder: Path, files: Mapping[str, bytes]) -> bool:
    """Write files, mostly one of them damaged; return whether it is not the queue."""
    folder.mkdir()
    wrong = rng.sample(sorted(files), rng.choice((1, 1, 1, 2)))
    for name, data in files.items():
        if name in wrong:
            data = _damaged(rng, name, data)
            if rng.random() < 0.05:
                continue
        if rng.random() < 0.03:
            name, data = f"{name}.gz", gzip.compress(data, mtime=0)
            data = damaged_bytes(rng, data) if rng.random() < 0.3 else data
        (folder / name).write_bytes(data)
    return "squeue.json" not in wrong


def _damaged(rng: Random, name: str, data: bytes) -> bytes:
    if not name.endswith(".json"):
        # so that values are damaged one by one
        spaced = data.decode().replace("=", " = ").replace(",", " , ")
        mistaken = _with_odd(rng, damaged_text(rng, spaced))
        joined = mistaken.replace(" = ", "=").replace(" , ", ",")
        return joined.encode("utf-8", "surrogatepass") if rng.random() < 0.8 else damaged(rng, data)
    if rng.random() < 0.1:
        return damaged(rng, data)
    tree = json.loads(data)
    for key, records in tree.items():
        if isinstance(records, list) and records and rng.random() < 0.8:
            record = rng.choice(records)  # and not what all of them share
            field = rng.choice(sorted(record))
            record[field] = damaged_tree(rng, record[field])
            if isinstance(record[field], str) and rng.random() < 0.7:
                record[field] = rng.choice((*ODD, *TEXTS))
            tree[key] = records
            return to_json(tree)
    return to_json(damaged_tree(rng, tree))


def _with_odd(rng: Random, text: str) -> str:
    words = text.split(" ")
    if rng.random() < 0.5:
        words[rng.randrange(len(words))] = rng.choice(ODD)
    return " ".join(words)
