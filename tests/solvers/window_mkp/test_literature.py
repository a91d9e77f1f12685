"""Instances of the literature against their known optima."""

from __future__ import annotations

import csv
import tarfile
from functools import cache
from pathlib import Path

import pytest

from optsched import Budget
from optsched.models.snapshot_file import load_snapshot
from optsched.solvers.result import Status
from optsched.solvers.solving import solve

INSTANCES = Path(__file__).parents[3] / "../shared/instances/mkp"

pytestmark = pytest.mark.skipif(not INSTANCES.is_dir(), reason="needs ../shared/instances/mkp")


@cache
def known():
    with (INSTANCES / "known_values.csv").open(newline="") as stream:
        return {row["instance"]: row for row in csv.DictReader(stream)}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("instances")
    for name in ("SMALL", "FK_1", "FK_3"):
        with tarfile.open(INSTANCES / f"{name}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return folder


def check(path, work):
    """Solve within a budget; value and bound must not contradict what is known."""
    window = load_snapshot(path)
    result = solve(window, "branch-and-bound", budget=Budget(work=work))
    assert result.verified
    row = known()[path.stem]
    if row["upper_bound"]:
        assert result.objective <= float(row["upper_bound"])
    if row["lower_bound"]:
        assert result.bound >= float(row["lower_bound"])
    if result.status is Status.OPTIMAL and row["optimal"] == "yes":
        assert result.objective == float(row["lower_bound"])
    return result


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.long)])
def test_small_instances_of_kataoka_and_yamada(unpacked, every):
    paths = sorted((unpacked / "SMALL").glob("*.txt"))
    assert len(paths) == 180
    proven = sum(check(path, 1e6).status is Status.OPTIMAL for path in paths[::every])
    assert proven >= 90 / every


@pytest.mark.parametrize("name", ["FK_1", "FK_3"])
def test_instances_of_fukunaga(unpacked, name):
    paths = sorted((unpacked / name).glob("*.txt"))
    assert len(paths) == 480
    for path in paths[::24]:
        check(path, 1e6)
