"""Texts that people write: TOML, and lines."""

from __future__ import annotations

import pytest

from optsched.errors import InputError
from optsched.text_files import LONGEST_LINE, MOST_PARTS, lines_of, read_toml


@pytest.mark.parametrize(
    "key", ["a", "'='", '"="', r'"\"]"', "'a' "], ids=["bare", "single", "double", "escaped", "gap"]
)
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "x = {{ {} = 1 }}"])
def test_keys_of_very_many_parts_are_refused(tmp_path, key, form):
    path = tmp_path / "x.toml"
    path.write_text("# first\n" + form.format(".".join([key] * MOST_PARTS)))
    assert len(read_toml(path)) == 1
    path.write_text("# first\n" + form.format(".".join([key] * 200_000)))
    with pytest.raises(InputError, match=r"x.toml, line 2: many dots; .* 100 parts"):
        read_toml(path)


def test_texts_may_have_dots(tmp_path):
    path = tmp_path / "x.toml"
    text = "Done. " * 50 + "1.2.3. And so on ... " * 500
    path.write_text(f'x = "{text}"')
    assert read_toml(path) == {"x": text}


def test_lines_with_content_are_numbered():
    assert list(lines_of("")) == []
    assert list(lines_of("\n\na\r\n \n\nb")) == [(3, "a"), (4, " "), (6, "b")]
    [(_, line)] = lines_of("x" * LONGEST_LINE)
    with pytest.raises(InputError, match="line 2: is too long; expected lines of at most 1 MiB"):
        list(lines_of(f"a\n{line}x\n"))
