"""Sharded tensor programs: the same arithmetic however they are cut, true bytes, and the paper's graphs."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flop_counts import chainmm_flops, ffnn_forward_flops, llama_block_flops, llama_layer_flops
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput
from stretto.files.load import load
from stretto.graphs.workloads.tensors.chainmm import chainmm
from stretto.graphs.workloads.tensors.ffnn_forward import ffnn_forward
from stretto.graphs.workloads.tensors.llama import llama_block, llama_layer
from stretto.graphs.workloads.tensors.sharding import Costs, Program, cuts, overlaps

#: Only arithmetic takes time, one second per operation: durations are FLOP counts.
COUNTING: dict[str, Any] = {"flops_per_s": 1.0, "memory_bytes_per_s": math.inf, "launch_s": 0.0}
SMALL = {"tokens": 48, "dim": 24, "num_heads": 6, "hidden": 40}

parts = st.integers(1, 5)


def levels(graph: TaskGraph) -> list[int]:
    level = [1] * graph.num_tasks
    reads: list[list[int]] = [[] for _ in level]
    for u, v in zip(graph.edges[0].tolist(), graph.edges[1].tolist(), strict=True):
        reads[v].append(u)
    for task in graph.topo.tolist():
        level[task] = 1 + max((level[u] for u in reads[task]), default=0)
    return level


def shape(graph: TaskGraph) -> tuple[int, int, int, int]:
    """Return tasks, edges, depth and the most tasks on one level."""
    level = levels(graph)
    return graph.num_tasks, graph.num_edges, max(level), max(Counter(level).values())


def profile(graph: TaskGraph) -> Counter[tuple[int, float, int, int, float]]:
    """Return how many tasks there are of each level, cost, number of reads and of readers, and size of output."""
    reads = np.bincount(graph.edges[1], minlength=graph.num_tasks)
    readers = np.bincount(graph.edges[0], minlength=graph.num_tasks)
    size = np.zeros(graph.num_tasks)
    size[graph.object_task] = graph.object_size
    columns = zip(levels(graph), graph.work_s.round(9), reads, readers, size.round(8), strict=True)
    return Counter((level, float(w), int(r), int(s), float(b)) for level, w, r, s, b in columns)


@settings(max_examples=25, deadline=None)
@given(size=st.integers(5, 40), rows=parts, columns=parts, inner=parts)
def test_chainmm_holds_the_same_arithmetic_however_it_is_cut(size: int, rows: int, columns: int, inner: int) -> None:
    graph = chainmm(size, row_parts=rows, column_parts=columns, inner_parts=inner, **COUNTING)
    assert graph.work_s.sum() == pytest.approx(chainmm_flops(size), rel=1e-12)
    assert graph.meta["total_flops"] == pytest.approx(chainmm_flops(size), rel=1e-12)
    products = [task for task in range(graph.num_tasks) if graph.category_name(task) == "gemm"]
    assert len(products) == 3 * rows * columns * inner


@settings(max_examples=25, deadline=None)
@given(batch=parts, hidden=parts, soft=st.integers(1, 9))
def test_ffnn_holds_the_same_arithmetic_however_it_is_cut(batch: int, hidden: int, soft: int) -> None:
    cut = {"batch_parts": batch, "hidden_parts": hidden, "softmax_parts": soft}
    graph = ffnn_forward(30, width=7, hidden=23, **cut, **COUNTING)
    assert graph.work_s.sum() == pytest.approx(ffnn_forward_flops(30, 7, 23), rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(tokens=parts, features=parts, inner=parts, num_layers=st.integers(1, 3))
def test_llama_holds_the_same_arithmetic_however_it_is_cut(
    tokens: int, features: int, inner: int, num_layers: int
) -> None:
    cut = {"token_parts": tokens, "feature_parts": features, "inner_parts": inner, "num_layers": num_layers}
    block = llama_block(**SMALL, **cut, **COUNTING)
    assert block.work_s.sum() == pytest.approx(num_layers * llama_block_flops(**SMALL), rel=1e-12)
    layer = llama_layer(**SMALL, vocab=199, **cut, **COUNTING)
    assert layer.work_s.sum() == pytest.approx(llama_layer_flops(**SMALL, vocab=199, num_layers=num_layers), rel=1e-12)


def test_the_closed_forms_by_hand() -> None:
    """One token, two features in one head, two hidden units: small enough to count on paper."""
    assert chainmm_flops(1) == 3 + 1
    assert ffnn_forward_flops(1, 2, 3) == 3 * 3 + 2 * 5 + 3 + (6 + 2)
    projections, rotations, scores, softmax, mix = 4 * 2 * 3, 2 * 6, 3 + 1, 3 + 0, 2 * 1
    feed_forward, norms, adds = 2 * 2 * 3 + 2 * 3 + 2 * 2, 2 * (6 + 1 + 2), 2 * 2
    assert llama_block_flops(1, 2, 1, 2) == (
        projections + rotations + scores + softmax + mix + feed_forward + norms + adds
    )


def test_bytes_are_those_of_the_blocks() -> None:
    graph = chainmm(100, row_parts=4, column_parts=2, inner_parts=2, value_bytes=8)
    size = dict(zip((graph.task_name(task) for task in graph.object_task), graph.object_size, strict=True))
    assert size["ab_0_0_0"] == size["ab_form_3_1"] == size["sum_2_0"] == 8 * 25 * 50
    assert size["de_0_0_3"] == 8 * 50 * 50
    odd = chainmm(10, row_parts=3, column_parts=1, inner_parts=1, value_bytes=1)
    rows = {odd.task_name(task): bytes_ for task, bytes_ in zip(odd.object_task, odd.object_size, strict=True)}
    assert [rows[f"sum_{i}_0"] for i in range(3)] == [30, 30, 40]  # 10 rows as 3, 3 and 4


def test_bytes_of_llama_by_tensor() -> None:
    graph = llama_layer(tokens=64, dim=32, num_heads=4, hidden=48, vocab=100, value_bytes=2)
    size = dict(zip((graph.task_name(task) for task in graph.object_task), graph.object_size, strict=True))
    assert size["l0_attn_q_0_0_0_0"] == 2 * 32 * 16
    assert size["l0_attn_k_form_0_1_0"] == 2 * 64 * 16  # the keys of all tokens, half of the heads
    assert size["l0_attn_scores_form_1_1_0"] == 2 * 2 * 32 * 64
    assert size["l0_attn_softmax_max_form_0_0"] == 2 * 2 * 32
    assert size["l0_attn_q_complex_0_0_0"] == 2 * 32 * 2 * 4
    assert size["l0_ffn_up_form_0_0"] == 2 * 32 * 24
    assert size["mask_0_0"] == 2 * 32 * 64
    assert size["logits_form_0_3"] == 2 * 25


def test_durations_are_a_roofline() -> None:
    graph = chainmm(1000, flops_per_s=1e9, memory_bytes_per_s=1e9, launch_s=1e-3)
    work = dict(zip(graph.task_names or (), graph.work_s, strict=True))
    assert work["ab_0_0_0"] == pytest.approx(250 * 500 * (2 * 500 - 1) / 1e9 + 1e-3)
    assert work["sum_0_0"] == pytest.approx(3 * 4 * 250 * 500 / 1e9 + 1e-3)  # moving is slower than adding


def test_dependencies_by_hand() -> None:
    graph = chainmm(8, row_parts=2, column_parts=1, inner_parts=2)
    links = {(graph.task_name(u), graph.task_name(v)) for u, v in zip(graph.edges[0], graph.edges[1], strict=True)}
    assert links == {
        *((f"ab_{i}_0_{k}", f"ab_form_{i}_0") for i in (0, 1) for k in (0, 1)),
        *((f"de_{k}_0_{part}", f"de_form_{k}_0") for k in (0, 1) for part in (0, 1)),
        *((f"de_form_{k}_0", f"cde_{i}_0_{k}") for i in (0, 1) for k in (0, 1)),
        *((f"cde_{i}_0_{k}", f"cde_form_{i}_0") for i in (0, 1) for k in (0, 1)),
        *((f"{side}_form_{i}_0", f"sum_{i}_0") for i in (0, 1) for side in ("ab", "cde")),
    }


def test_only_the_last_token_is_asked_for() -> None:
    graph = llama_layer(**SMALL, token_parts=3)
    readers = {graph.task_name(v) for u, v in zip(graph.edges[0], graph.edges[1], strict=True)
               if graph.task_name(u) == "last_norm_weight_0_0"}  # fmt: skip
    assert readers == set()
    last = {graph.task_name(u) for u, v in zip(graph.edges[0], graph.edges[1], strict=True)
            if graph.task_name(v) == "last_token_0_0"}  # fmt: skip
    assert last == {"last_norm_weight_2_0"}


@given(size=st.integers(1, 60), data=st.data())
def test_overlaps_are_those_of_the_intervals(size: int, data: st.DataObject) -> None:
    count, into = data.draw(st.integers(1, size)), data.draw(st.integers(1, size))
    part = data.draw(st.integers(0, count - 1))
    points = set(range(cuts(size, count)[part], cuts(size, count)[part + 1]))
    edges = cuts(size, into)
    wanted = [i for i in range(into) if points & set(range(edges[i], edges[i + 1]))]
    assert list(overlaps(size, count, part, into)) == wanted
    assert edges[0] == 0
    assert edges[-1] == size


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (chainmm, (76, 80, 5, 32)),
        (ffnn_forward, (180, 208, 12, 16)),
        (llama_block, (194, 240, 49, 12)),  # the file: 182, 234, 49, 12
        (llama_layer, (229, 284, 63, 12)),
        (lambda: llama_block(inner_parts=2), (302, 396, 49, 24)),  # the file: 302, 398, 49, 24
        (lambda: llama_layer(inner_parts=2), (351, 458, 63, 24)),  # the file: 367, 470, 63, 24
    ],
)
def test_the_papers_settings_have_the_papers_shapes(
    make: Callable[[], TaskGraph], expected: tuple[int, int, int, int]
) -> None:
    assert shape(make()) == expected


@pytest.mark.parametrize(
    ("file", "make", "num_different"),
    [
        ("gdp_chain_mm_112nodes", chainmm, 0),
        ("gdp_ffnn_192nodes", ffnn_forward, 0),
        ("gdp_full_transformer_layer_261nodes", llama_layer, 0),
        ("gdp_transformer_block_215nodes", llama_block, 27),
        ("8gpu_transformer_block", lambda **kw: llama_block(inner_parts=2, **kw), 4),
    ],
)
def test_with_the_papers_costs_they_are_the_papers_graphs(
    data_dir: Path, file: str, make: Callable[..., TaskGraph], num_different: int
) -> None:
    """Level by level as many tasks of the same cost, reads, readers and transfer; the block is cut unevenly there."""
    released = load(data_dir / "dataflow" / f"doppler-{file}.txt")
    made = make(paper_costs=True)
    assert isinstance(released, TaskGraph)
    assert made.transfer_unit == released.transfer_unit == "seconds"
    assert sum((profile(made) - profile(released)).values()) == num_different
    assert made.work_s.sum() == pytest.approx(released.work_s.sum(), rel=1e-4)


def test_paper_costs_charge_transfers_four_times_the_compute() -> None:
    graph = llama_layer(paper_costs=True)
    assert graph.object_size == pytest.approx(4 * graph.work_s[graph.object_task])


@pytest.mark.parametrize(
    ("make", "low"),
    [
        (lambda: llama_layer(num_layers=100), 19_800),
        (lambda: llama_block(num_layers=66, inner_parts=2), 19_900),
        (lambda: chainmm(row_parts=32, column_parts=16, inner_parts=10), 16_000),
        (lambda: ffnn_forward(batch_parts=64, hidden_parts=64, softmax_parts=512), 20_000),
    ],
)
def test_twenty_thousand_operations_take_seconds(make: Callable[[], TaskGraph], low: int) -> None:
    begin = time.process_time()
    graph = make()
    assert time.process_time() - begin < 2.0
    assert low <= graph.num_tasks <= 21_000


def test_layers_follow_each_other_and_share_mask_and_rotations() -> None:
    one, two = llama_layer(**SMALL), llama_layer(**SMALL, num_layers=2)
    links = {(two.task_name(u), two.task_name(v)) for u, v in zip(two.edges[0], two.edges[1], strict=True)}
    assert ("l0_ffn_add_0_0", "l1_attn_norm_cast_0_1") in links
    assert ("l0_ffn_add_1_0", "l1_attn_add_1_0") in links
    assert ("mask_1_0", "l1_attn_mask_0_1_0") in links
    assert max(levels(two)) > 1.5 * max(levels(one))
    assert sum(name.startswith(("mask", "rotations")) for name in two.task_names or ()) == 3


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: chainmm(0), "size"),
        (lambda: chainmm(3, row_parts=4), "ab along i"),
        (lambda: chainmm(flops_per_s=0.0), "flops_per_s"),
        (lambda: chainmm(memory_bytes_per_s=-1.0), "memory_bytes_per_s"),
        (lambda: chainmm(noise=-1.0), "noise"),
        (lambda: ffnn_forward(softmax_parts=0), "softmax_parts"),
        (lambda: llama_block(num_layers=0), "num_layers"),
        (lambda: llama_block(dim=100, num_heads=32), "dim"),
        (lambda: llama_layer(num_heads=2, feature_parts=4), "along h"),
    ],
)
def test_wrong_settings_are_named(make: Callable[[], TaskGraph], field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        make()


def test_a_formation_may_gather_blocks() -> None:
    program = Program("gather", Costs())
    cells = {"i": 4, "j": 2}
    x = program.apply("x", "elementwise", [program.input(i=8, j=8)], "ij", cells, formed={"j": 4})
    graph = program.graph()
    assert x.parts == {"i": 1, "j": 4}
    into = Counter(graph.task_name(int(task)) for task in graph.edges[1])
    assert into == {f"x_form_0_{j}": 4 for j in range(4)}
