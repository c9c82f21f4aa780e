"""Outputs as bytes: what goes in comes out, equal values have equal digests, damage is an error with a name."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.engines.outputs import decode, digest, encode, num_bytes
from stretto.errors import InvalidInput

_DTYPES = ["f4", "f8", "i2", "i8", "u1", "?", "c8", "M8[s]", "S3", "U2"]


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    raw = draw(st.binary(min_size=0, max_size=8))
    size = int(np.prod(shape))
    dtype = np.dtype(draw(st.sampled_from(_DTYPES)))
    if dtype.kind == "U":
        return np.full(shape, "ab", dtype=dtype)
    filled = (raw or b"\0") * (size * dtype.itemsize + 1)
    array = np.frombuffer(filled[: size * dtype.itemsize], dtype=dtype).reshape(shape)
    return array.T if draw(st.booleans()) else array


leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=2000), arrays()
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
    ),
    max_leaves=8,
)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and (one == other or one != one)


@given(values)
@settings(max_examples=200, deadline=None)
def test_what_goes_in_comes_out(value: Any) -> None:
    data = encode(value)
    found = decode(data)
    assert same(value, found)
    assert digest(found) == digest(value)
    assert num_bytes(found) <= len(data)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        ((1, 2), [1, 2]),
        (b"ab", "ab"),
        ([b"ab", b"c"], [b"a", b"bc"]),
        (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(2, "f4"), np.zeros(2, "i4")),
        (np.float64(1), 1.0),
        (0.0, -0.0),
    ],
)
def test_different_values_have_different_digests(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)


@pytest.mark.parametrize("value", [object(), {1: 2}, [set()], np.array([object()]), np.zeros(2, "i4,f4"), lambda: 1])
def test_what_is_not_data_has_no_digest(value: Any) -> None:
    assert digest(value) is None
    with pytest.raises(TypeError):
        encode(value)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_damage_is_noticed_or_harmless(data: st.DataObject) -> None:
    whole = bytearray(encode({"a": np.arange(5.0), "b": [b"bytes", None, 1.5, "text"]}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    for broken in (bytes(whole), bytes(whole[:cut])):
        with contextlib.suppress(InvalidInput):
            decode(broken)


def test_arrays_that_come_back_are_read_only() -> None:
    found = decode(encode(np.ones(3)))
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 2.0
