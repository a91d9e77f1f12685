"""A real Slurm of 64 nodes on the loopback interface, for tests and for a benchmark.

On Debian it needs the packages slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins and munge,
whose daemons need not run, and root.
"""

import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import pytest

from optsched.sites.slurm_notation import hosts_of

DAEMONS = ("munged", "slurmctld", "slurmd", "scontrol", "squeue", "sbatch")
SEARCHED = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
"""Folders in which daemons and commands are looked for."""

NODES, LEAVES, CORES = 64, 8, 8

CONFIGURATION = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={spool}/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=1
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
TreeWidth=64
KillWait=2
SchedulerType=sched/backfill
SchedulerParameters={scheduler}
{settings}{nodes}PartitionName=batch Nodes=n[01-64] Default=YES MaxTime=60 DefaultTime=10 State=UP
"""

NODE = """\
NodeName={names} NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{first}-{last}] \
CPUs=8 CoresPerSocket=8 {have}
"""

SETTINGS = """\
DefMemPerCPU=100
PriorityType=priority/multifactor
TopologyPlugin=topology/tree
Licenses=matlab:2
"""

EIGHTS = [f"n[{8 * leaf + 1:02}-{8 * leaf + 8:02}]" for leaf in range(LEAVES)]

TREE = "".join(f"SwitchName=leaf{n} Nodes={nodes}\n" for n, nodes in enumerate(EIGHTS, 1))
TREE += f"SwitchName=core Switches=leaf[1-{LEAVES}]\n"

BLOCKS = "".join(f"BlockName=b{n} Nodes={nodes}\n" for n, nodes in enumerate(EIGHTS, 1))
BLOCKS += "BlockSizes=8,16,32\n"

ALIKE = {"n[01-64]": "RealMemory=16000"}

ASLEEP = "sched_interval=-1,bf_interval=-1"
"""Parameters of a scheduler that starts nothing, so that jobs wait for a plan."""

AWAKE = "sched_interval=1,bf_interval=1"


@dataclass(eq=False)
class RealSlurm:
    """Daemons of Slurm, started in a folder and ended by their handles.

    `settings` are lines of slurm.conf, `nodes` has what nodes have, by their names, `topology` and
    `gres` are the texts of topology.conf and gres.conf; GPUs are the files ``{folder}/gpu[0-3]``.
    """

    folder: Path
    scheduler: str = AWAKE
    settings: str = SETTINGS
    nodes: Mapping[str, str] = field(default_factory=ALIKE.copy)
    topology: str = TREE
    gres: str = ""

    def __post_init__(self) -> None:
        self.variables = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self.port = _free_ports()
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.configured = 0.0
        # jobs of all users run their scripts from there, and tests have folders of root alone
        self.spool = Path(tempfile.mkdtemp(prefix="optsched-slurm-"))

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start all daemons, and wait until all nodes are idle."""
        for name in ("state", "sbin"):
            (self.folder / name).mkdir(parents=True)
        self.spool.chmod(0o755)
        (self.folder / "topology.conf").write_text(self.topology)
        (self.folder / "gres.conf").write_text(self.gres.format(folder=self.folder))
        for number in range(4):
            (self.folder / f"gpu{number}").touch()  # Slurm asks for files, not for devices
        self._configure(self.scheduler)
        self.configured = time.monotonic()
        # version 22.05 cannot disable the plug-in, and does not need to
        old = " 22." in self.call("scontrol", "--version")
        without = "CgroupAutomount=no\n" if old else "CgroupPlugin=disabled\n"
        (self.folder / "cgroup.conf").write_text(without)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        named = {name: self.folder / f"munge.{name}" for name in ("socket", "pid", "log", "seed")}
        self._run(
            *("munged", "--foreground", "--force", f"--key-file={key}"),
            *(f"--socket={named['socket']}", f"--pid-file={named['pid']}"),
            *(f"--log-file={named['log']}", f"--seed-file={named['seed']}"),
        )
        self.wait(named["socket"].exists, "munged")
        self.prepare()
        self._run(self._daemon("slurmctld"), "-D", "-c")
        self.wait(lambda: "UP" in self.call("scontrol", "ping", check=False), "slurmctld")
        slurmd = self._daemon("slurmd")
        for number in range(1, NODES + 1):
            (self.spool / f"n{number:02}").mkdir()
            self._run(slurmd, "-D", "-N", f"n{number:02}")
        self.wait(
            lambda: len({*self.call("sinfo", "-hN", "-t", "idle", "-o", "%N").split()}) == NODES,
            "slurmd",
        )

    def prepare(self) -> None:
        """Start what the controller needs; for subclasses."""

    def stop(self) -> None:
        """Cancel all jobs, whose steps would outlive the daemons, and end the daemons."""
        try:
            if len(self.daemons) > 2:
                self.cancel()
        finally:
            for daemon in reversed(self.daemons):
                daemon.terminate()
            for daemon in self.daemons:
                try:
                    daemon.wait(20)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
            shutil.rmtree(self.spool)

    def cancel(self) -> None:
        """Cancel all jobs, and wait until they are gone."""
        jobs = self.call("squeue", "-h", "-o", "%A").split()
        if jobs:
            self.call("scancel", *sorted({*jobs}), check=False)
            self.wait(lambda: not self.call("squeue", "-h"), "scancel")

    def schedule(self, parameters: str) -> None:
        """Change the parameters of the scheduler."""
        # the scheduler notices a new configuration by whole seconds
        time.sleep(max(0.0, self.configured + 1.1 - time.monotonic()))
        self._configure(parameters)
        self.call("scontrol", "reconfigure")
        self.configured = time.monotonic()

    def submit(self, *options: str, seconds: int = 300) -> str:
        """Submit a job that sleeps, and return its number."""
        script = f"--wrap=sleep {seconds}"
        return self.call(
            *("sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", *options, script)
        ).strip()

    def call(self, *words: str, check: bool = True) -> str:
        """Return what a command prints."""
        variables = os.environ | self.variables
        done = subprocess.run(words, capture_output=True, text=True, env=variables, timeout=60)
        assert done.returncode == 0 or not check, (words, done.stdout, done.stderr)
        return done.stdout

    def field(self, job: str, name: str) -> str:
        """Return what squeue prints of a job, by the name of its option ``-O``."""
        return self.call("squeue", "-h", "-j", job, "-O", f"{name}:200").strip()

    def _configure(self, scheduler: str) -> None:
        nodes, first = "", self.port + 1
        for names, have in self.nodes.items():
            last = first + len(hosts_of(names)) - 1
            nodes += NODE.format(names=names, first=first, last=last, have=have)
            first = last + 1
        text = CONFIGURATION.format_map(vars(self) | {"scheduler": scheduler, "nodes": nodes})
        (self.folder / "slurm.conf").write_text(text)

    def _daemon(self, name: str) -> str:
        """Return a link to a daemon by its own name, as Slurm looks at the name of its program."""
        found = shutil.which(f"{name}-wlm", path=SEARCHED) or shutil.which(name, path=SEARCHED)
        link = self.folder / "sbin" / name
        link.symlink_to(str(found))
        return str(link)

    def _run(self, *words: str) -> None:
        env = os.environ | self.variables | {"PATH": SEARCHED}
        with (self.folder / "daemons.log").open("ab") as log:
            streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            self.daemons.append(subprocess.Popen(words, env=env, **streams))

    def wait(self, reached: Callable[[], bool], what: str = "the scheduler") -> None:
        """Wait until a condition is met."""
        end = time.monotonic() + 180
        while not reached():
            assert time.monotonic() < end, f"{what} did not get ready; see {self.folder}"
            time.sleep(0.2)


def optsched(slurm: RealSlurm, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``optsched slurm`` beside a running Slurm."""
    command, env = (sys.executable, "-m", "optsched", "slurm"), os.environ | slurm.variables
    done = subprocess.run((*command, *words), capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def asked(slurm: RealSlurm, *words: str) -> dict[str, Any]:
    """Return the JSON output of a command."""
    found: dict[str, Any] = json.loads(optsched(slurm, *words, "--json").stdout)
    return found


def forecast(slurm: RealSlurm, *changes: str) -> dict[str, Any]:
    """Return the forecast by the limits, and with changes."""
    words = [word for text in changes for word in ("--what-if", text)]
    return asked(slurm, "forecast", "--draws", "0", *words)


def starts(found: dict[str, Any]) -> dict[str, float]:
    """Return the start of each job of a forecast; infinity for those that have none."""
    listed = {one["job"]: one["by_limits"] or math.inf for one in found["jobs"]}
    return listed | dict.fromkeys(found["left"], math.inf)


def real_starts(slurm: RealSlurm) -> dict[str, float]:
    """Return the starts of the jobs that run or have ended."""
    listed = slurm.call("squeue", "-h", "-t", "all", "-o", "%i|%T|%S").splitlines()
    return {
        job: datetime.fromisoformat(start).timestamp()
        for job, state, start in (line.split("|") for line in listed)
        if state in ("RUNNING", "COMPLETING", "COMPLETED", "TIMEOUT")
    }


def _free_ports() -> int:
    """Return the first of enough free ports, at first other ones for each process of the tests."""
    for block in range(os.getpid(), os.getpid() + 100):
        first = 20_000 + 100 * (block % 100)
        if all(map(_is_free, range(first, first + NODES + 1))):
            return first
    raise OSError("no ports are free for a Slurm")


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        # connections of a Slurm that has just ended may linger; the daemons do not mind either
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def why_not(programs: Sequence[str] = DAEMONS) -> str:
    """Return why a real Slurm cannot be started; an empty text if it can."""
    lacking = [name for name in programs if shutil.which(name, path=SEARCHED) is None]
    if lacking:
        return f"not installed: {', '.join(lacking)}"
    return "" if os.geteuid() == 0 else "the daemons need root"


def marks(programs: Sequence[str] = DAEMONS) -> list[pytest.MarkDecorator]:
    """Return the marks of tests of a real Slurm, which are skipped where it cannot be started."""
    lacks = why_not(programs)
    return [pytest.mark.skipif(bool(lacks), reason=f"no real Slurm: {lacks}"), pytest.mark.long]


PROGRAMS = (*DAEMONS, "slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db")

ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.socket
AccountingStorageEnforce=associations,limits,qos
"""

OF_DBD = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
"""


class AccountedSlurm(RealSlurm):
    """A Slurm that knows the QOS, accounts and users that lines of sacctmgr make.

    On Debian it needs the packages slurmdbd, mariadb-server-core and mariadb-client-core too.
    Slurmdbd runs beside it, with a database in its folder.
    """

    def __init__(self, folder: Path, lines: Sequence[str], settings: str = SETTINGS) -> None:
        super().__init__(folder, settings=settings)
        self.lines = lines
        self.settings += ACCOUNTING.format(folder=folder, port=self.port + NODES + 1)
        # the only address of the database is a socket in the folder, so nobody else gets there
        self.variables["MYSQL_UNIX_PORT"] = str(folder / "database.socket")

    def prepare(self) -> None:
        """Start the database and slurmdbd, and make what the lines say."""
        data, socket = self.folder / "database", Path(self.variables["MYSQL_UNIX_PORT"])
        self.call(
            *("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}"),
            *("--auth-root-authentication-method=normal", "--skip-test-db"),
        )
        self._run(
            *("mariadbd", "--no-defaults", "--user=root", f"--datadir={data}"),
            *(f"--socket={socket}", f"--pid-file={self.folder}/database.pid"),
            *("--skip-networking", "--innodb-flush-log-at-trx-commit=0"),
        )
        self.wait(socket.exists, "mariadbd")
        stated = self.folder / "slurmdbd.conf"
        stated.write_text(OF_DBD.format(folder=self.folder, port=self.port + NODES + 1))
        stated.chmod(0o600)
        self._run(self._daemon("slurmdbd"), "-D")
        self.wait(
            lambda: "normal" in self.call("sacctmgr", "-n", "list", "qos", check=False), "slurmdbd"
        )
        for line in ("add cluster test", *self.lines):
            self.call("sacctmgr", "-i", *line.split())
