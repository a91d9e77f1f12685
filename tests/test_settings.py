from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Optional

import pytest

from optsched.errors import InputError
from optsched.settings import configure, has_plain_settings, read_settings


@dataclass
class Limited:
    cap: int | None = None
    share: Optional[float] = 0.5  # noqa: UP045 (as older code has it)


@dataclass
class Listed:
    names: list[str] = field(default_factory=list)


@dataclass
class Thing:
    count: int = 1
    share: float = 0.5
    loud: bool = False
    kind: Literal["a", "b"] = "a"
    word: str = ""


def test_settings_are_read_as_the_type_of_their_field():
    given = ["count=3", "share=1e-2", "loud=yes", "kind=b", "word=x=y"]
    thing = configure(Thing, read_settings(given), "thing")
    assert thing == Thing(3, 0.01, True, "b", "x=y")
    assert configure(Thing, {"count": 4, "share": 1}, "thing") == Thing(4, 1.0)
    for wrong, message in (
        (["count=2.5"], "count of thing: '2.5'; expected a whole number"),
        (["loud=perhaps"], "expected yes or no"),
        (["kind=c"], "expected one of a, b"),
        (["coutn=2"], "did you mean count"),
        (["count"], "expected KEY=VALUE"),
        (["count=1", "count=2"], "given twice"),
    ):
        with pytest.raises(InputError, match=message):
            configure(Thing, read_settings(wrong), "thing")
    for wrong_value in (2.5, float("inf"), float("nan")):
        with pytest.raises(InputError, match="expected a whole number"):
            configure(Thing, {"count": wrong_value}, "thing")
    for text in ("1_0", "٣", " 1", "0x1"):
        for name in ("count", "share"):
            with pytest.raises(InputError, match=f"{name} of thing: '{text}'; expected a "):
                configure(Thing, {name: text}, "thing")
    for text in ("nan", "inf", "1e999"):
        with pytest.raises(InputError, match="expected a number"):
            configure(Thing, {"share": text}, "thing")


def test_a_setting_is_a_number_that_means_something():
    assert configure(Thing, {"count": 2**53, "share": -(2.0**53)}, "thing").count == 2**53
    for name, value in (
        ("count", 2**53 + 1),
        ("count", "99999999999999999999"),
        ("share", "1e30"),
        ("share", -1e30),
    ):
        with pytest.raises(InputError, match=f"{name} of thing: .*; expected a number of at most"):
            configure(Thing, {name: value}, "thing")


def test_a_setting_may_be_none():
    assert configure(Limited, {"cap": "5", "share": "None"}, "thing") == Limited(5, None)
    assert configure(Limited, {"cap": None}, "thing") == Limited(None, 0.5)
    with pytest.raises(InputError, match="cap of thing: 'x'; expected a whole number"):
        configure(Limited, {"cap": "x"}, "thing")


def test_a_setting_that_no_text_states_is_refused_by_name():
    assert has_plain_settings(Limited)
    assert not has_plain_settings(Listed)
    with pytest.raises(InputError, match=r"names of thing has the type .*; expected int, float,"):
        configure(Listed, {}, "thing")
