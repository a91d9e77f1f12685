"""Workload specs: what is bundled, that they survive a round trip, and what mistakes are told."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import registry
from optsched.content import bundled
from optsched.errors import InputError
from optsched.workloads.hyper_erlang import HyperErlangClasses
from optsched.workloads.lublin_feitelson import LublinFeitelson
from optsched.workloads.spec_file import read_workload, to_toml, workload_names, write_workload

ONE_CLASS = """
model = "hyper-erlang"
processors = 16
[[classes]]
smallest = 1
largest = 16
interarrival = { lambda1 = 0.1, lambda2 = 0.2, order = 1, p1 = 0.5 }
service = { lambda1 = 0.1, lambda2 = 0.2, order = 2, p1 = 0.5 }
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
    assert workload.description
    assert workload.source
    trace = workload.generate(100, 1)
    assert len(trace) == 100
    assert trace.name == name
    assert trace.processors.max() <= workload.processors


def test_the_page_of_the_bundled_specs_names_them_all():
    text = (bundled("workloads") / "README.md").read_text()
    assert all(f"| `{name}` |" in text for name in workload_names())


def test_the_published_values_are_the_defaults():
    spec = read_workload("lublin-feitelson")
    texts = {"description": spec.description, "source": spec.source, "title": spec.title}
    assert spec == LublinFeitelson(umed=4.5, **texts)
    assert spec.generate(2000, 1).frame.equals(LublinFeitelson().generate(2000, 1).frame)


@pytest.mark.parametrize("name", workload_names())
def test_a_spec_survives_a_round_trip(name, tmp_path):
    workload = read_workload(name)
    write_workload(workload, tmp_path / "again.toml")
    again = read_workload(tmp_path / "again.toml")
    assert replace(again, title=name) == workload


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z_0-9]*", fullmatch=True),
        st.recursive(
            st.one_of(
                st.text(st.characters(exclude_categories=["Cs"])),
                st.booleans(),
                st.integers(-(2**63), 2**63 - 1),
                st.floats(allow_nan=False, allow_infinity=False),
            ),
            lambda values: st.one_of(
                st.lists(values.filter(lambda v: not isinstance(v, dict)), max_size=3),
                st.dictionaries(st.from_regex(r"[a-z]+", fullmatch=True), values, max_size=3),
            ),
            max_leaves=5,
        ),
        max_size=5,
    ),
    st.lists(st.dictionaries(st.sampled_from("abc"), st.floats(0, 1)), max_size=3),
)
def test_what_is_written_as_toml_reads_back_the_same(table, parts):
    table = {**table, "parts": parts}
    assert tomllib.loads(to_toml(table)) == table


def test_numbers_of_numpy_are_written_as_numbers(tmp_path):
    workload = LublinFeitelson(64, pa=np.float64(-0.01))
    write_workload(workload, tmp_path / "spec.toml")
    assert replace(read_workload(tmp_path / "spec.toml"), title="") == workload


def test_sizes_are_read_with_or_without_weights(read):
    assert read(ONE_CLASS + "sizes = [1, 16]").classes[0].weights == (1, 1)
    assert read(ONE_CLASS + "sizes = [1, 16]\nweights = [3, 0.5]").classes[0].weights == (3, 0.5)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'model = "hyper-erlang"',
            "",
            "model: missing; expected one of capability-mix, hyper-erlang",
        ),
        ('"hyper-erlang"', '"hyper"', "unknown workload model 'hyper'; did you mean hyper-erlang"),
        ("processors = 16", "", "processors: missing; expected processors of the machine from 1"),
        ("processors = 16", "processors = 16.0", "processors: 16.0; expected processors"),
        ("smallest = 1", "smallest = 0", r"classes\[1\].smallest: 0; expected a whole number"),
        ("largest = 16", "largest = 17", r"classes\[1\].largest: 17; expected .* from 1 to 16"),
        ("smallest", "smalest", r"classes\[1\].smalest: unknown key 'smalest'; did you mean small"),
        ("lambda1 = 0.1, ", "", r"classes\[1\].interarrival.lambda1: missing"),
        ("order = 2", "order = 0", r"classes\[1\].service.order: 0; expected a whole number"),
        ("p1 = 0.5", "p2 = 0.5", r"classes\[1\].interarrival.p2: unknown key 'p2'"),
        (
            "[[classes]]",
            "[classes]",
            r"classes: expected at least one table, each under the heading \[\[",
        ),
        ("smallest", "service = 5\nsizes = 3\nsmallest", "not TOML"),
        ("largest = 16", "largest = 16\nsizes = [17]", r"sizes: \[17\]; expected a list of whole"),
        ("largest = 16", "largest = 16\nweights = [1]", r"weights: \[1\]; expected 0 numbers"),
        ("largest = 16", "largest = 16\nsizes = [1]\nweights = [0]", r"weights: \[0\]; expected 1"),
        (
            "largest = 16",
            "largest = 16\nsizes = [9]\nweights = [1e308]",
            "and at most 1e.15, one per size",
        ),
        ("largest = 16", "largest = 16\nshare = 101", "share: 101; expected a percentage"),
        ("largest = 16", "largest = 16\nshare = true", "share: True; expected a percentage"),
        ("processors", "source = 5\nprocessors", "source: 5; expected a text"),
    ],
)
def test_mistakes_are_told_with_their_place(old, new, words, read, tmp_path):
    assert old in ONE_CLASS
    with pytest.raises(InputError, match=words) as caught:
        read(ONE_CLASS.replace(old, new, 1))
    assert str(caught.value).startswith(str(tmp_path / "spec.toml"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("processors = 1", "processors: 1; expected processors of the machine from 2"),
        ("processors = 9\nuprob = 1.5", "uprob: 1.5; expected a probability from 0 to 1"),
        ("processors = 9\numed = 5", "umed: 5; expected log2 of a size, from ulow to 3.17"),
        ("processors = 9\nulow = -1", "ulow: -1; expected log2 of a size, from 0 to 3.17"),
        ("processors = 9\npow2_prob = 0.9", "pow2_prob: 0.9; expected at most 1 - serial_prob"),
        ("processors = 9\na2 = 3000", "a2: 3000; expected with b2 a gamma distribution not all"),
        ("processors = 9\naarr = 99", "aarr: 99; expected with barr a gamma distribution not"),
        ("processors = 9\nanum = 9000", "anum: 9000; expected with bnum some arrivals at all"),
        ("processors = 9\nbeta = 1", "beta: unknown key 'beta'"),
    ],
)
def test_mistakes_in_the_parameters_of_lublin_and_feitelson_are_told(line, words, read):
    with pytest.raises(InputError, match=words):
        read(f'model = "lublin-feitelson"\n{line}\n')


def test_all_mistakes_are_told_at_once(read):
    with pytest.raises(InputError) as caught:
        read(
            ONE_CLASS.replace("processors = 16", "processors = 0")
            .replace("smallest = 1", "smallest = 0")
            .replace("order = 2", "order = 0")
        )
    assert len(caught.value.mistakes) == 3


def test_a_name_that_is_not_bundled_and_a_file_that_is_no_spec_are_told_apart(tmp_path):
    with pytest.raises(InputError, match="unknown workload 'franke'; did you mean"):
        read_workload("franke")
    (tmp_path / "jobs.swf").touch()
    with pytest.raises(InputError, match="whose name ends in"):
        read_workload(tmp_path / "jobs.swf")
    with pytest.raises(InputError, match="No such file"):
        read_workload(tmp_path / "absent.toml")
    with pytest.raises(InputError, match="a name that ends in"):
        write_workload(read_workload("franke-1999"), tmp_path / "spec.txt")


def test_a_model_of_another_package_is_read_like_ours(read, monkeypatch):
    monkeypatch.setattr(registry.workloads, "_classes", dict(registry.workloads._classes))
    registry.workloads.register("twice")(type("Twice", (HyperErlangClasses,), {}))
    assert type(read(ONE_CLASS.replace("hyper-erlang", "twice"))).__name__ == "Twice"
