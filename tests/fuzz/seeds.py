"""Valid input of every kind, small: what is damaged."""

import contextlib
import io
import json
import logging
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from fuzz.captures import CAPTURES, CONFIGURATION
from fuzz.mutation import to_toml
from optsched import registry
from optsched.cli import run
from optsched.content import bundled
from optsched.errors import InputError
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import snapshot_files
from optsched.report.saved import fill_comparison
from optsched.solvers.comparison import compare
from optsched.solvers.result import Budget
from optsched.solvers.solver import Solver
from optsched.solvers.solving import solve
from optsched.sweeps.engines import Outcome, Task, execute
from optsched.sweeps.sweep_file import read_sweep
from optsched.sweeps.sweeping import Sweep

JOBS = 12  # of each trace
LARGEST = 2500  # bytes of the largest snapshot

KNAPSACKS = b"2\n5\n6\n9\n4 4\n3 7\n2 2\n5 6\n1 1\n"

OR_LIBRARY = (
    b"2\n3 2 6\n2 3 4\n4 5 6\n2 3 4\n10 6\n2 1 0\n7.5 8\n1 1\n1\n",
    b"1\n2 2\n1 9\n5 2\n3 3\n4 4\n3 4\n",
    b"1\n3 1\n1 1 1\n2\n1 1 0\n1\n1 2 4\n1 2 4\n1 2 4\n-1 -2 4\n-1 -2 4\n-1 -2 4\n",
    b"2\n u4_00\n 10.0 4 2\n 6.5\n 3.5\n5\n5\n two\n 3 2 2\n2 2\n",
)

PROGRAMS = {
    ".lp": b"max\n obj: 3 x + 2 y + 5 z + 1\nst\n c1: 0.5 x + 2 y + z <= 2.5\n c2: x - y >= -1\n"
    b"bounds\n -1 <= z <= 5\nbin\n x y\ngen\n z\nend\n",
    ".mps": b"NAME p\nOBJSENSE\n MAX\nROWS\n N obj\n L c1\n G c2\nCOLUMNS\n"
    b" FIRST 'MARKER' 'INTORG'\n x obj 3 c1 2\n x c2 1\n y obj 2 c1 1\n"
    b" LAST 'MARKER' 'INTEND'\nRHS\n r c1 5 c2 1\nBOUNDS\n UP b x 4\n UP b y 3\nENDATA\n",
}

CARGO = b"kind,size,profit,name\nknapsack,10,,left\nitem,4,9,a\nitem,5,8,b\n"
KNOWN_VALUES = b"instance,lower_bound,upper_bound\ns,17,17\nother,3,\n"

SACCT = b"""\
JobIDRaw|JobID|User|Partition|Submit|Start|End|Elapsed|Timelimit|State|ReqCPUS|AllocCPUS|ReqTRES|ReqMem|Priority
7|7|anna|batch|1795367000|1795367005|1795367065|00:01:00|30|COMPLETED|4|4|cpu=4,mem=8G,node=1|8G|120
7.batch|7.batch|||1795367000|1795367005|1795367065|00:01:00||COMPLETED|4|4|||
9|8_1|bob|gpu|1795367009|1795367030|1795367040|00:00:10|UNLIMITED|FAILED|2|2|cpu=2,gres/gpu:a100=2|4Mc|90
8|8_[2-9%2]|bob|gpu|1795367009|Unknown|Unknown|00:00:00|1-00:00:00|PENDING|2|0|cpu=2,gres/gpu=2|4Mc|90
11|11|anna|batch|2026-11-22T18:00:00|None|1795367065|00:00:00|5|CANCELLED|1|0|cpu=1|0n|1
"""

SACCT_JSON = {
    "meta": {"plugin": {"data_parser": "data_parser/v0.0.42"}},
    "jobs": [
        {
            "job_id": job, "user": "anna", "cluster": "a", "state": {"current": [state]},
            "array": {"job_id": 0, "task_id": {"set": False, "number": 0}, "task": ""},
            "time": {
                "submission": 1795367000 + job, "eligible": 1795367000 + job, "suspended": 0,
                "start": 1795367010 + job, "end": end, "elapsed": 60,
                "limit": {"set": True, "infinite": job == 9, "number": 30},
            },
            "required": {"CPUs": 4, "memory_per_cpu": {"set": True, "number": 1000}},
            "steps": [{}],
            "tres": {
                "allocated": [{"type": "cpu", "name": "", "count": 4}],
                "requested": [{"type": "cpu", "name": "", "count": 4},
                              {"type": "gres", "name": "gpu:a100", "count": 2}],
            },
        }
        for job, end, state in ((7, 1795367080, "COMPLETED"), (9, 0, "RUNNING"))
    ],
}  # fmt: skip

SWEEP = {
    "trace": "t.swf", "jobs": ["1:6", "4:12"], "policy": ["easy", "window"],
    "runs": [{"solver": "greedy", "policy": "window", "settings": {"window": [5, 10]}},
             {"policy": "fcfs", "event_order": "one-by-one", "large_from": 8}],
}  # fmt: skip

MACHINES: dict[str, dict[str, Any]] = {
    "nodes": {"kind": "nodes", "size": 256},
    "matrix": {"kind": "matrix", "size": 256},
    "torus": {
        "kind": "torus", "shape": [4, 4, 4], "nodes_per_router": 4, "ordering": "snake",
        "wrap": [True, False, True], "links": [2, 1, 2], "holes": ["1x1x4@0,3,0"],
    },
    "cluster": {"kind": "cluster", "nodes": 8, "cores": 20, "memory": 128000, "kept": "next"},
    "smp": {"kind": "smp", "nodes": 64, "processors": 4, "capacity": {"bandwidth": 6000}},
    "site": {
        "kind": "site",
        "nodes": [{"names": "c[01-56]", "cores": 4, "memory": "16G", "features": ["ib"]},
                  {"names": "g[1-8]", "cores": 4, "memory": 64000, "gpus": {"a100": 2}}],
        "partitions": [
            {"name": "batch", "nodes": "ALL", "default": True},
            {"name": "gpu", "nodes": "g[1-8]", "max_time": "1-00:00:00", "exclusive": True},
        ],
        "licences": {"matlab": 8},
    },
}  # fmt: skip

SITE = "site.toml"
"""File of the site in `machine_text`."""

PROFILES = (
    {"solver": "branch-and-bound", "seed": 3, "budget": {"work": 100}, "options": {}},
    {"solver": "cp-sat", "description": "a profile", "budget": {"seconds": 0.2, "work": 1},
     "options": {"workers": 1, "relative_gap": 0.1, "first_solution": False}},
)  # fmt: skip


class Here:
    """Executes so many tasks of a sweep in this process; the others fail, to end soon."""

    slots = 1

    def __init__(self, most: int) -> None:
        self._most = most

    def execute_all(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Yield the outcome of each task."""
        for task in tasks[: self._most]:
            yield execute(task)
        for task in tasks[self._most :]:
            yield Outcome(task.run.name, None, "left out by the fuzzer")


class Seeds:
    """Valid input, made in an empty folder with the program itself, which loads its kernels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lines = (bundled("traces") / "samples" / "sample-256.swf").read_text().splitlines()
        header = [line for line in lines if line.startswith(";")]
        jobs = [line for line in lines if not line.startswith(";")]
        (folder / "t.swf").write_text("\n".join(header + jobs[:JOBS]) + "\n")
        rackham = (bundled("traces") / "samples" / "sample-8x20.rackham").read_text().splitlines()
        evaluated = [line for line in rackham if "workload: 0 " in line]
        (folder / "t.rackham").write_text("\n".join(rackham[:4] + evaluated[: JOBS - 4]) + "\n")
        (folder / "t.txt").write_bytes(KNAPSACKS)
        (folder / "t.sacct").write_bytes(SACCT)
        (folder / "sacct.json").write_text(json.dumps(SACCT_JSON))
        with contextlib.chdir(folder):
            self._make_files()
            self._make_folders()

    def _make_files(self) -> None:
        """Show that each file is accepted: else no damage of it gets past its first line."""
        accepted = {"k.txt": KNAPSACKS, "k.csv": CARGO}
        accepted |= {f"p{suffix}": data for suffix, data in PROGRAMS.items()}
        accepted |= {f"b{place}.txt": data for place, data in enumerate(OR_LIBRARY)}
        for name, data in accepted.items():
            Path(name).write_bytes(data)
            assert _done("snapshot", "check", name), name
        Path("known_values.csv").write_bytes(KNOWN_VALUES.replace(b"s,", b"k,"))
        assert _done("snapshot", "check", "k.csv"), "known values"
        for profile in PROFILES:
            Path("p.toml").write_bytes(to_toml(profile))
            assert _done("solve", "k.csv", "--solver", "p.toml"), profile
        for place, capture in enumerate((*CAPTURES, CONFIGURATION)):
            folder = Path(f"capture-{place}")
            folder.mkdir()
            for name, data in capture.items():
                (folder / name).write_bytes(data)
            words = ("--machine", f"site:{folder}", "--no-plots")
            assert _done("simulate", "t.swf", *words, "-o", f"on-{place}"), folder
            if "squeue.json" not in capture:
                continue
            for words in (("plan",), ("explain", "7"), ("snapshot", "-o", "q.json"), ("reset",)):
                assert _done("slurm", *words, "--from", str(folder)), (folder, words)

    def _make_folders(self) -> None:
        for suffix in (".json", ".parquet", ".csv"):
            assert _done("trace", "convert", "t.swf", "-o", f"t{suffix}")
        assert _done("trace", "annotate", "bandwidth", "t.swf", "--mix", "HIGH", "-o", "d.swf")
        for trace in ("t.swf", "t.sacct", "sacct.json"):
            assert _done("trace", "info", trace, "--json")
        assert _done("trace", "fit", "t.swf", "--fewest", "2", "-o", "w.toml")
        for place, spec in enumerate(self.workloads):
            Path("g.toml").write_bytes(spec)
            assert _done("trace", "generate", "g.toml", "--jobs", "5", "-o", "g.swf"), place
        Path(SITE).write_bytes(to_toml(MACHINES["site"]))
        for kind, machine in MACHINES.items():
            Path("m.toml").write_bytes(to_toml(machine))
            policies = (p for p in registry.policies if kind in registry.policies[p].machines)
            assert any(_simulated(policy, "m.toml") for policy in policies), kind
        for policy in registry.policies:
            assert _simulated(policy, machine_of(policy, None)), policy
        assert _done("simulate", "t.swf", "--jobs", "1:6", "--no-plots", "-o", "run")
        for model, snapshots in self.snapshots.items():
            (self.folder / f"{model}.json").write_bytes(snapshots[0])
            for snapshot in snapshots:
                problem = Snapshot.from_json(json.loads(snapshot)).problem
                for solver in solvers_of(model, own=True):
                    with contextlib.suppress(InputError):  # a problem that the solver refuses
                        solve(problem, solver, budget=Budget(work=100))
            assert _done("snapshot", "show", f"{model}.json")
        Path("study.toml").write_bytes(to_toml(SWEEP))
        sweep = Sweep(read_sweep("study.toml"), Path("sweep"))
        for outcome in sweep.work(Here(len(sweep.pending))):
            assert outcome.error is None, outcome.error
        assert sweep.finish()
        (self.folder / "comparison").mkdir()
        compared = compare(["window-mkp.json"], ["greedy", "branch-and-bound"], budget=Budget(1))
        fill_comparison(compared, self.folder / "comparison", plots=False)

    @cached_property
    def traces(self) -> dict[str, bytes]:
        """A trace in each format, by suffix."""
        suffixes = [one for name in registry.readers for one in registry.readers[name].suffixes]
        return {suffix: (self.folder / f"t{suffix}").read_bytes() for suffix in suffixes}

    @cached_property
    def demands(self) -> tuple[bytes, bytes]:
        """A trace, and the demands of its jobs."""
        trace = self.folder / "d.swf"
        return trace.read_bytes(), trace.with_name("d.swf.demands.csv").read_bytes()

    @cached_property
    def snapshots(self) -> dict[str, list[bytes]]:
        """The small snapshots of each model."""

        def small(model: str) -> Iterator[bytes]:
            data = (file.read_bytes() for file in snapshot_files(bundled("models") / model))
            return (each for each in data if len(each) < LARGEST)

        return {model: [*small(model)] for model in registry.models}

    @cached_property
    def workloads(self) -> list[bytes]:
        """The bundled workload specs, and one that was fitted."""
        bundled_ones = sorted(bundled("workloads").glob("*.toml"))
        return [file.read_bytes() for file in (*bundled_ones, self.folder / "w.toml")]


def _simulated(policy: str, machine: str) -> bool:
    """Return whether a policy runs one of the traces: what it needs, one of them has."""
    words = ("--policy", policy, "--machine", machine, "--no-plots", "-o", "simulated")
    return any(_done("simulate", trace, *words) for trace in ("d.swf", "t.rackham", "t.sacct"))


def _done(*arguments: str) -> bool:
    """Run a command in this process, and return whether it went well."""
    logging.getLogger("optsched").setLevel(logging.ERROR)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return run([*arguments]) == 0


def solvers_of(model: str, *, own: bool) -> list[str]:
    """Return the solvers of a model: its own ones, or those of all models too.

    A model without any of its own has those of all models.
    """
    found = [name for name in registry.solvers if model in _models(registry.solvers[name])]
    if own and found:
        return found
    return found + [name for name in registry.solvers if not _models(registry.solvers[name])]


def _models(solver: type[Solver]) -> frozenset[str]:
    return frozenset(solver.models or ())


def machine_text(kind: str, rng: Random | None = None) -> str:
    """Return a machine as text, from what its class says of its usage; with options if drawn."""
    usage: str = registry.machines[kind].usage.replace("...", "")

    def option(found: re.Match[str]) -> str:
        return found[1] if rng is not None and rng.random() < 0.3 else ""

    text = re.sub(r"\[([^]]*)\]", option, usage).replace("PATH|NAME", SITE)
    if rng is not None:
        text = re.sub(r"\w+(?:\|\w+)+", lambda found: rng.choice(found[0].split("|")), text)
    sides = 4 if re.match(r"\w+:\w+x\w+x\w+", text) else 16
    return re.sub(r"MB/s|[A-Z]+(?=x|:|,|$)", str(sides), text)


def machine_of(policy: str, rng: Random | None) -> str:
    """Return a machine as text that a policy can run on."""
    kinds = sorted(registry.policies[policy].machines)
    return machine_text(kinds[0] if rng is None else rng.choice(kinds), rng)
