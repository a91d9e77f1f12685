"""What a command is run in changes nothing of what it says and writes."""

from __future__ import annotations

import os
import subprocess
import sys

from optsched.content import bundled

RUN = "import sys; from optsched.cli import run; [run(words.split()) for words in sys.argv[1:]]"
DRAWING = """
from optsched.cli import main

try:
    main(["--version"])
finally:
    import matplotlib.style
"""
HERE = os.pathsep.join(
    [str(bundled("models").parent), *filter(None, [os.environ.get("PYTHONPATH")])]
)


def test_without_docstrings_pages_lists_and_help_are_the_same(optsched, sample, tmp_path):
    run = tmp_path / "run"
    optsched("simulate", sample, "--jobs", "1:20", "--no-plots", "-o", run)
    assert optsched("report", run).returncode == 0
    page = (run / "report.html").read_bytes()
    (run / "report.html").unlink()
    commands = ["list policies", "simulate --help", "trace annotate files --help"]
    environment = os.environ | {"PYTHONPATH": HERE, "COLUMNS": "100"}
    expected = "".join(optsched(*words.split(), env=environment).stdout for words in commands)
    done = subprocess.run(
        [sys.executable, "-OO", "-c", RUN, *commands, f"report {run}"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith(expected)
    assert (run / "report.html").read_bytes() == page


def test_without_a_home_matplotlib_says_nothing(tmp_path):
    home = tmp_path / "home"
    home.write_text("a file, so that not even root can write a folder here")
    cleared = ("MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in cleared}
    done = subprocess.run(
        [sys.executable, "-c", DRAWING],
        env=kept | {"PYTHONPATH": HERE, "HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
