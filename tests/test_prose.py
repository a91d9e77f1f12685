"""What prose says is compared with what holds, at the precision that it has."""

from __future__ import annotations

import pytest
from prose import expressions, missing, not_in_files, unsaid, wrong


def test_a_figure_that_is_not_printed_is_missing():
    assert missing("from 2.02 h to 23 min, 30%", "2.02 h 23.1 min 30.35%") == []
    assert missing("from 2.03 h to 23.4 min", "2.02 h 23.1 min") == [("2.03", "h"), ("23.4", "min")]


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("a wait of 42.6 min<!-- is wait -->", 2554),
        ("**1 h**<!-- is wait -->", 3602),
        ("1,500<!-- is most --> of them", 1500),
        ("Eleven<!-- is len(models) --> models", 11),
        ("99.3%<!-- is share -->", 0.9932),
        ("greedy waits longer<!-- holds greedy >\nexact -->", True),
    ],
)
def test_a_mark_holds_at_its_precision(said, value):
    assert len(expressions(said)) == 1
    assert wrong(said, [value]) == []
    assert len(wrong(said, [value * 2 if value is not True else False])) == 1


def test_a_figure_needs_a_mark_a_file_or_a_command_that_prints_it():
    assert unsaid("5 s<!-- is x --> `6 s` [a](7 s)\n\n8 s <!-- from f -->\n\n9 s", "9.2 s") == []
    assert unsaid("in 5 s<!-- holds x -->, 6%", "") == [("5", "s"), ("6", "%")]
    assert unsaid("```\n7 s\n```\nin 8 s", "7 s") == [("8", "s")]
    file = "<!-- from benchmarks/results/real-slurm.txt -->"
    assert not_in_files(f"9999 of another\n\n181 jobs, 14.8 s {file}") == []
    assert not_in_files(f"182 jobs {file}") == ["benchmarks/results/real-slurm.txt: 182"]
