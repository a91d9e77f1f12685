"""The fit of a trace: which classes there are, what is said, and that the fit has the moments."""

import numpy as np
import pytest

from optsched.content import bundled
from optsched.errors import InputError
from optsched.traces.reading import read_trace
from optsched.traces.trace import Header, Trace
from optsched.workloads.hyper_erlang import fit_workload


@pytest.fixture(scope="module")
def sample_log():
    return read_trace(bundled("traces") / "samples" / "sample-256.swf")


def made(counts, machine=None, seed=1):
    """Return a trace with so many jobs of each size, at random times."""
    rng = np.random.default_rng(seed)
    sizes = rng.permutation(np.repeat(list(counts), list(counts.values())))
    submit = np.sort(rng.integers(0, 10**6, len(sizes)))
    runtime = rng.integers(1, 10**4, len(sizes))
    header = Header(() if machine is None else (("MaxProcs", str(machine)),))
    return Trace(np.arange(1, len(sizes) + 1), submit, runtime, runtime, sizes, header=header)


def ranges(fitted):
    return [(one.smallest, one.largest, one.jobs) for one in fitted.classes]


def test_classes_end_at_powers_of_two_and_at_the_machine_or_as_given():
    fitted = fit_workload(made({1: 40, 2: 40, 3: 40, 5: 50, 8: 10, 90: 40}, machine=100))
    assert ranges(fitted) == [(1, 1, 40), (2, 2, 40), (3, 4, 40), (5, 8, 60), (65, 100, 40)]
    assert fitted.notes == ()
    assert fitted.model.processors == 100
    trace = made({1: 40, 2: 40, 3: 40, 5: 50}, machine=100)
    assert ranges(fit_workload(trace, boundaries=[3, 6])) == [(1, 3, 120), (4, 6, 50)]
    with pytest.raises(InputError, match=r"boundaries: 4: 50 jobs are larger; .* at least 5"):
        fit_workload(trace, boundaries=[3, 4])


def test_small_classes_are_joined_and_that_is_said():
    fitted = fit_workload(made({1: 10, 2: 40, 4: 29, 16: 30, 32: 5}, machine=32))
    assert ranges(fitted) == [(1, 4, 79), (9, 32, 35)]
    assert fitted.notes == (
        "5 jobs of 17 to 32 processors are fewer than 30; "
        "joined with 30 jobs of 9 to 16 processors",
        "29 jobs of 3 to 4 processors are fewer than 30; joined with 40 jobs of 2 processors",
        "10 jobs of 1 processor are fewer than 30; joined with 69 jobs of 2 to 4 processors",
    )
    few = fit_workload(made({1: 3, 64: 3}, machine=64))
    assert ranges(few) == [(1, 64, 6)]


def test_each_class_has_the_moments_and_sizes_of_its_jobs():
    trace = made({1: 40, 3: 25, 4: 75}, machine=4)
    fitted = fit_workload(trace)
    one = fitted.model.classes[1]
    rows = trace.processors > 1
    gaps = np.diff(trace.submit[rows])
    for times, data in ((one.interarrival, gaps), (one.service, trace.runtime[rows])):
        for k in (1, 2, 3):
            assert times.moment(k) == pytest.approx((data.astype(float) ** k).mean(), rel=1e-9)
    mu4 = (trace.runtime[rows].astype(float) ** 4).mean()
    found = fitted.classes[1].service
    assert found.e4 == pytest.approx(100 * abs(one.service.moment(4) / mu4 - 1))
    assert found.matched == 3
    assert (one.sizes, one.weights) == ((3, 4), (25, 75))
    assert one.share == pytest.approx(100 * 100 / 140, abs=0.005)
    assert fit_workload(trace, sizes="uniform").model.classes[1].sizes == ()


def test_observed_sizes_keep_the_work_of_a_trace(sample_log):
    work = float((sample_log.runtime * sample_log.processors).sum())
    span = float(sample_log.submit.max() - sample_log.submit.min())
    rate = {}
    for sizes in ("observed", "uniform"):
        generated = fit_workload(sample_log, sizes=sizes).model.generate(100_000, 1)
        total = float((generated.runtime * generated.processors).sum())
        rate[sizes] = total / float(generated.submit[-1])
    assert rate["observed"] == pytest.approx(work / span, rel=0.05)
    assert rate["uniform"] != pytest.approx(work / span, rel=0.05)


def test_the_machine_is_the_stated_one_or_the_largest_job():
    trace = made({1: 40, 8: 40})
    fitted = fit_workload(trace)
    assert fitted.model.processors == 8
    assert fitted.notes == ("the trace states no machine; took 8 processors, its largest job",)
    smaller = fit_workload(trace, processors=4)
    assert ranges(smaller) == [(1, 1, 40)]
    assert smaller.notes == ("40 jobs left out: larger than the machine of 4 processors",)


def test_times_that_cannot_be_fitted_are_told():
    trace = made({1: 40, 2: 40}, machine=2)
    at_once = trace.changed(submit=np.where(trace.processors == 2, 5, trace.submit))
    with pytest.raises(InputError, match="2 processors, interarrival times: all are 0"):
        fit_workload(at_once)
    fitted = fit_workload(trace.changed(runtime=np.full(80, 60)))
    assert [one.service.matched for one in fitted.classes] == [1, 1]
    assert "1 processor, run times: nearly constant times" in fitted.notes[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"boundaries": [8, 8]}, "boundaries: '8,8'; expected ascending"),
        ({"boundaries": [4.5]}, "boundaries: '4.5'; expected ascending whole numbers"),
        ({"fewest": 1}, "fewest: 1; expected a whole number from 2"),
        ({"sizes": "all"}, "sizes: 'all'; expected observed or uniform"),
        ({"processors": 0}, "processors: 0; expected a whole number from 1"),
    ],
)
def test_options_out_of_range_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        fit_workload(made({1: 40}), **options)
    with pytest.raises(InputError, match="1 jobs that fit the machine; expected at least 2"):
        fit_workload(made({1: 1}))


@pytest.mark.parametrize("name", ["CTC-SP2-1996-3.1-cln", "SDSC-SP2-1998-4.2-cln"])
def test_real_logs_have_three_moments_that_can_be_matched(name, shared):
    trace = read_trace(shared(f"traces/{name}.swf.gz"))
    fitted = fit_workload(trace)
    parts = [part for one in fitted.classes for part in (one.interarrival, one.service)]
    assert all(part.matched == 3 for part in parts)
    generated = fitted.model.generate(len(trace), 1)
    # a renewal process has as many jobs in as long a time, on average
    assert generated.submit[-1] == pytest.approx(trace.submit[-1] - trace.submit[0], rel=0.1)
