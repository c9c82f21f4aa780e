"""Damaged inputs for every reader, by number: ``python tests/long/fuzz_inputs.py NUM_INPUTS [SEED] [READER...]``.

Starts from small files that are right, its own and real ones, and damages bytes, words, lines and numbers. A reader
may answer or raise a StrettoError. Anything else is a crash: its input is printed, and the exit code is 1.
"""

from __future__ import annotations

import importlib.util
import json
import math
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # before the folder of tests that is called research, too

import fuzz_seeds
import numpy as np
from research.readers.hwloc import read_hwloc
from research.readers.machine_toml import read_rack, write_rack

from files import format_samples as samples
from files.clusters import site_samples
from files.traces import trace_samples
from real_data import find_data
from stretto import catalog, registry
from stretto.core.cluster import Cluster
from stretto.core.machine_presets import preset
from stretto.core.pool import Pool
from stretto.core.problem import Problem
from stretto.engines.workflow_file import load_workflow
from stretto.errors import StrettoError
from stretto.files import checkpoint
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.clusters.pool_toml import parse_pools, read_pools, write_pools
from stretto.files.document import Document, read_document, unpack
from stretto.files.plan_json import plan_to_json, read_plan
from stretto.files.prices.catalogue import read_catalogue
from stretto.files.traces.reader import ReadOptions
from stretto.testing.engine_checks import random_graph, random_plan

Reader = Callable[[bytes], object]
MAX_BYTES = 1 << 20
_NASTY = [
    b"",
    b"-1",
    b"0",
    b"1e308",
    b"1e999",
    b"nan",
    b"inf",
    b"-0.0",
    b"99999999999999999999",
    b"9" * 400,
    b"{",
    b"[",
]
_NASTY += [
    b'"',
    b"\x00",
    b"null",
    b"true",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"[" * 3000,
    b"<a>" * 500,
    b"&amp;",
    b"|",
    b"\t",
]
_WORD = re.compile(rb"[\w.+-]+")
#: ONNX asks a child process for the shapes of every model that it understands: it gets this share of the inputs.
_SLOW = 0.05
#: Real files that are no larger are among the beginnings.
_SMALL_BYTES = 20_000


def readers(folder: Path) -> dict[str, tuple[Reader, list[bytes]]]:
    """Return every reader with contents that it understands."""
    found: dict[str, tuple[Reader, list[bytes]]] = {}
    files = small_files()
    for name in catalog.FORMATS:
        if name != "onnx" or importlib.util.find_spec("onnx") is not None:
            found[f"graph {name}"] = (graph_reader(name), graph_seeds(name, files))
    for name in catalog.TRACES:
        found[f"trace {name}"] = (trace_reader(name), trace_seeds(name, files))
    for name, text in site_samples.ALL.items():
        found[f"site {name}"] = (site_reader(name), [text.encode()])
    graph, cluster = random_graph(np.random.default_rng(0), 8), Cluster.parse("cpu:2,gpu:1")
    problem = Problem.of(graph, cluster)
    plan = json.dumps(plan_to_json(random_plan(np.random.default_rng(0), graph, cluster), problem)).encode()
    pools = write_pools([Pool("a", 3, procs_per_node=4, price_usd_per_hour=2.0), Pool("b", 1)])
    rack = write_rack(preset("small-rack")).encode()
    found["cluster file"] = (
        lambda data: read_cluster(Document("fuzz.toml", data)),
        [samples.CLUSTER, samples.TOPOLOGY.encode()],
    )
    found["cluster words"] = (
        lambda data: Cluster.parse(data.decode("utf-8", "replace")),
        [b"cpu:4x1.0,gpu:2x2.5@1GB/s"],
    )
    found["pool file"] = (lambda data: read_pools(Document("fuzz.toml", data)), [pools])
    found["pool words"] = (lambda data: parse_pools(data.decode("utf-8", "replace")), [b"own:8x16,cloud:4x8@2.5"])
    found["rack file"] = (lambda data: read_rack(Document("fuzz.toml", data)), [rack])
    found["hwloc file"] = (lambda data: read_hwloc(Document("fuzz.xml", data)), [_HWLOC])
    found["plan file"] = (lambda data: read_plan(Document("fuzz.json", data), problem), [plan])
    found["workflow file"] = (by_file(folder / "flow.toml", load_workflow), [_WORKFLOW])
    found["price list"] = (by_file(folder / "prices.csv", read_catalogue), price_seeds())
    found["checkpoint"] = (by_file(folder / "state.npz", checkpoint.load), [checkpoint_seed(folder)])
    return found


_HWLOC = b"""<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0"><object type="Machine">
<object type="Package" os_index="0"><object type="NUMANode" os_index="0" local_memory="100"/>
<object type="Core" os_index="0"><object type="PU" os_index="0"/></object></object></object></topology>"""
_WORKFLOW = b"""name = "flow"
[[task]]
name = "a"
run = ["true"]
writes = ["x"]
[[task]]
name = "b"
run = ["cat", "x"]
after = ["a"]
reads = ["x"]
"""


def site_reader(name: str) -> Reader:
    reader = registry.resolve(catalog.SITES[name])

    def read(data: bytes) -> object:
        document = Document("fuzz", unpack(data, "fuzz", max_bytes=MAX_BYTES))
        reader.matches(document)
        return reader.read(document)

    return read


def graph_reader(name: str) -> Reader:
    reader = registry.lookup("format", name, catalog.FORMATS)

    def read(data: bytes) -> object:
        document = Document("fuzz", unpack(data, "fuzz", max_bytes=MAX_BYTES))
        reader.matches(document)
        return reader.read(document)

    return read


def trace_reader(name: str) -> Reader:
    reader = registry.resolve(catalog.TRACES[name])

    def read(data: bytes) -> object:
        document = Document("fuzz", unpack(data, "fuzz", max_bytes=MAX_BYTES))
        reader.matches(document)
        return reader.read(document, ReadOptions(strict=len(data) % 2 == 0, dependencies=True)).arrays()

    return read


def by_file(path: Path, read: Callable[[Path], object]) -> Reader:
    """Return a reader of bytes from one that wants a file."""

    def reader(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return reader


def small_files() -> list[Document]:
    """Return small real files, where the data is at hand."""
    data = find_data()
    found = []
    for path in sorted(data.rglob("*")) if data else []:
        if path.is_file() and path.stat().st_size <= _SMALL_BYTES:
            try:
                document = read_document(path)
            except StrettoError:
                continue
            if len(document.data) <= _SMALL_BYTES:
                found.append(document)
    return found


def graph_seeds(name: str, files: list[Document]) -> list[bytes]:
    reader = registry.lookup("format", name, catalog.FORMATS)
    own = [
        sample.encode() if isinstance(sample, str) else sample for key, sample in vars(samples).items() if key.isupper()
    ]
    own += [json.dumps(samples.wfformat()).encode(), *fuzz_seeds.graphs()]
    if hasattr(reader, "write"):
        own.append(reader.write(random_graph(np.random.default_rng(1), 6)))
    found = [data for data in own if isinstance(data, bytes) and reader.matches(Document("seed", data))]
    return found + [file.data for file in files if reader.matches(file)][:5] or [b"{}"]


def trace_seeds(name: str, files: list[Document]) -> list[bytes]:
    reader = registry.resolve(catalog.TRACES[name])
    texts = [text for text in vars(trace_samples).values() if isinstance(text, str) and "\n" in text]
    texts += [trace_samples.sacct_json(shape) for shape in ("new", "old")] + [trace_samples.kubernetes_list()]
    own = [*(text.encode() for text in texts), *fuzz_seeds.traces()]
    found = [data for data in own if reader.matches(Document("seed", data))]
    return found + [file.data for file in files if reader.matches(file)][:5] or [b"1 2 3"]


def price_seeds() -> list[bytes]:
    head = (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
    )
    return [f"{head}\nn1,,,4,16,,0.2,0.05,eu,eu-a\np3,V100,1,8,61,,3.06,0.9,us,us-b\n".encode()]


def checkpoint_seed(folder: Path) -> bytes:
    checkpoint.save(folder / "seed.npz", {"x": np.arange(5.0), "y": np.eye(2, dtype=np.int32)}, {"step": 1})
    return (folder / "seed.npz").read_bytes()


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return the data with one to four things wrong."""
    for _ in range(rng.randint(1, 4)):
        data = rng.choice(_WAYS)(data, rng)
    return data[:MAX_BYTES]


def _flip(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    at, end = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    return data[:at] + data[end:] if rng.randrange(2) else data[:end]


def _word(data: bytes, rng: random.Random) -> bytes:
    found = list(_WORD.finditer(data))
    if not found:
        return rng.choice(_NASTY)
    here, other = rng.choice(found), rng.choice(found)
    new = other.group() if rng.randrange(3) == 0 else rng.choice(_NASTY)
    return data[: here.start()] + new + data[here.end() :]


def _line(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    if rng.randrange(2):
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines.insert(at, lines[other])
    return b"\n".join(lines)


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_NASTY) + data[at:]


_WAYS = (_flip, _cut, _word, _word, _line, _insert)


def fuzz(name: str, reader: Reader, seeds: list[bytes], num_inputs: int, seed: int) -> tuple[int, list[str]]:
    """Return how many inputs were understood, and the crashes."""
    rng = random.Random(f"{name} {seed}")
    num_read, crashes = 0, []
    for _ in range(num_inputs):
        data = damaged(rng.choice(seeds), rng)
        try:
            reader(data)
            num_read += 1
        except StrettoError:
            pass
        except Exception as error:
            crashes.append(f"{name}: {type(error).__name__}: {error} on {data[:2000]!r}")
            if len(crashes) >= 5:
                break
    return num_read, crashes


def main() -> int:
    num_inputs, seed, wanted = int(sys.argv[1]), int((sys.argv[2:] or ["0"])[0]), " ".join(sys.argv[3:])
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        found = {key: value for key, value in readers(Path(name)).items() if wanted in key}
        for key, (reader, seeds) in found.items():
            share = math.ceil(num_inputs / len(found) * (_SLOW if key == "graph onnx" else 1.0))
            begin = time.perf_counter()
            num_read, crashes = fuzz(key, reader, seeds, share, seed)
            took = time.perf_counter() - begin
            print(
                f"{key:22} {share:9,} inputs, {num_read:9,} understood, {len(crashes)} crashes, {took:.0f} s",
                flush=True,
            )
            for crash in crashes:
                print(crash, flush=True)
            failed += len(crashes)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
