import gzip
import re
import tracemalloc
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from optsched import files
from optsched.errors import InputError
from optsched.text_files import LONGEST_LINE
from optsched.traces.reading import read_trace, write_trace
from optsched.traces.swf import FIELDS, StandardWorkloadFormat, read_swf
from optsched.traces.trace import Header

NO_LIMIT = np.iinfo(np.int64).min


def write(tmp_path, text, name="a.swf"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_small_trace_is_read_as_it_stands(small_swf):
    trace = read_swf(small_swf)
    assert (trace.name, trace.path, trace.cleaning) == ("small", small_swf, None)
    assert trace.job_id.tolist() == [1, 2, 3, 5, 4, 6, 7, 8]
    assert trace.runtime.tolist() == [100, 0, 50, 60, 70, -1, 10, 10]
    assert trace.runtime.dtype == np.int64
    assert trace.average_cpu_time.tolist() == [90.5, -1, -1, -1, -1, -1, -1, -1]
    head = trace.header
    assert (head.max_procs, head.max_nodes, head.unix_start_time) == (32, 16, 100)
    assert trace.header.values("Note") == ["the first note, in two lines", "the second note"]
    assert trace.oddities == {
        "jobs submitted before the job above": 2,
        "jobs with a status that SWF does not define": 1,
    }


def test_headers_in_latin_1_and_behind_a_byte_order_mark_are_read(tmp_path, swf_line):
    text = "; Acknowledge: Jos\xe9\r\n" + swf_line(1)
    for data in (text.encode("latin-1"), text.encode(), text.encode("utf-8-sig")):
        assert read_swf(write(tmp_path, data)).header.values("Acknowledge") == ["Jos\xe9"]


def test_odd_lines_are_read_and_counted(tmp_path, swf_line):
    jobs = swf_line(1, c11=2), swf_line(1, c11=-9), swf_line(2, c11=271)
    trace = read_swf(write(tmp_path, "{}\n; between\n{}\n;\n{}\n; end".format(*jobs)))
    assert trace.status.tolist() == [2, -9, 271]
    assert trace.oddities == {
        "job numbers used before": 1,
        "lines with status 2 to 4, in SWF parts of checkpointed jobs": 1,
        "jobs with a status that SWF does not define": 2,
        "comment lines between jobs": 3,
    }


@pytest.mark.parametrize(
    ("column", "word", "message"),
    [
        (1, "-1", "job number (column 1): '-1'; expected an integer of at least 0"),
        (5, "x", "allocated processors (column 5): 'x'; expected an integer of at least 0, or -1"),
        (9, "nan", "requested time (column 9): 'nan'; expected a number"),
        (18, str(2**53 + 1), f"(column 18): '{2**53 + 1}'; expected a number of at most 2^53"),
        (13, "9" * 60, f"group (column 13): '{'9' * 30}...'; expected an integer below 2^63"),
        (8, "5\x0b6", "requested processors (column 8): '5\\x0b6'"),
    ],
)
def test_wrong_words_are_named_with_line_and_column(
    tmp_path, swf_line, refusal, column, word, message
):
    lines = ["; a header", "", swf_line(1), swf_line(2, **{f"c{column}": word}), swf_line(3)]
    said = refusal(write(tmp_path, "\n".join(lines)))
    assert said.startswith(", line 4, ")
    assert message in said


@pytest.mark.parametrize("columns", [1, 17, 36])
def test_lines_of_another_length_and_those_of_alea_are_named(tmp_path, swf_line, refusal, columns):
    words = (swf_line(2) + " " + swf_line(3)).split()[:columns]
    path = write(tmp_path, "\n".join([swf_line(1), " ".join(words), swf_line(4)]))
    assert refusal(path) == f", line 2: {columns} columns; expected 18"
    path = write(tmp_path, swf_line(0, c4=9) + " {12,12} q_1d 1:ppn=2:x86")
    alea = ", line 1: 21 columns; expected 18; the extended SWF of Alea"
    assert refusal(path).startswith(alea)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b" \r\n\n", "the file is empty"),
        (b"; only\n; comments\n", "only comments"),
        (b"\x7fELF\x02\x01\0\0\0", "not text"),
        ("1 2 3".encode("utf-16"), "not text"),
        (b"\x89\xff\xfe\n", r"line 1, job number .column 1.: '.x89ÿþ'; expected an integer"),
        (b"hello world\n", "line 1, job number .column 1.: 'hello'"),
    ],
)
def test_what_is_no_swf_is_refused(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        read_swf(write(tmp_path, content))


def test_what_the_format_has_no_place_for_is_noted(small_swf, tmp_path):
    raw = replace(read_swf(small_swf), limits_hold=True, label=np.array(list("abcdefgh")))
    write_trace(raw.annotated(file=np.arange(8), nodes=np.arange(8)), tmp_path / "a.swf")
    names, lost, limits = read_swf(tmp_path / "a.swf").header.values("Note")[-3:]
    assert "names" in names
    assert lost == "file, nodes of the jobs are not part of this format"
    assert limits == "jobs end at their requested time, even those with a longer run time"


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("submit", np.full(8, -2), "submit time: -2 for the job in row 1; expected a number of at"),
        ("runtime", np.full(8, -0.5), "run time: -0.5 for the job in row 1"),
        ("job_id", np.full(8, -1), "job number: -1 for the job in row 1; expected an integer of"),
        ("header", Header((("Note", "one\n1 2 3"),)), "line break"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, small_swf, column, value, message):
    trace = replace(read_swf(small_swf), **{column: value})
    with pytest.raises(InputError, match=message):
        write_trace(trace, tmp_path / "b.swf")
    assert not (tmp_path / "b.swf").exists()


# The parser against a plain reading of the format, written without it.

WORD = {False: re.compile(r"-?[0-9]+"), True: re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)")}


def plain_reading(text: bytes):
    """Return the columns of an SWF text as numbers, or (line, column) of its first mistake."""
    rows = []
    for number, line in enumerate(text.split(b"\n"), 1):
        words = [word for word in re.split(r"[ \t\r]+", line.decode("latin-1")) if word]
        if not words or words[0].startswith(";"):
            continue
        for column, (field, word) in enumerate(zip(FIELDS, words)):
            if not WORD[field.decimals].fullmatch(word):
                return number, column
            value = Decimal(word)
            if abs(value) > (2**53 if field.decimals else 2**63 - 1):
                return number, column
            if field.lowest != NO_LIMIT and value < 0 and not value == field.lowest == -1:
                return number, column
        if len(words) != len(FIELDS):
            return number, None
        rows.append(words)
    return [
        [float(word) if any("." in other for other in column) else int(word) for word in column]
        for column in zip(*rows)
    ]


decimal_texts = st.from_regex(r"-?[0-9]{0,12}\.[0-9]{0,20}", fullmatch=True)


@st.composite
def job_lines(draw):
    words = [draw(st.integers(0, 10**6).map(str))]
    for field in FIELDS[1:]:
        common = st.just("-1") | st.integers(-1, 10**6).map(str)
        words.append(draw(common | decimal_texts if field.decimals else common))
    return draw(st.sampled_from([" ", "  ", "\t", " \t "])).join(words)


@st.composite
def corrupted_texts(draw):
    lines = draw(st.lists(job_lines() | st.sampled_from(["", "; note", " ;x", "\r"]), max_size=4))
    text = bytearray(draw(st.sampled_from(["\n", "\r\n"])).join(lines).encode())
    alphabet = b"0123456789-.; \t\r\n+eEnaifx_,\x0b\x0c\xa0\xff"
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(text)))
        length = draw(st.integers(0, 2))
        text[place : place + length] = bytes(draw(st.lists(st.sampled_from(alphabet), max_size=3)))
    return bytes(text)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=corrupted_texts())
@example(text=b"1 " + b"-1 " * 15 + b"9223372036854775807 9007199254740992")
@example(text=b"1 -1. .0 -.0 " + b"-1 " * 14)
@example(text=b"1 -1 -1 -1 -1 . " + b"-1 " * 12)
@example(text=b"1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 --5 " + b"-1 " * 6)
@example(text=b"1 -1.00000000000000000000000 " + b"-1 " * 16)
@example(text=b"1 -1.00000000000000000000001 " + b"-1 " * 16)
@example(text=b"1 9007199254740991.9 " + b"-1 " * 16)
@example(text=b"1 9007199254740992.1 " + b"-1 " * 16)
@example(text=b"-0 -0 -0.0 " + b"-1 " * 15)
@example(text=b"1 0.1234567890123456789 9007199254740991.75 0." + b"3" * 600 + b" -1" * 14)
def test_the_parser_accepts_exactly_what_a_plain_reading_accepts(tmp_path, text):
    path = write(tmp_path, text)
    expected = plain_reading(text)
    if isinstance(expected, list) and expected:
        trace = read_swf(path)
        assert [getattr(trace, field.column).tolist() for field in FIELDS] == expected
        return
    with pytest.raises(InputError) as caught:
        read_swf(path)
    line, column = expected or (None, None)
    assert caught.value.line == line
    if column is not None:
        assert f"(column {column + 1})" in caught.value.field
    elif line is not None:
        assert "columns; expected 18" in str(caught.value)


@pytest.fixture
def read_at_once(monkeypatch):
    """Return a function that sets how many bytes are read at once."""
    read = files.Content.read

    def set_size(size):
        monkeypatch.setattr(files.Content, "read", lambda content: read(content, size))

    return set_size


@pytest.mark.parametrize("size", [4, 5, 64, 333])
def test_pieces_make_no_difference(tmp_path, small_swf, swf_line, read_at_once, size):
    between = f"; one\n\n{swf_line(20, c2='0.5', c4='0.1234567890123456789')}\n \n;two"
    path = write(tmp_path, b"\xef\xbb\xbf" + small_swf.read_bytes() + between.encode())
    whole = read_swf(path)
    assert whole.submit.dtype == np.float64
    line = StandardWorkloadFormat.line_of(path, 20)
    read_at_once(size)
    again = read_swf(path)
    assert again.frame.equals(whole.frame)
    assert again.oddities["comment lines between jobs"] == 2
    for name in ("header", "oddities", "sha256"):
        assert getattr(again, name) == getattr(whole, name)
    assert StandardWorkloadFormat.line_of(path, 20) == line


@pytest.mark.parametrize("size", [4, 7, 1000])
def test_a_mistake_is_found_in_its_line_whatever_is_read_at_once(
    tmp_path, swf_line, read_at_once, size
):
    lines = ["; MaxProcs: 4", "", swf_line(1), "; between", "  ", swf_line(2, c5="1_0")]
    path = write(tmp_path, "\n".join(lines))
    read_at_once(size)
    with pytest.raises(InputError, match=r"line 6, allocated processors \(column 5\): '1_0'"):
        read_swf(path)
    for text, message in (("\n \n", "is empty"), ("\n;\n", "only comments"), ("1\0", "not text")):
        with pytest.raises(InputError, match=message):
            read_swf(write(tmp_path, text))


@pytest.mark.parametrize("filling", [b"\n", b" \n", b"; comment\n"])
def test_blank_lines_and_comments_cost_no_memory(tmp_path, swf_line, filling):
    read_swf(write(tmp_path, swf_line(1)))  # loads the kernels
    job = swf_line(1).encode() + b"\n"
    path = write(tmp_path, gzip.compress(job + filling * (2**25 // len(filling)) + job))
    tracemalloc.start()
    try:
        assert len(read_swf(path)) == 2
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


def test_what_is_no_text_of_lines_is_refused(tmp_path, swf_line):
    for text, message in (
        (swf_line(1) + "\n" + " " * (LONGEST_LINE + 5_000_000), "line 2: is too long"),
        ("; x\n" * 400_000 + swf_line(1), r"line \d+: the header is longer than 1 MiB"),
    ):
        with pytest.raises(InputError, match=message):
            read_swf(write(tmp_path, text))


@pytest.mark.parametrize(
    ("key", "number"),
    [("Maxprocs", "1000000001"), ("MaxNodes", "9" * 400), ("UnixStartTime", str(2**53 + 1))],
)
def test_numbers_of_a_header_that_mean_nothing_are_refused(tmp_path, swf_line, key, number):
    head = f"; Note: 12345678901234567890\n\n; MaxJobs: {number}\n; {key}Of: {number}\n"
    assert len(read_swf(write(tmp_path, head + swf_line(1)))) == 1
    path = write(tmp_path, f"{head}; {key}: {number}\n{swf_line(1)}")
    with pytest.raises(InputError, match=f"line 5, {key}: {number}; expected at most"):
        read_swf(path)


def test_negative_times_are_unknown_on_request_and_counted(tmp_path, swf_line):
    lines = [swf_line(1, c2=0, c3=-3590, c4=9, c5=1), swf_line(2, c2=0, c4=-90.5, c5=1)]
    path = write(tmp_path, "\n".join([*lines, swf_line(3, c3=-1)]))
    with pytest.raises(InputError, match=r"wait time.*as trace convert --unknown-negative reads"):
        read_trace(path, clean=False)
    trace = read_trace(path, clean=False, unknown_negative=True)
    assert trace.wait.tolist()[::2] == [-1, -1]
    assert trace.runtime.tolist()[1] == -1
    counts = {what: number for what, number in trace.oddities.items() if "negative" in what}
    assert counts == {
        "jobs with a negative wait time, read as unknown": 1,
        "jobs with a negative run time, read as unknown": 1,
    }
    assert read_trace(path, unknown_negative=True).cleaning.dropped_runtime == 2
    csv = write(tmp_path, "submit,runtime,processors\n0,1,1\n", "a.csv")
    count = write(tmp_path, swf_line(1, c5=-2), "count.swf")
    for other, said in ((count, "allocated processors"), (csv, "csv has no negative times")):
        with pytest.raises(InputError, match=said):
            read_trace(other, unknown_negative=True)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *(("338 (batch partition; 512 total)", 338), ("3600\t # deprecated", 3600)),
        *(("-28800", -28800), ("N/A", None), ("", None), ("1,024", None)),
        *(("1.5", None), ("12x", None)),
    ],
)
def test_numbers_are_read_tolerantly_but_never_guessed(value, number):
    assert Header.from_comments([f" TimeZone: {value}"]).number("TimeZone") == number


def test_order_and_repeated_keys_are_kept():
    comments = [" Version: 2.2", "   --- converted ---", "Note: one", "  goes on", "\tand on", ""]
    header = Header.from_comments([*comments, "  1  2  3", "Note: two"])
    assert [key for key, _ in header.lines] == ["Version", "", "Note", "", "", "", "", "Note"]
    version, *notes = header.facts  # an empty line ends a value
    assert version == ("Version", "2.2 --- converted ---")
    assert notes == [("Note", "one goes on and on"), ("Note", "two")]
    assert header.values("note") == ["one goes on and on", "two"]


def test_what_is_not_a_fact_is_a_plain_line():
    texts = ["see: http://example.org/", "http://example.org/", " 1|  2|", "Two words: x"]
    texts += ["Time:12:00"]
    assert Header.from_comments(texts).lines == tuple(("", text) for text in texts)


def test_of_repeated_keys_the_first_number_counts():
    header = Header.from_comments(["MaxNodes: N/A", "MaxNodes: 57", "MaxNodes: 58"])
    assert (header.max_nodes, header.max_procs, header.unix_start_time) == (57, None, None)
    assert Header.from_comments(["MaxProcs: 0"]).max_procs is None  # a machine has a processor
