from __future__ import annotations

import re

import pytest

from optsched.report.style import FILLS, GREY, INK, LINES, dark, with_dark_variant

PAPER = dark("#ffffff")


def luminance(color):
    parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_paper_is_dark_like_the_page():
    assert PAPER == "#171717"
    assert dark("#000000") == "#ffffff"


@pytest.mark.parametrize("text", [INK, GREY])
def test_texts_can_be_read(text):
    assert contrast(dark(text), PAPER) >= 4.5


@pytest.mark.parametrize("line", LINES)
def test_lines_can_be_seen(line):
    assert contrast(dark(line), PAPER) >= 3


@pytest.mark.parametrize("fill", FILLS)
def test_labels_on_fills_can_be_read(fill):
    assert contrast(dark(INK), dark(fill)) >= 4.5


def test_lines_and_fills_stay_apart():
    for colors in (LINES, FILLS):
        assert len({dark(color) for color in colors}) == len(colors)


def test_a_picture_has_a_rule_for_each_of_its_colors():
    path = '<path style="fill: #d9d9d9; stroke: #000000"/>'
    svg = f'<?xml version="1.0"?>\n<svg viewBox="0 0 1 1">{path}</svg>'
    variant = with_dark_variant(svg)
    rules = re.findall(r'\[style\*="(\w+): (#\w+)"\]\{(\w+):(#\w+)!important\}', variant)
    assert rules == [
        ("fill", "#d9d9d9", "fill", dark("#d9d9d9")),
        ("stroke", "#000000", "stroke", "#ffffff"),
    ]
    assert re.sub("<style>.*</style>", "", variant) == svg  # as it was in the light
