from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from optsched.errors import InputError
from optsched.settings import configure, read_settings


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
