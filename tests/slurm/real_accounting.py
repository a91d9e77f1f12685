"""A real Slurm with accounting: slurmdbd beside it, with a database in its folder.

On Debian it needs the packages slurmdbd, mariadb-server-core and mariadb-client-core too, whose
daemons need not run. Without it a Slurm has no QOS, no accounts and no limits of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from .real_slurm import NODES, SEARCHED, SETTINGS, RealSlurm

PROGRAMS = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db")

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
    """A Slurm that knows the QOS, accounts and users that lines of sacctmgr make."""

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
        self._wait(socket.exists, "mariadbd")
        stated = self.folder / "slurmdbd.conf"
        stated.write_text(OF_DBD.format(folder=self.folder, port=self.port + NODES + 1))
        stated.chmod(0o600)
        self._run(self._daemon("slurmdbd"), "-D")
        self._wait(
            lambda: "normal" in self.call("sacctmgr", "-n", "list", "qos", check=False), "slurmdbd"
        )
        for line in ("add cluster test", *self.lines):
            self.call("sacctmgr", "-i", *line.split())


def lacks_accounting() -> str:
    """Return which programs of accounting are not there; an empty text if all are."""
    lacking = [name for name in PROGRAMS if shutil.which(name, path=SEARCHED) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else ""
