"""Decisions of a batch scheduler as optimization models: solved, proven and simulated.

Decisions::

    models                  the problems, a class for each model: models.WindowMKP(...)
    load_snapshot           read a problem from its file
    save_snapshot           write a problem to a file
    solve                   solve a problem; the Result is verified
    compare                 solve problems with several solvers: a Comparison
    conflict                name requirements that no solution meets together
    model                   make a model of the function that states it
    rule, with_rules        make rules of a site, and add them to a node placement

Workloads::

    read_trace              read the jobs of a log: a Trace
    trace_from_frame        make a Trace of a DataFrame
    scale_trace             scale the jobs to another machine or load
    fit_workload            fit a workload model to a trace
    generate_workload       generate a trace

Simulations::

    simulate                simulate a trace under a policy: a Run with summary, jobs and plot
    sweep                   simulate many scenarios into a folder
    study                   repeat the evaluation of a paper

Folders::

    save                    write a Run or a Comparison to a folder, with its page
    read_run                read a Run from its folder
    read_comparison         read a Comparison from its folder
    read_sweep              read the results and the runs of a sweep

Your own policies, solvers and models import from `optsched.extend`. Input that cannot be used
raises `InputError`, which says what was expected.
"""

# The public names are imported on first use, so that `import optsched` is fast. Not even typing is
# imported here, so that the command line handles Ctrl-C from the start.

from __future__ import annotations

from optsched.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from optsched import models as models
    from optsched.errors import InputError as InputError
    from optsched.models.node_placement.rules import rule as rule
    from optsched.models.node_placement.rules import with_rules as with_rules
    from optsched.models.snapshot_file import load_snapshot as load_snapshot
    from optsched.models.snapshot_file import save_snapshot as save_snapshot
    from optsched.models.stated import model as model
    from optsched.report.saved import read_comparison as read_comparison
    from optsched.report.saved import read_run as read_run
    from optsched.report.saved import save as save
    from optsched.simulator.run import Run as Run
    from optsched.simulator.simulate import simulate as simulate
    from optsched.solvers.comparison import compare as compare
    from optsched.solvers.conflict import conflict as conflict
    from optsched.solvers.result import Budget as Budget
    from optsched.solvers.result import Result as Result
    from optsched.solvers.solving import solve as solve
    from optsched.studies.running import study as study
    from optsched.sweeps.sweep_folder import read_sweep as read_sweep
    from optsched.sweeps.sweeping import sweep as sweep
    from optsched.traces.reading import read_trace as read_trace
    from optsched.traces.tables import trace_from_frame as trace_from_frame
    from optsched.traces.trace import Trace as Trace
    from optsched.traces.transformations import scale_trace as scale_trace
    from optsched.workloads.hyper_erlang import fit_workload as fit_workload
    from optsched.workloads.spec_file import generate_workload as generate_workload

_HOME = {
    "Budget": "optsched.solvers.result",
    "InputError": "optsched.errors",
    "Result": "optsched.solvers.result",
    "Run": "optsched.simulator.run",
    "Trace": "optsched.traces.trace",
    "compare": "optsched.solvers.comparison",
    "conflict": "optsched.solvers.conflict",
    "fit_workload": "optsched.workloads.hyper_erlang",
    "generate_workload": "optsched.workloads.spec_file",
    "load_snapshot": "optsched.models.snapshot_file",
    "model": "optsched.models.stated",
    "models": "optsched.models",
    "read_comparison": "optsched.report.saved",
    "read_run": "optsched.report.saved",
    "read_sweep": "optsched.sweeps.sweep_folder",
    "read_trace": "optsched.traces.reading",
    "rule": "optsched.models.node_placement.rules",
    "save": "optsched.report.saved",
    "save_snapshot": "optsched.models.snapshot_file",
    "scale_trace": "optsched.traces.transformations",
    "simulate": "optsched.simulator.simulate",
    "solve": "optsched.solvers.solving",
    "study": "optsched.studies.running",
    "sweep": "optsched.sweeps.sweeping",
    "trace_from_frame": "optsched.traces.tables",
    "with_rules": "optsched.models.node_placement.rules",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'optsched' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(_HOME[name])
    value = module if _HOME[name] == f"optsched.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
