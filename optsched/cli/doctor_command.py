"""``optsched doctor``."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from optsched import __version__, registry
from optsched.cli import BAD_INPUT, DONE
from optsched.cli.terminal import print_lines, print_table
from optsched.content import bundled
from optsched.models.window_mkp import WindowMKP
from optsched.solvers.solving import solve
from optsched.traces.catalogue import folders

PACKAGES = ("numpy", "pandas", "pyarrow", "numba", "matplotlib", "networkx")
EXAMPLE_OPTIMUM = 15


def command() -> int:
    """Say what is installed and whether it works: each solver answers the paper's example."""
    print_lines(
        [
            ("optsched", __version__),
            ("python", platform.python_version()),
            ("platform", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
            *((package, _version(package)) for package in PACKAGES),
            ("content", bundled("models").parent),
            ("traces", ":".join(map(str, folders())) or "no folder; set OPTSCHED_TRACES"),
        ]
    )
    example = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
    rows = []
    healthy = True
    for name in registry.solvers:
        cls = registry.solvers[name]
        installed = cls.installed_version()
        if installed is None:
            rows.append([name, "not installed", f"pip install {cls.requires}"])
        elif not cls.supports(example):
            rows.append([name, installed, "not tried: answers other models"])
        else:
            result = solve(example, name)
            right = result.verified and (not cls.exact or result.objective == EXAMPLE_OPTIMUM)
            healthy = healthy and right
            verdict = f"works ({result.seconds * 1e3:.2f} ms)" if right else result.message
            rows.append([name, installed, verdict or f"answers {result.objective}, not 15"])
    print()
    print_table(["solver", "version", "state"], rows)
    return DONE if healthy else BAD_INPUT


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
