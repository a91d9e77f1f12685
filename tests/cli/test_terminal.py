"""Tables, live displays and Ctrl-C on a terminal: nothing is broken at 80 columns."""

import json
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pandas as pd
import pexpect
import pytest
from rich.console import Console

from optsched import save_snapshot
from optsched.cli import run, terminal
from optsched.cli.compare_command import print_comparison
from optsched.cli.list_command import _LISTS
from optsched.cli.simulate_command import summary_lines
from optsched.cli.sweep_command import SweepTable
from optsched.content import bundled
from optsched.models import WindowMKP
from optsched.solvers import live_display
from optsched.solvers.result import Incumbent

CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
WIDTHS = pytest.mark.parametrize("columns", [80, 100])

HARD = WindowMKP(
    weights=list(range(101, 301, 2)),
    capacities=[641] * 9,
    profits=[weight + weight * weight % 17 for weight in range(101, 301, 2)],
)


@pytest.fixture
def on_terminal(monkeypatch, capsys):
    """Return a function that runs a command as on a terminal of some columns."""

    def on_terminal(columns, *words):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(Console, "is_terminal", True)
        run([str(word) for word in words])
        out, err = capsys.readouterr()
        return CONTROL.sub("", out), err

    return on_terminal


@WIDTHS
@pytest.mark.parametrize("what", _LISTS)
def test_lists_break_no_word(what, columns, on_terminal, capsys):
    run(["list", what, "--json"])
    full = json.loads(capsys.readouterr().out)[what]
    cells = [terminal.figure(value) for row in full for pair in row.items() for value in pair]
    out, err = on_terminal(columns, "list", what)
    assert {*out.split()} <= {*" ".join(cells).split()}
    long = [line for line in out.splitlines() if len(line.rstrip()) > columns]
    assert [line for line in long if len(line.split()) > 2] == []  # a long word beside its label
    for row in full:
        assert str(next(iter(row.values())) or "-") in out
    if "left out" not in err:
        assert all(name in out for name in full[0])


@WIDTHS
def test_a_comparison_has_units_and_whole_words(columns, on_terminal, capsys):
    on_terminal(columns, "list", "formats")
    times = {"median_seconds": 1.062e-05, "p95_seconds": 0.5, "total_seconds": 90.0}
    row = {"kind": "window-mkp", "solver": "branch-and-bound", "snapshots": 180, "solved": 180}
    row |= {"best": 0.9927, "proven": 1.0, "mean_gap": 0.001588, "median_gap": 0.0}
    row |= {"max_gap": 1e-9, "errors": 0, "mean_seconds": 0.1, "primal_integral": 0.2} | times
    print_comparison(pd.DataFrame([row, {**row, "solver": "greedy"}]), json=False)
    out, err = capsys.readouterr()
    lines = [line.rstrip() for line in CONTROL.sub("", out).splitlines()]
    assert all(len(line) <= columns for line in lines)
    assert re.fullmatch(r"solver +snapshots +solved +best +proven +mean gap .*time", lines[0])
    for name, line in zip(["branch-and-bound", "greedy"], lines[1:], strict=True):
        assert re.fullmatch(rf"{name} +180 +180 +99.27% +100% +0.1588% .*10.6 µs", line)
    assert ("largest gap" in lines[0]) == (columns == 100)
    assert "narrow: primal integral, mean time, in all, 95%" in err


@WIDTHS
@pytest.mark.parametrize("value", ["one two", "word " * 40])
def test_rows_become_lines_where_columns_do_not_fit(columns, value, on_terminal, capsys):
    long = "x" * 70
    on_terminal(columns, "list", "formats")
    terminal.print_table(["name", "long"], [[long, value], [long, ""]])
    lines = CONTROL.sub("", capsys.readouterr().out).splitlines()
    assert sum(long in line for line in lines) == 2
    assert all(len(line) <= columns for line in lines)


@WIDTHS
def test_the_live_table_of_a_sweep_keeps_ids_and_metrics(columns, capsys):
    path = "inputs/of/a/long/path/pieces.rackham.gz"
    varied = {"trace": path, "machine": "cluster:32x8", "policy": "locality", "seed": 8}
    planned = SimpleNamespace(name="0123456789abcdef", columns=varied)
    plan = SimpleNamespace(varying=list(varied))
    table = SweepTable(SimpleNamespace(pending=[planned], plan=plan), SimpleNamespace(slots=2))
    summary = {"utilization": 0.9927, "mean_wait": 12345.0, "mean_bounded_slowdown": 1234.5}
    outcome = SimpleNamespace(name=planned.name, error=None, seconds=7.25, summary=summary)
    table.add(outcome)
    Console(width=columns, file=sys.stdout).print(table._picture())
    bar, head, row = capsys.readouterr().out.splitlines()
    assert "1/1 runs" in bar
    assert len(row) <= columns
    assert row.startswith("01234567")
    assert row.split()[-6:] == ["7.25", "s", "99.27%", "3.43", "h", "1,234"]
    assert "pieces.rackham.gz" in row
    assert "inputs/" not in row
    assert head.split()[0] == "run"


def test_a_summary_is_short_and_has_units():
    summary = {"jobs": 3000, "finished": 2990, "killed": 0, "rejected": 10, "waiting": 0}
    summary |= {"dropped": None, "utilization": 0.9927, "makespan": 1_893_468.0}
    summary |= {"mean_wait": 1381.0, "median_wait": 0.0, "p95_wait": 8675.0, "max_wait": 47990.0}
    summary |= {"mean_response": 6002.0, "mean_bounded_slowdown": 4.0473}
    summary |= {"large_jobs": 12, "large_from": 64, "large_mean_wait": 90.0}
    summary |= {"problems": 240, "unproven": 3, "fallbacks": 2, "wrong_answers": 0}
    assert summary_lines(summary) == [
        ("jobs", "3,000: 2,990 finished, 10 rejected"),
        ("utilization", "99.27% over 21.9 d"),
        ("wait", "mean 23 min, median 0 s, 95% 2.41 h, longest 13.3 h"),
        ("response", "mean 1.67 h"),
        ("bounded slowdown", "mean 4.047"),
        ("large jobs", "12 of 64 processors or more; wait mean 1.5 min"),
        ("problems", "240, 237 proven, 2 decided by the fallback"),
    ]


@pytest.fixture
def hard(tmp_path):
    """Return the words that solve a hard problem for a minute."""
    save_snapshot(HARD, tmp_path / "hard.json")
    words = ["solve", str(tmp_path / "hard.json"), "--solver", "depth-first"]
    return [*words, "--time-limit", "60", "-o", str(tmp_path / "answer.json")]


def on_screen(*words, columns=80):
    """Start a command on a terminal."""
    command = ["-m", "optsched", *words]
    return pexpect.spawn(
        sys.executable, command, dimensions=(40, columns), timeout=60, encoding="utf-8"
    )


def ends_well(screen):
    screen.expect(pexpect.EOF)
    screen.close()
    assert screen.exitstatus == 0, screen.before


def test_solve_on_a_terminal_shows_its_search_and_ends_with_ctrl_c(hard, tmp_path):
    screen = on_screen(*hard)
    screen.expect("seconds.*objective.*bound.*gap")
    screen.expect(r"\d%")
    screen.sendintr()
    screen.expect("status +feasible, interrupted")
    screen.expect("interrupted: the best solution so far")
    ends_well(screen)
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert (answer["status"], answer["limit"]) == ("feasible", "interrupted")
    assert answer["verified"]


def test_solve_in_a_pipe_shows_nothing_and_ends_with_ctrl_c(hard):
    command = [sys.executable, "-m", "optsched", *hard]
    search = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    children = f"/proc/{search.pid}/task/{search.pid}/children"
    while not open(children).read().split():  # noqa: SIM115 (read at once)
        time.sleep(0.05)
    time.sleep(1.5)  # the search begins
    search.send_signal(signal.SIGINT)
    out, err = search.communicate()
    assert err == "optsched: interrupted: the best solution so far\n"
    assert "feasible, interrupted" in out
    assert search.returncode == 0


def test_a_simulation_shows_its_progress_on_a_terminal(tmp_path):
    words = ("--policy", "conservative", "--no-plots", "-o", str(tmp_path / "run"))
    screen = on_screen("simulate", "sample-256", *words)
    screen.expect("simulating")
    screen.expect("bounded slowdown")
    ends_well(screen)


def test_a_sweep_shows_a_live_table_on_a_terminal(tmp_path):
    (tmp_path / "sweep.toml").write_text(
        'trace = "sample-256"\njobs = ["1:10", "1:11", "1:12"]\npolicy = ["fcfs", "easy", "sjf"]\n'
    )
    words = ("sweep", tmp_path / "sweep.toml", "--workers", "1", "-o", tmp_path / "out")
    screen = on_screen(*map(str, words), columns=150)
    screen.expect("0/9 runs")
    screen.expect("results .*out/results.parquet")
    for word in ("1 running", "left", "wait", "varying values", "sjf"):
        assert word in screen.before
    ends_well(screen)


REPORTS = [Incumbent(0.5, 1000, None), Incumbent(1.0, 31594, 31600), Incumbent(2.0, 31594, 31595)]


def test_a_search_elsewhere_is_told_in_lines(capsys):
    with live_display.shown() as add:
        for report in REPORTS:
            add(report)
    assert capsys.readouterr().err.splitlines() == [
        "0.50 s  objective 1,000  bound -  gap -",
        "1.00 s  objective 31,594  bound 31,600  gap 0.01899%",
        "2.00 s  objective 31,594  bound 31,595  gap 0.003165%",
    ]


def test_a_notebook_shows_a_table_that_is_updated(monkeypatch):
    ipython = pytest.importorskip("IPython")
    shown = []

    def display(thing, display_id):
        assert display_id
        shown.append(thing._repr_html_())
        return SimpleNamespace(update=lambda thing: shown.append(thing._repr_html_()))

    monkeypatch.setattr(ipython, "get_ipython", lambda: SimpleNamespace(kernel=None))
    monkeypatch.setattr(ipython.display, "display", display)
    with live_display.shown() as add:
        for report in REPORTS:
            add(report)
    first, *_, last = shown
    assert first.count("<tr>") == 2
    assert last.count("<tr>") == 4  # the bound of the last incumbent is no row of its own
    assert "<td>31,594</td><td>31,595</td><td>0.003165%</td>" in last


def test_quiet_leaves_warnings_only_and_verbose_says_what_is_read(optsched, tmp_path, caplog):
    words = "simulate sample-256 --machine 16 --jobs 100 --no-plots -o run"
    quiet = optsched(words, "-q", cwd=tmp_path).err.splitlines()
    assert quiet[0] == "optsched: 27 jobs rejected"
    assert len(quiet) == 2
    assert "replaced the run of easy in" in optsched(words, "--policy fcfs", cwd=tmp_path).err
    caplog.clear()
    optsched("-v", words, cwd=tmp_path)
    assert any(re.fullmatch("read .*sample-256.*: 3,000 jobs", one) for one in caplog.messages)
    assert "--verbose: excludes --quiet" in optsched("-v -q", words, cwd=tmp_path, code=1).err


@WIDTHS
def test_the_facts_of_a_trace_fit(columns, on_terminal):
    sample = bundled("traces") / "samples" / "sample-256.swf"
    out, _ = on_terminal(columns, "trace", "info", sample)
    assert all(len(line) <= columns for line in out.splitlines())
    assert "0.8% exactly as long" in " ".join(out.split())
