"""Golden runs: the journal of the bundled sample under each policy, as a hash.

A change here means that a schedule changed. If that is meant, say why in the commit and write the
new hash, which the failing test prints, to ``golden.json``.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from optsched import registry, simulate
from optsched.content import bundled
from optsched.machines.site import SiteMachine
from optsched.sites.site_file import read_site_file
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace
from optsched.traces.transformations import drawn

SITE = bundled("sites") / "sample-site.toml"

PLAIN = read_site_file(SITE)
ONE_QUEUE = SiteMachine(
    replace(PLAIN, partitions=[replace(each, priority_tier=1) for each in PLAIN.partitions])
)
"""The sample with partitions that stop each other."""

MACHINES = {"torus": "torus:8x8x4", "locality": "cluster:8x20"}
MACHINES |= dict.fromkeys(["rua", "sjbf"], "smp:64x4")
"""Of policies that do not run on as many processors as the header of the trace states."""

ON_SITES_ALONE = ("multifactor", "placement")
ON_SITES = [name for name in registry.policies if "site" in registry.policies[name].machines]
CASES = {
    **{name: MACHINES.get(name) for name in registry.policies if name not in ON_SITES_ALONE},
    **{f"{name} on a site": ONE_QUEUE for name in ON_SITES},
    **{f"{name} in several queues": str(SITE) for name in ("fcfs", "easy", "conservative")},
    "multifactor on a site": str(SITE),
    "locality, kept=next": "cluster:8x20:kept=next",
    "torus, prepare=ahead": "torus:8x8x4",
    "torus, prepare=ahead, jointly": "torus:8x8x4",
}
"""The machine of each case, whose name begins with the policy."""

SETTINGS = {
    "window": {"backfill": "none"},
    "torus": {"large": 32},
    "torus, prepare=ahead": {"large": 32, "prepare": "ahead"},
    "torus, prepare=ahead, jointly": {"large": 32, "prepare": "ahead", "worth": 3600}
    | {"preparations": None},
}
"""Of policies that would be idle in a part of them on so small a machine, or on record without."""

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())

QUICK = {"fcfs", "easy", "conservative", "gang"}
"""Policies whose runs one by one do not take long."""


def policy_of(case: str) -> str:
    return re.match(r"[\w-]+", case)[0]


@pytest.mark.parametrize("case", CASES)
def test_the_journal_is_the_one_on_record(case):
    assert journal(case, "batched") == GOLDEN.get(f"{case}, batched")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=() if policy_of(case) in QUICK else pytest.mark.long)
        for case in CASES
    ],
)
def test_the_journal_one_by_one_is_the_one_on_record(case):
    assert journal(case, "one-by-one") == GOLDEN.get(f"{case}, one-by-one")


def with_requests(trace: Trace) -> Trace:
    """Return the sample with jobs that ask for more than processors."""
    number, size = trace.job_id, trace.processors
    asks = {
        "nodes": np.where((number % 3 == 0) & (size > 8), -(-size // 4), -1),
        "memory_per_core": np.where(number % 5 == 0, 6000, -1),
        "gpus": np.where((number % 7 == 0) & (size <= 8), size, -1),
        "exclusive": (number % 11 == 0).astype(np.int64),
        "begin": np.where(number % 29 == 0, trace.submit + 3600, -1),
    }
    waits_for = [f"afterok:{job - 1}" if job % 23 == 0 else "" for job in number.tolist()]
    texts = {
        "features": np.where(number % 13 == 0, "a100", "ib"),
        "licences": np.where(number % 17 == 0, "matlab:3", ""),
        "partition_name": np.where((number % 19 == 0) & (size <= 8), "gpu,batch", ""),
        "dependency": np.array(waits_for),
    }
    texts = {name: column.astype(object) for name, column in texts.items()}
    return trace.changed(annotations=asks, texts=texts)


def journal(case: str, order: str) -> str:
    """Return the hash of the journal of the sample."""
    policy, machine = policy_of(case), CASES[case]
    trace = read_trace("sample-8x20" if policy == "locality" else "sample-256")
    if policy in ("rua", "sjbf"):
        trace = drawn(trace, "HIGH", seed=1)
    if policy == "as-logged":  # waits that some jobs on so small a machine cannot keep
        trace = trace.changed(wait=trace.job_id % 7 * 1000)
    if machine in (str(SITE), ONE_QUEUE):
        trace = with_requests(trace)
    if policy == "priority":
        trace = trace.annotated(priority=trace.job_id % 7)
    given = {"jobs": None if policy == "locality" else (1, 1500), "journal": True}
    given |= {"settings": SETTINGS.get(case, {}), "event_order": order}
    return simulate(trace, machine, policy, **given).journal.digest()[:16]
