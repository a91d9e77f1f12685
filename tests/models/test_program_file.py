"""MPS and LP files: what is written can be read, and what cannot be stated is refused."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from scipy.sparse import csr_array

from optsched import registry, solve
from optsched.content import bundled
from optsched.errors import InputError
from optsched.models.export import export
from optsched.models.snapshot_file import read_snapshot, snapshot_files

SMALL, LARGER = 1000, 3000
"""Bytes of the reference snapshots that are solved again, and that are only read again, at most."""

LP = """max
 obj: 3 x + 2 y + 4.5 z + 10
st
 c1: 0.5 x + 1.25 y + 2 z <= 2.5
bounds
 -1 <= z <= 5
bin
 x y
gen
 z
end
"""


FILES = [file for m in registry.models for file in snapshot_files(bundled("models") / m)]
SOLVED = [file for file in FILES if file.stat().st_size <= SMALL]
READ = [file for file in FILES if SMALL < file.stat().st_size <= LARGER]


def named(file):
    return f"{file.parent.name}-{file.stem}"


def test_every_model_has_a_snapshot_that_is_solved_again():
    assert {file.parent.name for file in SOLVED} == set(registry.models)


@pytest.mark.parametrize("file", READ, ids=named)
def test_an_exported_mps_file_holds_the_same_program(tmp_path, file):
    problem = read_snapshot(file).problem
    export(problem, tmp_path / "a.mps")
    again = read_snapshot(tmp_path / "a.mps").problem.formulate().program
    program = problem.formulate().program
    for part in ("objective", "lower", "upper", "row_lower", "row_upper"):
        assert np.array_equal(getattr(again, part), getattr(program, part)), part
    shape = program.num_rows, program.num_variables
    one, other = (csr_array((p.values, p.columns, p.row_start), shape) for p in (program, again))
    assert (one != other).nnz == 0
    assert (again.offset, again.sense) == (program.offset, program.sense)


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
@pytest.mark.parametrize("file", SOLVED, ids=named)
def test_an_exported_snapshot_is_read_with_the_same_optimum(tmp_path, file, suffix):
    snapshot = read_snapshot(file)
    program = snapshot.problem.formulate().program
    export(snapshot.problem, tmp_path / f"a{suffix}")
    again = read_snapshot(tmp_path / f"a{suffix}").problem
    assert again.sense == program.sense
    names = {program.variable_name(v) for v in range(program.num_variables)}
    assert set(again.variable_names) <= names
    if suffix == ".mps":  # LP files leave out what has no entry
        assert set(again.variable_names) == names
    result = solve(again, "cp-sat", budget=None)
    assert result.objective == snapshot.known.get("objective")
    assert result.status == ("infeasible" if snapshot.known.get("infeasible") else "optimal")


@pytest.fixture
def file_of(tmp_path):
    def write(text, name="a.lp"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def test_decimals_are_scaled_exactly_and_said(file_of):
    snapshot = read_snapshot(file_of(LP))
    problem = snapshot.problem
    assert problem.coefficients.tolist() == [30, 20, 45]
    assert problem.offset == 100
    assert problem.rows == ({0: 50, 1: 125, 2: 200},)
    assert problem.at_most == (250,)
    assert problem.lower.tolist() == [0, 0, -1]
    assert snapshot.origin == {"file": "a.lp", "objective_scale": 10}
    told = ("scaled", "the objective is 10 times that of the file")
    assert snapshot.describe_origin() == [("file", "a.lp"), told]


def test_gzipped_files_and_fixed_mps(file_of):
    assert read_snapshot(file_of(gzip.compress(LP.encode()), "a.lp.gz")).problem.size == "3x1"


def test_a_maximization_in_a_comment_alone_is_refused(file_of):
    text = "NAME k\nROWS\n N obj\nCOLUMNS\n M 'MARKER' 'INTORG'\n x obj 3\n"
    text += " M 'MARKER' 'INTEND'\nBOUNDS\n UP b x 4\nENDATA\n"
    assert solve(read_snapshot(file_of(text, "a.mps"))).objective == 0
    said = text.replace("NAME k\n", "*SENSE:Maximize\nNAME k\n")
    with pytest.raises(InputError, match=r"comment .* alone.*expected a section OBJSENSE"):
        read_snapshot(file_of(said, "a.mps"))
    stated = said.replace("NAME k\n", "NAME k\nOBJSENSE\n MAX\n")
    assert solve(read_snapshot(file_of(stated, "a.mps"))).objective == 12


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (LP.replace("gen\n z\n", ""), "variable z is continuous; expected integer variables only"),
        (LP.replace("-1 <= z <= 5", "z >= 0"), "variable z has no upper bound; expected both"),
        (LP.replace("-1 <= z", "-inf <= z"), "variable z has no lower bound; expected both"),
        (LP.replace("1.25", "1.12345678"), "row c1: 1.12345678; expected at most 6 decimals"),
        (LP.replace("4.5 z", "4.5 z + [ x ^ 2 ] / 2"), "the objective is quadratic"),
        (LP.replace("<= 2.5", "<= two"), "HiGHS does not read it as LP: Parser error"),
        (b"\xff\xfe", "not text; expected LP"),
        ("", "has no line 'end', with which LP ends"),
        (LP[:-4], "has no line 'end'"),
    ],
)
def test_what_cannot_be_stated_is_refused(file_of, text, told):
    path = file_of(text)
    with pytest.raises(InputError) as raised:
        read_snapshot(path)
    assert str(raised.value).startswith(str(path))
    assert told in str(raised.value)
    assert "optsched-" not in str(raised.value)  # the temporary file
