"""Colors that people with any color vision can tell apart, assigned the same way every time."""

from __future__ import annotations

import numpy as np

from stretto.core.csr import Ints

#: After Okabe and Ito, and Tol's muted set: distinct in hue and in lightness.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#882255", "#b8a80f", "#332288")
#: What is too rare for a color of its own.
REST = "#9aa0a6"


def by_frequency(codes: Ints, num_codes: int) -> tuple[Ints, list[int]]:
    """Give the most frequent codes a color each, and the others the last one.

    Returns
    -------
    color, kept
        The color index of each item, and the codes that own colors 0, 1, ...; items of
        other codes have color ``len(kept)``. Equal counts go by lower code.
    """
    count = np.bincount(codes, minlength=num_codes)
    ranked = np.argsort(-count, kind="stable")
    kept = [int(code) for code in ranked[: len(PALETTE)] if count[code] > 0]
    color_of = np.full(num_codes, len(kept), dtype=np.int32)
    color_of[kept] = np.arange(len(kept), dtype=np.int32)
    return color_of[codes], kept


def text_on(color: str) -> str:
    """Return black or white, whichever reads better on a color."""
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return "#000000" if _luminance(red, green, blue) > 0.18 else "#ffffff"


def _luminance(red: float, green: float, blue: float) -> float:
    """Relative luminance as the accessibility guidelines define it."""
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
