"""A run is stated once: all that states one is a view of the fields of a scenario."""

from __future__ import annotations

import inspect
from dataclasses import fields

import numpy as np
import pytest

import optsched
from optsched.cli.simulate_command import command
from optsched.documentation import parameters
from optsched.errors import InputError
from optsched.extend import Policy, Start
from optsched.simulator.scenario import OPTIONS, Scenario, workload_sha256
from optsched.simulator.simulate import LIMITS
from optsched.sweeps.sweep_file import KEYS

NAMES = [field.name for field in fields(Scenario)]


def test_simulate_takes_the_fields_and_says_what_they_are():
    signature = inspect.signature(optsched.simulate)
    own = [value for name, value in signature.parameters.items() if name not in LIMITS]
    assert signature.replace(parameters=own, return_annotation=None) == inspect.signature(Scenario)
    assert list(signature.parameters) == [*NAMES, *LIMITS]
    assert [*parameters(optsched.simulate)] == [*parameters(Scenario)] == NAMES


def test_the_command_line_takes_all_options_and_a_sweep_file_those_that_change_a_run():
    taken = inspect.signature(command).parameters
    own = {"output", "demands_sha256", "file_sha256", "csv", "plots", "json"}
    own |= {"rule"}  # a setting of the policy
    assert set(taken) - own == set(OPTIONS)
    assert set(OPTIONS) - set(KEYS) == {"settings", "capture", "capture_every", "check", "journal"}


def test_a_scenario_is_checked_when_it_is_stated(make_trace):
    trace = make_trace((0, 10, 10, 1))
    wrong = {"large_from": 0, "execution": 3, "check": "no", "journal": 1, "compiled_from": "x"}
    for name, value in wrong.items():
        with pytest.raises(InputError, match=f"{name.replace('_', '.')}: {value!r}; expected"):
            Scenario(trace, **{name: value})


def test_a_policy_sees_whose_a_job_is(make_trace):
    class Watching(Policy):
        def decide(self, system):
            for job in list(system.queue):
                of = system.user_of, system.group_of, system.queue_of, system.partition_of
                seen.append(tuple(one(job) for one in of))
                yield Start(job)

    seen = []
    trace = make_trace((0, 10, 10, 1), (5, 10, 10, 1))
    optsched.simulate(trace, "nodes:4", Watching())
    known = {name: [k, -1] for k, name in enumerate(("user", "group", "queue"))}
    optsched.simulate(trace.changed(**known), "nodes:4", Watching())
    assert seen == [(None,) * 4, (None,) * 4, (0, 1, 2, None), (None,) * 4]


def test_annotations_are_part_of_what_is_simulated(make_trace):
    plain = make_trace((0, 10, 10, 1), (5, 10, 10, 2))
    one, other = (plain.annotated(file=np.array(files)) for files in ([1, 1], [1, 2]))
    renamed = plain.annotated(size=np.array([1, 1]))
    both = one.annotated(size=np.array([3, 4]))
    again = plain.annotated(size=np.array([3, 4]), file=np.array([1, 1]))
    assert len({workload_sha256(trace) for trace in (plain, one, other, renamed, both)}) == 5
    assert workload_sha256(both) == workload_sha256(again)
