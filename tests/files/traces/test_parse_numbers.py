"""The bulk parser against Python's own ``split`` and ``float``."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stretto.core.kernels.parse_numbers import parse_rows

PLAIN = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)")
tokens = st.one_of(
    st.integers(-(10**18), 10**18).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=6).map(str),
    st.floats(allow_nan=True).map(repr),
    st.sampled_from(
        ["", "-", "+", ".", "1.", ".5", "-0", "1e5", "nan", "1_0", "9007199254740993", "0" * 30 + "7", ";", "x"]
    ),
)
rows = st.lists(tokens, max_size=5).map(" \t".join)
texts = st.lists(rows, max_size=6).map("\n".join).map(str.encode) | st.binary(max_size=60)


def naive(data: bytes, num_fields: int) -> tuple[dict[int, list[float]], set[int]]:
    """Return good rows by line, and lines that may be odd."""
    good: dict[int, list[float]] = {}
    others = set()
    for line, text in enumerate(data.split(b"\n"), start=1):
        fields = text.split()
        if not fields or fields[0].startswith(b";"):
            continue
        if len(fields) >= num_fields and all(PLAIN.fullmatch(field) for field in fields[:num_fields]):
            good[line] = [float(field) for field in fields[:num_fields]]
        else:
            others.add(line)
    return good, others


@settings(max_examples=300, deadline=None)
@given(texts, st.integers(1, 3))
@example(b"1 2 3\n\n;c\n 4 5 6\r\n7 x\n0.1 123456789.987654 -3", 3)
def test_rows_are_what_python_reads(data: bytes, num_fields: int) -> None:
    num_lines = data.count(b"\n") + 1
    values = np.empty((num_lines, num_fields))
    line = np.empty(num_lines, dtype=np.int64)
    odd = np.empty((num_lines, 3), dtype=np.int64)
    num_rows, num_odd = parse_rows(np.frombuffer(data, dtype=np.uint8), values, line, odd)
    good, others = naive(data, num_fields)
    for row in range(num_rows):
        expected = good[int(line[row])]
        assert values[row].tobytes() == np.array(expected).tobytes()  # bit for bit, also -0.0
    seen = set(line[:num_rows].tolist())
    left = set(odd[:num_odd, 0].tolist())
    assert seen | left == set(good) | others
    assert not seen & left
    for at in set(good) & left:  # plain to look at, but too long to be exact here
        assert any(len(field.lstrip(b"+-0")) > 15 for field in data.split(b"\n")[at - 1].split()[:num_fields])
    for at, begin, end in odd[:num_odd].tolist():
        assert data[begin:end] == data.split(b"\n")[at - 1]
