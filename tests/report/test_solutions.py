"""Pictures of the solutions of problems."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_hex
from report.looks import heading, legend, texts

import optsched
from optsched import load_snapshot, registry
from optsched.boxes.box import Box
from optsched.errors import InputError
from optsched.models.box_placement import BoxPlacement
from optsched.models.migration import Migration, Plan, Step
from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.partition_mkp import PartitionMKP, Place
from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.report.solutions import PICTURES, find_picture
from optsched.report.style import FILLS, save_as


def placement():
    waiting = {"waiting": [8, 4, 64], "waiting_jobs": ["a", "b", "c"], "running": ["2x2x2@1,1,1"]}
    problem = BoxPlacement(torus=(4, 4, 4), holes=["1x1x1@0,0,0"], **waiting)
    return problem, (Box(3, 0, 0, 1, 4, 2), Box(1, 3, 1, 2, 1, 2), None)


def migration():
    boxes = ["2x1x2@0,0,0", "2x1x2@2,0,0", "1x1x1@0,2,3"]
    problem = Migration((4, 3, 4), boxes, [4, 4, 1], [5, 7, 1], 8, incoming_job="L")
    there, here = Box(2, 0, 0, 2, 1, 2), Box(0, 0, 0, 2, 1, 2)
    steps = (Step(0, None), Step(1, here), Step(0, there))
    return problem, Plan(steps, Box(0, 1, 0, 4, 1, 2))


def reconfiguration():
    problem = load_snapshot("reconfiguration/worked-example")
    boxes = [Box(at, 0, 0, length, 1, 1) for at, length in ((0, 2), (3, 2), (2, 1), (6, 1))]
    return problem, problem.arrangement(dict(enumerate(boxes[2:])), boxes[:2])


def gang():
    problem = registry.models["gang-packing"](8, 2, [0b1111], [0], [4, 2, 8])
    return problem, problem.packing((0,), (1, 1, -1))


def partition():
    problem = PartitionMKP((4, 4, 4), ["2x2x2@0,0,0", "2x1x4@2,3,0"], [8, 3, 9])
    return problem, (Place(0, 0, 0), Place(1, 1, 1), None)


def on_nodes():
    nodes = (0, 1), (), (2,), (4,), (3, 3)
    devices = ((), ()), (), ((),), ((),), ((), ())
    return load_snapshot("node-placement/limits"), Placements(nodes, devices)


CASES = [
    *(placement(), migration(), reconfiguration(), gang(), partition(), on_nodes()),
    (load_snapshot("threshold-allocation/worked-example"), Placement(0, np.array([1, 1]))),
    (load_snapshot("window-mkp/yang-2014-example"), (1, 2, 0, -1, 2)),
]
CASES = {problem.name: (problem, solution) for problem, solution in CASES}


def drawn(name):
    problem, solution = CASES[name]
    assert problem.violations(solution) == []
    return find_picture(name)(problem, solution)


def widths(axes):
    return [bar.get_width() for bar in axes.patches]


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_the_same_solution_gives_the_same_bytes(name, tmp_path):
    for suffix in (".svg", ".png"):
        paths = [tmp_path / f"{number}{suffix}" for number in (1, 2)]
        for path in paths:
            save_as(drawn(name), path)
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_placed_jobs_are_labelled_and_bins_are_outlined_around_their_jobs():
    figure = drawn("box-placement")
    found = texts(figure.axes[0].texts)
    assert [found.count(name) for name in "abc"] == [4, 1, 0]
    assert figure.texts[1].get_text() == "2 of 3 jobs placed"
    assert legend(figure) == ["running", "no router for jobs"]
    figure = drawn("partition-mkp")
    [bold] = [patch for patch in figure.axes[0].patches if patch.get_linewidth() > 1]
    assert len(bold.get_path().vertices) == 2 * 4 * (2 + 1)  # edges in two layers, and in one
    assert figure.texts[1].get_text() == "2 of 3 jobs placed in 2 bins"
    assert legend(figure) == ["bin", "in no bin"]


def test_migrations_and_reconfigurations_are_shown_with_their_steps_and_the_jobs_that_start():
    figure = drawn("migration")
    before, after = (texts(axes.texts) for axes in figure.axes)
    assert (before[-2:], after[-3:]) == (["1", "2"], ["3", "2", "L"])
    steps = ["1 and 3: job 1 to 2x1x2@2,0,0", "2: job 2 to 2x1x2@0,0,0", "incoming job"]
    assert legend(figure)[:3] == steps
    assert "lines: parked on the way" in legend(figure)
    problem, plan = CASES["migration"]
    lines = dict(problem.describe(plan))
    assert lines["step 1"].startswith("park job 1 (4)")
    assert lines["step 3"] == "restart job 1 (4) in 2x1x2@2,0,0"
    figure = drawn("reconfiguration")
    before, after = (texts(axes.texts) for axes in figure.axes)
    assert (before[-2:], sorted(after[-4:])) == (["1", "2"], ["1", "2", "D", "L"])
    assert texts(figure.texts[1:]) == [
        "before: 2 jobs to move; numbers are steps",
        "after: 2 of 2 jobs started",
    ]
    steps = ["1: job A to 1x1x1@2,0,0", "2: job B to 1x1x1@6,0,0", "incoming jobs"]
    assert legend(figure)[:3] == steps


def test_jobs_of_a_slot_lie_side_by_side_and_running_ones_of_a_matrix_are_grey():
    (axes,) = drawn("window-mkp").axes
    assert texts(axes.texts) == ["C", "A", "B", "E"]
    assert [bar.get_x() for bar in axes.patches[3:]] == [0, 0, 0, 4]
    assert widths(axes)[3:] == [3, 6, 4, 2]
    assert texts(axes.get_yticklabels()) == ["1-3", "6-11", "15-20"]
    (axes,) = drawn("gang-packing").axes
    assert texts(axes.texts) == ["r1", "w1", "w2"]
    fills = [to_hex(bar.get_facecolor()).upper() for bar in axes.patches[2:]]
    assert fills == ["#D9D9D9", *FILLS[:2]]


def test_chunks_lie_in_what_is_free_on_their_nodes():
    figure = drawn("node-placement")
    assert [axes.get_xlabel() for axes in figure.axes] == ["free cores", "free memory", "free gpu"]
    assert texts(figure.axes[0].get_yticklabels()) == ["s1 0", "s1 1", "s2 2", "s2 3", "s2 4"]
    cores, _, gpus = map(widths, figure.axes)
    # the two chunks of job 5 on node 3 are one bar, and job 3 has all of its node to itself
    assert cores == [8, 8, 8, 16, 16, *(4, 4, 8, 4, 8)]
    assert gpus == [0, 0, 0, 4, 2, *(2, 4)]
    assert texts(figure.axes[2].texts) == ["4", "5"]
    assert heading(figure) == "4 of 5 jobs placed"
    # shares of devices are drawn device by device
    problem = load_snapshot("node-placement/shared-devices")
    solution = optsched.solve(problem, "first-fit").solution
    _, devices = find_picture("node-placement")(problem, solution).axes
    bars = [(bar.get_x(), bar.get_width()) for bar in devices.patches[2:]]
    assert bars[0] == (1, pytest.approx(0.4))  # the second device of node 1, in use by others
    shares = [share for job, share in enumerate(problem.share.tolist()) if solution.nodes[job]]
    assert sum(width for _, width in bars[1:]) == pytest.approx(sum(shares) / 1000)
    for begin, width in bars:
        assert int(begin) <= begin < begin + width <= int(begin) + 1


def test_of_a_large_machine_only_nodes_that_are_used_are_drawn():
    problem = NodePlacement(["cores"], np.ones((99, 1), int), [1] * 80, np.ones((80, 1), int))
    solution = Placements(tuple((job,) for job in range(80)), (((),),) * 80)
    figure = find_picture("node-placement")(problem, solution)
    assert heading(figure) == "80 of 80 jobs placed; the first 70 of 80 nodes with jobs"
    assert len(figure.axes[0].patches) == 2 * 70
    problem = load_snapshot("threshold-allocation/cluster-24x4")
    solution = optsched.solve(problem).solution
    (axes,) = find_picture("threshold-allocation")(problem, solution).axes
    nodes = [int(text) for text in texts(axes.get_yticklabels())]
    assert nodes == np.flatnonzero(solution.processes).tolist()


def test_the_demand_of_a_job_lies_on_that_of_others():
    figure = drawn("threshold-allocation")
    (axes,) = figure.axes
    assert texts(axes.get_yticklabels()) == ["0", "1"]
    job = axes.patches[1].get_data()
    assert job.edges.tolist() == [0, 100, 121]
    # 5,000 of 6,000 MB/s, and 2,000 more: the highest, it takes most of the height of a node
    assert 0.5 - job.values[0] == pytest.approx(0.85)
    assert [0.5 - at for at in job.baseline] == pytest.approx([0.85 * 5 / 7] * 2)
    assert legend(figure) == ["the job", "others", "capacity"]
    # of two resources, a step shows the scarcest
    usual = {"nodes": 1, "processors": 4, "capacity": [10, 10], "walltime": 10, "asked": 1}
    problem = ThresholdAllocation(demand=[0, 9], held=[[0, 1, 0, 20, 5, 1]], **usual)
    [axes] = find_picture("threshold-allocation")(problem, Placement(0, np.array([1]))).axes
    job = axes.patches[1].get_data()
    # first 1 of 10 and 9 more, not 5 of the other resource; then that one alone: the half of it
    heights = [0.5 - job.values[0], *(0.5 - at for at in job.baseline)]
    assert heights == pytest.approx([0.85, 0.085, 0.425])


def test_a_model_without_a_picture_and_another_suffix_are_told(tmp_path):
    with pytest.raises(InputError, match="no picture of solutions of power-cap; expected"):
        find_picture("power-cap")
    with pytest.raises(InputError, match=r"picture\.pdf: .*expected the suffix \.svg or \.png"):
        save_as(drawn("window-mkp"), tmp_path / "picture.pdf")
    assert list(tmp_path.iterdir()) == []


def test_looking_for_pictures_does_not_load_matplotlib():
    code = "import sys; from optsched.report.solutions import find_picture as find\n"
    code += "import optsched.report.pictures\n"
    code += "find('migration'); print('matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_the_eight_jobs_of_the_front_page_have_colors_and_words_of_their_own():
    problem = load_snapshot("node-placement/gpu-queue")
    figure = find_picture("node-placement")(problem, optsched.solve(problem, "highs").solution)
    [axes] = figure.axes
    fills = {to_hex(bar.get_facecolor()) for bar in axes.patches} - {"#ffffff"}
    assert len(fills) == len(problem.chunks) == 8
    assert axes.get_xlabel() == "free GPUs"
    assert texts(axes.get_yticklabels()) == [*problem.nodes]
    assert figure.texts[0].get_text() == "Placement of 8 jobs on 8 nodes"
