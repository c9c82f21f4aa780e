"""Doppler on nodes that pack: its policies plan lanes, one task at a time each; what they find is decoded on the nodes.

A node becomes as many lanes as tasks of mean needs fit it. The policies see lanes of one node as devices between which
data moves for free. Their order and the node of each lane are then decoded with the true needs and polished by
annealing; the plan is never worse than that of HEFT or PEFT on the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.csr import Ints
from stretto.core.nodes.packing import Packing
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.graphs.kernels.search.decode import tails
from stretto.graphs.search.annealing import Annealing
from stretto.graphs.search.anytime import Solution, run_chains
from stretto.graphs.search.packed import PackedChain
from stretto.graphs.search.starts import decoded_s, floor_s, starting_points

#: More lanes would make the policies' tables large and their choice no better.
_MOST_LANES = 16


def plan_nodes(
    problem: Problem, packing: Packing, budget: Budget, plan_lanes: Callable[[Problem, Budget], Plan], moves: int | None
) -> Plan:
    """Plan lanes by a policy, decode the plan on the nodes and polish it.

    Parameters
    ----------
    moves
        Of the annealing that polishes; None gives it half of the time.
    """
    lanes, node_of = lanes_of(problem, packing)
    half = replace(budget, time_limit_s=budget.time_limit_s / 2) if budget.time_limit_s is not None else budget
    proposed = plan_lanes(lanes, half)
    mapped = Plan(node_of[proposed.assignment], proposed.order, "sequence")
    starts = starting_points(problem, ("heft", "peft"), budget.seed)
    own = Solution(decoded_s(problem, mapped), mapped.assignment, mapped.order)
    first = min([own, *starts], key=lambda solution: solution.makespan_s)
    tail = tails(problem.arrays)
    cool = Annealing(hot=0.05)
    streams = range(max(1, budget.num_threads))
    chains = [PackedChain(problem, tail, first, cool, half, stream) for stream in streams]
    found = run_chains(chains, half, max_evaluations=moves, floor_s=floor_s(problem, tail))
    info = {
        "proposed_by": "lanes" if first is own else "list planner",
        "lanes": lanes.num_devices,
        "lanes_s": own.makespan_s,
    }
    return Plan(found.best.assignment, found.best.order, "sequence", info)


def lanes_of(problem: Problem, packing: Packing) -> tuple[Problem, Ints]:
    """Return the problem on lanes, and the node (or device) of each lane."""
    mean = packing.need.mean(axis=0)
    node_of: list[int] = []
    for device, packs in enumerate(packing.packs):
        fit = [packing.capacity[device, r] / mean[r] for r in range(len(mean)) if mean[r] > 0] if packs else [1.0]
        node_of += [device] * int(np.clip(round(min(fit)), 1, _MOST_LANES))
    own = np.array(node_of, dtype=np.int32)
    arrays = problem.arrays
    devices = tuple(
        replace(problem.cluster.devices[node], name=f"lane{lane}", packs=False, resources=())
        for lane, node in enumerate(node_of)
    )
    bandwidth = np.where(own[:, None] == own[None, :], np.inf, problem.cluster.bandwidth[np.ix_(own, own)])
    cluster = Cluster(devices, problem.cluster.latency_s[np.ix_(own, own)], bandwidth, rules=problem.cluster.rules)
    graph = replace(
        problem.graph, cores=None, memory_bytes=None, resident_bytes=None, weights=None, gpus=None, other_needs={}
    )
    laid_out = arrays._replace(
        device_class=np.ascontiguousarray(arrays.device_class[own]),
        latency=np.ascontiguousarray(arrays.latency[np.ix_(own, own)]),
        inv_bandwidth=np.ascontiguousarray(arrays.inv_bandwidth[np.ix_(own, own)]),
    )
    roomy = replace(cluster, devices=tuple(replace(d, memory_bytes=float("inf"), cores=float("inf")) for d in devices))
    return Problem(graph, roomy, laid_out, problem.job_ptr), own
