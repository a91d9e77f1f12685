"""Targets: damaged folders that commands wrote, reported, resumed or replaced."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random

from fuzz.mutation import damaged, damaged_bytes, damaged_tree, to_json, to_toml
from fuzz.seeds import SWEEP, Seeds
from fuzz.target import Case, target


@target
def run_folder(rng: Random, folder: Path, seeds: Seeds) -> Case:
    _damaged_copy(rng, folder, seeds, "run")
    again = ("simulate", "t.swf", "--jobs", "1:6", "--no-plots", "-o", "run")
    return Case(rng.choice((("report", "run"), ("report", "run"), again)), ("run",))


@target
def comparison_folder(rng: Random, folder: Path, seeds: Seeds) -> Case:
    _damaged_copy(rng, folder, seeds, "comparison")
    return Case(("report", "comparison"), ("comparison",))


@target
def sweep_folder(rng: Random, folder: Path, seeds: Seeds) -> Case:
    (folder / "study.toml").write_bytes(to_toml(SWEEP))
    _damaged_copy(rng, folder, seeds, "sweep")
    return Case(("sweep", "study.toml", "-o", "sweep"), ("sweep",))


@target
def effects(rng: Random, folder: Path, seeds: Seeds) -> Case:
    _damaged_copy(rng, folder, seeds, "sweep")
    over = rng.choice(("jobs", "settings.window", "settings.window", "policy"))
    return Case(("compare", "sweep", "--over", over, "-o", "out"), ("out",))


def _damaged_copy(rng: Random, parent: Path, seeds: Seeds, name: str) -> None:
    """Copy a folder and its trace, and damage some of the files in it, and within its folders."""
    (parent / "t.swf").write_bytes(seeds.traces[".swf"])
    folder = shutil.copytree(seeds.folder / name, parent / name)
    for _ in range(1 + int(rng.expovariate(1))):
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        if not files:
            return
        path = rng.choice(files)
        data = path.read_bytes()
        damage = rng.randrange(8)
        if damage == 0:
            path.unlink()
        elif damage == 1:
            path.write_bytes(b"")
        elif damage == 2:
            path.write_bytes(data[: rng.randint(0, len(data))])
        elif damage == 3:
            path.unlink()
            rng.choice((path.mkdir, lambda place=path: place.symlink_to("nothing")))()
        elif damage == 4:
            path.with_name("copy").write_bytes(rng.choice(files).read_bytes())
        elif path.suffix == ".json" and data:
            path.write_bytes(_damaged_json(rng, data))
        elif path.suffix in (".csv", ".jsonl", ".html"):
            path.write_bytes(damaged(rng, data))
        else:
            path.write_bytes(damaged_bytes(rng, data))


def _damaged_json(rng: Random, data: bytes) -> bytes:
    try:
        return to_json(damaged_tree(rng, json.loads(data)))
    except (ValueError, RecursionError):  # it is damaged already
        return damaged_bytes(rng, data)
