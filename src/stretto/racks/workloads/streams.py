"""Streams of jobs for racks: graphs of known kernels that arrive over time, beside a load that nobody announces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stretto.core.csr import Floats, group
from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput, UnknownName
from stretto.racks.kernels.state import Streams
from stretto.racks.machine_work import RackModel


@dataclass(frozen=True)
class ForeignLoad:
    """Co-located load: each source is on and off for exponential times, at a level drawn anew each time.

    Attributes
    ----------
    share
        Part of the time that a source is on.
    level
        Least and greatest level by the kind of part where the load enters, as a share of that part's capacity.
    period_s
        Mean time of an on-phase and the off-phase after it.
    """

    share: float = 0.4
    level: Mapping[str, tuple[float, float]] = field(
        default_factory=lambda: {"pcie-switch": (0.4, 1.2), "memory": (0.1, 0.4), "core": (0.2, 0.6)}
    )
    period_s: float = 40.0

    def __post_init__(self) -> None:
        if not (0 <= self.share <= 1 and self.period_s > 0):
            raise InvalidInput("share is in [0, 1], the period is positive", field="foreign load")
        for kind, (least, greatest) in self.level.items():
            if not 0 <= least <= greatest:
                raise InvalidInput(f"levels {least}, {greatest} must ascend from 0", field=f"foreign load on {kind}")


@dataclass(frozen=True)
class StreamSpec:
    """What streams are to be.

    Attributes
    ----------
    utilization
        Work that arrives over the work that the rack can do alone; sets the mean time between jobs.
    scale_sd
        Spread of a task's duration about that of its kernel, on a logarithmic scale; unknown to every policy.
    """

    num_jobs: int = 10
    utilization: float = 0.6
    scale_sd: float = 0.15
    foreign: ForeignLoad = field(default_factory=ForeignLoad)

    def __post_init__(self) -> None:
        if self.num_jobs < 1 or not self.utilization > 0 or not self.scale_sd >= 0:
            raise InvalidInput("num_jobs >= 1, utilization > 0, scale_sd >= 0", field="stream")


def kernel_codes(graph: TaskGraph, model: RackModel, kernel_of: Mapping[str, str] | None = None) -> list[int]:
    """Return the kernel of each task: by its category, through a table, or the categories in turn.

    Graphs from elsewhere (TPC-H, Alibaba, WfFormat) know nothing of our kernels: without a table, each of their
    categories, or each task where there are none, stands for one of them, in order.
    """
    names = {spec.name: k for k, spec in enumerate(model.kernels)}
    codes = []
    for task in range(graph.num_tasks):
        category = graph.category_name(task)
        if kernel_of is not None:
            if kernel_of.get(category) not in names:
                raise UnknownName("kernel of the rack:", str(kernel_of.get(category)), names)
            codes.append(names[kernel_of[category]])
        elif category in names:
            codes.append(names[category])
        else:
            place = int(graph.category[task]) if graph.category is not None else task
            codes.append(place % len(names))
    return codes


def streams_of(
    model: RackModel,
    graphs: Sequence[TaskGraph],
    spec: StreamSpec,
    *,
    num_instances: int,
    seed: int,
    kernel_of: Mapping[str, str] | None = None,
    is_scaled: bool = False,
) -> Streams:
    """Draw instances: jobs from the graphs at random, Poisson arrivals, foreign load.

    Parameters
    ----------
    is_scaled
        Whether a task's own duration counts, over the mean of its graph; otherwise its kernel says all.
    """
    if not graphs:
        raise InvalidInput("there are no graphs to draw from", field="graphs")
    rng = np.random.default_rng(seed)
    codes = [np.array(kernel_codes(graph, model, kernel_of)) for graph in graphs]
    mean_s = np.array([_harmonic(row) for row in model.arrays.duration_s])
    work = [float(mean_s[code].sum()) for code in codes]
    rate = spec.utilization * _parallelism(model, codes) / np.mean(work)
    size = spec.num_jobs * max(graph.num_tasks for graph in graphs)
    edges = spec.num_jobs * max(max(graph.num_edges for graph in graphs), 1)
    num_sources = len(model.arrays.source_demand)
    drawn = [rng.integers(len(graphs), size=spec.num_jobs) for _ in range(num_instances)]
    arrival = np.cumsum(rng.exponential(1 / rate, (num_instances, spec.num_jobs)), axis=1)
    arrival -= arrival[:, :1]
    horizon_s = float(arrival.max()) + 20.0 * max(work)
    num_phases = 2 * int(np.ceil(horizon_s / spec.foreign.period_s)) + 4
    out = _empty(num_instances, size, edges, arrival, num_sources, num_phases)
    for i in range(num_instances):
        parts = [(graphs[g], codes[g]) for g in drawn[i]]
        _fill_tasks(out, i, parts, mean_s, is_scaled)
        _fill_flows(out, i, spec.foreign, model.source_kind, rng)
    out.scale[:] *= np.exp(spec.scale_sd * rng.standard_normal(out.scale.shape))
    return out


def _harmonic(row: Floats) -> float:
    """Return the mean duration of a kernel when processors take it as fast as they can."""
    finite = row[np.isfinite(row)]
    return float(1.0 / np.mean(1.0 / finite))


def _parallelism(model: RackModel, codes: Sequence[np.ndarray]) -> float:
    """Return how many mean-speed processors the kernels of these graphs find."""
    able = np.isfinite(model.arrays.duration_s).sum(axis=1)
    return float(np.mean(able[np.concatenate(list(codes))]))


def _empty(num_instances: int, size: int, edges: int, arrival: Floats, num_sources: int, num_phases: int) -> Streams:
    num_jobs = arrival.shape[1]
    return Streams(
        kernel=np.zeros((num_instances, size), np.int64),
        scale=np.ones((num_instances, size)),
        job=np.full((num_instances, size), num_jobs, np.int64),
        num_before=np.zeros((num_instances, size), np.int64),
        after_ptr=np.zeros((num_instances, size + 1), np.int64),
        after=np.zeros((num_instances, edges), np.int64),
        rank_s=np.zeros((num_instances, size)),
        arrival_s=arrival,
        job_size=np.zeros((num_instances, num_jobs), np.int64),
        flow_s=np.full((num_instances, num_sources, num_phases), np.inf),
        flow_level=np.zeros((num_instances, num_sources, num_phases)),
    )


def _fill_tasks(
    out: Streams, i: int, parts: Sequence[tuple[TaskGraph, np.ndarray]], mean_s: Floats, is_scaled: bool
) -> None:
    first = num_edges = 0
    for job, (graph, code) in enumerate(parts):
        n = graph.num_tasks
        here = slice(first, first + n)
        out.kernel[i, here] = code
        out.job[i, here] = job
        out.job_size[i, job] = n
        source, target, _ = graph.edges
        pairs = np.unique(np.stack([source, target]), axis=1) if len(source) else np.zeros((2, 0), np.int32)
        out.num_before[i, here] = np.bincount(pairs[1], minlength=n)
        ptr, order = group(pairs[0].astype(np.int32), n)
        out.after_ptr[i, first : first + n + 1] = num_edges + ptr
        out.after[i, num_edges : num_edges + pairs.shape[1]] = first + pairs[1][order]
        if is_scaled and graph.work_s.mean() > 0:
            out.scale[i, here] = np.clip(graph.work_s / graph.work_s.mean(), 0.05, 20.0)
        for task in graph.topo[::-1]:
            later = pairs[1][order[ptr[task] : ptr[task + 1]]]
            behind = out.rank_s[i, first + later].max() if len(later) else 0.0
            out.rank_s[i, first + task] = mean_s[code[task]] + behind
        first += n
        num_edges += pairs.shape[1]
    out.after_ptr[i, first:] = num_edges


def _fill_flows(out: Streams, i: int, foreign: ForeignLoad, kinds: Sequence[str], rng: np.random.Generator) -> None:
    """Draw on- and off-phases of each source; the first begins somewhere in the middle."""
    num_phases = out.flow_s.shape[2]
    for f, kind in enumerate(kinds):
        levels = foreign.level.get(kind, (0.0, 0.0))
        is_on = rng.random() < foreign.share
        time_s = 0.0
        for phase in range(num_phases):
            out.flow_s[i, f, phase] = time_s
            out.flow_level[i, f, phase] = rng.uniform(*levels) if is_on else 0.0
            share = foreign.share if is_on else 1.0 - foreign.share
            time_s += rng.exponential(foreign.period_s * max(share, 1e-3))
            is_on = not is_on if 0 < foreign.share < 1 else is_on
