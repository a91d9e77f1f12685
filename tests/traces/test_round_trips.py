"""Traces that are written and read again, in every format."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace, write_trace
from optsched.traces.requests import QUANTITIES, TEXTS
from optsched.traces.swf import FIELDS
from optsched.traces.trace import COLUMNS, Header, Trace


@pytest.mark.parametrize("suffix", ["swf", "parquet", "csv"])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_log_is_the_same_in_every_format_and_its_files_are_the_same_twice(
    tmp_path, small_swf, suffix, packed
):
    raw = read_trace(small_swf, clean=False)
    files = [tmp_path / f"{name}.{suffix}{packed}" for name in ("one", "two")]
    for path in files:
        assert write_trace(raw, path) == (path,)
    assert files[0].read_bytes() == files[1].read_bytes()
    again = read_trace(files[0], clean=False)
    assert again.frame.equals(raw.frame)
    assert (again.name, again.path) == ("one", files[0])
    assert clean(again).cleaning == clean(raw).cleaning
    if suffix != "csv":
        assert again.header == raw.header
        assert again.oddities == raw.oddities


@st.composite
def traces(draw, suffix):
    """Return a trace with what a format has a place for."""
    jobs = draw(st.integers(1, 5))

    def values(numbers):
        return np.array(draw(st.lists(numbers, min_size=jobs, max_size=jobs)))

    if suffix == "json":
        times = st.integers(1, 10**9) | st.floats(0.1, 1e9)
        columns = [values(of) for of in (times, times, times, st.integers(1, 10**6))]
        label = np.array(list("abcde"[:jobs])) if draw(st.booleans()) else None
        header = Header((("MaxProcs", "77"),))
        return Trace(np.arange(1, jobs + 1), *columns, header=header, label=label)
    columns = {}
    for field in FIELDS:
        largest = 2**53 if field.decimals or suffix == "csv" else 2**63 - 1
        numbers = st.integers(max(field.lowest, -largest), largest)
        if field.decimals and draw(st.booleans()):
            numbers = st.just(-1.0) | st.floats(0, 2**53, allow_subnormal=suffix != "swf")
        columns[field.column] = values(numbers)
    if suffix != "csv":
        key = st.sampled_from(["", "Note", "MaxProcs"])
        value = st.from_regex(r"[a-z0-9]{0,9}", fullmatch=True)
        columns["header"] = Header(tuple(draw(st.lists(st.tuples(key, value), max_size=4))))
    if suffix == "swf":
        return Trace(**columns)
    largest = 2**53 if suffix == "csv" else 2**63 - 1
    annotations = {
        name: values(st.integers(-1, quantity.highest or (2**53 if quantity.unit else largest)))
        for name, quantity in QUANTITIES.items()
        if draw(st.booleans())
    }
    annotations["eligible"] = values(st.just(-1.0) | st.floats(0, 2**53))
    annotations["weight"] = values(st.floats(allow_nan=False, allow_infinity=False))
    texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
    names = [*TEXTS]
    if suffix == "parquet":
        names.append("host")  # CSV does not tell a further column of empty texts from none
        annotations["file"] = values(st.integers(-(2**63), 2**63 - 1))
        columns["limits_hold"] = draw(st.booleans())
        for name, of in (("stated_time", st.integers(-1, 2**53)), ("label", texts)):
            columns |= {name: values(of)} if draw(st.booleans()) else {}
    named = {name: values(texts) for name in names if draw(st.booleans())}
    return Trace(**columns, annotations=annotations, texts=named)


@pytest.mark.parametrize("suffix", ["swf", "json", "parquet", "csv"])
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_every_trace_survives_a_round_trip(tmp_path, suffix, data):
    trace = data.draw(traces(suffix))
    write_trace(trace, tmp_path / f"a.{suffix}")
    again = read_trace(tmp_path / f"a.{suffix}", clean=False)
    for name in COLUMNS:
        written, read = getattr(trace, name), getattr(again, name)
        assert read.tolist() == written.tolist()
        assert suffix != "parquet" or read.dtype == written.dtype or (written == -1).all()
    for kind in ("annotations", "texts"):
        written, read = getattr(trace, kind), getattr(again, kind)
        assert read.keys() == written.keys()
        for name, column in written.items():
            assert read[name].tolist() == column.tolist()
    assert (again.label is None) == (trace.label is None)
    assert trace.label is None or again.label.tolist() == trace.label.tolist()
    assert (again.header, again.limits_hold) == (trace.header, trace.limits_hold)
