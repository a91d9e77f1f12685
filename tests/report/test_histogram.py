from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from optsched import simulate
from optsched.boxes.box import Box
from optsched.report.pictures.nodes import Histogram
from optsched.simulator.policy import Policy, Start


@dataclass
class Whole(Policy):
    """Gives each job as many layers of a 1 x 1 x 10 line as it asks for and one more, if free."""

    machines: ClassVar[frozenset[str]] = frozenset({"torus"})

    def decide(self, system):
        for job in list(system.queue):
            free = np.flatnonzero(system.machine.boxes.free[0, 0])
            length = system.processors[job] + 1
            if len(free) >= length:
                yield Start(job, Box(0, 0, int(free[0]), 1, 1, length))


@pytest.fixture
def run(make_trace):
    # 9 of 10 nodes held from 0 to 60, 8 run; then 5 held, 4 run, until the last submission at 100
    trace = make_trace((0, 200, 200, 4), (0, 60, 60, 3), (100, 1, 1, 1))
    return simulate(trace, "torus:1x1x10", Whole(), check=True)


def test_levels_and_parts_are_those_of_the_node_time(run):
    figure = Histogram().figure(run)
    levels, parts = figure.axes
    held, running = (patch.get_data() for patch in levels.patches)
    assert held.values.tolist() == pytest.approx(run.metrics["node-time"].histogram(20)[0].tolist())
    assert np.flatnonzero(held.values).tolist() == [10, 18]
    assert held.values[18] == pytest.approx(0.6)
    assert np.flatnonzero(running.values).tolist() == [8, 14]
    assert [label.get_text() for label in parts.get_yticklabels()] == ["the whole run", "recorded"]
    widths = np.array([bar.get_width() for bar in parts.patches]).reshape(-1, 2).T
    assert widths.sum(axis=1) == pytest.approx([1, 1])
    assert widths[0] == pytest.approx(list(run.metrics["node-time"].shares.values()))
    assert "from the first 80% of nodes held, after 0 seconds" in levels.get_title(loc="left")


def test_what_never_was_full_has_the_parts_alone(boxes_run):
    (parts,) = Histogram().figure(boxes_run()).axes
    assert parts.get_title(loc="left") == "never 80% of the nodes held while jobs came"
    assert len(parts.patches) == 7


def test_no_boxes_no_histogram(small_run):
    assert "no boxes" in Histogram().why_not(small_run)
