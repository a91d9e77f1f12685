"""Help, completion, and what loads before a command does."""

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from cyclopts import App

from optsched.cli import COMMANDS, build, installer
from optsched.content import bundled
from optsched.documentation import first_line


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_that_of_its_module(name):
    command = import_module(f"optsched.cli.{name}_command").command
    own = command.help if isinstance(command, App) else first_line(command)
    assert own == COMMANDS[name]


@pytest.mark.parametrize("words", ["simulate", "trace info", ""])
def test_help_is_a_command_too(words, optsched):
    wanted = optsched(words, "--help").out
    assert optsched("help", words).out == wanted
    assert f"Usage: {' '.join(['optsched', *words.split()])}" in wanted


def test_a_policy_is_offered_to_forecasts_alone(optsched):
    of = {name: optsched("slurm", name, "--help").out for name in ("plan", "explain", "forecast")}
    assert [name for name, text in of.items() if "policy none" in text] == ["forecast"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("simulate --policy win", "window"),
        ("simulate sam", "sample-256"),
        ("simulate sample-256 --execution mig", "migration"),
        ("simulate sample-256 --solver first", "first-fit"),
        ("solve node-placement/", "node-placement/limits"),
        ("solve yang-2014-example --solver gre", "greedy"),
        ("compare window", "window-mkp"),
        ("compare window-mkp weighted", "weighted-20x8"),
        ("study fr", "franke-1999"),
        ("simulate sample-256 --policy fcfs,easy,", "fcfs,easy,window"),
        ("simulate sample-256 --machine no", "nodes:"),
        ("simulate sample-256 --policy easy,window --set sca", "scatter="),
        ("slurm explain 290 --actions requeue,ho", "requeue,hold"),
        ("compare window-mkp --solvers mine.py:Mine,", "mine.py:Mine,highs-quick"),
    ],
)
def test_names_are_completed(words, name, optsched):
    assert name in optsched("__complete", *words.split(" ")).out.splitlines()


def test_a_name_is_offered_once_in_a_list_and_files_beside_names(tmp_path, optsched):
    offered = optsched("__complete compare window-mkp --solvers greedy,highs,gre").out.splitlines()
    assert "greedy,highs,greedy-exchange" in offered
    assert {"greedy,highs,greedy", "greedy,highs,highs"}.isdisjoint(offered)
    (tmp_path / "decisions").mkdir()
    (tmp_path / "decision.json").touch()
    for command in ("solve", "compare", "simulate"):
        offered = optsched("__complete", command, "dec", cwd=tmp_path).out.splitlines()
        assert {"decisions/", "decision.json"} <= {*offered}


TAB = """
source completion
COMP_WORDS=($0); COMP_CWORD=$((${#COMP_WORDS[@]}-1))
$(complete -p optsched | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_goes_on_after_a_comma(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    installer(build())(shell="bash", output=tmp_path / "completion", add_to_startup=False)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = "optsched simulate sample-256 --policy fcfs,win"
    done = subprocess.run(
        ["bash", "-c", TAB, words],
        env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "fcfs,window\n"


HEAVY = "print({'numpy', 'pandas', 'numba', 'ortools', 'matplotlib'} & {*sys.modules})"


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        (
            "import os, __future__; before = {*sys.modules}; import optsched.cli;"
            "print(*sorted({*sys.modules} - before))",
            "optsched optsched.cli optsched.version\n",
        ),
        (f"import optsched; {HEAVY}", "set()\n"),
        (f"from optsched.cli import run; run(['--help']); {HEAVY}", "set()\n"),
    ],
    ids=["until Ctrl-C is in hand", "import optsched", "--help"],
)
def test_next_to_nothing_is_imported(code, printed):
    command = [sys.executable, "-c", f"import sys; {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.endswith(printed)


HERE = os.pathsep.join(
    [str(bundled("models").parent), *filter(None, [os.environ.get("PYTHONPATH")])]
)
RUN = "import sys; from optsched.cli import run; [run(words.split()) for words in sys.argv[1:]]"
DRAWING = """
from optsched.cli import main

try:
    main(["--version"])
finally:
    import matplotlib.style
"""


def test_without_docstrings_pages_lists_and_help_are_the_same(optsched, tmp_path):
    run = tmp_path / "run"
    optsched("simulate sample-256 --jobs 1:20 --no-plots -o", run)
    optsched("report", run)
    page = (run / "report.html").read_bytes()
    (run / "report.html").unlink()
    commands = ["list policies", "simulate --help", "trace annotate files --help"]
    environment = {"PYTHONPATH": HERE, "COLUMNS": "100"}
    expected = "".join(optsched(words, env=environment).out for words in commands)
    done = subprocess.run(
        [sys.executable, "-OO", "-c", RUN, *commands, f"report {run}"],
        env=os.environ | environment, capture_output=True, text=True, check=True,
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
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
