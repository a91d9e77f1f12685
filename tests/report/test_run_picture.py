from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread

from optsched.report import load
from optsched.report.pictures import draw
from optsched.report.pictures.load_and_waits import Utilization

NAMES = ("gantt", "utilization", "waits", "slots")


def test_each_picture_is_written_as_svg_and_png(small_run, tmp_path):
    paths = draw(small_run, tmp_path)
    assert [path.name for path in paths] == [f"{n}.{s}" for n in NAMES for s in ("svg", "png")]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    for path in paths:
        if path.suffix == ".png":
            assert imread(path).shape[1] == 1350
        else:
            text = "".join(ElementTree.parse(path).getroot().itertext())
            assert "small: easy on nodes:10" in text


def test_the_same_run_gives_the_same_bytes(random_run, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        draw(random_run(100), folder)
    for path in folders[0].iterdir():
        data = path.read_bytes()
        assert data == (folders[1] / path.name).read_bytes(), path.name
        assert str(tmp_path).encode() not in data


def test_long_runs_give_small_pictures(random_run, tmp_path):
    for path in draw(random_run(20_000), tmp_path):
        assert path.stat().st_size < 500_000


def test_a_long_run_is_averaged_and_its_peak_is_written(random_run):
    run = random_run(2000)
    panels = Utilization().figure(run).axes
    assert panels[0].get_title(loc="left").endswith("band: 10th to 90th percentile")
    highest = load.waiting_jobs(run).values.max()
    assert panels[1].get_title(loc="left") == f"highest: {highest:,.0f}"


@pytest.mark.parametrize("state", ["REJECTED", "WAITING"])
def test_a_run_in_which_nothing_starts_is_drawn(small_run, tmp_path, state):
    never = np.full(3, np.nan)
    schedule = small_run.schedule._replace(
        start=never, end=never, state=np.array([state] * 3), resources=["", "", ""]
    )
    # where no job ever waits there are no two instants, and no slots to follow
    pictures = 3 if state == "REJECTED" else 4
    assert len(draw(replace(small_run, schedule=schedule), tmp_path)) == 2 * pictures


def test_interrupted_runs_and_single_jobs_are_drawn(interrupted_run, make_trace, tmp_path):
    from optsched import simulate

    single = simulate(make_trace((0, 1, 1, 1)), "nodes:1", "fcfs")
    for run in (interrupted_run, single):
        assert len(draw(run, tmp_path)) == 8


def test_drawing_leaves_the_global_state_of_pyplot_alone():
    code = "import sys; import optsched.report.pictures; print('matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
