"""Comparison of what a sweep has run, over the values of one of its keys."""

from __future__ import annotations

from pathlib import Path

from optsched.cli.terminal import print_hanging, print_json, print_lines, print_table, say
from optsched.files import check_name, check_replaceable, written_folder
from optsched.studies import effects_folder as folder_of
from optsched.studies.effects import ALL, effects_over


def compare_over(sweep: Path, over: str, baseline: str | None, output: Path, *, json: bool) -> None:
    """Write the folder of the changes in a sweep over the values of a key, and print them.

    Raises
    ------
    InputError
        If there is nothing to compare, a file is missing or damaged, or the folder cannot be
        written.
    """
    check_name(sweep)
    check_replaceable(output, folder_of.FOLDER)
    found = effects_over(sweep, over, baseline)
    with written_folder(output, folder_of.FOLDER) as folder:
        folder_of.fill(found, folder, sweep)
    for note in found.notes:
        say(f"optsched: {note}")
    said = [folder_of.lead(found), *folder_of.sentences(found)]
    if json:
        effects = folder_of.records(found)
        print_json({"units": found.units, "sentences": said, "effects": effects})
        return
    first = 1 if any(one.of != ALL for one in found.effects) else 2
    heads = folder_of.columns(found)
    spare = ("by", found.baseline, "mean", "units needed")  # for a narrow terminal
    rows = [folder_of.cells(one) for one in found.effects]
    print_table(heads[:1] + heads[first:], [row[:1] + row[first:] for row in rows], spare)
    for sentence in said:
        print_hanging(sentence, 2)
    print_lines([("comparison folder", output)])
