"""Numbers on the command line: digits and nothing else, and none that means nothing."""

from __future__ import annotations

from typing import get_args

import pytest
from cyclopts import App

from optsched import cli

NOT_NUMBERS = ["1_0", "٣", "nan", "9" * 20]
NOT_INTEGERS = [*NOT_NUMBERS, "2.5"]


def commands(app: App, name: tuple[str, ...] = ()):
    """Yield each command that does something, with its words."""
    for word in app:
        if not word.startswith("-"):
            yield from commands(app[word], (*name, word))
    if app.default_command is not None:
        yield name, app


def types_in(hint):
    """Return the types that an annotation is made of."""
    parts = get_args(hint)
    return set().union(*map(types_in, parts)) if parts else {hint} - {None}


def number_options():
    """Return the words of each command, and an option of it that takes a number."""
    return [
        (" ".join(name), argument.name, kind)
        for name, app in commands(cli.build())
        for argument in app.assemble_argument_collection()
        for kind in types_in(argument.hint) & {int, float}
    ]


def needed(command, option):
    """Return what a command needs besides an option, so that it would run."""
    app = cli.build()
    for word in command.split():
        app = app[word]
    for argument in app.assemble_argument_collection():
        if argument.required and argument.name != option:
            yield f"{argument.name}=5" if argument.name.startswith("-") else "x"


@pytest.mark.parametrize(("command", "option", "kind"), number_options())
def test_a_number_is_decimal_digits_in_every_option(capsys, command, option, kind):
    words = [*command.split(), *needed(command, option)]
    for word in NOT_INTEGERS if kind is int else NOT_NUMBERS:
        assert cli.run([*words, f"{option}={word}"]) == cli.USAGE, word
        printed = capsys.readouterr()
        assert printed.out == ""
        [line] = printed.err.splitlines()
        assert option in line
        assert "expected a " in line


def test_there_are_such_options():
    found = {(command, option) for command, option, _ in number_options()}
    assert {("solve", "--seed"), ("trace scale", "--from"), ("simulate", "--time-limit")} <= found
    assert len(found) > 25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--jobs", "1:1_0"], "--jobs: '1:1_0'; expected FROM:TO"),
        (["--policy", "window", "--set", "interval=1e30"], "interval of policy 'window': '1e30'"),
        (["--policy", "window", "--set", "interval=1e12"], "to 1,000,000,000"),
        (["--policy", "window", "--set", "window=1_0"], "'1_0'; expected a whole number"),
        (["--policy", "torus", "--machine", "torus:8x8x4", "--set", "interval=1e30"], "2^53"),
        (["--policy", "gang", "--execution", "paging", "--set", "job_memory=1e30"], "2^53"),
        (["--policy", "gang", "--execution", "paging", "--set", "job_memory=1e10"], "1,000,000"),
        (["--machine", "nodes:99999999999999999999"], "machine of 99999999999999999999 nodes"),
    ],
)
def test_numbers_in_other_options_are_refused_too(capsys, tmp_path, sample, arguments, message):
    output = tmp_path / "run"
    code = cli.run(["simulate", str(sample), *arguments, "--no-plots", "-o", str(output)])
    assert code == cli.BAD_INPUT
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
    assert not output.exists()


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ("1:99999999999999999999", "expected days of at most 104,249,991,374"),
        ("1:1_0", "expected the days FROM:TO"),
        ("٣:٤", "expected the days FROM:TO"),
        ("2:1", "expected the days FROM:TO"),
    ],
)
def test_days_end_before_time_does(capsys, tmp_path, sample, days, expected):
    output = tmp_path / "o.rackham"
    words = ["trace", "annotate", "files", str(sample), "-o", str(output), "--evaluate", days]
    assert cli.run(words) == cli.BAD_INPUT
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("optsched: --evaluate: ")
    assert expected in line
    assert not output.exists()


def test_a_shard_is_written_in_digits(capsys, tmp_path, sample):
    sweep_file = tmp_path / "sweep.toml"
    sweep_file.write_text(f"trace = '{sample}'\n")
    for shard in ("٣/٣", "1/1_0", "0/2", "3/2", "1"):
        words = ["sweep", str(sweep_file), "--shard", shard, "-o", str(tmp_path / "out")]
        assert cli.run(words) == cli.BAD_INPUT
        assert "expected I/N" in capsys.readouterr().err
