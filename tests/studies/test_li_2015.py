"""The functions of the study of Li et al. 2015, on stored results and on small tables."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from optsched.studies.claims import NotRunError
from optsched.studies.running import looked_at, study_runs
from optsched.sweeps.sweep_file import read_sweep
from optsched.sweeps.sweeping import with_parts
from optsched.traces.reading import write_trace

STUDIED = "li-2015"
MAIN = "ahead, joint"


def test_both_loads_of_a_seed_count_once_and_all_workloads_are_needed(study, frame, runs):
    """The mean of six units, and the interval of Student's t, computed here again."""
    own = frame[(frame["variant"] == MAIN) & frame["shake"].isna()].set_index("log")["occupied"]
    units = [(own[f"load 0.9, seed {n}"] + own[f"load 1.1, seed {n}"]) / 2 for n in (1, 2, 3)]
    units = 100 * np.array([*units, own["Mira"], own["Trinity"], own["Curie"]])
    half = stats.t.ppf(0.975, 5) * units.std(ddof=1) / np.sqrt(6)
    found = study.call("level", runs, "joint", metric="occupied")
    assert found.n == 6
    assert found[:3] == pytest.approx((units.mean(), units.mean() - half, units.mean() + half))
    less = runs[(runs["log"] != "Mira") | (runs["variant"] != MAIN)]
    with pytest.raises(NotRunError):
        study.call("gain", less, "joint")
    assert study.call("gain", less, "alone") == study.call("gain", runs, "alone")


def test_variants_differ_and_those_with_and_without_migration_in_nothing_else(
    study, shared, tmp_path
):
    """Where all workloads are one trace, each variant is one run, and one for each shake."""
    folders, inputs = [shared("traces")], tmp_path / "inputs"
    plan, whole = (looked_at(study.plan, quick=quick) for quick in (True, False))
    trace, *_ = study.call("inputs", plan, folders).values()
    inputs.mkdir()
    for axis in plan["axes"]["log"].values():
        write_trace(trace, tmp_path / axis["trace"])
    table, labels = study_runs(whole, folders, study.path, inputs)
    sweep = read_sweep(table, base=study.path)
    variants = {label["variant"] for label in labels}
    assert variants == {*study.plan["axes"]["variant"]}
    columns = {run.name: run.columns for run in sweep.runs if "shake" not in run.values}
    assert len(columns) == len(variants)
    assert len(sweep.runs) - len(columns) == 6 * 5
    variants = {names[0]: label["variant"] for names, label in zip(sweep.blocks, labels)}
    config = {variants[name]: own for name, own in columns.items() if name in variants}
    own = ("prepare", "worth", "preparations", "shapes", "migrate")
    own += ("bandwidth", "restart", "per_node")
    of_migration = {"solver", "trace", *(f"settings.{name}" for name in own)}
    pairs = study._module.COMBINED
    assert len(pairs) > 20
    for pair in pairs:
        left, right = (config[one] for one in pair)
        assert (left["settings.migrate"], right["settings.migrate"]) == (True, False)
        others = (left.keys() | right.keys()) - of_migration
        assert [left.get(name) for name in others] == [right.get(name) for name in others]


def test_workloads_offer_what_they_are_named_for(study, shared):
    plan = looked_at(study.plan, quick=True)
    made = study.call("inputs", plan, [shared("traces")])
    assert set(made) == {"modelled_load1.1_seed1.swf.gz", "Mira.swf.gz"}
    for file, trace in made.items():
        wanted = 1.1 if file.startswith("modelled") else 0.95
        assert study.call("offered", trace, 1024) == pytest.approx(wanted, rel=0.01)
        assert trace.processors.max() <= 1024
        assert study.call("figures_of", trace, 1024)["large_jobs"] == (trace.processors > 38).sum()


def test_parts_of_metrics_become_columns_and_those_that_do_not_occur_are_none(study, tmp_path):
    for run, held in {"a": {"80": 1.0}, "b": {"85": 0.5, "90": 0.5}}.items():
        (tmp_path / run).mkdir()
        (tmp_path / run / "summary.json").write_text(json.dumps({"held": held}))
    table = pd.DataFrame({"run": ["a", "b"], "wait": [1, 2]})
    found = with_parts(table, ("held", "none"), tmp_path)
    assert found.columns.tolist() == ["run", "wait", "held.80", "held.85", "held.90"]
    assert found["held.85"].fillna(-1).tolist() == [-1, 0.5]
    recorded = {"occupied": 0.5, "recorded_held.50": 1.0, "migrations_ahead": 3.0}
    one, other = study.call("with_all_parts", pd.DataFrame([recorded, {}])).to_dict("records")
    assert one["recorded_held.50"] == 1.0
    assert one["recorded_held.45"] == one["not_prepared.no plan"] == 0.0
    assert all(np.isnan(value) for value in other.values())
