from __future__ import annotations

from dataclasses import replace

from optsched import simulate
from optsched.report.pictures.nodes import Slots


def test_the_layers_add_up_to_the_free_nodes(make_trace):
    trace = make_trace((0, 50, 50, 3), (0, 100, 100, 2), (10, 10, 10, 9))
    run = simulate(trace, "nodes:9", "fcfs")
    figure = Slots().figure(run)
    (axes,) = figure.axes
    top = max((patch.get_data() for patch in axes.patches), key=lambda data: data.values.sum())
    # 4 nodes are free until 50, 7 until 100, then the third job has all of them to the end, at 110
    assert abs(top.values.mean() - (50 * 4 + 50 * 7) / 110) < 1e-9
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["1 node", "2 to 3 nodes", "4 to 7 nodes", "8 to 9 nodes"]


def test_a_machine_without_slots_has_no_picture(make_trace):
    run = simulate(make_trace((0, 5, 5, 3)), "nodes:9", "fcfs")
    bare = replace(run)
    object.__setattr__(bare, "metrics", {})
    assert Slots().why_not(bare) == "only a line of nodes has slots"
