"""Several policies in one ``optsched simulate``: a sweep, and the page that compares its runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from optsched import registry
from optsched.cli import BAD_INPUT, DONE, INTERRUPTED
from optsched.cli.compare_runs import print_comparison
from optsched.cli.run_summary import cleaning_notes
from optsched.cli.sweep_table import execute_runs, say_failures, say_wrong_answers
from optsched.cli.terminal import print_lines, say, say_note
from optsched.errors import InputError, UnknownNameError
from optsched.files import check_replaceable
from optsched.numbers import counted
from optsched.report.run_page import ignored
from optsched.settings import settings_of
from optsched.simulator.scenario import OPTIONS, configure
from optsched.sweeps.sweep_file import KEYS, SweepPlan, read_sweep
from optsched.sweeps.sweep_folder import compared, finished_runs, write_comparison
from optsched.sweeps.sweeping import FOLDER, Sweep

PLACE = re.compile(r"^(runs\[\d+\]\.)?(trace: |machine: |solver: )?")
"""Place of a mistake in a sweep file, which the user of these options has not written."""


def simulate_policies(
    policies: Sequence[str],  # two policies or more
    # The values of the options of a scenario by name, ``settings`` as a dictionary
    options: Mapping[str, Any],
    output: Path,  # the folder of the sweep
    *,
    # Whether to write the jobs as CSV too, to make the page, and to print JSON
    csv: bool,
    plots: bool,
    json: bool,
) -> int:
    """Run the same jobs under several policies, of which the first is the baseline.

    Runs that are finished in the folder are not repeated.
    """
    check_replaceable(output, FOLDER)
    sweep = Sweep(_planned(policies, options, "all" if csv else "jobs"), output)
    say(f"{counted(len(sweep.plan.runs), 'run')}, {len(sweep.pending):,} to do")
    if execute_runs(sweep, None) is None:
        return INTERRUPTED
    failed, wrong = say_failures(sweep), say_wrong_answers(sweep)
    code = BAD_INPUT if failed or wrong else DONE
    if len(finished_runs(output)[0]) < 2:
        say("optsched: nothing to compare; expected two finished runs or more")
        return code
    comparison = compared(output)
    if all(run.summary["rejected"] == run.summary["jobs"] for run in comparison.runs):
        code = BAD_INPUT
    for run in comparison.runs:
        for left, what in (("rejected", "rejected"), ("waiting", "never started")):
            if jobs := run.summary[left]:
                say(f"optsched: {run.name}: {counted(jobs, 'job')} {what}")
    for text in dict.fromkeys(text for run in comparison.runs for text in ignored(run.config)):
        say(f"optsched: {text}")
    baseline = comparison.runs[0]
    for line in [] if json else cleaning_notes(baseline.config, baseline.summary):
        say_note(line)
    made = [("report", write_comparison(comparison, output))] if plots else []
    print_comparison(comparison, json=json)
    if not json:
        print_lines([("run folders", sweep.runs), *made])
    return code


def _planned(policies: Sequence[str], options: Mapping[str, Any], keep: str) -> SweepPlan:
    """Return the sweep of the policies: each has the settings and options that it has a use for."""
    if "" in policies:
        expected = "expected names with single commas between them"
        raise InputError(f"{options['policy']!r}; {expected}", field="--policy")
    for place, policy in enumerate(policies):
        if policy in policies[:place]:
            expected = "expected different policies"
            raise InputError(f"{policy!r} is given twice; {expected}", field="--policy")
    stated = {
        name: options[name]
        for name, option in OPTIONS.items()
        if name in options and options[name] not in (None, option.default)
    }
    settings, execution = stated.pop("settings", {}), stated.get("execution")
    stated.pop("policy", None)
    for name in stated:
        if name not in KEYS:
            raise InputError("is for one policy, not for several", field=OPTIONS[name].flag)
    for_problems = {name: stated.pop(name) for name in [*stated] if KEYS[name].needs_problems}
    known = {policy: _settings_of(policy, execution) for policy in policies}
    every = dict.fromkeys(name for own in known.values() for name in own)
    for name in settings:
        if name not in every:
            raise UnknownNameError(f"setting of {' and '.join(policies)}", name, [*every])
    blocks: list[dict[str, Any]] = []
    posing = []
    for policy in policies:
        own = {name: value for name, value in settings.items() if name in known[policy]}
        block = {"policy": policy} | ({"settings": own} if own else {})
        if configure(policy, execution, own)[0].posed():
            posing.append(policy)
            block |= for_problems
        blocks.append(block)
    if for_problems and not posing:
        flags = ", ".join(OPTIONS[name].flag for name in for_problems)
        raise InputError(f"none of the policies poses problems, so they have no use for {flags}")
    try:
        return read_sweep({"keep": keep, **stated, "runs": blocks})
    except InputError as error:
        raise InputError(*dict.fromkeys(PLACE.sub("", one) for one in error.lines())) from None


def _settings_of(policy: str, execution: str | None) -> list[str]:
    """Return the settings of a policy, and of the execution model, by default the policy's own."""
    parts: list[type[Any]] = [registry.policies[policy]]
    model = execution or registry.policies[policy].execution
    if model is not None:
        parts.append(registry.executions[model])
    return [setting.name for part in parts for setting in settings_of(part)]
