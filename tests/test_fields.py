from __future__ import annotations

import pytest

from optsched.errors import InputError
from optsched.fields import Choice, Integer, Number, Parsed, Table, flag


def test_a_table_reports_all_mistakes_with_their_places():
    table = Table({"size": -1, "kind": "round", "parts": [{"on": 1}, {"on": True}], "colour": 3})
    table.known(["size", "kind", "parts", "share"])
    assert table.read("size", Integer(0, 9), instead=0) == 0
    table.read("kind", Choice("tree", "flat"))
    table.read("share", Number(0, 1, "a share"))
    assert [part.read("on", flag()) for part in table.parts("parts")] == [None, True]
    with pytest.raises(InputError) as raised:
        table.done("room")
    assert raised.value.field == "room"
    assert list(raised.value.mistakes) == [
        "colour: unknown key 'colour'; known: kind, parts, share, size",
        "size: -1; expected an integer from 0 to 9",
        "kind: 'round'; expected tree or flat",
        "share: missing; expected a share",
        "parts[1].on: 1; expected true or false",
    ]


def test_a_key_that_is_left_out_has_its_default_and_no_mistake():
    table = Table({"a": None})
    assert table.read("b", Integer(0), 7) == 7
    assert table.parts("c") == []
    table.done()
    assert Table(["no", "object"]).table == {}


def test_the_error_of_a_parser_is_the_mistake():
    def parse(text):
        if text != "1G":
            raise InputError(f"{text!r}; expected 1G")
        return 1024

    memory = Parsed(parse, "a memory")
    table = Table({"good": "1G", "bad": "2G", "number": 5})
    assert table.read("good", memory) == 1024
    table.read("bad", memory)
    table.read("number", Parsed(str.strip, "a text"))
    assert table.mistakes == ["bad: '2G'; expected 1G", "number: 5; expected a text"]
