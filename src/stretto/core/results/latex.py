"""LaTeX tables for papers, in the style of ``booktabs``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}
#: Words in the names of columns where more is better; elsewhere less is.
_MORE_IS_BETTER = ("utilization", "num_best", "speedup")


def escape(text: str) -> str:
    """Return a text with LaTeX's special characters escaped."""
    return "".join(_SPECIAL.get(char, char) for char in text)


def latex_table(
    rows: Sequence[Mapping[str, object]],
    columns: Sequence[str],
    *,
    caption: str | None = None,
    label: str | None = None,
    digits: int = 4,
) -> str:
    """Return a table with a line per row; the best number of each column is in bold where rows differ."""
    best = {name: _best(name, [row.get(name) for row in rows]) for name in columns}
    align = "".join("r" if any(_is_number(row.get(name)) for row in rows) else "l" for name in columns)
    lines = [r"\begin{table}", r"\centering"]
    lines += [f"\\caption{{{escape(caption)}}}"] if caption else []
    lines += [f"\\label{{{label}}}"] if label else []
    lines += [f"\\begin{{tabular}}{{{align}}}", r"\toprule"]
    lines += [" & ".join(escape(name.replace("_", " ")) for name in columns) + r" \\", r"\midrule"]
    for row in rows:
        cells = [_cell(row.get(name), best[name], digits) for name in columns]
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _best(column: str, values: Sequence[object]) -> float | None:
    numbers = [float(v) for v in values if isinstance(v, (int, float)) and math.isfinite(v)]
    if len(set(numbers)) < 2:
        return None
    return max(numbers) if any(word in column for word in _MORE_IS_BETTER) else min(numbers)


def _cell(value: object, best: float | None, digits: int) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "--"
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return escape(str(value))
    if isinstance(value, int):
        text = str(value)
    else:
        text = f"{value:#,.{digits}g}".rstrip(".") if abs(value) < 1e4 else f"{value:,.0f}"
    if "e" in text:  # 1e-05
        mantissa, exponent = text.split("e")
        text = f"${mantissa} \\cdot 10^{{{int(exponent)}}}$"
    return f"\\textbf{{{text}}}" if best is not None and float(value) == best else text
