"""Location of the content that users open and edit: model pages, profiles, studies, traces."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGED = Path(__file__).parent / "_data"
_CHECKOUT = Path(__file__).parents[1]


def bundled(kind: str) -> Path:
    """Return the folder of bundled content, one of the root folders of the repository.

    It is ``optsched/_data/<kind>`` in an installed wheel, ``<checkout>/<kind>`` otherwise.
    """
    return (_PACKAGED if _PACKAGED.is_dir() else _CHECKOUT) / kind


@cache
def bundled_sites() -> dict[str, Path]:
    """Return the bundled sites by name: files, and folders with captured output of Slurm."""
    paths = sorted(bundled("sites").iterdir())
    return {path.stem: path for path in paths if path.suffix == ".toml" or path.is_dir()}
