"""The pictures of a run's page, with what they show in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched import registry
from optsched.numbers import counted
from optsched.report import waits
from optsched.report.page import Figure
from optsched.report.steps import Steps
from optsched.simulator.schedule import State

if TYPE_CHECKING:
    import pandas as pd


def run_pictures(
    pictures: Mapping[str, str],
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    jobs: pd.DataFrame,
) -> list[str | Figure]:
    """Return the pictures with captions, and with texts that tell their numbers.

    Parameters
    ----------
    pictures : mapping of str to str
        The SVG of each, by name.
    config, summary : mapping
        ``run.json`` and ``summary.json``.
    jobs : pandas.DataFrame
        The table of jobs.
    """
    started = jobs["starting_time"].notna()
    shared = _is_time_shared(config["machine"])
    about = {
        "gantt": (
            "The jobs on the processors; of a long run a busy part."
            + (" Where they lie over each other they share processors in time." if shared else ""),
            f"Gantt chart, processors against time: {started.sum():,} of {len(jobs):,} jobs started"
            f" on {config['machine']}.",
        ),
        "utilization": (
            ("Processors of jobs that share them" if shared else "Processors in use")
            + ", waiting jobs and waiting work over time.",
            _load_in_words(summary, jobs, shared=shared),
        ),
        "waits": (
            "How long jobs waited, by their size: the share that waited no longer than a time.",
            _waits_in_words(jobs),
        ),
        "slots": (
            "Free nodes over time, by the size of the slot (maximal free run) that they are in.",
            _slots_in_words(summary),
        ),
        "layers": (
            "The torus, a map for each of its layers: before and after the moment at which most"
            " jobs were migrated; if none was, when most nodes were held.",
            f"Maps of the layers of {config['machine']}, with the boxes that jobs held.",
        ),
        "histogram": (
            "How many nodes were in use for which share of the time, and what became of the node"
            " time. Held by jobs: running, migrating, internal fragmentation. Free: fragmented (no"
            " box holds the head of the queue), drained (too few routers for it), undecided (a box"
            " holds it), unwanted (no job waits).",
            _node_time_in_words(summary),
        ),
    }
    return [
        Figure(svg, caption=caption, alt=alt)
        for name, svg in pictures.items()
        for caption, alt in [about.get(name, (f"{name}.", f"Picture of the run: {name}."))]
    ]


def _is_time_shared(machine: str) -> bool:
    kind = machine.partition(":")[0]
    return kind in registry.machines and registry.machines[kind].time_shared


def _load_in_words(summary: Mapping[str, Any], jobs: pd.DataFrame, *, shared: bool) -> str:
    """Return the mean and the peaks that the picture of the load shows."""
    queued = jobs[jobs["final_state"] != State.REJECTED]
    started = queued[queued["starting_time"].notna()]
    begin = float(jobs["submission_time"].min())
    times = queued[["submission_time", "starting_time", "finish_time"]].to_numpy()
    end = max(begin + 1.0, float(np.nanmax(times, initial=begin)))
    ends = started["finish_time"].fillna(end)
    processors = started["requested_number_of_resources"]
    in_use = Steps.from_changes(
        np.concatenate((started["starting_time"], ends)),
        np.concatenate((processors, -processors)),
        begin,
        end,
    )
    waiting = Steps.from_changes(
        np.concatenate((queued["submission_time"], started["starting_time"])),
        np.repeat([1.0, -1.0], [len(queued), len(started)]),
        begin,
        end,
    )
    mean = summary["utilization"]
    held = "of running jobs, which share them" if shared else "in use"
    words = "" if mean is None else f"; a utilization of {mean:.1%}"
    return (
        f"Load over time: at most {in_use.values.max():,.0f} processors {held}{words};"
        f" at most {counted(int(waiting.values.max()), 'job')} waiting."
    )


def _slots_in_words(summary: Mapping[str, Any]) -> str:
    told = {
        "mean_slots": "{:.1f} slots on average",
        "loss_of_capacity": "loss of capacity {:.1%}",
        "external_fragmentation": "external fragmentation {:.1%}",
    }
    words = [text.format(summary[name]) for name, text in told.items() if name in summary]
    return f"Free slots over time: {', '.join(words)}." if words else "Free slots over time."


def _node_time_in_words(summary: Mapping[str, Any]) -> str:
    parts = summary.get("node_time")
    if not isinstance(parts, dict):
        return "What became of the node time."
    words = ", ".join(f"{name} {part:.1%}" for name, part in parts.items())
    recorded = ""
    if summary.get("occupied") is not None and summary.get("useful") is not None:
        recorded = f" While recorded, {summary['occupied']:.1%} of the nodes were held and"
        recorded += f" {summary['useful']:.1%} running, on average."
    return f"What became of the node time: {words}.{recorded}"


def _waits_in_words(jobs: pd.DataFrame) -> str:
    queued = jobs[~jobs["final_state"].isin([State.REJECTED, State.UNSUBMITTED])]
    waited = queued["waiting_time"].fillna(np.inf).to_numpy(np.float64)
    return f"Distribution of waiting times: {waits.in_words(waited)}."
