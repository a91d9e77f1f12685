"""The content of a study: the folder, and the names of its files."""

from __future__ import annotations

from pathlib import Path

from optsched.content import bundled

PLAN, CLAIMS, PAGE = "plan.toml", "claims.toml", "page.md.j2"
"""The sweep, the claims of the paper, and the template of the page."""


def content_of(name: str) -> Path:
    """Return the folder of the content of a bundled study."""
    return bundled("studies") / name
