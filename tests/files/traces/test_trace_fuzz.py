"""Whatever the bytes: a trace that can be replayed, or an error that can be shown."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from files.traces.trace_samples import ALL, NASTY, assert_same_jobs, mutated, read_text, sacct_json
from stretto.catalog import TRACES
from stretto.core.trace import Trace
from stretto.errors import StrettoError
from stretto.files.document import Document
from stretto.files.traces.parquet import FORMAT as PARQUET
from stretto.files.traces.reader import ReadOptions
from stretto.registry import resolve


def attempt(name: str, data: bytes) -> None:
    document = Document("fuzz", data)
    reader = resolve(TRACES[name])
    reader.matches(document)
    for strict in (False, True):
        try:
            trace = reader.read(document, ReadOptions(strict=strict, dependencies=True))
        except StrettoError:
            continue
        assert isinstance(trace, Trace)
        queue = trace.arrays()
        assert len(queue.submit) == trace.num_jobs > 0
        assert np.isfinite(queue.memory).all()


@pytest.mark.parametrize("name", TRACES)
@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=300))
def test_random_bytes(name: str, data: bytes) -> None:
    attempt(name, data)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_mutated_files(name: str, seed: int) -> None:
    attempt(name, mutated(ALL[name], seed))


def mutated_json(text: str, seed: int) -> bytes:
    """Return valid JSON with some values, leaves or whole branches, replaced by nonsense."""
    rng = random.Random(seed)
    root = json.loads(text)
    for _ in range(rng.randint(1, 5)):
        place: Any = root
        while True:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            key = rng.choice(keys)
            inner = place[key]
            if not (isinstance(inner, (dict, list)) and inner) or rng.random() < 0.1:
                break
            place = inner
        place[key] = rng.choice(
            [*NASTY, None, True, -1, 0, 2**31, 2**64, 10**40, 1e308, -1e308, [], {}, [[]], {"set": 1}]
        )
        if not root:
            break
    return json.dumps(root).encode()


@pytest.mark.parametrize("shape", ["22.05", "24.11"])
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_mutated_json(shape: str, seed: int) -> None:
    attempt("sacct-json", mutated_json(sacct_json(shape), seed))


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_mutated_objects_of_kubernetes(seed: int) -> None:
    attempt("kubernetes", mutated_json(ALL["kubernetes"], seed))


# The same bytes in every run: pyarrow itself may crash on a damaged file, which must not be left to chance here.
@settings(max_examples=80, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_mutated_parquet(seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(PARQUET.write(read_text(ALL["swf"])))
    for _ in range(rng.randint(1, 5)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    attempt("parquet", bytes(data))


@pytest.mark.parametrize("name", ALL)
def test_line_ends_and_byte_order_marks_change_nothing(name: str) -> None:
    plain = read_text(ALL[name])
    for text in (ALL[name].replace("\n", "\r\n"), "\ufeff" + ALL[name]):
        assert_same_jobs(plain, read_text(text))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_files_that_end_early(name: str, share: float) -> None:
    data = ALL[name].encode()
    attempt(name, data[: int(share * len(data))])


@pytest.mark.parametrize("name", ALL)
def test_samples_are_told_apart(name: str) -> None:
    trace = read_text(ALL[name])
    assert trace.meta["format"] == name
