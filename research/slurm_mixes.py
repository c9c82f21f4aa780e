"""Mixes of short sleep jobs, on small sites, on which the model of Slurm is compared with Slurm's daemons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from stretto.core.request import JobRequest, ResourceRequest
from stretto.core.site import MIB, Partition, Site, SiteNode
from stretto.core.site_policy import PriorityFactors, SchedulerTiming, SitePolicy
from stretto.core.trace import Trace


@dataclass(frozen=True)
class Mix:
    """A site and its jobs."""

    name: str
    site: Site
    jobs: Trace


def _names(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"n{i:02d}" for i in range(first, last + 1))


def _mix(
    name: str, site: Site, rng: np.random.Generator, requests: list[ResourceRequest], span_s: float, limits: list[float]
) -> Mix:
    """Return jobs that arrive over a span of time and sleep for 2 to 12 seconds."""
    n = len(requests)
    submit = np.round(np.sort(rng.uniform(0.0, span_s, n)), 3)
    run = np.round(rng.uniform(2.0, 12.0, n), 1)
    chosen: tuple[JobRequest, ...] = tuple(requests)
    trace = Trace.of(submit - submit[0], run, np.array([r.num_cpus for r in requests]), np.array(limits))
    request = np.arange(n, dtype=np.int32)
    return Mix(name, site, replace(trace, request=request, requests=chosen))


def small(num_jobs: int, seed: int) -> Mix:
    """Jobs of 1 to 8 processors in one partition of six equal nodes."""
    rng = np.random.default_rng(seed)
    nodes = tuple(SiteNode(name, 8) for name in _names(1, 6))
    policy = SitePolicy(scheduler=SchedulerTiming(bf_interval_s=2.0))
    site = Site("small", nodes, (Partition("all", _names(1, 6), is_default=True),), policy=policy)
    requests = []
    for _ in range(num_jobs):
        tasks = int(rng.choice([1, 1, 2, 2, 4, 6, 8]))
        most = 1 if rng.random() < 0.7 else None
        requests.append(ResourceRequest(num_tasks=tasks, max_nodes=most))
    limits = [60.0 * int(minutes) for minutes in rng.choice([1, 1, 2, 3, 5], num_jobs)]
    return _mix("small", site, rng, requests, 0.35 * num_jobs, limits)


def tiers(num_jobs: int, seed: int) -> Mix:
    """Two partitions that share nodes: short jobs come first."""
    rng = np.random.default_rng(seed)
    nodes = tuple(SiteNode(name, 8) for name in _names(1, 8))
    partitions = (
        Partition("short", _names(1, 5), priority_tier=10, max_time_s=120.0, max_nodes=3),
        Partition("long", _names(3, 8), priority_tier=1, is_default=True),
    )
    policy = SitePolicy(scheduler=SchedulerTiming(bf_interval_s=5.0, bf_resolution_s=30.0, bf_continue=True))
    site = Site("tiers", nodes, partitions, policy=policy)
    requests, limits = [], []
    for _ in range(num_jobs):
        kind = rng.random()
        names = ("short",) if kind < 0.4 else ("long",) if kind < 0.85 else ("short", "long")
        width = int(rng.choice([1, 1, 1, 2, 3]))
        tasks = width * int(rng.choice([1, 2, 4, 8]))
        requests.append(ResourceRequest(names, num_tasks=tasks, min_nodes=width, max_nodes=width))
        limits.append(60.0 * int(rng.choice([1, 2] if "short" in names else [1, 2, 5, 10])))
    return _mix("tiers", site, rng, requests, 0.6 * num_jobs, limits)


def gpus(num_jobs: int, seed: int) -> Mix:
    """GPUs of two types, jobs over several nodes, whole nodes, memory, and multifactor priorities."""
    rng = np.random.default_rng(seed)
    nodes = [SiteNode(name, 8, 16000 * MIB, weight=1) for name in _names(1, 4)]
    nodes += [SiteNode(name, 8, 32000 * MIB, {"a100": 2}, weight=5) for name in _names(5, 6)]
    nodes += [SiteNode(name, 8, 32000 * MIB, {"v100": 4}, weight=5) for name in _names(7, 8)]
    partitions = (
        Partition("cpu", _names(1, 8), priority_job_factor=1, is_default=True),
        Partition("gpu", _names(5, 8), priority_job_factor=4),
    )
    weights = PriorityFactors(age=500.0, job_size=1000.0, partition=1000.0, max_age_s=600.0)
    policy = SitePolicy(priority=weights, scheduler=SchedulerTiming(bf_interval_s=5.0))
    site = Site("gpus", tuple(nodes), partitions, policy=policy)
    requests = [_gpu_mix_request(rng) for _ in range(num_jobs)]
    limits = [60.0 * int(minutes) for minutes in rng.choice([1, 2, 4, 10], num_jobs)]
    return _mix("gpus", site, rng, requests, 0.5 * num_jobs, limits)


def _gpu_mix_request(rng: np.random.Generator) -> ResourceRequest:
    kind = rng.random()
    memory = float(rng.choice([0, 500, 2000])) * MIB
    if kind < 0.35:
        gpu = str(rng.choice(["a100", "v100"]))
        count = int(rng.choice([1, 1, 2]))
        return ResourceRequest(
            ("gpu",), cpus_per_task=int(rng.choice([1, 2, 4])), max_nodes=1, gpus_per_node={gpu: count}
        )
    if kind < 0.5:
        width = int(rng.choice([2, 2, 3, 4]))
        return ResourceRequest(("cpu",), num_tasks=2 * width, min_nodes=width, max_nodes=width, tasks_per_node=2)
    if kind < 0.58:
        return ResourceRequest(("cpu",), max_nodes=1, is_exclusive=True)
    cpus = int(rng.choice([1, 2, 3, 6]))
    return ResourceRequest(("cpu",), cpus_per_task=cpus, max_nodes=1, memory_bytes_per_node=memory)


MIXES: Mapping[str, Callable[[int, int], Mix]] = {"small": small, "tiers": tiers, "gpus": gpus}
