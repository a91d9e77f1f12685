"""The structure of the repository, kept in step with what the code registers."""

import ast
import json
import re
from pathlib import Path

import grimp
import networkx
import pytest

from optsched import registry
from optsched.content import bundled
from optsched.models.snapshot_file import read_snapshot, snapshot_files
from optsched.solvers.finding import load_profile, profile_names
from optsched.version import __version__

ROOT = Path(__file__).resolve().parents[1]


def test_content_folders_hold_no_code_and_what_their_names_say():
    for folder in ("models", "solvers", "traces", "workloads"):
        assert bundled(folder).is_dir()
        assert {*bundled(folder).rglob("*.py")} == set()
    pages = {page.parent.name for page in bundled("models").glob("*/README.md")}
    assert pages == set(registry.models)
    assert {load_profile(name).solver for name in profile_names()} <= set(registry.solvers)


@pytest.mark.parametrize("name", list(registry.models))
def test_every_model_has_reference_snapshots_which_its_page_names(name):
    """Some are proven, and none is stale; the page states the optimum of each."""
    folder = bundled("models") / name
    text = (folder / "README.md").read_text()
    files = snapshot_files(folder)
    assert {file.name for file in files} == {*re.findall(r"`([\w-]+\.json)`", text)} != set()
    proven = []
    for file in files:
        snapshot = read_snapshot(file)
        assert snapshot.problem.name == name
        assert snapshot.to_json() == json.loads(file.read_text())
        known = snapshot.known
        proven.append("objective" in known and known["objective"] == known.get("bound"))
        [row] = [line for line in text.splitlines() if line.startswith(f"| `{file.name}`")]
        stated = "infeasible" if known.get("infeasible") else known["objective"]
        assert f" {stated}, proven |" in row
    assert any(proven)


def test_no_files_import_each_other_in_a_circle():
    """Imports in functions and for types alone count too; the floors are in ``pyproject.toml``."""
    graph = networkx.DiGraph()
    imports = grimp.build_graph("optsched", cache_dir=None)
    for module in imports.modules:
        for other in imports.find_modules_directly_imported_by(module):
            graph.add_edge(module, other)
    circles = [sorted(c) for c in networkx.strongly_connected_components(graph) if len(c) > 1]
    assert circles == []


def test_adding_a_policy_is_one_file():
    """No module but its own, tests and docs apart, may name a policy to make it known."""
    mentions = [
        module.name
        for module in (ROOT / "optsched").rglob("*.py")
        if re.search(r'"easy-sjbf"|\bEasySJBF\b', module.read_text())
    ]
    assert mentions == ["easy_sjbf.py"]


def test_the_citation_and_the_changelog_are_those_of_this_version():
    citing = (ROOT / "docs/citing.md").read_text()
    assert re.findall(r"version = \{(.*)\}", citing) == [__version__]
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [__version__]
    [released] = re.findall(r"^date-released: (.*)$", citation, re.MULTILINE)
    newest = re.findall(r"^## \[(\d.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert newest == f"{__version__}] - {released}"


SCALARS = {"int", "float", "bool", "tuple", "np", "int64", "uint64"}


def test_kernels_with_and_without_reference_counts_return_no_arrays_to_each_other():
    """Nobody would free such an array, or it would be freed twice."""
    kernels = {}
    for path in (ROOT / "optsched").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        tree = ast.parse(path.read_text())
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        home = {name.name: node.module for node in imports for name in node.names}
        for node in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            for one in map(ast.unparse, node.decorator_list):
                if one.startswith("kernel"):
                    returned = {w.id for w in ast.walk(node.returns) if isinstance(w, ast.Name)}
                    functions = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
                    names = {each.id for each in functions if isinstance(each, ast.Name)}
                    calls = {(home.get(name, module), name) for name in names}
                    counts = "allocates=False" not in one
                    kernels[module, node.name] = counts, returned <= SCALARS, calls
    assert sum(not counts for counts, *_ in kernels.values()) > 30
    assert not [
        (kernel, called)
        for kernel, (counts, _, calls) in kernels.items()
        for called in calls & kernels.keys()
        if kernels[called][0] != counts and not kernels[called][1]
    ]
