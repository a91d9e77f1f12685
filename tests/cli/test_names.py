"""Names of bundled traces, sites and snapshots, from an empty folder."""

import json

import pytest

import optsched as package
from optsched.content import bundled, find_snapshot, reference_snapshots
from optsched.models.snapshot_file import save_snapshot
from optsched.sites.loading import load_site
from optsched.sweeps.sweep_file import read_sweep
from optsched.traces.catalogue import samples

SAMPLE = bundled("traces") / "samples" / "sample-256.swf"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_sample_is_simulated_on_a_site_by_name(folder, optsched):
    words = "simulate sample-256 --machine site:campus --policy easy --jobs 1:50 --no-plots -o"
    assert str(SAMPLE) not in optsched(words, "named").err
    config = json.loads((folder / "named" / "run.json").read_text())
    assert (config["trace"], config["machine"]) == ("sample-256", "site:campus")
    assert not [kind for kind in ("traces", "sites") if str(bundled(kind)) in json.dumps(config)]
    (folder / "campus").write_bytes((bundled("sites") / "campus.toml").read_bytes())
    told = optsched(words, "another", code=1).err  # a file of the name takes precedence
    assert "campus: expected a site as TOML" in told


def test_a_file_of_the_name_takes_precedence(folder):
    (folder / "sample-256").write_bytes(SAMPLE.read_bytes().replace(b"\n3 ", b"\n; 3 "))
    assert len(package.read_trace("sample-256")) == 2999
    save_snapshot(package.models.WindowMKP([1], [1]), "yang-2014-example")
    assert package.load_snapshot("yang-2014-example").weights.tolist() == [1]


def test_a_folder_does_not_hide_the_trace_of_its_name(optsched):
    for _ in range(2):
        optsched("simulate sample-256 --policy fcfs --jobs 1:20 --no-plots -o sample-256")
    optsched("trace info sample-256")


def test_a_sweep_takes_names_and_paths(folder):
    (folder / "own.toml").write_bytes((bundled("sites") / "sample-site.toml").read_bytes())
    plan = {"trace": "sample-256", "policy": "easy", "machine": ["site:campus", "site:own.toml"]}
    one, other = read_sweep(plan, folder).runs
    assert (one.trace.path, one.trace.published) == (str(SAMPLE), "sample-256")
    named, own = one.arguments["machine"], other.arguments["machine"]
    assert (named.spec, named.path) == ("site:campus", bundled("sites") / "campus.toml")
    assert (own.spec, own.path) == ("site:own.toml", folder / "own.toml")


def test_every_site_sample_and_snapshot_is_listed_and_has_a_name(optsched):
    def listed(what):
        return json.loads(optsched("list", what, "--json").out)[what]

    sites = [row["site"] for row in listed("sites")]
    assert sites == ["campus", "sample-site", "sample-slurm"]
    assert [load_site(name).name for name in sites] == sites
    traces = {row["trace"] for row in listed("traces")}
    assert {"sample-256", "sample-8x20", "SDSC-SP2-1998-4.2-cln"} <= traces
    assert all(len(package.read_trace(name)) > 0 for name in samples())
    rows = {row["snapshot"]: row for row in listed("snapshots")}
    assert rows["window-mkp/yang-2014-example"]["best known"] == 15
    assert rows["hold/no-release"]["best known"] == "infeasible"
    files = {path for path in bundled("models").glob("*/*.json") if path.name != "schema.json"}
    assert {find_snapshot(name) for name in rows} == files == set(reference_snapshots().values())


def test_snapshots_are_solved_and_compared_by_name(folder, optsched):
    for name in ("yang-2014-example", "window-mkp/yang-2014-example"):
        assert json.loads(optsched("solve", name, "--json").out)["objective"] == 15
    optsched("compare partition-mkp --solvers direct-placement -o out")
    lines = (folder / "out" / "answers.jsonl").read_text().splitlines()
    compared = {f"partition-mkp/{json.loads(line)['snapshot']}" for line in lines}
    assert compared == {name for name in reference_snapshots() if name.startswith("partition-mkp/")}
    assert "hold/worked-example: good" in optsched("snapshot check hold").out


def test_a_comparison_counts_trivial_snapshots_and_judges_the_others(optsched, monkeypatch):
    monkeypatch.setattr("optsched.solvers.comparison.tables.AT_ONCE", 1e9)
    words = "compare yang-2014-example weighted-20x8 --solvers greedy,branch-and-bound -o out"
    *_, trivial, rest, _ = optsched(words).out.splitlines()
    assert trivial.startswith("trivial              1 of 2 snapshots: answered optimally by all")
    assert rest == "best on the other 1  greedy 0%, branch-and-bound 100%"
