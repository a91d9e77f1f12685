"""Dark variants of the colors of a picture, for readers with a dark desktop."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from optsched.report import style

INVERTED = np.array(
    [[0, 0.25, 0.51, 0.60, 0.72, 0.88, 1], [1.0, 0.90, 0.68, 0.62, 0.42, 0.33, 0.205]]
)
"""Lightness in Oklab of grays and of fills for labels, and of their dark variants: black ink
becomes white, and light fills dark."""

VIVID = np.array([[0, 0.64, 0.86, 0.90, 1], [0.64, 0.64, 0.82, 0.35, 0.205]])
"""The same of other colors, which stay apart from the dark paper, unless they are nearly white."""

GRAY = 0.03
"""Chroma in Oklab below which a color counts as gray."""

_COLORED = re.compile(r"(fill|stroke|stop-color): ?(#[0-9a-fA-F]{6})\b")

_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
"""Matrices of Oklab, by B. Ottosson (2020)."""


def with_dark_variant(svg: str) -> str:
    """Return an SVG document that has dark colors where the reader prefers them.

    The colors that stand as ``#rrggbb`` in style attributes are replaced by rules of a style
    element; raster images are inverted. In light surroundings nothing changes.
    """
    pairs = sorted({(name, color) for name, color in _COLORED.findall(svg)})
    rules = [":root{fill:#fff}image{filter:invert(1) hue-rotate(180deg)}"]
    rules += [
        f'[style*="{name}: {color}"]{{{name}:{dark(color)}!important}}' for name, color in pairs
    ]
    added = f"<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>"
    return re.sub(r"(<svg\b[^>]*>)", lambda found: found[1] + added, svg, count=1)


def dark(color: str) -> str:
    """Return the dark variant of a color, both as ``#rrggbb``: of the same hue."""
    red_green_blue = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    lab = _TO_LAB @ np.cbrt(_TO_LMS @ _linear(red_green_blue))
    inverted = color.upper() in style.FILLS or np.hypot(lab[1], lab[2]) < GRAY
    lab[0] = np.interp(lab[0], *(INVERTED if inverted else VIVID))
    linear = np.linalg.inv(_TO_LMS) @ (np.linalg.inv(_TO_LAB) @ lab) ** 3
    shown = np.rint(255 * _encoded(np.clip(linear, 0, 1))).astype(int)
    return "#" + "".join(f"{part:02x}" for part in shown.tolist())


def _linear(encoded: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def _encoded(linear: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
