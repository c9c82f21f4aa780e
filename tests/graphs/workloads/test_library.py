"""The named library: each graph has the size and the shape that its definition gives it."""

from __future__ import annotations

import inspect
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto import catalog, registry
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.errors import InvalidInput, UnknownName
from stretto.graphs.workloads.erdos_renyi import erdos_renyi
from stretto.graphs.workloads.factorizations import cholesky, lu, qr
from stretto.graphs.workloads.fft import fft
from stretto.graphs.workloads.gaussian_elimination import gaussian_elimination
from stretto.graphs.workloads.grids import stencil, wavefront
from stretto.graphs.workloads.phases import fork_join, map_reduce
from stretto.graphs.workloads.rates import RATES, seconds
from stretto.graphs.workloads.series_parallel import series_parallel
from stretto.graphs.workloads.tensors.chain_matmul import chain_matmul
from stretto.graphs.workloads.tensors.ffnn import ffnn
from stretto.graphs.workloads.tensors.transformer import transformer
from stretto.graphs.workloads.trees import in_tree, out_tree
from stretto.graphs.workloads.workflows import cybershake, epigenomics, montage
from stretto.workloads import generate

NAMES = sorted(catalog.WORKLOADS)


def counts(graph: TaskGraph) -> dict[str, int]:
    return dict(Counter(graph.category_name(task) for task in range(graph.num_tasks)))


def arrows(graph: TaskGraph) -> set[tuple[str, str]]:
    return {
        (graph.task_name(u), graph.task_name(v))
        for u, v in zip(graph.edges[0].tolist(), graph.edges[1].tolist(), strict=True)
    }


def depth(graph: TaskGraph) -> int:
    level = [1] * graph.num_tasks
    reads: list[list[int]] = [[] for _ in level]
    for u, v in zip(graph.edges[0].tolist(), graph.edges[1].tolist(), strict=True):
        reads[v].append(u)
    for task in graph.topo.tolist():
        level[task] = 1 + max((level[u] for u in reads[task]), default=0)
    return max(level)


@pytest.mark.parametrize("name", NAMES)
def test_every_graph_is_usable_without_arguments(name: str) -> None:
    graph = generate(name)
    assert 20 <= graph.num_tasks <= 400
    assert graph.num_edges >= graph.num_tasks - 1
    assert np.all(graph.work_s > 0)
    assert np.any(graph.object_size > 0)
    Problem.of(graph, Cluster.parse("cpu:2,gpu:1"))


@pytest.mark.parametrize("name", NAMES)
def test_seed_is_explicit_and_decides(name: str) -> None:
    function = registry.lookup("workload", name, catalog.WORKLOADS)
    noisy = {"noise": 0.2} if "noise" in inspect.signature(function).parameters else {}
    first, again, other = (function(seed=seed, **noisy) for seed in (5, 5, 6))
    assert np.array_equal(first.work_s, again.work_s)
    assert np.array_equal(first.read_object, again.read_object)
    assert not np.array_equal(first.work_s, other.work_s)


@pytest.mark.parametrize("name", NAMES)
def test_help_line_is_a_sentence(name: str) -> None:
    first = (registry.lookup("workload", name, catalog.WORKLOADS).__doc__ or "").splitlines()[0]
    assert first[0].isupper()
    assert first.endswith(".")


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_linear_algebra_counts(n: int) -> None:
    pairs, triples, squares = math.comb(n, 2), math.comb(n, 3), n * (n - 1) * (2 * n - 1) // 6
    wanted = {"potrf": n, "trsm": pairs, "syrk": pairs, "gemm": triples}
    assert counts(cholesky(n)) == {key: value for key, value in wanted.items() if value}
    wanted = {"getrf": n, "trsm": 2 * pairs, "gemm": squares}
    assert counts(lu(n)) == {key: value for key, value in wanted.items() if value}
    wanted = {"geqrt": n, "unmqr": pairs, "tsqrt": pairs, "tsmqr": squares}
    assert counts(qr(n)) == {key: value for key, value in wanted.items() if value}


@pytest.mark.parametrize("n", [2, 3, 6])
def test_linear_algebra_critical_paths(n: int) -> None:
    assert depth(cholesky(n)) == 3 * n - 2  # potrf, trsm, syrk per step
    assert depth(lu(n)) == 3 * n - 2  # getrf, trsm, gemm per step
    # Flat tree: the column of tsqrt is a chain, and step k + 1 starts one row later.
    assert depth(qr(n)) >= 3 * n - 2


def test_cholesky_dependencies_by_hand() -> None:
    assert arrows(cholesky(3)) == {
        *{("potrf_0", "trsm_1_0"), ("potrf_0", "trsm_2_0"), ("trsm_1_0", "syrk_1_0"), ("trsm_2_0", "syrk_2_0")},
        *{("trsm_2_0", "gemm_2_1_0"), ("trsm_1_0", "gemm_2_1_0"), ("syrk_1_0", "potrf_1")},
        *{("potrf_1", "trsm_2_1"), ("gemm_2_1_0", "trsm_2_1"), ("trsm_2_1", "syrk_2_1"), ("syrk_2_0", "syrk_2_1")},
        ("syrk_2_1", "potrf_2"),
    }


def test_qr_row_versions_are_not_shared() -> None:
    graph = qr(3)
    assert ("tsqrt_1_0", "tsqrt_2_0") in arrows(graph)
    assert ("tsmqr_1_1_0", "tsmqr_2_1_0") in arrows(graph)
    assert ("tsmqr_1_1_0", "geqrt_1") in arrows(graph)
    task = graph.index_of["tsmqr_1_1_0"]
    assert graph.out_ptr[task + 1] - graph.out_ptr[task] == 2


def test_outputs_are_shared() -> None:
    graph = cholesky(6, noise=0)
    task = graph.index_of["potrf_0"]
    assert graph.out_ptr[task + 1] - graph.out_ptr[task] == 1
    readers = graph.object_ptr[graph.out_ptr[task] + 1] - graph.object_ptr[graph.out_ptr[task]]
    assert readers == 5


def test_gpu_lead_depends_on_the_kernel() -> None:
    graph = cholesky(4, noise=0)
    assert graph.kinds == ("cpu", "gpu")
    assert graph.kind_duration_s is not None
    lead = graph.kind_duration_s[:, 0] / graph.kind_duration_s[:, 1]
    by_kind = {graph.category_name(task): float(lead[task]) for task in range(graph.num_tasks)}
    assert by_kind["potrf"] == pytest.approx(2, rel=0.1)
    assert by_kind["gemm"] == pytest.approx(29, rel=0.1)


def test_rates_follow_the_slower_of_arithmetic_and_memory() -> None:
    assert seconds("gemm", 36e9)["cpu"] == pytest.approx(1.0)
    assert seconds("elementwise", 1.0, 12e9)["cpu"] == pytest.approx(1.0)
    assert seconds("reduce", 0.0, 600e9)["gpu"] == pytest.approx(1.0, rel=1e-4)
    assert all(rate.gpu_lead >= 1 for rate in RATES.values())
    with pytest.raises(UnknownName, match="gemm"):
        seconds("gem", 1.0)


@pytest.mark.parametrize("p", [1, 2, 8, 32])
def test_fft_counts(p: int) -> None:
    graph = fft(p)
    stages = int(math.log2(p))
    assert graph.num_tasks == 2 * p - 1 + p * stages
    assert depth(graph) == 2 * stages + 1
    source, target, size = graph.edges
    # Every butterfly stage moves the whole signal twice: each block to two readers.
    late = np.array([graph.category_name(int(task)) == "butterfly" for task in target], dtype=bool)
    assert size[late].sum() == 2 * stages * p * (1 << 20) * 16
    assert len(source) == 2 * p - 2 + 2 * p * stages


def test_fft_needs_a_power_of_two() -> None:
    with pytest.raises(InvalidInput, match="power of two"):
        fft(12)


@pytest.mark.parametrize("m", [2, 5, 16])
def test_gaussian_elimination_counts(m: int) -> None:
    graph = gaussian_elimination(m)
    assert graph.num_tasks == (m * m + m - 2) // 2
    assert depth(graph) == 2 * (m - 1)
    assert graph.work_s[-1] < graph.work_s[0] * 2 * 2 / m + 1e-12  # later columns are shorter


@pytest.mark.parametrize(("cells", "steps"), [(1, 1), (1, 5), (7, 3)])
def test_stencil(cells: int, steps: int) -> None:
    graph = stencil(cells, steps)
    assert graph.num_tasks == cells * steps
    assert graph.num_edges == (steps - 1) * (3 * cells - 2)
    assert depth(graph) == steps


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 5)])
def test_wavefront(rows: int, columns: int) -> None:
    graph = wavefront(rows, columns)
    assert graph.num_edges == rows * (columns - 1) + (rows - 1) * columns + (rows - 1) * (columns - 1)
    assert depth(graph) == rows + columns - 1


def test_fork_join_and_map_reduce() -> None:
    assert counts(fork_join(5, 3)) == {"fork": 3, "branch": 15, "join": 3}
    assert depth(fork_join(5, 3)) == 9
    graph = map_reduce(6, 4)
    assert counts(graph) == {"map": 6, "reduce": 4, "commit": 1}
    assert graph.num_edges == 6 * 4 + 4
    task = graph.index_of["map_0"]
    sizes = graph.object_size[graph.out_ptr[task] : graph.out_ptr[task + 1]]
    assert sizes.tolist() == [64e6] * 4  # a partition for each reduce


@pytest.mark.parametrize(("levels", "arity"), [(0, 2), (3, 2), (2, 4), (3, 1)])
def test_trees(levels: int, arity: int) -> None:
    size = sum(arity**level for level in range(levels + 1))
    inward, outward = in_tree(levels, arity), out_tree(levels, arity)
    for graph in (inward, outward):
        assert graph.num_tasks == size
        assert graph.num_edges == size - 1
        assert depth(graph) == levels + 1
    assert np.bincount(inward.edges[0], minlength=size).max(initial=0) <= 1  # one reader each
    assert np.bincount(outward.edges[1], minlength=size).max(initial=0) <= 1  # one parent each


def test_montage_structure() -> None:
    graph = montage(9)  # 3 x 3: 12 pairs beside or below, 8 diagonal
    assert counts(graph)["diff_fit"] == 20
    assert counts(graph)["project"] == counts(graph)["background"] == 9
    assert depth(graph) == 9
    assert ("project_4", "background_4") in arrows(graph)
    assert montage(1).num_tasks == 8


def test_epigenomics_structure() -> None:
    graph = epigenomics(2, 5)
    assert graph.num_tasks == 2 * (1 + 4 * 5 + 1) + 3
    assert depth(graph) == 1 + 4 + 1 + 3


def test_cybershake_structure() -> None:
    graph = cybershake(3, 4)
    assert counts(graph) == {"extract": 3, "synthesis": 12, "peak": 12, "zip": 2}
    assert graph.num_edges == 12 + 12 + 24


def test_chain_matmul_has_true_flops_and_bytes() -> None:
    size, grid = 6000, 3
    graph = chain_matmul(size, grid)
    assert counts(graph) == {"input": 5 * 9, "gemm": 3 * 27, "reduce": 3 * 9, "elementwise": 9}
    gemm = [task for task in range(graph.num_tasks) if graph.category_name(task) == "gemm"]
    assert graph.work_s[gemm].sum() * 36e9 == pytest.approx(3 * 2 * size**3)
    assert set(graph.object_size.tolist()) == {4 * (size / grid) ** 2}
    assert counts(chain_matmul(100, 1)) == {"input": 5, "gemm": 3, "elementwise": 1}


def test_ffnn_counts_and_flops() -> None:
    graph = ffnn((10, 20, 5), batch=8, num_shards=2)
    gemm = [graph.task_name(task) for task in range(graph.num_tasks) if graph.category_name(task) == "gemm"]
    assert sorted(name[:-2] for name in gemm) == sorted(
        ["forward_0", "forward_1", "weight_gradient_0", "weight_gradient_1", "backward_1"] * 2
    )
    assert arrows(graph) >= {
        ("gradient_0", "update_0"),
        ("weight_gradient_0_1", "gradient_0"),
        ("loss_0", "backward_1_0"),
    }
    assert ("batch_1", "weight_gradient_0_1") in arrows(graph)


def test_transformer_flops_do_not_depend_on_the_cut() -> None:
    def gemm_work(**cut: int) -> float:
        graph = transformer(tokens=512, width=256, hidden=512, **cut)
        gemm = [task for task in range(graph.num_tasks) if graph.category_name(task) == "gemm"]
        return float(graph.work_s[gemm].sum())

    whole = 2 * 512 * 256 * (4 * 256 + 3 * 512) / 36e9
    assert gemm_work(num_shards=1, num_chunks=1) == pytest.approx(whole)
    assert gemm_work(num_shards=8, num_chunks=4) == pytest.approx(whole)
    assert gemm_work(num_shards=2, num_chunks=2, num_layers=3) == pytest.approx(3 * whole)


def test_transformer_attention_is_causal() -> None:
    links = arrows(transformer(2, num_chunks=3))
    assert ("qkv_0_1_0", "attend_0_1_2") in links
    assert ("qkv_0_1_2", "attend_0_1_0") not in links
    assert ("qkv_0_0_0", "attend_0_1_0") not in links  # shards do not see each other's heads


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 120), edges=st.floats(0, 80), seed=st.integers(0, 9))
def test_erdos_renyi_is_simple_and_forward(n: int, edges: float, seed: int) -> None:
    graph = erdos_renyi(n, edges_per_task=edges, seed=seed)
    source, target, _ = graph.edges
    assert np.all(source < target)
    assert len({*zip(source.tolist(), target.tolist(), strict=True)}) == len(source)


def test_erdos_renyi_treats_all_pairs_alike() -> None:
    n, hits = 12, np.zeros((12, 12))
    for seed in range(400):
        source, target, _ = erdos_renyi(n, edges_per_task=1.0, seed=seed).edges
        hits[source, target] += 1
    share = hits[np.triu_indices(n, 1)] / 400
    assert share.mean() == pytest.approx(12 / 66, rel=0.05)
    assert share.min() > 0.09
    assert share.max() < 0.29
    assert erdos_renyi(5, edges_per_task=99).num_edges == 10


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 80), parallel=st.floats(0, 1), seed=st.integers(0, 9))
def test_series_parallel_reduces_to_one_edge(n: int, parallel: float, seed: int) -> None:
    graph = series_parallel(n, parallel=parallel, seed=seed)
    edges = {(u, v) for u, v in zip(graph.edges[0].tolist(), graph.edges[1].tolist(), strict=True)}
    shrinking = True
    while shrinking:  # contract every task with one way in and one way out
        shrinking = False
        for task in range(2, n):
            into = [u for u, v in edges if v == task]
            out = [v for u, v in edges if u == task]
            if len(into) == len(out) == 1:
                edges = (edges - {(into[0], task), (task, out[0])}) | {(into[0], out[0])}
                shrinking = True
    assert edges == {(0, 1)}


def test_generate_checks_names() -> None:
    with pytest.raises(UnknownName, match="cholesky"):
        generate("choleski")
    with pytest.raises(UnknownName, match="num_tiles"):
        generate("cholesky", num_tile=3)
    with pytest.raises(InvalidInput, match="num_tiles"):
        generate("cholesky", num_tiles=0)
    with pytest.raises(InvalidInput, match="num_tiles"):
        generate("cholesky", num_tiles=2.5)
