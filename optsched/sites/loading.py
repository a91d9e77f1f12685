"""A site from a path, whatever describes it there, or from the name of a bundled one."""

from __future__ import annotations

import os
from pathlib import Path

from optsched.binary_files import read_head
from optsched.content import bundled_sites
from optsched.errors import InputError, no_such_file
from optsched.files import check_name
from optsched.sites.site import Site
from optsched.sites.site_file import read_site_file
from optsched.sites.slurm_folder import read_configuration, read_shown_site
from optsched.sites.slurm_json import captured_file
from optsched.sites.slurm_partitions import left_out


def find_site(path_or_name: str | Path) -> Path:
    """Return the file or folder of a path, or that of the name of a bundled site.

    A file or folder of that name takes precedence.
    """
    check_name(path_or_name)
    path, known = Path(path_or_name), bundled_sites()
    if os.path.lexists(path):
        return path
    if str(path) in known:
        return known[str(path)]
    unnamed = "" if path.suffix else ", and no name in `optsched list sites`"
    raise no_such_file(path, known, f"no such file{unnamed}")


EXPECTED = (
    "expected a site as TOML, slurm.conf, what scontrol show nodes --json writes, "
    "or a folder with nodes.json, nodes.txt or slurm.conf"
)


def load_site(path_or_name: str | Path, notes: list[str] | None = None) -> Site:
    """Return the site that a file or a folder describes.

    `path_or_name`: a TOML file as docs/formats/site.md describes it; slurm.conf; what ``scontrol
    show nodes`` wrote with ``--json`` or ``-d -o``; a folder with captured output of Slurm or with
    slurm.conf; or the name of a bundled site.
    """
    path = find_site(path_or_name)
    if path.suffix == ".toml":
        return read_site_file(path)
    found = (read_shown_site if _is_shown(path) else read_configuration)(path)
    if notes is not None:
        notes += (*found.notes, *left_out(found.access))
    return found.site


def _is_shown(path: Path) -> bool:
    """Return whether the path has what Slurm showed; if not, it has a slurm.conf."""
    if path.is_dir():
        if captured_file(path, "nodes.json", "nodes.txt"):
            return True
        if captured_file(path, "slurm.conf"):
            return False
        if captured_file(path, "sinfo.json"):
            return True
        raise InputError(EXPECTED, file=path)
    head = read_head(path)
    if head.lstrip().startswith(b"{") or b" CPUTot=" in head:
        return True
    if ".conf" in path.suffixes:
        return False
    raise InputError(EXPECTED, file=path)
