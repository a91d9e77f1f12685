"""A site from a path, whatever describes it there, or from the name of a bundled one."""

from __future__ import annotations

from pathlib import Path

from optsched.binary_files import read_head
from optsched.errors import InputError
from optsched.sites.bundled_sites import find_site
from optsched.sites.captured import captured_file
from optsched.sites.site import Site
from optsched.sites.site_file import read_site_file
from optsched.sites.slurm_access import left_out
from optsched.sites.slurm_configuration import read_configuration
from optsched.sites.slurm_folder import read_shown_site

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
