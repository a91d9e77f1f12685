"""Targets: damaged files of every format, and damaged folders that commands wrote."""

import gzip
import io
import json
import shutil
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz import seeds as valid
from fuzz.mutation import damaged, damaged_bytes, damaged_text, damaged_tree, to_json, to_toml
from fuzz.seeds import SITE, Seeds, machine_of, machine_text, solvers_of
from fuzz.target import Case, target
from optsched import registry
from optsched.content import bundled

BOMB_PART, BOMB_PARTS = 2**23, 16
"""A bomb is a file of many gzip members, each of which is small and unpacks to a part."""


def _file(name: str, file: str, data: Callable[[Random, Seeds], bytes], model: str = "") -> None:
    """File a target of that name: a file that is read as a trace, or as a snapshot of a model."""

    def maker(rng: Random, folder: Path, seeds: Seeds) -> Case:
        (folder / file).write_bytes(data(rng, seeds))
        return reading_a_snapshot(rng, file, model) if model else reading_a_trace(rng, file)

    maker.__name__ = name
    target(maker)


def _damaged_json(rng: Random, data: bytes) -> bytes:
    if rng.random() < 0.75:
        return to_json(damaged_tree(rng, json.loads(data)))
    return damaged(rng, data)


def _damaged_toml(rng: Random, data: bytes) -> bytes:
    if rng.random() < 0.75:
        return to_toml(damaged_tree(rng, tomllib.loads(data.decode())))
    return damaged(rng, data)


def _damaged_parquet(rng: Random, data: bytes) -> bytes:
    table = pq.read_table(io.BytesIO(data))
    metadata = {key: value.decode() for key, value in table.schema.metadata.items()}
    tree = damaged_tree(rng, {"columns": table.to_pydict(), "metadata": metadata})
    made = io.BytesIO()
    try:
        damaged_table = pa.table(tree["columns"]).replace_schema_metadata(tree["metadata"])
        pq.write_table(damaged_table, made, compression=rng.choice(("none", "gzip", "zstd")))
        data = made.getvalue()
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError, pa.ArrowException):
        pass  # not even a table
    return data if rng.random() < 0.6 else damaged_bytes(rng, data)


_file("swf", "t.swf", lambda rng, seeds: damaged(rng, seeds.traces[".swf"]))
_file("rackham", "t.rackham", lambda rng, seeds: damaged(rng, seeds.traces[".rackham"]))
_file("csv", "t.csv", lambda rng, seeds: damaged(rng, seeds.traces[".csv"], ","))
_file("sacct_text", "t.sacct", lambda rng, seeds: damaged(rng, seeds.traces[".sacct"], "|"))
_file("batsim", "t.json", lambda rng, seeds: _damaged_json(rng, seeds.traces[".json"]))
_file("parquet", "t.parquet", lambda rng, seeds: _damaged_parquet(rng, seeds.traces[".parquet"]))
_file("sacct_json", "t.json", lambda rng, _: _damaged_json(rng, to_json(valid.SACCT_JSON)))
_file("mkp_text", "s.txt", lambda rng, _: damaged(rng, valid.KNAPSACKS), "window-mkp")
for _model in registry.models:
    _file(
        f"snapshot-{_model}",
        "s.json",
        lambda rng, seeds, of=_model: _damaged_json(rng, rng.choice(seeds.snapshots[of])),
        _model,
    )


@target
def demands(rng: Random, folder: Path, seeds: Seeds) -> Case:
    trace, beside = seeds.demands
    (folder / "d.swf").write_bytes(trace if rng.random() < 0.8 else damaged(rng, trace))
    (folder / "d.swf.demands.csv").write_bytes(damaged(rng, beside, ","))
    if rng.random() < 0.5:
        return reading_a_trace(rng, "d.swf")
    words = ("--policy", rng.choice(("sjbf", "rua", "fcfs")), "--machine", machine_text("smp", rng))
    words += ("--execution", "resource-sharing") if rng.random() < 0.7 else ()
    return Case(("simulate", "d.swf", *words, "--no-plots", "--json", "-o", "out"), ("out",))


@target
def gz(rng: Random, folder: Path, seeds: Seeds) -> Case:
    suffix = rng.choice([*seeds.traces, ".snapshot"])
    model = rng.choice(list(seeds.snapshots))
    data = rng.choice(seeds.snapshots[model]) if suffix == ".snapshot" else seeds.traces[suffix]
    packed = gzip.compress(data, mtime=0)
    damage = rng.randrange(8)
    if damage == 0:
        packed = packed[: rng.randrange(len(packed))]
    elif damage == 1:
        packed += rng.choice((b"\0", b"\0" * 1000, b"x", rng.randbytes(20), packed[:9], packed))
    elif damage == 2:
        empty, twice = (gzip.compress(each, mtime=0) for each in (b"", packed))
        packed = rng.choice((b"", packed[:2], empty, twice))
    elif damage == 3:
        half = rng.randrange(len(data))
        packed = b"".join(gzip.compress(each, mtime=0) for each in (data[:half], data[half:]))
    elif damage == 4 and rng.random() < 0.3:
        filling = rng.choice((b"\n", b" ", b"\0", b"; comment\n", b"0", b"[", b"1 "))
        packed = rng.choice((_bomb(filling) + packed, packed + _bomb(filling)))
    elif damage == 5:
        packed = gzip.compress(damaged(rng, data), mtime=0)
    else:
        packed = damaged_bytes(rng, packed)
    snapshot = suffix == ".snapshot"
    name = "s.json.gz" if snapshot else f"t{suffix}{rng.choice(('.gz', '.gz', ''))}"
    (folder / name).write_bytes(packed)
    return reading_a_snapshot(rng, name, model) if snapshot else reading_a_trace(rng, name)


@cache
def _bomb(filling: bytes) -> bytes:
    return gzip.compress(filling * (BOMB_PART // len(filling)), mtime=0) * BOMB_PARTS


@target
def or_library(rng: Random, folder: Path, _seeds: Seeds) -> Case:
    (folder / "s.txt").write_bytes(damaged(rng, rng.choice(valid.OR_LIBRARY)))
    name = rng.choice(("s.txt", "s.txt#1", "s.txt#2"))
    return reading_a_snapshot(rng, name, "integer-program")


@target
def program_file(rng: Random, folder: Path, _seeds: Seeds) -> Case:
    suffix = rng.choice(list(valid.PROGRAMS))
    (folder / f"s{suffix}").write_bytes(damaged(rng, valid.PROGRAMS[suffix]))
    return reading_a_snapshot(rng, f"s{suffix}", "integer-program")


@target
def knapsack_table(rng: Random, folder: Path, _seeds: Seeds) -> Case:
    table = rng.random() < 0.5
    (folder / "s.csv").write_bytes(damaged(rng, valid.CARGO, ",") if table else valid.CARGO)
    if not table:
        (folder / "known_values.csv").write_bytes(damaged(rng, valid.KNOWN_VALUES, ","))
    return reading_a_snapshot(rng, "s.csv", "window-mkp")


@target
def sweep_file(rng: Random, folder: Path, seeds: Seeds) -> Case:
    (folder / "t.swf").write_bytes(seeds.traces[".swf"])
    (folder / "study.toml").write_bytes(_damaged_toml(rng, to_toml(valid.SWEEP)))
    shard = rng.choice(((), (), ("--shard", "1/2"), ("--json",)))
    return Case(("sweep", "study.toml", "-o", "out", *shard), ("out",))


@target
def workload_spec(rng: Random, folder: Path, seeds: Seeds) -> Case:
    (folder / "w.toml").write_bytes(_damaged_toml(rng, rng.choice(seeds.workloads)))
    words = ("--jobs", rng.choice(("1", "20")), "--seed", "1")
    return Case(("trace", "generate", "w.toml", *words, "-o", "out.swf"), ("out.swf",))


@target
def solver_profile(rng: Random, folder: Path, seeds: Seeds) -> Case:
    (folder / "p.toml").write_bytes(_damaged_toml(rng, to_toml(rng.choice(valid.PROFILES))))
    (folder / "s.json").write_bytes(seeds.snapshots["window-mkp"][-1])
    (folder / "t.swf").write_bytes(seeds.traces[".swf"])
    if rng.random() < 0.7:
        return Case(("solve", "s.json", "--solver", "p.toml", "--json"))
    words = ("--policy", "window", "--solver", "p.toml", "--no-plots")
    return Case(("simulate", "t.swf", *words, "-o", "out"), ("out",))


@target
def machine_file(rng: Random, folder: Path, seeds: Seeds) -> Case:
    kind = rng.choice(list(registry.machines))
    (folder / "m.toml").write_bytes(_damaged_toml(rng, to_toml(valid.MACHINES[kind])))
    return on_a_machine(rng, folder, seeds, kind, "m.toml")


@target
def machine_as_text(rng: Random, folder: Path, seeds: Seeds) -> Case:
    kind = rng.choice(list(registry.machines))
    text = machine_text(kind, rng)
    (folder / SITE).write_bytes(to_toml(valid.MACHINES["site"]))
    spaced = damaged_text(rng, text.replace(":", " : ").replace("x", " x "))
    typed = spaced.replace(" ", "").replace("\n", rng.choice(("", "\n"))).replace("/", "")
    return on_a_machine(rng, folder, seeds, kind, as_typed(typed))


@target
def bundled_catalogue(rng: Random, folder: Path, seeds: Seeds) -> Case:
    file = folder / "content" / "traces" / "catalogue.toml"
    file.parent.mkdir(parents=True)
    whole = tomllib.loads((bundled("traces") / "catalogue.toml").read_text())
    part = dict(whole, trace=dict(list(whole["trace"].items())[:2]))
    file.write_bytes(_damaged_toml(rng, to_toml(part)))
    (folder / "t.swf").write_bytes(seeds.traces[".swf"])
    name = rng.choice((*part["trace"], "s", "x"))
    commands = (("catalogue",), ("catalogue", "--json"), ("info", name), ("download", name))
    return Case(("trace", *rng.choice(commands)), content="content")


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
    (folder / "study.toml").write_bytes(to_toml(valid.SWEEP))
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
            path.write_bytes(_damaged_again(rng, data))
        elif path.suffix in (".csv", ".jsonl", ".html"):
            path.write_bytes(damaged(rng, data))
        else:
            path.write_bytes(damaged_bytes(rng, data))


def _damaged_again(rng: Random, data: bytes) -> bytes:
    try:
        return to_json(damaged_tree(rng, json.loads(data)))
    except (ValueError, RecursionError):  # it is damaged already
        return damaged_bytes(rng, data)


def reading_a_trace(rng: Random, name: str) -> Case:
    """Return a command that reads a trace."""
    output = "out" + rng.choice([s for r in registry.readers for s in registry.readers[r].suffixes])
    output += rng.choice(("", ".gz"))
    policy = rng.choice(list(registry.policies))
    options = rng.choice(((), ("--machine", machine_of(policy, rng))))
    options += rng.choice(((), ("--event-order", "one-by-one"), ("--check",), ("--journal",)))
    options += ("--no-plots",) if rng.random() < 0.97 else ()
    simulate = (("simulate", name, "--policy", policy, *options, "--json"), "out")
    commands = (
        (("trace", "info", name), ""),
        (("trace", "info", name, "--json"), ""),
        (("trace", "convert", name), output),
        (("trace", "clean", name), output),
        (("trace", "scale", name, "--to", "64", "--load", "1.5"), output),
        (("trace", "fit", name, "--fewest", "2", "--json"), "out.toml"),
        (("trace", "annotate", "files", name), "out.rackham"),
        (("trace", "annotate", "bandwidth", name, "--mix", "20:30:50"), output),
        simulate,
        simulate,
    )
    return _writing(*rng.choice(commands))


def reading_a_snapshot(rng: Random, name: str, model: str) -> Case:
    """Return a command that reads a snapshot."""
    solver = rng.choice(solvers_of(model, own=rng.random() < 0.6))
    limit = rng.choice((("--time-limit", "0.3"), ("--work-limit", "50", "--time-limit", "5")))
    solve = ("solve", name, "--solver", solver, *limit, "--json")
    if rng.random() < 0.02:  # it draws, which takes a while
        solvers = ("--solvers", ",".join(solvers_of(model, own=True)))
        return _writing(("compare", name, *limit, *solvers, "--json"), "out")
    commands: tuple[tuple[tuple[str, ...], str], ...] = (
        (("snapshot", "show", name), ""),
        (("snapshot", "show", name, "--json"), ""),
        (("snapshot", "check", name), ""),
        (("snapshot", "export", name), f"out{rng.choice(('.lp', '.mps', '.pb.txt'))}"),
        (("snapshot", "convert", name), f"out{rng.choice(('.json', '.json.gz'))}"),
        (solve, ""),
        (solve, "out.json"),
        ((*solve, "--hint", rng.choice(solvers_of(model, own=True))), ""),
        (("solve", name, *limit), ""),
    )
    return _writing(*rng.choice(commands))


def _writing(words: tuple[str, ...], written: str) -> Case:
    return Case((*words, "-o", written), (written,)) if written else Case(words)


def on_a_machine(rng: Random, folder: Path, seeds: Seeds, kind: str, machine: str) -> Case:
    """Return a simulation on a machine, under a policy that is likely for machines of its kind."""
    policies = [name for name in registry.policies if kind in registry.policies[name].machines]
    policy = rng.choice(policies if rng.random() < 0.8 else list(registry.policies))
    suffix = rng.choice(list(seeds.traces))
    (folder / f"t{suffix}").write_bytes(seeds.traces[suffix])
    words = ("--policy", policy, "--no-plots", "--json", "--machine", machine)
    return Case(("simulate", f"t{suffix}", *words, "-o", "out"), ("out",))


def as_typed(text: str) -> str:
    """Return a text as it can be typed: what a command line cannot hold is left out."""
    shown = text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    return shown.replace("\0", "").replace("..", ".").replace("/dev", "dev").lstrip("/")
