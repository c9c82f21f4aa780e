"""Workflows over owned, rented and spot nodes: MARS's way beside the best published strategy and pool rule.

A stream of recorded WfFormat workflows arrives at random. On the first 60 % of them ways are tried, with other
seeds of interruptions than those of the test; what is chosen there runs the last 40 %. The opponents are the published
strategies x pool rules, rule ``burst`` with seven prices of waiting, all of them run on the last 40 % itself. The named
opponent is the best of them (cost + a dollar per workflow and hour), chosen afterwards. MARS is asked for the least
cost within that one's flow time of the first part, and for the least flow time within its cost there. ``at equal flow``
compares with whatever opponent is cheapest among those that are not slower than MARS by more than 1 %: another one for
each row, which nobody could know.

Spot and on-demand prices are those of one instance type in one region, from the file of daily snapshots; the chance of
an interruption is not in any price list, and assumed. ``--load`` is what the stream would put on the owned nodes alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # research/

import numpy as np
from research.mars.workflows.pool_search import WAITS_USD, choose_way, fixed_ways
from research.mars.workflows.pools import Aim, PoolTrial, try_way
from research.readers.merge_traces import merge_traces

from stretto.core.graph import TaskGraph
from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.files.load import load
from stretto.files.prices.spot_series import spot_series
from stretto.files.traces.workflow import trace_of_graph

INSTANCE, REGION, ON_DEMAND_USD, VCPUS = "m5.2xlarge", "us-east-1", 0.384, 8
NUM_WORKFLOWS, OWN_PROCS = 60, 16
HAZARD_PER_HOUR = 0.05
TRAIN_SEEDS, TEST_SEEDS = (11,), (1, 2)
#: Of each workflow, from its submission on.
DEADLINE_S = 4 * 3600.0


def cost(options: argparse.Namespace) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Yield one row per seed of the stream and question."""
    yield (
        {},
        (
            "stream",
            "asked for",
            "best fixed",
            "its usd",
            "its flow",
            "MARS usd",
            "flow",
            "usd ratio",
            "flow ratio",
            "at equal flow",
            "late",
        ),
    )
    pools = market(options.data)
    for seed in options.seeds:
        past, future = stream(options.data, seed, options.load)
        value = Aim("both", deadline_s=DEADLINE_S)
        fixed = choose_way(future, pools, value, seeds=TEST_SEEDS, among=fixed_ways(len(pools), WAITS_USD))
        there = try_way(past, pools, fixed[0].way, value, TRAIN_SEEDS)
        for aim in (
            Aim("cost", deadline_s=DEADLINE_S, flow_limit_s=there.flow_s),
            Aim("time", deadline_s=DEADLINE_S, budget_usd=max(there.cost_usd, 1e-9)),
        ):
            chosen = choose_way(past, pools, aim, seeds=TRAIN_SEEDS)[0]
            ours = try_way(future, pools, chosen.way, aim, TEST_SEEDS)
            yield _row(f"{seed} at load {options.load:g}", aim, fixed, ours)


def _row(name: str, aim: Aim, fixed: list[PoolTrial], ours: PoolTrial) -> tuple[dict[str, Any], tuple[str, ...]]:
    best = fixed[0]
    ratios = ours.cost_usd / max(best.cost_usd, 1e-9), ours.flow_s / best.flow_s
    as_fast = [one.cost_usd for one in fixed if one.flow_s <= 1.01 * ours.flow_s and one.num_late <= ours.num_late]
    equal = ours.cost_usd / max(min(as_fast), 1e-9) if as_fast else 0.0
    row = {
        "instance": f"stream-{name}",
        "asked": aim.objective,
        "fixed": [asdict(one) for one in fixed],
        "ours": asdict(ours),
        "cost_ratio": ratios[0],
        "flow_ratio": ratios[1],
        "cost_ratio_at_equal_flow": equal,
    }
    way = f"{best.way.strategy} {best.way.pool_rule} {best.way.wait_usd_per_hour:g}"
    line = (
        *(name, aim.objective, way, f"{best.cost_usd:.2f}", f"{best.flow_s:.0f}", f"{ours.cost_usd:.2f}"),
        *(f"{ours.flow_s:.0f}", f"{ratios[0]:.3f}", f"{ratios[1]:.3f}"),
        *(f"{equal:.3f}" if as_fast else "none as fast", f"{ours.num_late:g}/{best.num_late:g}"),
    )
    return row, line


def market(data: Path) -> list[Pool]:
    """Return owned nodes, nodes on demand, and the same on the spot market."""
    series = data / "prices" / "aws-spot-daily-2022-12_2025-12.csv.gz"
    spot = spot_series(series, INSTANCE, region=REGION, hazard_per_hour=HAZARD_PER_HOUR, checkpoint_s=600.0)
    rented = Pool(
        "on-demand",
        16,
        procs_per_node=VCPUS,
        price_usd_per_hour=ON_DEMAND_USD,
        billing_s=60.0,
        provision_s=90.0,
        min_nodes=0,
        idle_shutdown_s=300.0,
    )
    return [Pool("own", OWN_PROCS), rented, replace(rented, name="spot", spot=spot)]


def stream(data: Path, seed: int, load_on_own: float) -> tuple[Trace, Trace]:
    """Return the first and the last workflows of a random stream."""
    rng = np.random.default_rng(seed)
    files = sorted((data / "wfformat").glob("*.json.gz"))
    graphs: list[TaskGraph] = []
    while len(graphs) < NUM_WORKFLOWS:
        graph = load(files[int(rng.integers(len(files)))])
        if isinstance(graph, TaskGraph) and graph.num_tasks <= 150 and graph.work_s.sum() > 600:
            graphs.append(graph)
    parts = [trace_of_graph(graph, user=0) for graph in graphs]
    work_s = np.mean([(part.run_s * part.num_procs).sum() for part in parts])
    gaps = rng.exponential(float(work_s) / (load_on_own * OWN_PROCS), NUM_WORKFLOWS)
    at = np.cumsum(gaps)
    parts = [
        replace(
            part,
            submit_s=part.submit_s + begin,
            num_procs=np.minimum(part.num_procs, VCPUS).astype(np.int32),
            memory_bytes=None,
        )
        for part, begin in zip(parts, at, strict=True)
    ]
    cut = int(0.6 * NUM_WORKFLOWS)
    return merge_traces(parts[:cut]), merge_traces(parts[cut:])
