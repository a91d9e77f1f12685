import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.sites.slurm_notation import (
    LONGEST_NAME,
    MOST_CHARACTERS,
    host_list,
    hosts,
    hosts_of,
    number_of_hosts,
    read_together,
)

NAMES = st.builds(
    lambda prefix, number, width: f"{prefix}{str(number).zfill(width) if width else ''}",
    st.sampled_from(["c", "gpu-", "r1n", "login", "é"]),
    st.integers(0, 30),
    st.integers(0, 4),
)


@given(st.lists(NAMES, max_size=40))
def test_written_and_read_again_the_names_are_the_same(names):
    assert sorted(hosts_of(host_list(names))) == sorted(set(names))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("c[08-10,12]", ["c08", "c09", "c10", "c12"]),
        ("c[1-2]-ib,m1", ["c1-ib", "c2-ib", "m1"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("c[098-101]", ["c098", "c099", "c100", "c101"]),
    ],
)
def test_lists_as_slurm_reads_them(text, names):
    assert hosts_of(text) == names


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["c3", "c1", "c2", "c1"], "c[1-3]"),
        (["c01", "c02", "c04"], "c[01-02,04]"),
        (["c9", "c10"], "c[9-10]"),
        (["m1", "login"], "login,m1"),
    ],
)
def test_lists_as_slurm_writes_them(names, text):
    assert host_list(names) == text


@pytest.mark.parametrize(
    "text", ["c[1-", "c[a-b]", "c]", ",c", "c,", "c,,d", "c[2-1]", "c[]", "c d"]
)
def test_what_is_no_host_list_is_refused(text):
    with pytest.raises(InputError, match="expected"):
        hosts_of(text)


def test_a_list_of_too_many_hosts_is_refused_before_it_is_made():
    for text in ("c[1-999999999999999]", "c[1-2000]x[1-2000]"):
        with pytest.raises(InputError, match="at most 1,000,000 hosts"):
            hosts_of(text)


def test_names_have_a_longest_length_and_need_not_be_written_out_to_be_counted():
    fits = "n[1-9]" + "x" * (LONGEST_NAME - 2)
    assert len(hosts_of(fits)) == 9
    with pytest.raises(InputError, match=rf"a name has 256; expected .* {LONGEST_NAME} characters"):
        hosts_of(fits.replace("9", "10"))
    long = "/dev/[0-9]" + "x" * 10**6
    assert number_of_hosts(f"{long},b[1-3][1-3]") == 19


@pytest.mark.parametrize(
    "text",
    [
        "a" + "[1]" * 1000,
        "a[" + "1," * 10**6 + "1]",
        pytest.param("a," * 10**6 + "a", marks=pytest.mark.long),
    ],
)
def test_lists_of_many_parts_are_refused(text):
    for read in (hosts_of, number_of_hosts):
        with pytest.raises(InputError, match="expected"):
            read(text)


def test_the_characters_of_all_lists_that_are_read_together_are_bounded():
    text = "n[0000001-1000000]"
    lists = MOST_CHARACTERS // (9 * 10**6)
    with read_together():
        for _ in range(lists):
            hosts_of(text)
        with pytest.raises(InputError, match=r"at most 33,554,432 characters of all host lists"):
            hosts_of(text)
    with read_together():
        assert hosts("c[1-2],b") == ("c1", "c2", "b")
        with read_together():  # within another reading, it counts towards that
            assert hosts("c[1-2]") is hosts("c[1-2]")
    assert len(hosts_of(text)) == 10**6
