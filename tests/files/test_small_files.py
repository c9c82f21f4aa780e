"""Files of a few kilobytes that would take gigabytes are refused before anything of the kind is made."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from research.readers.hwloc import read_hwloc

from stretto.core.builder import GraphBuilder
from stretto.core.cluster import Cluster
from stretto.core.machine import Machine, Part, Rack
from stretto.errors import InvalidInput
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.clusters.machine_toml import read_rack
from stretto.files.clusters.pool_toml import parse_pools
from stretto.files.document import Document
from stretto.files.graphs.native import Native
from stretto.files.load import load_cluster
from stretto.files.traces.load import load_trace
from stretto.files.traces.parquet import FORMAT as PARQUET
from stretto.files.traces.reader import ReadOptions
from stretto.queues.replay import replay
from stretto.racks.machine_work import KernelSpec, rack_model


def cluster(text: str) -> Cluster:
    return read_cluster(Document("c.toml", text.encode()))


@pytest.mark.parametrize("text", ["cpu:999999999", "cpu:10001", "cpu:9999,gpu:9999", "cpu:99999999999999999999"])
def test_shorthand_counts(text: str) -> None:
    with pytest.raises(InvalidInput, match="between 1 and 10000 devices"):
        load_cluster(text)
    with pytest.raises(InvalidInput, match="10,000,000"):
        parse_pools("a:2000000000")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[device]]\ncount = 2000000000\n", "not a whole number between 1 and 10,000"),
        ("[[device]]\ncount = 6000\n[[device]]\nkind = 'gpu'\ncount = 6000\n", "more than 10,000 devices"),
        ("[[machine]]\ncount = 9999\n" * 2 + "[[device]]\n", "more than 10,000 machines"),
        (
            "[network]\nswitches = ['s']\n[[device]]\ncount = 5000\n[[link]]\nends = ['*', '*']\n",
            "5000 devices; routes are limited to 2000",
        ),
        (
            "[network]\nswitches = ['s']\n[[device]]\ncount = 800\n[[link]]\nends = ['*', '*']\n",
            "more than 250,000 wires",
        ),
    ],
)
def test_cluster_counts(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        cluster(text)


def test_a_chain_of_devices_has_no_billions_of_hops(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = "".join(f"[[link]]\nends = ['cpu{i}', 'cpu{i + 1}']\n" for i in range(59))
    monkeypatch.setattr("stretto.core.topology.MAX_HOPS", 60_000)
    with pytest.raises(InvalidInput, match="the routes between 60 devices pass more than 60,000 links"):
        cluster("[[device]]\ncount = 60\n" + chain)
    monkeypatch.setattr("stretto.core.topology.MAX_HOPS", 80_000)
    assert cluster("[[device]]\ncount = 60\n" + chain).num_devices == 60


def test_machines_and_topologies() -> None:
    nodes = "".join(f"<object type='NUMANode' os_index='{i}'/>" for i in range(3000))
    with pytest.raises(InvalidInput, match="3,000 NUMA nodes, more than 128"):
        read_hwloc(Document("m.xml", f"<topology><object type='Machine'>{nodes}</object></topology>".encode()))
    parts = "[[machine.part]]\nname = 'm'\nkind = 'memory'\nbandwidth = '1GB/s'\ncount = 20\n"
    rack = f"[[machine]]\ncount = 9999\nlinks = []\n{parts}"
    with pytest.raises(InvalidInput, match="9,999 machines of 20 parts; at most 100,000 in all"):
        read_rack(Document("r.toml", rack.encode()))


def test_a_rack_is_laid_out_only_when_its_tables_fit() -> None:
    parts = [Part("m", "memory", 1e9), *(Part(f"p{i}", "gpu") for i in range(5000))]
    parts += [Part(f"s{i}", "pcie-switch", 1e9) for i in range(4000)]
    links = [(f"p{i}", "m") for i in range(5000)]
    machine = Machine("one", tuple(parts), tuple(links))
    kernels = [KernelSpec(f"k{i}", {"gpu": 1.0}) for i in range(4)]
    with pytest.raises(InvalidInput, match="4 kernels on 5,000 processors with 4,001 shared parts make a table"):
        rack_model(Rack("rack", (machine,)), kernels)
    with pytest.raises(InvalidInput, match="10,001 parts; a machine has at most 10,000"):
        Machine("one", tuple(Part(f"m{i}", "memory", 1e9) for i in range(10_001)), ())
    for seconds in (1e-300, 1e300):
        with pytest.raises(InvalidInput, match=r"duration on gpu .* is out of range"):
            KernelSpec("k", {"gpu": seconds})


def test_tables_of_tasks_by_kind() -> None:
    build = GraphBuilder("wide")
    for number in range(6000):
        build.task(f"t{number}", 1.0, durations={f"kind{number}": 1.0})
    with pytest.raises(InvalidInput, match="6,000 tasks with durations for 6,000 kinds of devices"):
        build.graph()


def test_resources_are_not_larger_than_their_file() -> None:
    resources = {"names": [f"r{i}" for i in range(50_000)], "capacity": [1] * 50_000, "demand": []}
    body = {"format": "stretto-graph", "version": 1, "work_s": [1] * 50_000, "object_task": [], "object_size": []}
    body |= {"read_task": [], "read_object": [], "resources": resources}
    with pytest.raises(InvalidInput, match="demand"):
        Native().read(Document("g.json", json.dumps(body).encode()))


def test_a_parquet_column_of_equal_values(monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("stretto.files.traces.parquet.MAX_ROWS", 99_999)  # the real limit takes a second to write
    columns = {"submit_s": np.zeros(100_000), "run_s": np.ones(100_000), "num_procs": np.ones(100_000, np.int32)}
    sink = io.BytesIO()
    parquet.write_table(arrow.table(columns), sink, compression="zstd")
    assert len(sink.getvalue()) < 10_000
    with pytest.raises(InvalidInput, match="100,000 rows, more than 99,999"):
        PARQUET.read(Document("t.parquet", sink.getvalue()), ReadOptions())


def test_a_log_of_two_billion_processors(tmp_path: Path) -> None:
    row = "1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1"
    path = tmp_path / "log.swf"
    path.write_text(f"; MaxProcs: 2147483647\n{row}\n")
    trace = load_trace(path)
    with pytest.raises(InvalidInput, match="2147483647 processors; a machine has at most 10,000,000"):
        replay(trace, trace.max_procs or 0)
    path.write_text(f"; MaxProcs: 4\n{row}\n" + row.replace(" 10 ", " 1e300 ") + "\n" + "\n" * 1_000_000)
    found = load_trace(path)
    assert found.num_jobs == 1
    assert found.meta["num_skipped"] == 1
