"""The factors of the priorities of pending jobs, as ``sprio`` shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from optsched.errors import InputError
from optsched.numbers import whole_number
from optsched.sites.slurm_files import captured_file, read_text
from optsched.slurm.queue import QueuedJob

FACTORS = {
    "SITE": "site",
    "AGE": "age",
    "ASSOC": "association",
    "FAIRSHARE": "fair share",
    "JOBSIZE": "job size",
    "PARTITION": "partition",
    "QOS": "QOS",
    "NICE": "nice",
    "TRES": "TRES",
}
"""Words for the columns of ``sprio``, all of which are weighted."""

_OF_TRES = re.compile(r"=([0-9]{1,15}(?:\.[0-9]{1,9})?)(?=,|$)")

Factors: TypeAlias = Mapping[int, Mapping[str, int]]
"""The weighted factors of each pending job by its number."""


def read_factors(folder: Path) -> Factors:
    """Return the factors in a folder with captured output of Slurm; none without ``sprio.txt``."""
    path = captured_file(folder, "sprio.txt")
    if path is None:
        return {}
    header, *lines = read_text(path).splitlines() or [""]
    names = header.split()
    if "JOBID" not in names or "PRIORITY" not in names:
        raise InputError("no JOBID and PRIORITY; expected what sprio -l writes", file=path, line=1)
    # the partition has a name and a factor, and the last columns may be empty
    numbers = [place for place, name in enumerate(names) if name in FACTORS]
    first = names.index("PRIORITY")
    found: dict[int, Mapping[str, int]] = {}
    for number, line in enumerate(lines, 2):
        words = line.split()
        if not words:
            continue
        job = whole_number(words[0])
        if job is None:
            raise InputError(
                f"{words[0]!r}; expected the number of a job", file=path, line=number, field="JOBID"
            )
        factors: dict[str, int] = {}
        for place in numbers:
            word = words[place] if first < place < len(words) else ""
            if (value := whole_number(word.lstrip("-"))) is not None:
                sign = -1 if names[place] == "NICE" else 1
                factors[FACTORS[names[place]]] = sign * value
            elif each := _OF_TRES.findall(word):
                factors[FACTORS[names[place]]] = round(sum(map(float, each)))
        found[job] = factors
    return found


def behind_by(
    job: QueuedJob, others: Iterable[QueuedJob], factors: Factors
) -> list[tuple[str, int]]:
    """Return by how much jobs before another are ahead in each factor on average, most first."""
    own = factors.get(job.job_id)
    there = [factors[each.job_id] for each in others if each.job_id in factors]
    if own is None or not there:
        return []
    mean = {
        name: sum(each.get(name, 0) for each in there) / len(there) - own.get(name, 0)
        for name in FACTORS.values()
    }
    found = [(name, round(ahead)) for name, ahead in mean.items() if round(ahead) > 0]
    return sorted(found, key=lambda pair: -pair[1])


def set_by_operator(job: QueuedJob, factors: Factors) -> bool:
    """Return whether an operator has set the priority of a job: Slurm then shows no factors."""
    own = factors.get(job.job_id)
    return own is not None and job.priority > 1 and not any(own.values())
