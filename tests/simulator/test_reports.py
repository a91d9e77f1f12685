"""Reports of policies and execution models of users, when a run is over."""

from __future__ import annotations

import numpy as np
import pytest

from optsched import simulate
from optsched.extend import ExecutionModel, ExecutionReport, InputError
from optsched.policies.fcfs import FCFS


def run_of(make_trace, *, report=None, figures=None, notes=None):
    """Simulate two jobs under a policy and an execution model that report what functions return."""

    class Reporting(ExecutionModel):
        def report(self, trace, schedule):
            return ExecutionReport() if report is None else report(trace)

    class Own(FCFS):
        def figures(self, system):
            return {} if figures is None else figures()

        def notes(self):
            return () if notes is None else notes()

    trace = make_trace((0, 5, 10, 1), (1, 5, 10, 1))
    return simulate(trace, machine=4, policy=Own(), execution=Reporting())


def test_what_is_reported_is_in_the_run(make_trace):
    columns = {"twice": np.array([2, 4])}
    run = run_of(
        make_trace,
        report=lambda trace: ExecutionReport(columns, {"slow": np.int64(1)}, ("one is slow",)),
        figures=lambda: {"by size": {"1": 2}},
        notes=lambda: ["two jobs"],
    )
    assert run.jobs["twice"].tolist() == [2, 4]
    assert (run.summary["slow"], run.summary["by size"]) == (1, {"1": 2})
    assert run.notes == ("two jobs", "one is slow")


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (None, "report of execution model 'Reporting': None; expected an Exec"),
        (
            ExecutionReport(columns={"x": np.zeros(3)}),
            "column 'x' of execution model 'Reporting': 3 values; expected a value for each of",
        ),
        (ExecutionReport(columns={"x": 1.0}), "no list of values; expected a value for each"),
        (ExecutionReport(figures={"x": {1}}), "figure 'x' of execution model 'Reporting': {1}"),
        (ExecutionReport(figures={1: 2}), "expected a dict with names as keys"),
        (ExecutionReport(notes="odd"), "'odd'; expected a list or tuple of texts"),
    ],
)
def test_a_report_that_cannot_be_used_is_one_line(make_trace, returned, told):
    with pytest.raises(InputError) as caught:
        run_of(make_trace, report=lambda _: returned)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"figures": lambda: [1]}, "figures of policy 'Own': [1]; expected a dict with names"),
        ({"figures": lambda: {"x": np.zeros(2)}}, "figure 'x' of policy 'Own': a"),
        ({"notes": lambda: 7}, "notes of policy 'Own': 7; expected a list or tuple of texts"),
        ({"notes": lambda: 1 / 0}, "policy Own failed at the end of the run: ZeroDivisionError"),
        ({"report": lambda _: 1 / 0}, "model Reporting failed at the end of the run: ZeroDivision"),
    ],
)
def test_figures_and_notes_that_cannot_be_used_are_one_line(make_trace, wrong, told):
    with pytest.raises(InputError) as caught:
        run_of(make_trace, **wrong)
    assert told in str(caught.value)
