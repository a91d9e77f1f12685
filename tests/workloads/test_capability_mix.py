"""Generated capability mixes against their parameters, within the sampling error of those."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from optsched.errors import InputError
from optsched.traces.facts import facts
from optsched.workloads.capability_mix import CapabilityClass, CapabilityMix
from optsched.workloads.spec_file import read_workload, write_workload

TORUS = read_workload("blue-waters-like")
JOBS = 20_000
SEED = 3
SIGNIFICANCE = 1e-3
"""How likely it is that sampling alone breaks a test that looks at a new seed."""

HOUR = 3600


@pytest.fixture(scope="module")
def trace():
    return TORUS.generate(JOBS, SEED)


def of_class(trace, one):
    return (trace.processors >= one.smallest) & (trace.processors <= one.largest)


def simple(**changes):
    """Return a mix of one class, whose parameters are easy to see in a trace."""
    one = CapabilityClass(5, 64, 100.0, HOUR, 0.5, 4 * HOUR)
    mix = CapabilityMix(64, 0.5, (replace(one, **changes.pop("of_class", {})),))
    return replace(mix, **changes)


def test_every_class_has_its_share_of_the_jobs(trace):
    counts = [int(of_class(trace, one).sum()) for one in TORUS.classes]
    expected = [JOBS * one.share / 100 for one in TORUS.classes]
    assert stats.chisquare(counts, expected).pvalue > SIGNIFICANCE


def test_large_jobs_are_few_and_do_half_of_the_work(trace):
    work = {one: one.share * one.mean_size * one.mean_runtime for one in TORUS.classes}
    large = [one for one in TORUS.classes if one.smallest > 1024]
    assert sum(one.share for one in large) == pytest.approx(1)
    assert sum(work[one] for one in large) / sum(work.values()) == pytest.approx(0.525, abs=0.001)
    found = trace.processors > 1024
    amount = trace.processors * trace.runtime
    assert 0.008 < found.mean() < 0.012
    assert 0.4 < amount[found].sum() / amount.sum() < 0.65


def test_a_job_takes_no_more_than_blue_waters_had_for_each(trace):
    assert TORUS.mean_work / HOUR == pytest.approx(176, abs=0.5)
    assert TORUS.mean_work / HOUR < 26_864 * 1279 * 24 / 4.5e6
    assert TORUS.rate * 86400 == pytest.approx(3395, abs=1)


@pytest.mark.parametrize("load", [0.6, 0.9])
def test_the_load_is_that_of_the_spec(load):
    mix = replace(TORUS, load=load)
    trace = mix.generate(200_000, SEED)
    work = (trace.processors * trace.runtime).astype(float)
    # work and span vary, both like a sum of so many independent jobs
    error = load * math.sqrt(((work.std() / work.mean()) ** 2 + 1) / len(trace))
    assert abs(facts(trace)["offered_load"] - load) < stats.norm.isf(SIGNIFICANCE / 2) * error
    assert error < 0.03 * load


@pytest.mark.parametrize("one", TORUS.classes, ids=lambda one: str(one.smallest))
def test_the_expected_size_and_run_time_are_exact(one):
    sizes = np.arange(one.smallest, one.largest + 1)
    spread = np.log((sizes + 1) / sizes) / math.log((one.largest + 1) / one.smallest)
    powers = np.isin(sizes, one.powers) / max(len(one.powers), 1)
    probabilities = one.powers_of_two * powers + (1 - one.powers_of_two) * spread
    assert probabilities.sum() == pytest.approx(1)
    assert one.mean_size == pytest.approx(sizes @ probabilities)
    longer = stats.lognorm(one.sigma, scale=one.median).sf
    mean, _ = integrate.quad(longer, 0, one.longest, limit=200)
    assert one.mean_runtime == pytest.approx(mean, rel=1e-6)


def test_sizes_are_log_uniform():
    sizes = simple(of_class={"smallest": 3, "largest": 9}).generate(JOBS, SEED).processors
    expected = np.log1p(1 / np.arange(3, 10)) / math.log(10 / 3)
    counts = np.bincount(sizes, minlength=10)[3:]
    assert stats.chisquare(counts, JOBS * expected).pvalue > SIGNIFICANCE


def test_powers_of_two_are_preferred_alike():
    preferring = simple(of_class={"powers_of_two": 1.0})
    assert preferring.classes[0].powers == [8, 16, 32, 64]
    sizes, counts = np.unique(preferring.generate(JOBS, SEED).processors, return_counts=True)
    assert sizes.tolist() == [8, 16, 32, 64]
    assert stats.chisquare(counts).pvalue > SIGNIFICANCE
    assert CapabilityClass(1, 1, 100, 60, 1, 60).powers == [1]
    assert CapabilityClass(9, 15, 100, 60, 1, 60).powers == []


def test_run_times_are_log_normal_and_cut_at_the_longest():
    model = simple(of_class={"longest": 2 * HOUR})
    runtime = model.generate(JOBS, SEED).runtime
    assert runtime.max() == 2 * HOUR
    cut = stats.lognorm(0.5, scale=HOUR).sf(2 * HOUR)
    assert stats.binomtest(int((runtime == 2 * HOUR).sum()), JOBS, cut).pvalue > SIGNIFICANCE
    whole = simple(of_class={"longest": 1e6}).generate(JOBS, SEED).runtime
    fit = stats.kstest(np.log(whole / HOUR) / 0.5, "norm")
    assert fit.pvalue > SIGNIFICANCE


def test_arrivals_are_poisson():
    model = simple()
    drawn = model.draw(JOBS, SEED, 1.0, 1.0)
    gaps = np.diff(drawn.submit, prepend=0) * model.rate
    assert stats.kstest(gaps, "expon").pvalue > SIGNIFICANCE
    assert model.rate == pytest.approx(
        0.5 * 64 / (model.classes[0].mean_size * model.classes[0].mean_runtime)
    )


def test_requests_are_usual_limits_that_hold_the_job(trace):
    assert set(trace.requested_time.tolist()) == set(TORUS.limits)
    assert (trace.requested_time >= trace.runtime).all()
    for one in TORUS.classes:
        assert trace.requested_time[of_class(trace, one)].max() <= one.longest


def test_accuracy_is_uniform_where_nothing_is_rounded():
    longest = {"longest": 1e8}
    drawn = simple(accuracy=(0.2, 0.8), of_class=longest).draw(JOBS, SEED, 1.0, 1.0)
    accuracy = drawn.runtime / drawn.requested_time
    assert stats.kstest(accuracy, stats.uniform(0.2, 0.6).cdf).pvalue > SIGNIFICANCE
    exact = simple().generate(100, SEED)
    assert exact.requested_time.tolist() == exact.runtime.tolist()


def test_arrivals_follow_the_hours():
    hourly = tuple(float(1 + hour % 5) for hour in range(24))
    model = simple(hourly=hourly)
    submit = model.generate(JOBS, SEED).submit
    whole = submit[submit < submit[-1] // 86400 * 86400]
    counts = np.bincount(whole % 86400 // HOUR, minlength=24)
    expected = len(whole) * np.array(hourly) / sum(hourly)
    assert stats.chisquare(counts, expected).pvalue > SIGNIFICANCE
    assert abs(submit[-1] - simple().generate(JOBS, SEED).submit[-1]) < 86400


def test_factors_scale_the_very_same_draws(trace):
    slow = TORUS.generate(JOBS, SEED, interarrival_factor=2)
    assert slow.processors.tolist() == trace.processors.tolist()
    assert slow.runtime.tolist() == trace.runtime.tolist()
    assert np.abs(slow.submit - 2.0 * trace.submit).max() <= 1.5
    long = TORUS.generate(JOBS, SEED, service_factor=3)
    assert long.submit.tolist() == trace.submit.tolist()
    assert np.abs(long.runtime - 3.0 * trace.runtime).max() <= 2
    assert long.requested_time.tolist() == (3 * trace.requested_time).tolist()


def test_a_longer_trace_begins_like_a_shorter_one(trace):
    assert TORUS.generate(700, SEED).frame.equals(trace.jobs(1, 700).frame)
    assert TORUS.generate(50, 1).submit.tolist() != TORUS.generate(50, 2).submit.tolist()


def test_a_change_of_one_class_leaves_the_jobs_of_others_alone(trace):
    first, *others = TORUS.classes
    changed = replace(TORUS, classes=(replace(first, median=60.0), *others))
    again = changed.generate(JOBS, SEED)
    untouched = trace.processors > 1
    assert again.processors.tolist() == trace.processors.tolist()
    assert again.runtime[untouched].tolist() == trace.runtime[untouched].tolist()
    assert again.runtime[~untouched].tolist() != trace.runtime[~untouched].tolist()


def test_everything_optional_survives_a_round_trip(tmp_path):
    for model in (simple(), simple(accuracy=(0.5, 0.9), limits=(HOUR, 90000), hourly=(1.5,) * 24)):
        write_workload(model, tmp_path / "mix.toml")
        assert replace(read_workload(tmp_path / "mix.toml"), title="") == model


SPEC = """\
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


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("processors = 64", "", "processors: missing; expected processors of the machine from 1"),
        ("load = 0.8", "load = 0", "load: 0; expected work that arrives over the machine's, above"),
        ("load = 0.8", "", "load: missing; expected work that arrives"),
        ("load = 0.8", "load = 0.8\nlaod = 1", "laod: unknown key 'laod'; did you mean load"),
        ("lowest = 0.1", "lowest = 0", "accuracy.lowest: 0; expected run time over requested"),
        ("lowest = 0.1", "lowest = 0.95", "accuracy.lowest: 0.95; expected .* at most 0.9, the hi"),
        ("highest = 0.9", "highest = 2", "accuracy.highest: 2; expected run time over requested"),
        ("lowest = 0.1, ", "least = 1, ", "accuracy.least: unknown key 'least'"),
        ("{ lowest = 0.1, highest = 0.9 }", "0.5", "accuracy: 0.5; expected a table of lowest"),
        ("[1800, 86400]", "[86400, 1800]", r"limits: \[86400, 1800\]; expected seconds as ascend"),
        ("[1800, 86400]", "[0.5]", r"limits: \[0.5\]; expected seconds as ascending whole"),
        ("[1800, 86400]", "[1800]", r"classes\[1\].longest: 86400; expected .* from 1 to 1800"),
        ("limits =", "hourly = [1, 2]\nlimits =", r"hourly: \[1, 2\]; expected 24 numbers above"),
        ("smallest = 33", "smallest = 0", r"classes\[1\].smallest: 0; expected a whole number"),
        ("largest = 63", "largest = 65", r"classes\[1\].largest: 65; expected .* from 33 to 64"),
        ("share = 100", "share = 99", "classes: shares add up to 99; expected 100"),
        ("share = 100", "share = 0", r"classes\[1\].share: 0; expected a percentage of the jobs"),
        ("median = 3600", "median = 1e6", r"classes\[1\].median: 1e.06; expected at most 86400"),
        ("sigma = 1.3", "sigma = 0", r"classes\[1\].sigma: 0; expected a standard deviation"),
        ("sigma = 1.3", "sigma = 1\nsize = 3", r"classes\[1\].size: unknown key 'size'"),
        ("share", "powers_of_two = 0.5\nshare", r"powers_of_two: no power of two from 33 to 63"),
        ("share", "powers_of_two = 1.5\nshare", r"powers_of_two: 1.5; expected a probability"),
    ],
)
def test_mistakes_are_told_with_their_place(old, new, words, tmp_path):
    assert old in SPEC
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    assert read_workload(path).load == 0.8
    path.write_text(SPEC.replace(old, new, 1))
    with pytest.raises(InputError, match=words) as caught:
        read_workload(path)
    assert str(caught.value).startswith(str(path))


def test_a_mix_without_classes_is_refused():
    with pytest.raises(InputError, match="classes: expected at least one table"):
        CapabilityMix(64, 0.5, ())
