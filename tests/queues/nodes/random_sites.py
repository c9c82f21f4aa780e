"""Random small sites and jobs that use every feature of requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from stretto.core.request import ANY_GPU, JobRequest, ResourceRequest
from stretto.core.site import MIB, Partition, Reservation, Site, SiteNode
from stretto.core.site_policy import QOS_LIMITS, Account, PriorityFactors, Qos, SitePolicy
from stretto.core.trace import Trace

KINDS = ("a100", "v100")


def random_site(rng: np.random.Generator) -> Site:
    """Return up to six nodes in up to three partitions, which may overlap."""
    nodes = []
    for i in range(int(rng.integers(1, 7))):
        gpus = {kind: int(rng.integers(0, 4)) for kind in KINDS if rng.random() < 0.4}
        memory = float("inf") if rng.random() < 0.3 else int(rng.integers(1, 9)) * MIB
        features = frozenset(name for name in ("fast", "ib") if rng.random() < 0.5)
        nodes.append(SiteNode(f"n{i}", int(rng.integers(1, 9)), memory, gpus, features, int(rng.integers(1, 3))))
    names = [node.name for node in nodes]
    partitions = []
    for i in range(int(rng.integers(1, 4))):
        chosen = tuple(str(name) for name in rng.permutation(names)[: int(rng.integers(1, len(names) + 1))])
        partitions.append(
            Partition(
                f"p{i}",
                chosen,
                priority_tier=int(rng.integers(1, 3)),
                max_time_s=float(rng.choice([20.0, 1e6])),
                default_time_s=10.0 if rng.random() < 0.5 else None,
                max_nodes=int(rng.integers(1, 5)) if rng.random() < 0.3 else None,
                is_exclusive=bool(rng.random() < 0.15),
            )
        )
    reservations = []
    if rng.random() < 0.3:
        start = float(rng.integers(0, 60))
        closed = tuple(names[: int(rng.integers(1, len(names) + 1))])
        reservations.append(Reservation("maintenance", start, start + float(rng.integers(1, 40)), closed))
    return Site("small", tuple(nodes), tuple(partitions), tuple(reservations), random_policy(rng))


def random_policy(rng: np.random.Generator) -> SitePolicy:
    """Return weights and a tree of accounts, or none."""
    if rng.random() < 0.3:
        return SitePolicy()
    weights = [float(rng.choice([0, 10, 1000])) for _ in range(5)]
    factors = PriorityFactors(*weights, max_age_s=50, half_life_s=float(rng.choice([20, np.inf])))
    accounts = (Account("a0", None, 2), Account("a1", "a0", 3), Account("a1", user="u0", shares=5))
    qos = (Qos("q0", 10, **random_limits(rng)), Qos("q1", 3, **random_limits(rng)))
    return SitePolicy(factors, None, qos, accounts if rng.random() < 0.7 else ())


def random_limits(rng: np.random.Generator) -> dict[str, Any]:
    """Return some limits of a QOS, most of them low enough to matter."""
    least = {"jobs": 1, "cpus": 6, "gpus": 2}
    names = [name for name in QOS_LIMITS if name.split("_")[1] in least and rng.random() < 0.12]
    return {name: int(rng.integers(0, 4)) + least[name.split("_")[1]] for name in names}


def random_request(rng: np.random.Generator, site: Site) -> ResourceRequest:
    """Return a request that may or may not fit."""
    names = [part.name for part in site.partitions]
    partitions = tuple(str(name) for name in rng.permutation(names)[: int(rng.integers(0, min(3, len(names)) + 1))])
    tasks = int(rng.choice([1, 1, 2, 4, 9]))
    least = int(rng.integers(1, min(tasks, 3) + 1)) if rng.random() < 0.4 else 1
    gpus: dict[str, int] = {}
    if rng.random() < 0.35:
        gpus = {str(rng.choice([ANY_GPU, *KINDS])): int(rng.integers(1, 3))}
    per_task = bool(rng.random() < 0.5)
    memory = float(rng.integers(0, 4)) * MIB if rng.random() < 0.5 else 0.0
    return ResourceRequest(
        partitions,
        num_tasks=tasks,
        cpus_per_task=int(rng.choice([1, 1, 2, 3])),
        min_nodes=least,
        max_nodes=least + int(rng.integers(0, 2)) if rng.random() < 0.4 else None,
        tasks_per_node=int(rng.integers(1, 4)) if rng.random() < 0.2 else None,
        memory_bytes_per_cpu=memory if per_task else 0.0,
        memory_bytes_per_node=0.0 if per_task else memory,
        gpus_per_task=gpus if per_task else {},
        gpus_per_node={} if per_task else gpus,
        features=frozenset({"fast"}) if rng.random() < 0.15 else frozenset(),
        is_exclusive=bool(rng.random() < 0.1),
    )


def random_jobs(rng: np.random.Generator, site: Site, most: int = 24) -> Trace:
    """Return some jobs, some with parents, some heterogeneous, some in arrays with a limit."""
    n = int(rng.integers(1, most + 1))
    run = rng.integers(1, 20, n).astype(float)
    estimate = np.where(rng.random(n) < 0.15, np.nan, run + rng.integers(0, 15, n))
    requests: list[JobRequest] = []
    for _ in range(n):
        parts = tuple(random_request(rng, site) for _ in range(1 + (rng.random() < 0.1)))
        requests.append(parts if len(parts) > 1 else parts[0])
    parents = [(int(rng.integers(0, job)), job) for job in range(1, n) if rng.random() < 0.15]
    edges = np.array(parents, dtype=np.int32).reshape(-1, 2)
    trace = Trace.of(
        np.sort(rng.integers(0, 40, n)).astype(float),
        run,
        np.ones(n),
        estimate,
        parent=edges[:, 0].copy(),
        child=edges[:, 1].copy(),
        request=np.arange(n, dtype=np.int32),
        requests=tuple(requests),
        user=rng.integers(-1, 3, n).astype(np.int32),
        account=rng.integers(-1, 3, n).astype(np.int32) if rng.random() < 0.7 else None,
        qos=rng.integers(-1, 2, n).astype(np.int32),
        meta={"user_names": ("u0", "u1"), "account_names": ("a0", "a1", "a2"), "qos_names": ("q0", "q1")},
    )
    if rng.random() < 0.3:
        return replace(trace, limit_group=rng.integers(-1, 2, n).astype(np.int32), group_limits=(1, 2))
    return trace
