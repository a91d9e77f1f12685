from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.sites.host_lists import host_list, hosts_of

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
        ("login", ["login"]),
        ("c[1-3]", ["c1", "c2", "c3"]),
        ("c[08-10,12]", ["c08", "c09", "c10", "c12"]),
        ("c[1-2]-ib,m1", ["c1-ib", "c2-ib", "m1"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("c[098-101]", ["c098", "c099", "c100", "c101"]),
        ("c[98-101]", ["c98", "c99", "c100", "c101"]),
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
        (["c09", "c10", "c11"], "c[09-11]"),
        (["c9", "c10"], "c[9-10]"),
        (["m1", "c1"], "c1,m1"),
        (["a1", "login"], "a1,login"),
    ],
)
def test_lists_as_slurm_writes_them(names, text):
    assert host_list(names) == text


@pytest.mark.parametrize(
    "text", ["c[1-", "c[a-b]", "c[1-3", "c]", ",c", "c,", "c,,d", "c[2-1]", "c[]", "c d"]
)
def test_what_is_no_host_list_is_refused(text):
    with pytest.raises(InputError, match="expected"):
        hosts_of(text)


def test_a_list_of_too_many_hosts_is_refused_before_it_is_made():
    with pytest.raises(InputError, match="at most 1,000,000 hosts"):
        hosts_of("c[1-999999999999999]")
    with pytest.raises(InputError, match="at most 1,000,000 hosts"):
        hosts_of("c[1-2000]x[1-2000]")
