"""The public names, and that they are found where the package says."""

from __future__ import annotations

import subprocess
import sys

import optsched


def test_every_public_name_is_there():
    for name in optsched.__all__:
        assert getattr(optsched, name) is not None
    for name in optsched.models.__all__:
        assert getattr(optsched.models, name) is not None
    assert set(optsched.__all__) <= set(dir(optsched))


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, optsched; print('numpy' in sys.modules, 'pandas' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False False\n"


def test_notebooks_show_small_tables(make_trace):
    problem = optsched.models.WindowMKP([6, 4, 3, 1, 2], [3, 6, 6])
    assert "optimal" in optsched.solve(problem)._repr_html_()
    run = optsched.simulate(make_trace((0, 10, 10, 1)), "nodes:4", "easy")
    assert "mean_wait" in run._repr_html_()
