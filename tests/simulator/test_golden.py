"""Golden runs: the journal of the bundled sample under each policy, as a hash.

A change here means that a schedule changed. If that is meant, say why in the commit and write the
new hash, which the failing test prints, to ``golden.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
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

SAMPLES = {"locality": "sample-8x20"}
"""Of policies whose jobs need more than the log says."""

SITE = bundled("sites") / "sample-site.toml"

PLAIN = read_site_file(SITE)
ONE_QUEUE = SiteMachine(
    replace(PLAIN, partitions=[replace(each, priority_tier=1) for each in PLAIN.partitions])
)
"""The sample with partitions that stop each other."""

MACHINES = {
    "placement": ONE_QUEUE,
    "multifactor": str(SITE),
    "torus": "torus:8x8x4",
    "locality": "cluster:8x20",
    "rua": "smp:64x4",
    "sjbf": "smp:64x4",
}
"""Of policies that do not run on as many processors as the header of the trace states."""

SETTINGS = {"torus": {"large": 32}, "window": {"backfill": "none"}}
"""Of policies that would be idle in a part of them on so small a machine, or on record without."""


GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())


def in_both_orders(policies: Iterable[str]) -> pytest.MarkDecorator:
    """Return policies with orders of events; one by one takes long for all but a few."""
    long = pytest.mark.long
    cases = [pytest.param(policy, "batched", id=f"batched-{policy}") for policy in policies]
    for policy in policies:
        marks = () if policy in ("fcfs", "easy", "conservative", "gang") else long
        cases.append(pytest.param(policy, "one-by-one", id=f"one-by-one-{policy}", marks=marks))
    return pytest.mark.parametrize(("policy", "order"), cases)


@in_both_orders(
    [one for one in registry.policies if MACHINES.get(one) not in (str(SITE), ONE_QUEUE)]
)
def test_the_journal_is_the_one_on_record(policy, order):
    assert journal(policy, MACHINES.get(policy), order) == GOLDEN.get(f"{policy}, {order}")


@in_both_orders([one for one in registry.policies if "site" in registry.policies[one].machines])
def test_the_journal_on_a_site_is_the_one_on_record(policy, order):
    machine = str(SITE) if policy == "multifactor" else ONE_QUEUE
    assert journal(policy, machine, order) == GOLDEN.get(f"{policy} on a site, {order}")


AHEAD = {"prepare": "ahead"}


@pytest.mark.parametrize("order", ["batched", "one-by-one"])
@pytest.mark.parametrize(
    ("name", "machine", "chosen"),
    [
        ("fcfs in several queues", str(SITE), {}),
        ("easy in several queues", str(SITE), {}),
        ("conservative in several queues", str(SITE), {}),
        ("locality, kept=next", "cluster:8x20:kept=next", {}),
        ("torus, prepare=ahead", "torus:8x8x4", AHEAD),
        ("torus, prepare=ahead, jointly", "torus:8x8x4", AHEAD | {"worth": 3600, "preparations": None}),
    ],
)
def test_another_machine_or_setting_has_a_journal_of_its_own(name, machine, chosen, order):
    policy = re.match(r"\w+", name)[0]
    assert journal(policy, machine, order, **chosen) == GOLDEN.get(f"{name}, {order}")


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


def journal(policy: str, machine: str | SiteMachine | None, order: str, **settings: str) -> str:
    """Return the hash of the journal of the sample."""
    trace = read_trace(SAMPLES.get(policy, "sample-256"))
    if policy in ("rua", "sjbf"):
        trace = drawn(trace, "HIGH", seed=1)
    if policy == "as-logged":  # waits that some jobs on so small a machine cannot keep
        trace = trace.changed(wait=trace.job_id % 7 * 1000)
    if machine in (str(SITE), ONE_QUEUE):
        trace = with_requests(trace)
    if policy == "priority":
        trace = trace.changed(annotations={**trace.annotations, "priority": trace.job_id % 7})
    run = simulate(
        trace,
        machine,
        policy,
        settings=SETTINGS.get(policy, {}) | settings,
        event_order=order,
        jobs=None if policy in SAMPLES else (1, 1500),
        journal=True,
    )
    return run.journal.digest()[:16]
