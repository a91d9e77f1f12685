"""Integer programs in MPS and LP files, as snapshots."""

from __future__ import annotations

import re
from pathlib import Path

from optsched.errors import InputError
from optsched.models.integer_program.lp_file import parse_lp
from optsched.models.integer_program.mps_file import parse_mps
from optsched.models.snapshot import Snapshot

FORMATS = {".lp": "LP", ".mps": "MPS"}
"""Name of the format by the suffix of its files."""

IN_COMMENT = re.compile(r"^\*\s*SENSE:\s*Max", re.IGNORECASE | re.MULTILINE)
"""The sense as PuLP writes it."""


def parse_program_file(data: bytes, path: Path, suffix: str) -> Snapshot:
    """Return the integer program of an LP or MPS file, decompressed."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"not text; expected {FORMATS[suffix]}", file=path) from None
    if suffix == ".mps" and IN_COMMENT.search(text) and "OBJSENSE" not in text:
        problem = "is maximized by a comment (*SENSE) alone, which no reader of MPS heeds"
        raise InputError(f"{problem}; expected a section OBJSENSE", file=path)
    try:
        stated = parse_lp(text) if suffix == ".lp" else parse_mps(text)
    except InputError as error:
        raise error.within(path) from None
    return stated.snapshot(path)
