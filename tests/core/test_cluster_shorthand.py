"""The shorthand of clusters: nodes, profiles and links that it makes, and its answer to words that are nearly it."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from stretto.core.cluster import Cluster
from stretto.core.cluster_shorthand import BARE_KINDS, intended, node_capacities
from stretto.errors import InvalidInput


@pytest.mark.parametrize(
    ("part", "meant"),
    [
        ("gpu4", "gpu:4"),
        ("gpu-4", "gpu:4"),
        ("gpu_4", "gpu:4"),
        ("gpu=4", "gpu:4"),
        ("gpu*4", "gpu:4"),
        ("gpu 4", "gpu:4"),
        ("gpu4x2.5", "gpu:4x2.5"),
        ("4gpu", "gpu:4"),
        ("4 gpu", "gpu:4"),
        ("4xgpu", "gpu:4"),
        ("4*gpu", "gpu:4"),
        ("4xgpux2", "gpu:4x2"),
        ("cpux2", "cpu:1x2"),
        ("boxx2", "boxx:2"),
        ("gpuu", "gpu:1"),
        ("GPUS", "gpu:1"),
        ("fgpa", "fpga:1"),
        ("acelerator", "accelerator:1"),
        ("zebra", None),
        ("4", None),
        ("gpu:4:2", None),
        ("", None),
    ],
)
def test_what_a_mistyped_word_probably_means(part: str, meant: str | None) -> None:
    assert intended(part) == meant


def test_every_kind_that_may_stand_alone_is_meant_by_a_slip_of_itself() -> None:
    assert BARE_KINDS == ("cpu", "gpu", "fpga", "tpu", "npu", "accelerator")
    for kind in BARE_KINDS:
        assert intended(kind + kind[-1]) == f"{kind}:1"
        assert [(d.name, d.kind, d.speed) for d in Cluster.parse(kind).devices] == [(f"{kind}0", kind, 1.0)]


@pytest.mark.parametrize(
    ("text", "capacities"),
    [
        ("16c", {"cores": 16.0, "gpus": 0.0}),
        ("0.5c", {"cores": 0.5, "gpus": 0.0}),
        ("16c64GB", {"cores": 16.0, "memory_bytes": 64e9, "gpus": 0.0}),
        ("8c32GiB2g", {"cores": 8.0, "memory_bytes": 32 * 2.0**30, "gpus": 2.0}),
        ("2g8c", {"cores": 8.0, "gpus": 2.0}),
        ("1c512B", {"cores": 1.0, "memory_bytes": 512.0, "gpus": 0.0}),
    ],
)
def test_capacities_of_a_node(text: str, capacities: dict[str, float]) -> None:
    assert node_capacities(text, "") == {"packs": True, **capacities}


@pytest.mark.parametrize(
    "text", ["64GB", "2g", "16", "16c8c", "16c64GB1GB", "16cx", "x16c", "16c 64GB", "c16", "16c64"]
)
def test_capacities_that_leave_something_open_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        node_capacities(text, f" node:2*{text} ")
    assert str(caught.value) == (
        f"cluster: 'node:2*{text}': {text!r} is not what a node has, as in node:4*16c64GB or node:2*8c32GB2g "
        "(cores, memory with its unit, GPUs)"
    )


def test_nodes_stand_last_each_on_its_own_machine() -> None:
    found = Cluster.parse("node:2*8c32GB2gx1.5,cpu:1,gpu:1*4c")
    told = [(d.name, d.kind, d.machine, d.speed, d.cores, d.memory_bytes, d.gpus, d.packs) for d in found.devices]
    assert told == [
        ("cpu0", "cpu", "m0", 1.0, inf, inf, inf, False),
        ("node0", "cpu", "node0", 1.5, 8.0, 32e9, 2.0, True),
        ("node1", "cpu", "node1", 1.5, 8.0, 32e9, 2.0, True),
        ("gpu0", "gpu", "gpu0", 1.0, 4.0, inf, 0.0, True),
    ]
    assert (found.packs, Cluster.parse("cpu:1").packs) == (True, False)


def test_profiles_bring_their_memory_and_links() -> None:
    found = Cluster.parse("a100:2,cpu:2,l4:1")
    assert [d.name for d in found.devices] == ["a100-0", "a100-1", "cpu0", "cpu1", "l4-0"]
    assert [d.memory_bytes for d in found.devices] == [80e9, 80e9, inf, inf, 24e9]
    gb = (found.bandwidth / 1e9).tolist()
    assert [row[:a] + row[a + 1 :] for a, row in enumerate(gb)] == [
        [300, 32, 32, 32], [300, 32, 32, 32], [32, 32, 1, 32], [32, 32, 1, 32], [32, 32, 32, 32],
    ]  # fmt: skip
    us = (found.latency_s * 1e6).round(6).tolist()
    assert us == [[0, 10, 10, 10, 10], [10, 0, 10, 10, 10], [10, 10, 0, 0, 10], [10, 10, 0, 0, 10], [10, 10, 10, 10, 0]]
    assert found.name == "a100:2,cpu:2,l4:1"


def test_a_stated_bandwidth_is_that_of_all_links() -> None:
    found = Cluster.parse("a100:2@10Gbit/s")
    assert (found.bandwidth[0, 1], found.latency_s[0, 1]) == (1.25e9, 0.0)
    assert Cluster.parse("cpu:2").bandwidth[0, 1] == 1e9


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cpu:2@5", "@5 has no unit; did you mean @5GB/s or @5Gbit/s?"),
        ("cpu:2,gpu4", "'gpu4' is not KIND:COUNT, KIND:COUNTxSPEED or node:COUNT*16c64GB; did you mean cpu:2,gpu:4?"),
        (f"{'y' * 70}!", f"'{'y' * 60}' is not KIND:COUNT"),
        ("gpu:²", "'gpu:²' is not KIND:COUNT"),
        ("cpu:1234567890123456789", "'cpu:1234567890123456789': between 1 and 10000 devices"),
        ("cpu:1x.e5", "'cpu:1x.e5'"),
    ],
)
def test_what_is_wrong_with_a_shorthand_is_said_of_the_cluster(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Cluster.parse(text)
    assert words in str(caught.value)
    assert caught.value.field == "cluster"


def test_numbers_go_on_where_a_kind_comes_again() -> None:
    found: list[Any] = [d.name for d in Cluster.parse("cpu:2,gpu:1,cpu:1").devices]
    assert found == ["cpu0", "cpu1", "gpu0", "cpu2"]
