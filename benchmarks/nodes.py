"""Speed of replays on the nodes of a site: jobs per second of CPU time, at several loads, and beside the reference.

Usage: ``python benchmarks/nodes.py [--jobs N] [--nodes N] [--loads 0.7,0.9] [--orders fcfs/easy,sjf/promise,...]
[--reference]``. With ``promise`` slack is 24h+4e, and every promise is checked.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from stretto.catalog import BACKFILLS, STRATEGIES
from stretto.core.request import ANY_GPU, JobRequest, ResourceRequest
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.trace import Trace
from stretto.queues.kernels.codes import PROMISE
from stretto.queues.nodes.promised import NodePromiseQueue
from stretto.queues.nodes.reference.replay import NodeReference
from stretto.queues.nodes.rules import node_rules
from stretto.queues.nodes.run import run_on_nodes
from stretto.queues.nodes.setup import NodeSetup, prepare_nodes
from stretto.queues.promises.slack import DEFAULT_SLACK, Slack
from stretto.registry import lookup

GIB = 2**30


def make_site(num_nodes: int) -> Site:
    """Return nodes of 64 CPUs and 256 GiB, a quarter of them with four GPUs, in three partitions that overlap."""
    num_gpu = num_nodes // 4
    nodes = [SiteNode(f"c{i}", 64, 256 * GIB) for i in range(num_nodes - num_gpu)]
    nodes += [SiteNode(f"g{i}", 64, 512 * GIB, {"a100": 4}, weight=10) for i in range(num_gpu)]
    names = [node.name for node in nodes]
    partitions = (
        Partition("batch", tuple(names), is_default=True),
        Partition("gpu", tuple(names[num_nodes - num_gpu :]), priority_tier=2),
        Partition("short", tuple(names[: num_nodes // 10]), max_time_s=4 * 3600.0),
    )
    return Site("bench", tuple(nodes), partitions)


def make_requests() -> list[tuple[float, ResourceRequest]]:
    """Return requests with their shares of the jobs: mostly parts of one node, some of several nodes."""
    found: list[tuple[float, ResourceRequest]] = []
    for cpus, share in ((1, 0.22), (2, 0.08), (4, 0.10), (8, 0.10), (16, 0.07), (32, 0.04), (64, 0.03)):
        for memory in (1, 2, 4):
            request = ResourceRequest(("batch",), cpus_per_task=cpus, max_nodes=1, memory_bytes_per_cpu=memory * GIB)
            found.append((share / 3, request))
    for gpus, share in ((1, 0.10), (2, 0.04), (4, 0.03)):
        node = {ANY_GPU: gpus}
        request = ResourceRequest(
            ("gpu",), cpus_per_task=8 * gpus, max_nodes=1, memory_bytes_per_cpu=4 * GIB, gpus_per_node=node
        )
        found.append((share, request))
    for nodes, share in ((2, 0.05), (4, 0.03), (8, 0.02), (16, 0.008), (32, 0.002)):
        tasks = {"num_tasks": 64 * nodes, "min_nodes": nodes, "max_nodes": nodes, "tasks_per_node": 64}
        found.append((share, ResourceRequest(("batch",), memory_bytes_per_cpu=2 * GIB, **tasks)))
    found.append((0.05, ResourceRequest(("short", "batch"), cpus_per_task=4, max_nodes=1)))
    found.append((0.02, ResourceRequest(("batch",), num_tasks=96, memory_bytes_per_cpu=GIB)))
    found.append((0.01, ResourceRequest(("gpu",), num_tasks=8, min_nodes=2, max_nodes=2, gpus_per_task={ANY_GPU: 1})))
    return found


def make_jobs(site: Site, num_jobs: int, load: float, seed: int = 0) -> Trace:
    """Return jobs that arrive such that they use a share of the site's processors."""
    rng = np.random.default_rng(seed)
    shares, requests = zip(*make_requests(), strict=True)
    chance = np.array(shares) / sum(shares)
    request = rng.choice(len(requests), num_jobs, p=chance).astype(np.int32)
    run = np.minimum(np.exp(rng.normal(7.0, 1.2, num_jobs)), 48 * 3600.0)
    estimate = np.ceil(run * (1 + rng.exponential(1.5, num_jobs)) / 300) * 300
    cpus = np.array([one.num_cpus for one in requests])[request]
    submit = np.cumsum(rng.exponential(1.0, num_jobs))
    length = float(np.sum(cpus * run)) / (load * site.num_cpus)
    kinds: tuple[JobRequest, ...] = requests
    return Trace.of(submit * length / submit[-1], run, cpus, estimate, request=request, requests=kinds)


def timed(setup: NodeSetup, strategy: str, backfill: str, *, repeats: int = 1) -> tuple[float, np.ndarray]:
    """Return the least CPU seconds of a replay, and the starts."""
    code = lookup("strategy", strategy, STRATEGIES).code
    best = float("inf")
    for _ in range(repeats):
        rules = node_rules(setup, code, lookup("backfill", backfill, BACKFILLS).code)
        begin = time.process_time()
        if rules.backfill == PROMISE:
            queue = NodePromiseQueue.of(setup, Slack.parse(DEFAULT_SLACK).of(setup.arrays.estimate), rules)
            queue.advance(rules)
            start_s = queue.start_s
            assert np.all(start_s <= queue.due_s)
        else:
            start_s = run_on_nodes(setup, rules).start_s
        best = min(best, time.process_time() - begin)
    return best, start_s


def against_reference(site: Site, strategy: str, backfill: str) -> None:
    """Print how much faster than the reference a short replay is."""
    trace = make_jobs(site, 300, 0.9)
    setup = prepare_nodes(trace, site)
    fast, start = timed(setup, strategy, backfill, repeats=3)
    code = lookup("strategy", strategy, STRATEGIES).code
    twin = NodeReference(setup, node_rules(setup, code, lookup("backfill", backfill, BACKFILLS).code))
    begin = time.process_time()
    twin.run()
    took = time.process_time() - begin
    assert start.tolist() == twin.start
    print(f"  reference, 300 jobs: {300 / took:10,.0f} jobs/s; compiled {took / fast:,.0f} times as fast")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--loads", default="0.7,0.8,0.9,1.1")
    parser.add_argument("--orders", default="fcfs/easy")
    parser.add_argument("--reference", action="store_true")
    args = parser.parse_args()
    site = make_site(args.nodes)
    warm = prepare_nodes(make_jobs(make_site(20), 200, 0.9), make_site(20))
    for order in args.orders.split(","):
        strategy, backfill = order.split("/")
        timed(warm, strategy, backfill)
        for load in (float(part) for part in args.loads.split(",")):
            trace = make_jobs(site, args.jobs, load)
            begin = time.process_time()
            setup = prepare_nodes(trace, site)
            prepared = time.process_time() - begin
            took, start = timed(setup, strategy, backfill)
            wait = start - setup.trace.submit_s
            print(
                f"{order:20s} load {load:4.2f}: {args.jobs / took:10,.0f} jobs/s "
                f"({args.jobs / (took + prepared):,.0f} with preparation), mean wait {wait.mean():,.0f} s, "
                f"{np.mean(wait > 0):.0%} waited",
                flush=True,
            )
        if args.reference:
            against_reference(make_site(50), strategy, backfill)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
