"""Imported by the process that commands are forked from: kernels that many of them call."""

from optsched import registry
from optsched.content import bundled
from optsched.models.snapshot_file import read_snapshot

for model, name in (("node-placement", "worked-example"), ("window-mkp", "yang-2014-example")):
    problem = read_snapshot(bundled("models") / model / f"{name}.json").problem
    registry.solvers[problem.solver]().prepare(problem)
