"""Readers meet rubbish: the answer is a graph or a StrettoError, never anything else."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import tarfile
import tomllib
import zipfile
from collections.abc import Callable

import pytest
from format_samples import CLUSTER, DAX, DOPPLER, DOT, STG, TOPOLOGY, graphs, wfformat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stretto.catalog import FORMATS
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.errors import StrettoError
from stretto.files import archive
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.document import Document, unpack
from stretto.files.graphs.native import FORMAT as NATIVE
from stretto.files.load import detect, find_format
from stretto.files.plan_json import read_plan
from stretto.registry import resolve

PART1 = ("native", "wfformat", "dax", "stg", "doppler", "dot")
PROBLEM = Problem.of(TaskGraph.from_edges([1.0, 2.0], [0], [1]), Cluster.parse("cpu:2"))
PLAN = b'{"policy": "heft", "assignment": [0, "cpu1"], "order": ["t0", 1], "discipline": "sequence"}'


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("a/one.stg", STG)
        out.writestr("two.dot", DOT)
    return buffer.getvalue()


def _tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as out:
        info = tarfile.TarInfo("a/one.stg")
        info.size = len(STG)
        out.addfile(info, io.BytesIO(STG))
    return buffer.getvalue()


def _everything(data: bytes) -> None:
    """What load does once the bytes are there."""
    document = Document("fuzz", unpack(data, "fuzz", max_bytes=1 << 26))
    if archive.is_archive(document):
        archive.open_archive(document, find_format)
    else:
        detect(document).read(document)


def _reader(name: str) -> Callable[[bytes], object]:
    return lambda data: resolve(FORMATS[name]).read(Document("fuzz", data))


READERS: dict[str, Callable[[bytes], object]] = {
    **{name: _reader(name) for name in PART1},
    "load": _everything,
    "cluster": lambda data: read_cluster(Document("fuzz", data)),
    "plan": lambda data: read_plan(Document("fuzz", data), PROBLEM),
}
SAMPLES: list[tuple[str, bytes]] = [
    ("stg", STG),
    ("doppler", DOPPLER),
    ("dax", DAX),
    ("dot", DOT),
    *(("wfformat", json.dumps(wfformat(version)).encode()) for version in ("1.3", "1.4", "1.5")),
    ("cluster", CLUSTER),
    ("cluster", TOPOLOGY.encode()),
    ("plan", PLAN),
    ("load", gzip.compress(STG)),
    ("load", _zip()),
    ("load", _tar()),
]


def _survives(reader: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(StrettoError):
        reader(data)


@st.composite
def mutations(draw: st.DrawFn, data: bytes) -> bytes:
    """Delete, duplicate, flip or replace a few slices."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(len(data) - 1, 0)))
        stop = min(len(data), start + draw(st.integers(1, 12)))
        piece = data[start:stop]
        kind = draw(st.sampled_from(["delete", "double", "flip", "replace", "cut", "move"]))
        if kind == "delete":
            data = data[:start] + data[stop:]
        elif kind == "double":
            data = data[:stop] + piece * draw(st.integers(1, 3)) + data[stop:]
        elif kind == "flip":
            data = data[:start] + bytes(byte ^ draw(st.integers(1, 255)) for byte in piece) + data[stop:]
        elif kind == "replace":
            words = [
                b"-1",
                b"1e999",
                b"null",
                b"{}",
                b"[]",
                b'""',
                b"true",
                b"nan",
                b"0",
                b"a",
                b"\n",
                b"99999999999999999999",
            ]
            data = data[:start] + draw(st.sampled_from(words)) + data[stop:]
        elif kind == "cut":
            data = data[:start]
        else:
            at = draw(st.integers(0, len(data)))
            data = data[:at] + piece + data[at:]
    return data


FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", READERS)
@FUZZ
@given(data=st.binary(max_size=200))
def test_any_bytes(name: str, data: bytes) -> None:
    _survives(READERS[name], data)


@pytest.mark.parametrize("target", FORMATS)
@FUZZ
@given(data=st.binary(max_size=100))
def test_looking_never_raises(target: str, data: bytes) -> None:
    resolve(FORMATS[target]).matches(Document("fuzz", data))


@pytest.mark.parametrize("sample", range(len(SAMPLES)), ids=lambda i: f"{SAMPLES[i][0]}-{i}")
@settings(FUZZ, max_examples=300)
@given(data=st.data())
def test_mutated_documents(sample: int, data: st.DataObject) -> None:
    name, valid = SAMPLES[sample]
    READERS[name](valid)  # the sample itself is good
    mutated = data.draw(mutations(valid))
    _survives(READERS[name], mutated)
    if name in PART1:
        _survives(_everything, mutated)


@settings(FUZZ, max_examples=300)
@given(graph=graphs(), data=st.data())
def test_mutated_native_documents(graph: TaskGraph, data: st.DataObject) -> None:
    _survives(READERS["native"], data.draw(mutations(NATIVE.write(graph))))


_scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.just(10**400))
_keys = st.text(max_size=4)
_json = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_keys, inner, max_size=3)),
    max_leaves=6,
)


def _places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in items for place in _places(inner, (*path, key)))]


@pytest.mark.parametrize("name", ["wfformat-1.3", "wfformat-1.5", "native", "plan", "cluster"])
@settings(FUZZ, max_examples=250)
@given(data=st.data())
def test_well_formed_json_of_the_wrong_shape(name: str, data: st.DataObject) -> None:
    """Put any JSON value at any place of a good document."""
    family, _, version = name.partition("-")
    body = {
        "wfformat": lambda: wfformat(version),
        "native": lambda: json.loads(NATIVE.write(data.draw(graphs()))),
        "plan": lambda: json.loads(PLAN),
        "cluster": lambda: tomllib.loads(TOPOLOGY),
    }[family]()
    place = data.draw(st.sampled_from(_places(body)[1:]))
    inside = body
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = data.draw(_json)
    _survives(READERS[family], json.dumps(body).encode())
