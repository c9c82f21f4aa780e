"""A problem as Doppler sees it: static features of tasks and reads, longest-path chains, device symmetry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.core.devices.weights import resident_of_tasks
from stretto.core.problem import Problem
from stretto.graphs.doppler.kernels.levels import bottom_chain, top_chain
from stretto.graphs.doppler.kernels.state import EpisodeInputs
from stretto.graphs.kernels.construct.ranks import mean_durations
from stretto.graphs.memory.needs import counts_objects

Singles = NDArray[np.float32]
#: Static features of a task: the paper's five, their logarithms, and the spread over device kinds.
NUM_TASK_FEATURES = 12


class GraphTensors(NamedTuple):
    """What the encoder reads, padded to a size that many graphs share.

    The row behind the last task is empty; padding and the ends of chains point to it.
    """

    node: Singles  # [N, F]
    mask: Singles  # [N]
    source: Ints  # [E]
    target: Ints  # [E]
    edge: Singles  # [E] standardised mean transfer; 0 where padded
    edge_mask: Singles  # [E]
    below: Ints  # [L, N] 1, 2, 4, ... tasks further along the b-path
    above: Ints  # [L, N]


def bucket(size: int) -> int:
    """Round up to a size of the form 2^k * (4..7)/4, so that programs are compiled for few shapes."""
    step = 1 << max(size - 1, 1).bit_length() >> 3
    step = max(step, 8)
    return -(-size // step) * step


def read_move_s(problem: Problem) -> tuple[Floats, Floats]:
    """Return the mean seconds between two different devices for each read, and for each object."""
    p = problem.arrays
    pairs = max(problem.num_devices * (problem.num_devices - 1), 1)
    latency, inverse = float(p.latency.sum()) / pairs, float(p.inv_bandwidth.sum()) / pairs
    of_object = np.where(p.object_size > 0, latency + p.object_size * inverse, 0.0)
    return of_object[p.in_object], of_object


def static_features(problem: Problem) -> tuple[Floats, Ints, Ints]:
    """Return the paper's five features [n, 5], and the tasks that follow on the b-path and the t-path.

    Compute, b-level, t-level, and the transfers of what is read and of what is produced (section 4 of the paper;
    an object that several tasks read counts once for each, as edges do there).
    """
    p = problem.arrays
    move_s, _ = read_move_s(problem)
    weight = mean_durations(p)
    bottom, below = bottom_chain(p, weight, move_s)
    top, above = top_chain(p, weight, move_s)
    reader = np.repeat(np.arange(problem.num_tasks), np.diff(p.in_ptr))
    incoming = np.bincount(reader, weights=move_s, minlength=problem.num_tasks)
    outgoing = np.bincount(p.in_task, weights=move_s, minlength=problem.num_tasks)
    return np.stack([weight, bottom, top, incoming, outgoing], axis=1), below, above


def fixed_side(problem: Problem, raw: Floats) -> EpisodeInputs:
    """Return what the rollout kernel needs beside the problem's arrays."""
    p = problem.arrays
    n = problem.num_tasks
    position = np.empty(n, dtype=np.int32)
    position[p.topo] = np.arange(n, dtype=np.int32)
    at_place = np.lexsort((position, -raw[:, 1])).astype(np.int32)
    place = np.empty(n, dtype=np.int32)
    place[at_place] = np.arange(n, dtype=np.int32)
    _, object_move_s = read_move_s(problem)
    limit = np.array([device.memory_bytes for device in problem.cluster.devices], dtype=np.float64)
    graph = problem.graph
    zeros = np.zeros(n)
    weight = np.ascontiguousarray(raw[:, 0])
    return EpisodeInputs(
        place=place,
        at_place=at_place,
        level=np.ascontiguousarray(raw[:, 1]),
        raw=np.ascontiguousarray(raw),
        weight=weight,
        object_move_s=object_move_s,
        twin=twins(problem),
        resident=resident_of_tasks(graph),
        need=zeros if graph.memory_bytes is None else np.ceil(graph.memory_bytes),
        limit=limit,
        object_bytes=np.ceil(p.object_size) if counts_objects(problem) else np.zeros(len(p.object_size)),
        is_limited=int(np.any(np.isfinite(limit))),
        scale_s=float(weight.mean()) or 1.0,
    )


def twins(problem: Problem) -> Ints:
    """Return for each device the lowest one that it can swap places with without any effect."""
    p = problem.arrays
    m = problem.num_devices
    devices = problem.cluster.devices
    twin = np.arange(m, dtype=np.int32)
    for d in range(m):
        for a in range(d):
            if twin[a] != a or p.device_class[a] != p.device_class[d]:
                continue
            if devices[a].memory_bytes != devices[d].memory_bytes:
                continue
            if _can_swap(p.latency, a, d) and _can_swap(p.inv_bandwidth, a, d):
                twin[d] = a
                break
    if problem.cluster.links is not None:
        # Routes over shared links tell devices apart under contention; equal rates are not enough.
        return np.arange(m, dtype=np.int32)
    return twin


def _can_swap(matrix: Floats, a: int, d: int) -> bool:
    swapped = np.arange(len(matrix))
    swapped[[a, d]] = [d, a]
    return bool(np.array_equal(matrix, matrix[np.ix_(swapped, swapped)]))


def graph_tensors(problem: Problem, raw: Floats, below: Ints, above: Ints) -> GraphTensors:
    """Return the padded tensors that the encoder reads."""
    p = problem.arrays
    n, num_reads = problem.num_tasks, len(p.in_task)
    size, num_edges = bucket(n + 1), bucket(max(num_reads, 1))
    scale = float(raw[:, 0].mean()) or 1.0
    finite = np.where(np.isfinite(p.duration), p.duration, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        fastest = np.log(np.nanmin(finite, axis=1) / raw[:, 0])
        slowest = np.log(np.nanmax(finite, axis=1) / raw[:, 0])
    spread = np.nan_to_num(np.stack([fastest, slowest], axis=1), nan=0.0, posinf=0.0, neginf=0.0)
    columns = np.concatenate([standardised(raw), standardised(np.log1p(raw / scale)), spread], axis=1)
    node = np.zeros((size, NUM_TASK_FEATURES), dtype=np.float32)
    node[:n] = columns
    mask = np.zeros(size, dtype=np.float32)
    mask[:n] = 1.0
    source = np.full(num_edges, n, dtype=np.int32)
    target = np.full(num_edges, n, dtype=np.int32)
    edge = np.zeros(num_edges, dtype=np.float32)
    edge_mask = np.zeros(num_edges, dtype=np.float32)
    if num_reads:
        move_s, _ = read_move_s(problem)
        source[:num_reads] = p.in_task
        target[:num_reads] = np.repeat(np.arange(n, dtype=np.int32), np.diff(p.in_ptr))
        edge[:num_reads] = standardised(move_s[:, None])[:, 0]
        edge_mask[:num_reads] = 1.0
    return GraphTensors(node, mask, source, target, edge, edge_mask, jumps(below, size), jumps(above, size))


def standardised(table: Floats) -> Floats:
    """Return columns with mean 0 and deviation 1; a column of equal values becomes 0."""
    deviation = table.std(axis=0)
    centred = table - table.mean(axis=0)
    return np.where(
        deviation > 1e-9 * np.abs(table).max(axis=0, initial=0.0), centred / np.maximum(deviation, 1e-30), 0.0
    )


def jumps(following: Ints, size: int) -> Ints:
    """Return tables of the tasks 1, 2, 4, ... steps along a chain; its end is the row behind the last task.

    With them the sum of a quantity along every chain takes log2(n) additions instead of one per task
    on the path: ``s += s[jump]`` for each table in turn.
    """
    n = len(following)
    step = np.full(size, n, dtype=np.int32)
    step[:n] = np.where(following >= 0, following, n)
    tables = []
    for _ in range(max(1, (size - 1).bit_length())):
        tables.append(step)
        step = step[step]
    return np.stack(tables)
