"""``optsched slurm site`` and ``optsched slurm report``."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from optsched.cli import DONE
from optsched.cli.options import Captured, Output
from optsched.cli.terminal import print_lines, say_note
from optsched.content import bundled_sites
from optsched.errors import InputError
from optsched.files import check_output, write_text
from optsched.sites.site_file import write_site_file
from optsched.sites.slurm_files import captured_folder
from optsched.slurm.capture import captured
from optsched.slurm.forecast import read_history
from optsched.slurm.running import read_captured
from optsched.slurm.supply import read_supply


def site(*, source: Captured = None, output: Output) -> int:
    """Write the nodes as a site file, to edit and to simulate.

    Reservations with nodes and dates are part of it.

    Parameters
    ----------
    output
        The file to write: .toml.
    """
    _check(output, ".toml", source)
    with captured(source) as folder:
        supply = read_supply(folder)
    for note in supply.notes:
        say_note(f"optsched: {note}")
    kept = tuple(each for each in supply.reservations if each.nodes and each.start > -math.inf)
    found = replace(supply.site, reservations=kept)
    write_site_file(found, output)
    print_lines([("site", found.inventory), ("written", output)])
    return DONE


def report(*, source: Captured = None, output: Output) -> int:
    """Write a page on the state of the nodes: what is free, who waits, and why.

    Parameters
    ----------
    output
        The file to write: .html.
    """
    from optsched.report.page import render
    from optsched.slurm.state import State, page

    _check(output, ".html", source)
    with captured(source, history=True) as folder:
        queue, supply = read_captured(folder)
        history = read_history(folder)
    given = next((name for name, path in bundled_sites().items() if path == source), source)
    found = page(State(queue, supply), history, given)
    write_text(output, render(found))
    print_lines([("state", found.lead), ("written", output)])
    return DONE


def _check(output: Path, suffix: str, source: Path | None) -> None:
    if output.suffix != suffix:
        raise InputError(f"unknown suffix; expected {suffix}", file=output)
    check_output(output, *([] if source is None else sorted(captured_folder(source).iterdir())))
