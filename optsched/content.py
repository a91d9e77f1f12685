"""Where the content a user opens and edits lives: model pages, profiles, studies, catalogue."""

from __future__ import annotations

from pathlib import Path

_PACKAGED = Path(__file__).parent / "_data"
_CHECKOUT = Path(__file__).parents[1]


def bundled(kind: str) -> Path:
    """Return the folder of bundled content, in a checkout and in an installed wheel alike.

    Parameters
    ----------
    kind : {"models", "solvers", "studies", "traces", "workloads"}
        One of the root folders of the repository.

    Returns
    -------
    pathlib.Path
        ``optsched/_data/<kind>`` in an installed wheel, ``<checkout>/<kind>`` otherwise.
    """
    return (_PACKAGED if _PACKAGED.is_dir() else _CHECKOUT) / kind
