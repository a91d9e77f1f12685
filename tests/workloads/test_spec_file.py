"""Workload specs: their draws from a seed, round trips, and messages for mistakes."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import registry
from optsched.content import bundled
from optsched.errors import InputError
from optsched.workloads.capability_mix import CapabilityClass, CapabilityMix
from optsched.workloads.hyper_erlang import HyperErlangClasses
from optsched.workloads.lublin_feitelson import LublinFeitelson
from optsched.workloads.spec_file import read_workload, to_toml, workload_names, write_workload

ONE = CapabilityClass(5, 64, 100.0, 3600, 0.5, 14_400)
ONE_CLASS = """
model = "hyper-erlang"
processors = 16
[[classes]]
smallest = 1
largest = 16
interarrival = { lambda1 = 0.1, lambda2 = 0.2, order = 1, p1 = 0.5 }
service = { lambda1 = 0.1, lambda2 = 0.2, order = 2, p1 = 0.5 }
"""
MIX = """
model = "capability-mix"
processors = 64
load = 0.8
accuracy = { lowest = 0.1, highest = 0.9 }
limits = [1800, 86400]
[[classes]]
smallest = 33
largest = 63
share = 100
median = 3600
sigma = 1.3
longest = 86400
"""
LUBLIN = """
model = "lublin-feitelson"
processors = 9
uprob = 0.5
"""


@pytest.fixture
def read(tmp_path):
    """Return the function that reads a spec from text."""

    def from_text(text):
        (tmp_path / "spec.toml").write_text(text)
        return read_workload(tmp_path / "spec.toml")

    return from_text


@pytest.mark.parametrize("name", workload_names())
def test_bundled_specs_are_of_registered_models_and_generate(name):
    workload = read_workload(name)
    assert workload.name in registry.workloads
    assert workload.title == name
    assert all((workload.description, workload.source))
    trace = workload.generate(100, 1)
    assert (len(trace), trace.name) == (100, name)
    assert trace.processors.max() <= workload.processors
    assert f"| `{name}` |" in (bundled("workloads") / "README.md").read_text()


def test_the_published_values_are_the_defaults():
    spec = read_workload("lublin-feitelson")
    texts = {"description": spec.description, "source": spec.source, "title": spec.title}
    assert spec == LublinFeitelson(umed=4.5, **texts)
    assert spec.generate(2000, 1).frame.equals(LublinFeitelson().generate(2000, 1).frame)


@pytest.mark.parametrize(
    "workload",
    [
        *map(read_workload, workload_names()),
        LublinFeitelson(64, pa=np.float64(-0.01)),
        CapabilityMix(64, 0.5, (ONE,)),
        CapabilityMix(64, 0.5, (ONE,), accuracy=(0.5, 0.9), limits=(90000,), hourly=(1.5,) * 24),
    ],
    ids=lambda workload: workload.title,
)
def test_a_spec_survives_a_round_trip(workload, tmp_path):
    write_workload(workload, tmp_path / "again.toml")
    again = read_workload(tmp_path / "again.toml")
    assert replace(again, title=workload.title) == workload


KEYS = st.from_regex(r"[a-z][a-z_0-9]*", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = TEXTS | st.booleans() | NUMBERS | st.lists(TEXTS | NUMBERS, max_size=3)
TABLES = st.dictionaries(KEYS, VALUES, max_size=3)


@given(
    st.dictionaries(KEYS, VALUES | TABLES, max_size=5),
    st.lists(st.dictionaries(st.sampled_from("abc"), st.floats(0, 1)), max_size=3),
)
def test_what_is_written_as_toml_reads_back_the_same(table, parts):
    table = {**table, "parts": parts}
    assert tomllib.loads(to_toml(table)) == table


@pytest.mark.parametrize(
    ("spec", "old", "new", "words"),
    [
        (ONE_CLASS, 'model = "hyper-erlang"', "", "model: missing; expected one of capability"),
        (ONE_CLASS, '"hyper-e', '"hyper', "unknown workload model 'hyperrlang'; did you mean"),
        (ONE_CLASS, "processors = 16", "", "processors: missing; expected processors"),
        (ONE_CLASS, "largest = 16", "largest = 17", r"classes\[1\].largest: 17; .* from 1 to 16"),
        (ONE_CLASS, "lambda1 = 0.1, ", "", r"classes\[1\].interarrival.lambda1: missing"),
        (ONE_CLASS, "order = 2", "order = 0", r"classes\[1\].service.order: 0; expected a whole"),
        (ONE_CLASS, "[[classes]]", "[classes]", r"classes: expected at least one table"),
        (ONE_CLASS, "smallest", "service = 5\nsmallest", "not TOML"),
        (ONE_CLASS, "largest", "sizes = [17]\nlargest", r"sizes: \[17\]; expected a list of whole"),
        (ONE_CLASS, "largest", "sizes = [9]\nweights = [1e308]\nlargest", "at most 1e.15, one per"),
        (ONE_CLASS, "largest", "share = 101\nlargest", "share: 101; expected a percentage"),
        (ONE_CLASS, "processors", "source = 5\nprocessors", "source: 5; expected a text"),
        (MIX, "load = 0.8", "load = 0", "load: 0; expected work that arrives over the machine's"),
        (MIX, "lowest = 0.1", "lowest = 0.95", "accuracy.lowest: 0.95; expected .* at most 0.9"),
        (MIX, "{ lowest = 0.1, highest = 0.9 }", "0.5", "accuracy: 0.5; expected a table"),
        (MIX, "[1800, 86400]", "[86400, 1800]", r"limits: .*; expected seconds as ascending whole"),
        (MIX, "[1800, 86400]", "[1800]", r"classes\[1\].longest: 86400; .* from 1 to 1800"),
        (MIX, "limits", "hourly = [1, 2]\nlimits", r"hourly: \[1, 2\]; expected 24 numbers above"),
        (MIX, "share = 100", "share = 99", "classes: shares add up to 99; expected 100"),
        (MIX, "median = 3600", "median = 1e6", r"classes\[1\].median: 1e.06; .* at most 86400"),
        (MIX, "share", "powers_of_two = 0.5\nshare", "no power of two from 33 to 63"),
        (LUBLIN, "processors = 9", "processors = 1", "processors: 1; .* of the machine from 2"),
        (LUBLIN, "uprob = 0.5", "uprob = 1.5", "uprob: 1.5; expected a probability from 0 to 1"),
        (LUBLIN, "uprob", "umed = 5\nuprob", "umed: 5; expected log2 of a size, from ulow to 3.17"),
        (LUBLIN, "uprob", "pow2_prob = 0.9\nuprob", "pow2_prob: 0.9; expected at most 1 - serial"),
        (LUBLIN, "uprob", "aarr = 99\nuprob", "aarr: 99; expected with barr a gamma distribution"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_place(spec, old, new, words, read, tmp_path):
    assert old in spec
    read(spec)
    with pytest.raises(InputError, match=words) as caught:
        read(spec.replace(old, new, 1))
    assert str(caught.value).startswith(str(tmp_path / "spec.toml"))


def test_sizes_are_read_with_or_without_weights_and_all_mistakes_are_told_at_once(read):
    assert read(ONE_CLASS + "sizes = [1, 16]").classes[0].weights == (1, 1)
    assert read(ONE_CLASS + "sizes = [1, 16]\nweights = [3, 0.5]").classes[0].weights == (3, 0.5)
    wrong = ONE_CLASS.replace("= 16", "= 0").replace("order = 2", "order = 0")
    with pytest.raises(InputError) as caught:
        read(wrong)
    assert len(caught.value.mistakes) == 3


def test_a_name_that_is_not_bundled_and_a_file_that_is_no_spec_are_told_apart(tmp_path):
    (tmp_path / "jobs.swf").touch()
    for name, said in (
        ("franke", "unknown workload 'franke'; did you mean"),
        (tmp_path / "jobs.swf", "whose name ends in"),
        (tmp_path / "absent.toml", "No such file"),
    ):
        with pytest.raises(InputError, match=said):
            read_workload(name)
    with pytest.raises(InputError, match="a name that ends in"):
        write_workload(read_workload("franke-1999"), tmp_path / "spec.txt")


def test_a_model_of_another_package_is_read_like_ours(read, monkeypatch):
    monkeypatch.setattr(registry.workloads, "_classes", dict(registry.workloads._classes))
    registry.workloads.register("twice")(type("Twice", (HyperErlangClasses,), {}))
    assert type(read(ONE_CLASS.replace("hyper-erlang", "twice"))).__name__ == "Twice"


JOBS = 3_000


@pytest.mark.parametrize("name", workload_names())
def test_a_longer_trace_begins_like_a_shorter_one_and_seeds_differ(name):
    workload = read_workload(name)
    trace = workload.generate(JOBS, 6)
    assert workload.generate(700, 6).frame.equals(trace.jobs(1, 700).frame)
    assert workload.generate(50, 1).submit.tolist() != workload.generate(50, 2).submit.tolist()


@pytest.mark.parametrize("name", workload_names())
def test_factors_scale_the_very_same_draws(name):
    workload = read_workload(name)
    base = workload.generate(JOBS, 5)
    slow = workload.generate(JOBS, 5, interarrival_factor=2.5)
    assert slow.processors.tolist() == base.processors.tolist()
    assert slow.runtime.tolist() == base.runtime.tolist()
    if name != "lublin-feitelson":  # whose daily cycle stays
        assert np.abs(slow.submit - 2.5 * base.submit).max() <= 2
    long = workload.generate(JOBS, 5, service_factor=3)
    assert long.submit.tolist() == base.submit.tolist()
    assert np.abs(long.runtime - 3.0 * base.runtime).max() <= 3
    if name == "blue-waters-like":  # whose requests are usual limits
        assert long.requested_time.tolist() == (3 * base.requested_time).tolist()


@pytest.mark.parametrize("name", ["franke-1999", "blue-waters-like"])
def test_a_change_of_one_class_leaves_the_jobs_of_others_alone(name):
    workload = read_workload(name)
    first, *others = workload.classes
    if name == "franke-1999":
        rates = tuple(9 * rate for rate in first.service.rates)
        changed = replace(first, service=replace(first.service, rates=rates))
    else:
        changed = replace(first, median=60.0)
    base = workload.generate(JOBS, 7)
    trace = replace(workload, classes=(changed, *others)).generate(JOBS, 7)
    assert trace.processors.tolist() == base.processors.tolist()
    untouched = base.processors > first.largest
    assert trace.runtime[untouched].tolist() == base.runtime[untouched].tolist()
    assert trace.runtime[~untouched].tolist() != base.runtime[~untouched].tolist()
