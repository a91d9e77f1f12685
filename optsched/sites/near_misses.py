"""Files that are nearly of an expected form: output of another command, or with other options."""

from __future__ import annotations

import re

from optsched.binary_files import HEAD

STATES = r"COMPLETED|CANCELLED|FAILED|TIMEOUT|RUNNING|PENDING|NODE_FAIL|OUT_OF_MEM\w*"

_COMPRESSED = {
    b"PK\x03\x04": "zip",
    b"\xfd7zXZ": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
}

_JOB = r"\d+(_\S+|\.\w+|\+\d+)?"

A_LIST = "a list in JSON; expected the object that Slurm writes with --json"

_FORMS: tuple[tuple[str, str], ...] = (
    (r"\s*<(!doctype|html|\?xml)", "a page of HTML or XML; expected what the command itself wrote"),
    (r"\s*\[\s*[\]{]", A_LIST),
    (
        r" *(\S+ +)*JobID(Raw)?( +\S+)* *\n *-{3,}( +-{3,})+",
        "the columns of sacct without -P; expected what sacct -P writes, or --json",
    ),
    (
        r" *([A-Z]\w+ +)*JobID(Raw)?( +[A-Z]\w+)+ *(\n|$)",
        "fields of sacct with blanks between them; expected what sacct -P writes, or --json",
    ),
    (
        rf"(?=[^\n]*\|({STATES}|\d{{4}}-\d\d-\d\dT[^|\n]*)\b)([^|\n]*\|)?{_JOB}\|[^\n]*\|",
        "no line with the names of the fields; expected sacct -P without -n (--noheader)",
    ),
    (
        rf"{_JOB} +[^\n]* ({STATES})\b",
        "columns without the names of the fields; expected sacct -P without -n (--noheader)",
    ),
    (r"(?=[^\n]*\bJOBID\b)[^a-z,;\t\n]+\n", "the text of squeue; expected squeue --json"),
    (
        r"(?=[^\n]*\bNODES\b)(?=[^\n]*\b(AVAIL|STATE)\b)[^a-z,;\t\n]+\n",
        "the text of sinfo; expected what scontrol show nodes --json writes",
    ),
    (
        r'\s*\{\s*"(sinfo|nodes|partitions|reservations|licenses)"',
        "what sinfo or scontrol writes with --json; expected the jobs of sacct --json",
    ),
    (r"JobId=\d+", "what scontrol show jobs writes; expected sacct or squeue with --json"),
    (r"NodeName=\S+ +(Arch|CoresPer)", "nodes, as scontrol shows them; expected other records"),
)
"""Pattern of the beginning of each form, and what to say of it."""

_ERROR = re.compile(r"\s*((sacct|squeue|sinfo|scontrol|slurm_\w+|slurm\w*)( error)?: [^\n]+)")

_OBJECTS = re.compile(rb"\s*\{\s*\".*\}[ \t\r]*\n\s*\{\s*\"")

_COMMAS = re.compile(rb"(?=(.*,)?JobID(Raw)?\b)(?=(.*,)?Submit\b)(?=(.*,)?State\b)\w+(,\w+)+,?\s")

_RECORD = re.compile(r"(NodeName|PartitionName|JobId|ReservationName|LicenseName)=", re.IGNORECASE)

_WHOLE = re.compile(r"\b(State|JobState|NodeCnt|Total)=")
"""What the first of several lines lacks."""

_SHOWN = {
    "nodename": "nodes",
    "partitionname": "partitions",
    "jobid": "jobs",
    "reservationname": "reservations",
    "licensename": "licenses",
}


def near_miss(data: bytes) -> str | None:
    """Return a message on the form of a file that its beginning shows; None if it is unclear.

    >>> near_miss(b"<!DOCTYPE html>")
    'a page of HTML or XML; expected what the command itself wrote'
    """
    if not data.strip():
        return "the file is empty"
    for magic, name in _COMPRESSED.items():
        if data.startswith(magic):
            return f"compressed with {name}; expected a plain file, or gzip"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or re.match(rb"(.\0){4}|(\0.){4}", data):
        return "text in UTF-16, as PowerShell writes it; expected UTF-8"
    if _OBJECTS.match(data):
        return "several objects in JSON, one on a line; expected a single one"
    # some patterns take long for many blanks
    text = data[:HEAD].decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    if error := _ERROR.match(text):
        return f"an error of Slurm: {error[1].strip()[:200]}"
    for form, said in _FORMS:
        if re.match(form, text, re.IGNORECASE if form.startswith(r"\s*<") else 0):
            return said
    return None


def with_commas(data: bytes) -> str | None:
    """Return a message on fields of sacct with commas, which a table may have too; or None."""
    if _COMMAS.match(data[:HEAD]) is None:
        return None
    return "fields of sacct with commas between them, which values hold too; expected sacct -P"


def on_several_lines(before: str, line: str) -> str | None:
    """Return a message if a line continues the record of the line before it; or None."""
    begun = _RECORD.match(before)
    if begun is None or _WHOLE.search(before) or not line[:1].isspace() or "=" not in line:
        return (
            None  # what a whole record is followed by goes on with a comment that has line breaks
        )
    command = f"scontrol -o show {_SHOWN[begun[1].lower()]}"
    return f"a record on several lines; expected one on each line, as {command} writes them"
