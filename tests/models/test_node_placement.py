import pytest

from optsched import InputError
from optsched.models import NodePlacement, Placements
from optsched.models.node_placement import fragmentation


def test_fragmentation_comes_after_the_weight():
    # of two devices, half of one is wanted: the other one stays whole
    common = {"free": [[4], [4]], "devices": [[1000], [500]], "chunks": [1, 1]}
    common |= {"share": [500, 1000], "then": ["fragmentation"]}
    problem = NodePlacement(["cores"], **common, demand=[[1], [5]], weights=[3, 1])
    on_whole = Placements(((0,), ()), (((0,),), ()))
    on_half = Placements(((1,), ()), (((0,),), ()))
    # two chunks in the mix, of which the second fits on no node
    assert [problem.measures(one)["fragmentation"] for one in (on_whole, on_half)] == [1000, 1000]
    small = NodePlacement(["cores"], **common, demand=[[1], [1]], weights=[3, 0])
    measures = [small.measures(one)["fragmentation"] for one in (on_whole, on_half)]
    assert measures == [1000, 0]
    assert [fragmentation(small, one) for one in (on_whole, on_half)] == [0.5, 0.0]
    # at most two chunks cannot use 1500 thousandths
    assert small.radices == (3001,)
    assert [small.objective(one) for one in (on_whole, on_half)] == [3 * 3001 - 1000, 3 * 3001]


def test_an_objective_that_fragmentation_makes_too_large_is_refused():
    one = {"free": [[1]], "chunks": [1000], "demand": [[1]], "weights": [10**11]}
    one |= {"devices": [[1000]], "share": [1000]}
    NodePlacement(["cores"], **one)
    with pytest.raises(InputError, match="weights: the objective may reach"):
        NodePlacement(["cores"], **one, then=["fragmentation"])
