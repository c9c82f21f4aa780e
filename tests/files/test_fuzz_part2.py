"""Readers on random and on mutated documents: a graph or a StrettoError, never anything else."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import test_decima
import test_estee
import test_msr
import test_onnx
import test_pipedream
import test_psplib
import test_starpu
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stretto.catalog import FORMATS
from stretto.core.graph import TaskGraph
from stretto.core.workload import Workload
from stretto.errors import StrettoError
from stretto.files.document import Document
from stretto.registry import resolve

MINE = ("msr", "pipedream", "onnx", "decima", "alibaba", "estee", "starpu", "psplib")
TEXT = tuple(name for name in MINE if name != "onnx")
LIMITS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

ALIBABA = (
    b'{"job":"j","tasks":[{"name":"M1","instances":1,"status":"Terminated","start_time":5,"duration":1.0,'
    b'"cpu_requested":100.0},{"name":"R2_1","start_time":6,"actual_duration":2,"cpu_requested":50}]}\n'
)
VALID: dict[str, bytes] = {
    "msr": test_msr.document(test_msr.small()).data,
    "pipedream": test_pipedream.SMALL.encode(),
    "onnx": test_onnx.convolution().data,
    "decima": test_decima.document(test_decima.small()).data,
    "alibaba": ALIBABA,
    "estee": test_estee.document(test_estee.TASKS).data,
    "starpu": test_starpu.SMALL.encode(),
    "psplib": test_psplib.SMALL.encode(),
}
JSON_FORMATS = ("msr", "decima", "estee", "alibaba")
SURPRISES: list[Any] = [None, True, -1, 0, 1e400, 1e300, 2**70, "", "x", "1", [], {}, [[]], "\ud800", 0.5, [0, 1]]


def attempt(name: str, data: bytes) -> None:
    """Read, and check that whatever goes wrong is an error for the user."""
    form = resolve(FORMATS[name])
    document = Document("fuzz", data)
    assert form.matches(document) in (True, False)
    try:
        work = form.read(document)
    except StrettoError:
        return
    assert isinstance(work, (TaskGraph, Workload))


@pytest.mark.parametrize("name", MINE)
def test_the_valid_documents_are_valid(name: str) -> None:
    form = resolve(FORMATS[name])
    document = Document("valid", VALID[name])
    assert form.matches(document)
    form.read(document)


@pytest.mark.parametrize("name", MINE)
def test_no_format_takes_the_document_of_another(name: str) -> None:
    document = Document("valid", VALID[name])
    assert [other for other in MINE if resolve(FORMATS[other]).matches(document)] == [name]


@pytest.mark.parametrize("name", MINE)
@LIMITS
@given(data=st.binary(max_size=300))
def test_random_bytes(name: str, data: bytes) -> None:
    attempt(name, data)


@pytest.mark.parametrize("name", TEXT)
@LIMITS
@given(seed=st.integers(0, 2**32), count=st.integers(1, 8))
def test_mutated_bytes(name: str, seed: int, count: int) -> None:
    attempt(name, _mutated(VALID[name], random.Random(seed), count))


@settings(LIMITS, max_examples=20)  # a model that parses costs a process for its shapes
@given(seed=st.integers(0, 2**32), count=st.integers(1, 8))
def test_mutated_models(seed: int, count: int) -> None:
    attempt("onnx", _mutated(VALID["onnx"], random.Random(seed), count))


def _mutated(valid: bytes, rng: random.Random, count: int) -> bytes:
    data = bytearray(valid)
    for _ in range(count):
        at = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                del data[at : at + rng.randrange(1, 20)]
            case 2:
                data[at:at] = data[max(0, at - rng.randrange(1, 40)) : at]
            case _:
                data[at:at] = rng.choice([b"-", b"9" * 40, b"nan", b"1e999", b"\x00", b"\n", b" ", b'"', b"\xff"])
        if not data:
            break
    return bytes(data)


@pytest.mark.parametrize("name", TEXT)
@LIMITS
@given(seed=st.integers(0, 2**32))
def test_mutated_tokens(name: str, seed: int) -> None:
    """Replace one number or word by a surprising one, which keeps text files well formed."""
    rng = random.Random(seed)
    if name in JSON_FORMATS:
        value = json.loads(VALID[name])
        inner = name == "estee" and rng.random() < 0.7
        if inner:
            tasks = json.loads(value["graph"]["0"])
            _surprise(tasks, rng)
            value["graph"]["0"] = json.dumps(tasks)
        else:
            _surprise(value, rng)
        attempt(name, json.dumps(value).encode())
        return
    words = VALID[name].split(b" ")
    words[rng.randrange(len(words))] = rng.choice([b"", b"-3", b"0", b"inf", b"99999999999", b"x", b"1\n", b"2 2"])
    attempt(name, b" ".join(words))


def _surprise(value: Any, rng: random.Random) -> None:
    """Walk to a random place of a JSON value and put something else there."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(value[key], (dict, list)) and rng.random() < 0.85:
            value = value[key]
            continue
        value[key] = rng.choice(SURPRISES)
        return
