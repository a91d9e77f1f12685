import pickle

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.traces.cleaning import clean
from optsched.traces.trace import COLUMNS, Header, Trace
from optsched.traces.transformations import scale_trace


def make(jobs=5, **columns):
    numbers = np.arange(1, jobs + 1)
    given = {"job_id": numbers, "submit": 10 * numbers, "runtime": np.full(jobs, 60)}
    given |= {"requested_time": np.full(jobs, 100), "processors": numbers}
    return Trace(**(given | columns))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"runtime": np.ones(4, int)}, "runtime: shape .4,.; expected .5,."),
        ({"runtime": np.array([1, 2, 3, 4, np.nan])}, "runtime: not all numbers are finite"),
        ({"wait": np.full(5, 2.0**53 + 2)}, "wait: 9007199254740994.0; expected .* at most 2.53"),
        ({"processors": np.ones(5)}, "processors: type float64; expected integers"),
        ({"runtime": np.array(list("abcde"))}, "runtime: type .*; expected numbers"),
        ({"label": np.array(["a"])}, "label: 1 values for 5 jobs"),
        ({"annotations": {"file": np.ones(4, int)}}, "file: shape .4,.; expected .5,."),
        ({"annotations": {"user": np.ones(5, int)}}, "annotations: 'user'; expected a word"),
        ({"annotations": {"two words": np.ones(5, int)}}, "expected a word"),
        ({"texts": {"user_name": ["a"] * 4 + ["\ud800"]}}, "user_name: half of a surrogate pair"),
    ],
)
def test_wrong_columns_are_refused(columns, message):
    with pytest.raises(InputError, match=message):
        make(**columns)


def test_jobs_counts_from_one_with_both_ends():
    trace = make(label=np.array(list("abcde")))
    assert trace.jobs(2, 4).label.tolist() == ["b", "c", "d"]
    assert trace.jobs(5, 5).job_id.tolist() == [5]
    assert trace.jobs(4).job_id.tolist() == [4, 5]
    assert trace.jobs().frame.equals(trace.frame)
    for first, last in ((0, 3), (4, 3), (1, 6), (6, 6), (-1, 2)):
        with pytest.raises(InputError, match="expected FROM:TO with 1 <= FROM <= TO <= 5"):
            trace.jobs(first, last)


def test_select_takes_rows_in_the_order_given():
    trace = make(name="toy", header=Header((("MaxProcs", "9"),)))
    chosen = trace.select(np.array([3, 0]))
    assert chosen.job_id.tolist() == [4, 1]
    assert chosen.wait.tolist() == [-1, -1]
    assert (chosen.name, chosen.header) == ("toy", trace.header)
    assert trace.select(trace.processors > 3).job_id.tolist() == [4, 5]


def test_unknown_columns_take_no_memory():
    one = np.arange(1, 1001)
    trace = Trace(one, one, one, one, one)
    assert trace.stated_time.tolist() == one.tolist()
    for part in (trace, trace.select(one[::-2] - 1), trace.select(one > 7), trace.jobs(3, 900)):
        assert part.user.strides == part.memory.strides == (0,)
        assert part.user.tolist() == [-1] * len(part)


def test_annotations_go_with_their_jobs_and_cannot_be_changed():
    bandwidth = np.array([0.5, 1, 2, 4, 8], dtype=np.float32)
    annotations = {"file": np.arange(5, dtype=np.int32), "bandwidth": bandwidth}
    mine = np.full(5, 60)
    trace = make(runtime=mine, annotations=annotations, sha256="of a file", published="a log")
    assert trace.annotations["file"].dtype == np.int64
    assert trace.annotations["bandwidth"].dtype == np.float64
    for column in (trace.runtime, trace.annotations["file"]):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    mine[0] = 61  # what the caller has can be changed
    other = trace.annotated(file=np.zeros(5, int), load=np.ones(5))
    assert (other.sha256, other.published) == (None, None)
    assert list(other.annotations) == ["file", "bandwidth", "load"]
    assert other.annotations["file"].tolist() == [0] * 5
    assert trace.select(np.array([3, 0])).annotations["file"].tolist() == [3, 0]
    assert trace.jobs(2, 3).annotations["bandwidth"].tolist() == [1, 2]
    assert clean(trace.select(slice(None, None, -1))).annotations["file"].tolist() == [*range(5)]
    assert scale_trace(trace, 10, processors=5).trace.annotations["file"].tolist() == [*range(5)]
    assert list(trace.frame.columns) == [*COLUMNS, "file", "bandwidth"]
    assert list(make(label=np.array(list("abcde"))).frame.columns) == [*COLUMNS, "label"]
    assert pickle.loads(pickle.dumps(trace)).frame.equals(trace.frame)


def test_shown_forms_tell_what_it_is():
    trace = make(name="a<b", header=Header((("MaxProcs", "1152"),)))
    assert repr(trace) == "<Trace a<b: 5 jobs, raw>"
    shown = trace._repr_html_()
    assert all(text in shown for text in ("a&lt;b", "1,152 processors", "<td>1 to 5</td>"))
    assert "jobs" in trace.select(slice(0, 0))._repr_html_()
