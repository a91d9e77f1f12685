"""``optsched doctor``."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from optsched import registry
from optsched.cli import BAD_INPUT, DONE
from optsched.cli.options import Json
from optsched.cli.terminal import print_json, print_lines, print_table
from optsched.content import bundled
from optsched.errors import InputError
from optsched.models.window_mkp import WindowMKP
from optsched.solvers.solver import Solver
from optsched.solvers.solver_call import supports, version_of
from optsched.solvers.solving import solve
from optsched.traces.catalogue import folders
from optsched.version import __version__

PACKAGES = ("numpy", "pandas", "pyarrow", "numba", "matplotlib", "networkx")
WEIGHTS, CAPACITIES, OPTIMUM = (6, 4, 3), (3, 6), 9
"""A problem that even exhaustive search solves at once."""


def command(*, compile: bool = False, json: Json = False) -> int:  # noqa: A002 (an option)
    """Check the installation: versions, and a small problem for each solver.

    Parameters
    ----------
    compile
        Compile all kernels ahead, so that no later command waits for it: a minute or two.
    """
    if compile:
        from optsched.cli.compiling import compile_all

        compile_all()
    installed = {
        "optsched": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **{package: _version(package) for package in PACKAGES},
        "content": str(bundled("models").parent),
        "traces": ":".join(map(str, folders())) or "no folder; set OPTSCHED_TRACES",
    }
    checked = [_check(cls) for cls in registry.solvers.values()]
    broken = [
        {"plug-in": name, "group": kind.group, "reason": reason}
        for kind in registry.all_kinds()
        for name, reason in kind.broken.items()
    ]
    if json:
        print_json({**installed, "solvers": checked, "broken": broken})
    else:
        print_lines(list(installed.items()))
        print()
        columns = ["solver", "version", "state"]
        print_table(columns, [[row[column] for column in columns] for row in checked])
        if broken:
            print()
            columns = ["broken plug-in", "group", "reason"]
            print_table(columns, [list(row.values()) for row in broken])
    healthy = not broken and all(row["works"] is not False for row in checked)
    return DONE if healthy else BAD_INPUT


def _check(cls: type[Solver]) -> dict[str, Any]:
    """Return name, version and state of a solver; ``works`` is None for a solver not tried."""
    row: dict[str, Any] = {"solver": cls.name, "version": None, "works": None}
    example = WindowMKP(WEIGHTS, CAPACITIES)
    try:
        row["version"] = version_of(cls)
        if row["version"] is None:
            return row | {"state": f"not installed: {cls.install_command()}"}
        if not supports(cls, example.name):
            return row | {"state": "not tried: supports other models"}
    except InputError as error:
        return row | {"works": False, "state": str(error)}
    try:
        result = solve(example, cls.name, interruptible=False)
    except Exception as error:  # a user's solver may raise anything
        return row | {"works": False, "state": f"raises {type(error).__name__}: {error}"}
    works = result.verified and (not cls.exact or result.objective == OPTIMUM)
    if works:
        state = f"works ({result.seconds * 1e3:.2f} ms)"
    else:
        state = result.message or f"answers {result.objective}, not {OPTIMUM}"
    return row | {"works": works, "state": state}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
