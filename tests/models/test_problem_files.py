"""Problems in files of other programs: LP and MPS, the formats of the literature, and MiniZinc."""

import gzip
import re
import shutil
import subprocess
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from optsched import load_snapshot, registry, solve
from optsched.cli import run as optsched
from optsched.content import bundled
from optsched.errors import InputError
from optsched.models import IntegerProgram, WindowMKP
from optsched.models.export import export, minizinc_model
from optsched.models.program import ProgramBuilder
from optsched.models.snapshot_file import read_snapshot, snapshot_files
from optsched.testing import brute_force, check_problem

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
SMALL = [file for file in FILES if file.stat().st_size <= 1500]


@pytest.mark.parametrize("file", SMALL, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_exported_files_of_every_model_hold_the_same_program(tmp_path, file):
    problem = read_snapshot(file).problem
    program = problem.formulate().program
    names = [program.variable_name(v) for v in range(program.num_variables)]
    for suffix in (".lp", ".mps"):
        export(problem, tmp_path / f"a{suffix}")
        again = read_snapshot(tmp_path / f"a{suffix}").problem
        assert sorted(again.variable_names) == sorted(names)
        assert (again.offset, again.sense) == (program.offset, program.sense)
    assert list(again.variable_names) == names
    read = again.formulate().program
    for part in ("objective", "lower", "upper", "row_lower", "row_upper"):
        assert np.array_equal(getattr(read, part), getattr(program, part)), part
    shape = program.num_rows, program.num_variables
    one, other = (csr_array((p.values, p.columns, p.row_start), shape) for p in (program, read))
    assert (one != other).nnz == 0


def test_decimals_are_scaled_exactly_and_said(file_of):
    snapshot = read_snapshot(file_of(LP, "a.lp"))
    problem = snapshot.problem
    assert problem.coefficients.tolist() == [30, 20, 45]
    assert problem.offset == 100
    assert problem.rows == ({0: 50, 1: 125, 2: 200},)
    assert problem.at_most == (250,)
    assert problem.lower.tolist() == [0, 0, -1]
    assert snapshot.origin == {"file": "a.lp", "objective_scale": 10}
    told = ("scaled", "the objective is 10 times that of the file")
    assert snapshot.describe_origin() == [("file", "a.lp"), told]


def test_gzipped_files_are_read(file_of):
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


def lp(objective="x", rows="c: x <= 5", bounds="x <= 9", types="gen\n x"):
    return f"max\n obj: {objective}\nst\n {rows}\nbounds\n {bounds}\n{types}\nend\n"


@pytest.mark.parametrize(
    ("text", "optimum"),
    [
        (lp("3 x + 7"), 22),
        (lp("+ -3 x", "c: x >= 1"), -3),
        (lp("3x"), 15),
        (lp("x(1)", "c: x(1) <= 4", "x(1) <= 9", "gen x(1)"), 4),
        (lp("", "c: x <= 5"), 0),
        (lp(rows="x < 4"), 4),
        (lp(rows="x =< 4\n c: - x => -3"), 3),
        (lp(rows="c: 2 <= x <= 4"), 4),
        (lp(rows="c: 4 >= x >= 2"), 4),
        (lp(rows="c: x <= +inf\n d: -infinity <= x"), 9),
        (lp(rows="c: 0 x >= -1"), 9),
        (lp(rows="c:\n 2\n x \\ half a row\n <= 7"), 3),
        (lp(rows="c: 3 x <= 7 d: 2 x <= 3"), 1),
        (lp(bounds="9 >= x >= 1"), 5),
        (lp(bounds="x = 3"), 3),
        (lp(bounds="x <= 9\n x <= 4"), 4),  # the last holds
        (lp("- x", "c: x >= -7", "x free\n x <= 9\n x >= -3"), 3),
        (lp(bounds="x <= 4.7"), 4),
        (lp(bounds="x <= 1", types="bin\n x"), 1),
        (lp(types="Integers\n x\nsemi"), 5),
        ("Maximize obj: x Subject  To c: x <= 5 Bounds x <= 9 General x End", 5),
        ("\ufeffMAX\r\nx\r\nS.T.\r\nx <= 3\r\nBIN\r\nx\r\nEND\r\n", 1),
    ],
)
def test_lp_is_read_as_cplex_describes_it(file_of, text, optimum):
    assert solve(read_snapshot(file_of(text, "a.lp"))).objective == optimum


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (lp(rows="c: x + 2 <= 5"), "line 4: row c has a constant on the left"),
        (lp("x + x"), "line 2: variable x twice in the objective"),
        (lp("2 3 x"), "line 2: '3'; expected '+' or '-'"),
        (lp("x +"), "line 3: the section 'subject to'; expected a number or a variable"),
        (lp("1/2 x"), "'/'; expected"),
        (lp("[ x ^ 2 ] / 2"), "'['; expected linear terms"),
        (lp("2e1x"), "'2e1x' may be a number with an exponent"),
        (lp("1e400 x"), "expected a finite coefficient"),
        (lp(rows="c: x <= 5 + x"), "line 4: '+'; expected the end of the row"),
        (lp(rows="c: 5 <= 7"), "row c has no variable"),
        (lp(rows="c: 2 <= x >= 1"), "row c has two senses"),
        (lp(rows="c: x >= inf"), "a row is bounded by infinity"),
        (lp(rows="c: x <= 5\n c: x <= 4"), "line 5: row c twice"),
        (lp(rows="st: x <= 5"), "'st' begins a section"),
        (lp(bounds="x <= y"), "'y'; expected a number on the right"),
        (lp(bounds="1 <= x >= 3"), "bounds of x in one direction twice"),
        (lp(bounds="x <= -2"), "upper bound -2 and no lower one"),
        (lp(bounds="x <= 9", types="bin\n x"), "x is binary, with the bounds 0 to 9"),
        (lp(types="gen\n x\nbin\n x"), "x is both general and binary"),
        (lp(types="gen\n x\nsemi\n x"), "has a section 'semi-continuous'"),
        (lp() + "c: x <= 1\n", "line 10: 'c' after 'end'"),
        (LP.replace("gen\n z\n", ""), "variable z is continuous; expected integer variables only"),
        (LP.replace("-1 <= z <= 5", "z >= 0"), "variable z has no upper bound; expected both"),
        (LP.replace("-1 <= z", "-inf <= z"), "variable z has no lower bound; expected both"),
        (LP.replace("1.25", "1.12345678"), "row c1: 1.12345678; expected at most 6 decimals"),
        (LP.replace("<= 2.5", "<= two"), "line 4: 'two'; expected a number on the right"),
        (b"\xff\xfe", "not text; expected LP"),
        ("", "has no line 'end', with which LP ends"),
        (lp().replace("max\n", ""), "line 1: 'obj'; expected 'maximize' or 'minimize'"),
    ],
)
def test_lp_that_readers_take_differently_is_refused(file_of, refused, text, told):
    path = file_of(text, "a.lp")
    said = refused(path)
    assert said.startswith(str(path))
    assert told in said
    assert "optsched-" not in said  # the temporary file


def mps(
    columns=" x obj 1 c 1", rows=" L c", rhs=" r c 7", ranges=None, bounds=" UP b x 9", sense="MAX"
):
    spans = "" if ranges is None else f"RANGES\n{ranges}\n"
    return (
        f"* a comment\nNAME p\nOBJSENSE\n {sense}\nROWS\n N obj\n{rows}\nCOLUMNS\n"
        f" M1 'MARKER' 'INTORG'\n{columns}\n M2 'MARKER' 'INTEND'\n"
        f"RHS\n{rhs}\n{spans}BOUNDS\n{bounds}\nENDATA\n"
    )


SPACES = """NAME
ROWS
 N  COST
 L  ROW ONE
COLUMNS
    MARKER                 'MARKER'                 'INTORG'
    VAR ONE   COST              -3.0   ROW ONE             2.0
    VAR TWO   COST              -2.0   ROW ONE             1.0
    MARKER                 'MARKER'                 'INTEND'
RHS
    RHS       ROW ONE            3.0
BOUNDS
 UP BND       VAR ONE            4.0
 UP BND       VAR TWO            4.0
ENDATA
"""


@pytest.mark.parametrize(
    ("text", "optimum"),
    [
        (mps(), 7),
        (mps(rhs=" r c 7 obj -5"), 12),
        (mps(rhs=" c 6", bounds=" UP x 9"), 6),
        (mps(rows=" E c", rhs=" r c 2", ranges=" g c 3"), 5),
        (mps(rows=" E c", rhs=" r c 4", ranges=" g c -3", sense="MIN"), 1),
        (mps(ranges=" g c -3", sense="MIN"), 4),
        (mps(rows=" G c", rhs=" r c 4", ranges=" g c -3"), 7),
        (mps(rows=" E c", ranges=" g c 0"), 7),
        (mps(columns=" x obj 1 c 0.1", rhs=" r c 0.1", ranges=" g c 0.2", sense="MIN"), 0),
        (mps(bounds=" BV b x"), 1),
        (mps(bounds=" FX b x 4"), 4),
        (mps(bounds=" LO b x -2\n UP b x 3"), 3),
        (mps(bounds=""), 1),  # integers without bounds are binary
        (mps(columns=" x obj 1 c 1\n x free 7", rows=" N free\n L c"), 7),
        (mps().replace("OBJSENSE\n MAX", "OBJSENSE MAXIMIZE"), 7),
        (mps().replace(" M1 'MARKER' 'INTORG'\n", "").replace(" M2 'MARKER' 'INTEND'\n", "")
         .replace(" UP", " UI"), 7),
        (SPACES, -6),
        (SPACES.replace("                 'MARKER'  ", "    'MARKER'  "), -6),
    ],
)  # fmt: skip
def test_mps_is_read_as_its_description_says(file_of, text, optimum):
    assert solve(read_snapshot(file_of(text, "a.mps"))).objective == optimum


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (mps(columns=" x obj 1 c 1\n x c 1"), "line 11: column x has row c twice"),
        (mps(columns=" x obj 1 c 1 \n y c 1\n x obj 1"), "line 12: column x begins again"),
        (mps(columns=" x obj 1 d 1"), "row 'd'; expected one of the section ROWS"),
        (mps(columns=" x obj one"), "'one'; expected a number"),
        (mps(columns=" x\n x obj 1"), "expected a column, and one or two rows"),
        (mps(rows=" L row one"), "names with blanks need the columns of fixed MPS"),
        (mps(rhs=" r c 7\n r c 3"), "row c twice in RHS"),
        (mps(rhs=" r c 7\n s c 3"), "a second set of RHS, 's'"),
        (mps(ranges=" g obj 1"), "row obj is of type N"),
        (mps(bounds=" UP b x 9\n UP b x 3"), "column x has its upper bound twice"),
        (mps(bounds=" UP b y 9"), "column 'y'; expected one of the section COLUMNS"),
        (mps(bounds=" SC b x 9"), "bound 'SC'; expected UP, LO"),
        (mps(bounds=" UP b x 1e30"), "variable x has no upper bound"),
        (mps().replace("RHS", "RHS\nRHS", 1), "section RHS twice"),
        (mps().replace("ENDATA", "QUADOBJ\n x x 2\nENDATA"), "section 'QUADOBJ'"),
        (mps().replace("'INTORG'", "'INTEND'"), "marker 'INTEND'; expected 'INTORG'"),
        (mps() + "ENDATA\n", "after ENDATA"),
        (SPACES.replace("    RHS       ROW", "    RHS      ROW"), "'L ROW ONE'; expected N"),
        ("<html>\n", "line 1: section '<HTML>'; expected one of"),
    ],
)
def test_mps_that_readers_take_differently_is_refused(file_of, refused, text, told):
    assert told in refused(file_of(text, "a.mps"))


@st.composite
def programs(draw):
    """Draw a small program with free, empty and ranged rows, and variables without entries."""
    small = st.integers(-9, 9)
    count = draw(st.integers(1, 4))
    lower = draw(st.lists(st.integers(-3, 3), min_size=count, max_size=count))
    width = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    entries = st.dictionaries(st.integers(0, count - 1), small.filter(bool))
    rows = draw(st.lists(entries, max_size=4))
    least = [draw(st.none() | st.integers(-20, 5)) for _ in rows]
    most = [draw(st.none() | st.integers(-5 if a is None else a, 20)) for a in least]
    costs = draw(st.lists(small, min_size=count, max_size=count))
    upper = [a + b for a, b in zip(lower, width)]
    sense = draw(st.sampled_from(("max", "min")))
    given_rows = {"rows": rows, "at_least": least, "at_most": most}
    return IntegerProgram(sense, costs, lower, upper, draw(small), **given_rows)


def by_highs(path):
    highspy = pytest.importorskip("highspy")
    highs = highspy.Highs()
    highs.silent()
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    solved = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return round(highs.getObjectiveValue()) if solved else None


def by_scip(path):
    pyscipopt = pytest.importorskip("pyscipopt")
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.optimize()
    return round(model.getObjVal()) if model.getStatus() == "optimal" else None


def by_cbc(path):
    pulp = pytest.importorskip("pulp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # gone in PuLP 4, which we exclude
        solver = pulp.PULP_CBC_CMD()
    if not solver.available():
        pytest.skip("there is no CBC")
    command = [solver.path, path.name, "-solve", "-solution", "solution", "-quit"]
    subprocess.run(command, cwd=path.parent, capture_output=True, timeout=60, check=True)
    status, _, value = (path.parent / "solution").read_text().splitlines()[0].partition("value")
    return round(float(value)) if status.startswith("Optimal") else None


def by_cp_sat(path):
    cp_model = pytest.importorskip("ortools.sat.python.cp_model")
    model = cp_model.CpModel()
    assert model.proto.parse_text_format(path.read_text())
    solver = cp_model.CpSolver()
    solver.parameters.catch_sigint_signal = False  # it would take Ctrl-C from Python for good
    return round(solver.objective_value) if solver.solve(model) == cp_model.OPTIMAL else None


@settings(max_examples=60, deadline=None)
@given(problem=programs())
def test_a_written_program_is_read_alike_by_all(problem):
    check_problem(problem)
    right = brute_force(problem)
    with tempfile.TemporaryDirectory() as folder:
        for suffix, solver in ((".lp", "cp-sat"), (".mps", "highs")):
            path = Path(folder) / f"a{suffix}"
            export(problem, path)
            again = read_snapshot(path).problem
            if suffix == ".mps":
                assert again.to_json() == problem.to_json()
            result = solve(again, solver, budget=None)
            assert result.objective == by_highs(path) == by_scip(path) == right
            assert result.status == ("infeasible" if right is None else "optimal")
            # CBC heeds no OBJSENSE in MPS, and no constant in LP
            if problem.rows and (
                problem.sense == "min" if suffix == ".mps" else not problem.offset
            ):
                assert by_cbc(path) == right
        export(problem, Path(folder) / "a.pb.txt")
        assert by_cp_sat(Path(folder) / "a.pb.txt") == right


@pytest.mark.parametrize("name", ["a.lp", "a.mps", "a.pb.txt"])
def test_long_numbers_are_written_to_the_last_digit(tmp_path, name):
    profits = [123_456_789_011, 123_456_789_012, 123_456_789_013]
    export(WindowMKP([5, 5, 5], [10], profits), tmp_path / name)
    by_reader = by_cp_sat if name.endswith("txt") else by_highs
    assert by_reader(tmp_path / name) == profits[1] + profits[2]


EXAMPLE = IntegerProgram(
    "min", [3, -4, 6], [0, -1, 0], [1, 2, 1], 7, ["a", "b", "c"],
    rows=[{0: 2, 1: 3, 2: 4}, {0: 1, 2: -1}, {}], at_least=[0, 0, None], at_most=[6, None, 0],
    row_names=["sum", "order", "empty"],
)  # fmt: skip


def test_every_broken_constraint_is_named():
    assert EXAMPLE.violations((1, 0, 1)) == []
    assert [str(v) for v in EXAMPLE.violations((0, 3, 1))] == [
        "bounds: b is 3; expected -1 to 2",
        "row: sum is 13; expected at most 6",
        "row: order is -1; expected at least 0",
    ]
    for wrong in ((1, 0), (1, 0, 0.5), (1, 0, True), None, "101", {"a": 1}):
        [violation] = EXAMPLE.violations(wrong)
        assert violation.constraint == "form"
    assert EXAMPLE.violations(np.array([1, 0, 1])) == []


def test_a_solution_shows_what_is_not_0():
    assert EXAMPLE.describe((1, -1, 0)) == [("not 0", "a b=-1")]
    assert EXAMPLE.describe((0, 0, 0)) == [("not 0", "-")]
    assert EXAMPLE.describe()[1] == ("variables", "3, 2 of them binary")


PROBLEM = WindowMKP([6, 4], [3, 6], [7, 0])


@pytest.mark.parametrize("name", ["a.lp", "a.mps", "a.pb.txt", "a.pbtxt"])
def test_names_are_those_of_the_model(tmp_path, name):
    export(PROBLEM, tmp_path / name)
    text = (tmp_path / name).read_text()
    for expected in ("x_job1_slot1", "x_job2_slot2", "capacity_slot2", "once_job2"):
        assert expected in text
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_names_that_lp_files_do_not_take_are_numbered(tmp_path):
    for names in (["free", "ST", "y"], ["x[1]", "x", "y"]):
        problem = IntegerProgram("max", [1, 2, 3], variable_names=names, rows=[{0: 1, 1: 1, 2: 1}])
        export(problem, tmp_path / "a.lp")
        assert read_snapshot(tmp_path / "a.lp").problem.variable_names == ("x1", "x2", "x3")
        assert problem.describe((1, 1, 0)) == [("not 0", " ".join(names[:2]))]


def changed(**changes):
    """Return the problem with changes to its program."""
    problem, formulation = PROBLEM.copy(), PROBLEM.formulate()
    formulation.program = replace(formulation.program, **changes)
    object.__setattr__(problem, "formulate", lambda: formulation)
    return problem


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offset": 10**15}, "16 digits"),
        ({"objective": np.array([1, -(10**15), 1, 1])}, "16 digits"),
        ({"variable_name": "x[{}]".format}, r"'x\[0\]' cannot be the name"),
        ({"row_name": "row {}".format}, "'row 0' cannot be the name"),
        ({"variable_name": "e{}".format}, "'e0' cannot be the name"),
        ({"variable_name": "same".format}, "the same name"),
    ],
)
@pytest.mark.parametrize("name", ["a.lp", "a.mps"])
def test_what_does_not_fit_is_refused(tmp_path, changes, message, name):
    with pytest.raises(InputError, match=message) as raised:
        export(changed(**changes), tmp_path / name)
    assert name in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_the_format_may_be_named_and_must_be_known(tmp_path):
    export(PROBLEM, tmp_path / "model.data", "mps")
    assert "ENDATA" in (tmp_path / "model.data").read_text()
    for arguments in ((tmp_path / "model.data",), (tmp_path / "model.lp", "gams")):
        with pytest.raises(InputError, match=r"expected lp, mps, minizinc, cp-sat or.*\.pb\.txt"):
            export(PROBLEM, *arguments)


def test_a_knapsack_is_written_in_the_text_format_and_others_are_refused(tmp_path):
    path = tmp_path / "a.txt"
    export(PROBLEM, path)
    assert path.read_text() == "2\n2\n3\n6\n6 7\n4 0\n"
    assert read_snapshot(path).problem.to_json() == PROBLEM.to_json()
    with pytest.raises(InputError, match=r"b\.txt: integer-program has no text format"):
        export(IntegerProgram("max", [1], rows=[]), tmp_path / "b.txt")


ODD = IntegerProgram(
    "min", [3, -1, 1], [0, -2, 0], [1, 2, 9], -4, ["var", "x.1", "y"],
    rows=[{0: 2, 1: -3, 2: 1}, {0: -1, 1: 1}, {}], at_least=[-5, 1, None], at_most=[6, 1, 0],
)  # fmt: skip

MODELS = (
    *("window-mkp/yang-2014-example", "migration/worked-example", "data-placement/bridge"),
    *("gang-packing/mpl-3-skip", "hold/no-release", "threshold-allocation/memory-and-network"),
)


def test_the_text_says_what_the_program_says():
    assert minizinc_model(ODD.formulate().program).splitlines() == [
        "var 0..1: 'var';",
        "var -2..2: 'x.1';",
        "var 0..9: y;",
        "constraint :: \"r1\" 2*'var' - 3*'x.1' + y >= -5;",
        "constraint :: \"r1\" 2*'var' - 3*'x.1' + y <= 6;",
        "constraint :: \"r2\" -'var' + 'x.1' = 1;",
        'constraint :: "r3" 0 <= 0;',
        "solve minimize 3*'var' - 'x.1' + y - 4;",
    ]


def test_what_minizinc_cannot_hold_is_refused():
    names = ("a'b", 'a"b', "a\\b", "a\nb", "")
    for name, number, upper, told in (
        *((name, 1, 1, "cannot be the name") for name in names),
        ("x", 1, np.iinfo(np.int64).max, "MiniZinc needs both"),
        ("x", 2, 1, "the same name"),
    ):
        builder = ProgramBuilder("max")
        builder.variables(name, number, upper=upper)
        with pytest.raises(InputError, match=told):
            minizinc_model(builder.build())


@pytest.mark.skipif(shutil.which("minizinc") is None, reason="needs MiniZinc")
@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_minizinc_finds_the_same_optimum(tmp_path, name):
    problem = ODD if name == "odd" else load_snapshot(name)
    optimum = solve(problem, "cp-sat").objective
    export(problem, tmp_path / "a.mzn")
    command = ["minizinc", "--output-objective", "a.mzn"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ("UNSATISFIABLE" if optimum is None else "==========") in ran.stdout
    if optimum is not None:
        assert re.findall(r"_objective = (-?\d+)", ran.stdout)[-1] == str(optimum)


TEXT = "2\n3\n10\n12\n4\t9\n5 8\n  6   7\n"
TABLE = "kind,size,profit,name\nknapsack,10,,left\nitem,4,9,a\nitem,5,8,b\n"


def test_items_become_jobs_and_knapsacks_slots(file_of):
    for text in (TEXT, TEXT.replace("\n", "\n\n") + "\n"):  # blank lines do not count
        snapshot = read_snapshot(file_of(text))
        fields = {"weights": [4, 5, 6], "capacities": [10, 12], "profits": [9, 8, 7]}
        assert snapshot.problem.to_json() == fields
        assert (snapshot.origin, snapshot.known) == ({"file": "file.txt"}, {})
    assert read_snapshot(file_of("0\n0\n")).problem.size == "0x0"


def test_rows_of_a_table_become_jobs_and_slots(file_of):
    snapshot = read_snapshot(file_of(TABLE, "cargo.csv"))
    named = {"jobs": ["a", "b"], "slots": ["left"]}
    fields = {"weights": [4, 5], "capacities": [10], "profits": [9, 8]} | named
    assert snapshot.problem.to_json() == fields
    assert snapshot.origin == {"file": "cargo.csv"}


def test_profits_and_names_may_be_left_out_and_columns_in_any_order(file_of):
    text = "\ufeffsize,kind\r\n4,item\r\n\r\n10,knapsack\r\n"
    problem = read_snapshot(file_of(text, "cargo.csv")).problem
    assert problem.to_json() == {"weights": [4], "capacities": [10]}
    assert read_snapshot(file_of("kind,size\n", "cargo.csv")).problem.size == "0x0"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2\n", ": ends before the numbers of knapsacks and items"),
        ("two\n3\n", ": line 1, knapsacks: 'two'; expected an integer from 0 to 1000000000000"),
        (TEXT + "1 1\n", ": 8 lines that are not blank; expected 7: 2 counts, 2 capacities"),
        (TEXT.replace("12\n", "12 1\n"), ": line 4: 2 values; expected capacity"),
        (TEXT.replace("5 8", "5"), ": line 6: 1 value; expected weight and profit"),
        (TEXT.replace("5 8", "-1 8"), ": line 6, weight: '-1'; expected an integer from 0"),
        (TEXT.replace("5 8", "5 " + "9" * 5000), ": line 6, profit: '999"),
        (b"\xff\xfe\x00", ": not text"),
    ],
)
def test_a_mistake_is_told_with_its_line(file_of, refused, text, told):
    path = file_of(text)
    assert refused(path).startswith(f"{path}{told}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ": is empty; expected the columns kind, size, profit, name"),
        (TABLE.replace("size", "weight"), ", line 1: 2 mistakes\n  - unknown column 'weight'"),
        (TABLE.replace(",", ";"), ", line 1: the columns are separated by ';'; expected commas"),
        ("kind,kind,size\n", ", line 1: a column is there twice"),
        (TABLE.replace("item,4", "box,4"), ": line 3, kind: 'box'; expected item or knapsack"),
        (TABLE.replace("item,4", "item,4.5"), ": line 3, size: '4.5'; expected an integer from 0"),
        (TABLE.replace("4,9", "4,"), ": profit: missing in 1 of 2; expected all or none"),
        (TABLE.replace("10,,", "10,3,"), ": line 2, profit: '3'; a knapsack has none"),
        (TABLE.replace("4,9,a", "4,9"), ": line 3: 3 values; expected 4, one for each column"),
        ('kind,size\nitem,"4', ", line 2: not CSV: unexpected end of data"),
    ],
)
def test_a_mistake_in_a_table_is_told_with_line_and_column(file_of, refused, text, told):
    path = file_of(text, "cargo.csv")
    assert refused(path).startswith(f"{path}{told}")


def test_all_mistakes_are_told_at_once_but_not_hundreds(file_of, mistakes_of):
    text = TEXT.replace("12\n", "x\n").replace("5 8", "-1 y")
    told = mistakes_of(read_snapshot, file_of(text))
    assert [mistake[:6] for mistake in told] == ["line 4", "line 6", "line 6"]
    told = mistakes_of(read_snapshot, file_of("0\n100\n" + "-1 1\n" * 100))
    assert told[-1] == "95 more such lines"
    told = mistakes_of(read_snapshot, file_of("kind,size\n" + "item,x\n" * 100, "cargo.csv"))
    assert told[-1] == "95 more mistakes"


def test_a_file_of_another_layout_is_said_to_be(file_of, mistakes_of):
    told = mistakes_of(read_snapshot, file_of("3 4 1 7\n2 3\n"))
    assert told[-1].startswith("begins like no text format that is read")


# 1: of weights 4, 5, 6 within 10 and 2, 3, 4 within 6, worth 2, 3, 4: the first and the last, 6
# 2: one of two items of size 1 in 1; tenths of 75 and 80
KNAPSACKS = "2\n3 2 6\n2 3 4\n4 5 6\n2 3 4\n10 6\n2 1 0\n7.5 8\n1 1\n1\n"

# jobs of costs 1 and 9 at the first agent, 5 and 2 at the second; each agent holds one
ASSIGNMENT = "1\n2 2\n1 9\n5 2\n3 3\n4 4\n3 4\n"

# one resource of 2 for three items of size 1, one demand of at least 1 from items 1 and 2
DEMANDS = "1\n3 1\n1 1 1\n2\n1 1 0\n1\n" + "1 2 4\n" * 3 + "-1 -2 4\n" * 3

BINS = "2\n u4_00\n 10.0 4 2\n 6.5\n 3.5\n5\n5\n two\n 3 2 2\n2 2\n"


def optimum(path):
    snapshot = read_snapshot(path)
    return solve(snapshot).objective, snapshot.known.get("objective")


def test_multidimensional_knapsacks_and_their_optima(file_of):
    path = file_of(KNAPSACKS)
    first, second = snapshot_files(path)
    assert (first.name, second.name) == ("file.txt#1", "file.txt#2")
    assert optimum(first) == (6, 6)
    assert read_snapshot(first).origin == {"file": "file.txt", "instance": "1 of 2"}
    assert optimum(second) == (80, None)
    assert read_snapshot(second).scale == 10
    names = read_snapshot(first).problem
    assert (names.variable_names[0], names.row_names[1]) == ("x_item1", "capacity_resource2")


def test_line_breaks_of_or_library_and_a_mark_of_the_encoding_have_no_meaning(file_of):
    head, tail = KNAPSACKS.split("2 3 4\n", 1)
    path = file_of("\ufeff" + head + "2\n3\n4\n\n" + tail.replace("\n", " "))
    assert optimum(f"{path}#1") == (6, 6)


@pytest.mark.parametrize(
    ("name", "text", "best"),
    [
        ("gap1.txt", ASSIGNMENT, 14),
        ("gapa.txt", ASSIGNMENT, 3),
        ("e0202.txt", ASSIGNMENT.removeprefix("1\n"), 3),
    ],
)
def test_an_assignment_is_maximized_where_published_optima_are_maxima(file_of, name, text, best):
    path = file_of(text, name)
    assert snapshot_files(path) == [path]
    assert optimum(path) == (best, None)


def test_a_problem_with_demands_is_six_instances(file_of):
    files = snapshot_files(file_of(DEMANDS))
    # of one demand, none (1 // 2), and one; the last two of 1, 2, 4, or only the 4 if mixed
    assert [optimum(file)[0] for file in files] == [6, 6, 6, 3, 4, 3]


def test_bins_are_counted_and_their_sizes_may_have_decimals(file_of):
    first, second = snapshot_files(file_of(BINS))
    assert optimum(first) == (2, 2)
    assert read_snapshot(first).origin["name"] == "u4_00"
    assert optimum(second) == (2, 2)
    problem = read_snapshot(first).problem
    row = problem.rows[problem.row_names.index("capacity_bin1")]
    assert sorted(row.values()) == [-100, 35, 50, 50, 65]


def test_one_of_several_instances_must_be_named(file_of, refused):
    path, one = file_of(KNAPSACKS), file_of("1\n1\n5\n3 4\n", "one.txt")
    assert "holds 2 instances (multidimensional knapsack of OR-L" in refused(path)
    assert "holds 2 instances; there is no number 3" in refused(f"{path}#3")
    assert read_snapshot(f"{one}#1").problem.name == "window-mkp"
    assert "holds one instance; there is no number 2" in refused(f"{one}#2")
    odd = file_of("{}", "file.txt#1")  # a file of that very name goes first, and is no text
    assert "expected the kind of problem" in refused(odd)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (KNAPSACKS[:-2], "instance 2 of 2: ends after 0 of 1 capacities (multidimensional knap"),
        (KNAPSACKS + "7\n", "1 word after 2 instances (multidimensional knapsack of OR-Library)"),
        (KNAPSACKS.replace("2 1 0", "2 x 0"), "line 7, instance 2 of 2, number of resources: 'x'"),
        (ASSIGNMENT[:-2], "2 mistakes\n  - ends after 1 of 2 capacities (generalized assignment"),
        (BINS[:-2], "instance 2 of 2: ends after 1 of 2 sizes (bin packing of OR-Library)"),
        ("0\n1 1 1\n", "3 words after 0 instances"),
    ],
)
def test_a_file_that_does_not_add_up_is_refused_by_its_format(file_of, refused, text, told):
    path = file_of(text)
    assert snapshot_files(path) == [path]
    assert told in refused(path)


def test_numbers_are_checked_in_the_chosen_instance(file_of, refused):
    path = file_of(KNAPSACKS.replace("4 5 6", "4 five 6"))
    assert "file.txt, line 4, amounts: 'five'; expected a number" in refused(f"{path}#1")
    assert read_snapshot(f"{path}#2")
    path = file_of(KNAPSACKS.replace("7.5", "7.12345678"))
    assert "profits: 7.12345678; expected at most 6 decimals" in refused(f"{path}#2")


def test_commands_take_instances_and_do_not_overwrite_their_file(file_of, capsys, monkeypatch):
    path = file_of(KNAPSACKS)
    monkeypatch.chdir(path.parent)
    assert optsched(["solve", "file.txt"]) == 1
    assert "expected one of them, file.txt#1 to file.txt#2" in capsys.readouterr().err
    assert optsched(["solve", "file.txt#2"]) == 0
    assert "the objective is 10 times that of the file" in capsys.readouterr().out
    for words in (["solve", "file.txt#1", "-o"], ["snapshot", "export", "file.txt#1", "-o"]):
        assert optsched([*words, "file.txt"]) == 1
        assert "is the input; expected another file" in capsys.readouterr().err
    assert optsched(["snapshot", "check", "file.txt"]) == 0
    assert capsys.readouterr().out == "file.txt#1: good\nfile.txt#2: good\n"
