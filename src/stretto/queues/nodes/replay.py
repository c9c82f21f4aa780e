"""Replay a trace on the nodes and partitions of a site."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from stretto.core.pool import Pool
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.kernels import codes
from stretto.queues.nodes.run import NodeRun, run_on_nodes
from stretto.queues.nodes.setup import NodeSetup, prepare_nodes
from stretto.queues.result import QueueResult
from stretto.queues.strategies import KeyFunction, Strategy

#: What a replay on nodes knows of each rule; the rest is for plain machines and pools.
NODE_RULES: Mapping[str, tuple[str, ...]] = {
    "backfill": ("none", "easy"),
    "estimates": ("user", "perfect"),
    "tie": ("batch",),
}


def check_node_rules(rules: Mapping[str, Any]) -> None:
    """Raise where a rule is not known on nodes."""
    for name, known in NODE_RULES.items():
        value = rules.get(name, known[-1] if name == "backfill" else known[0])
        if value not in known:
            raise InvalidInput(f"{value!r} is not supported on a site; use {' or '.join(known)}", field=name)


def replay_site(
    trace: Trace,
    site: Site,
    order: Strategy | KeyFunction,
    rules: Mapping[str, Any],
    spec: dict[str, object],
) -> QueueResult:
    """Replay a trace on a site.

    Each group of partitions that share nodes has one queue. Jobs of a higher tier come first, then the strategy's
    order. With ``easy`` the first job that has to wait gets a reservation on certain nodes, and others may start if
    they end before it or leave these nodes their room.
    """
    check_node_rules(rules)
    setup = prepare_nodes(
        trace, site, kill=bool(rules.get("kill", False)), perfect=rules.get("estimates", "user") == "perfect"
    )
    if not isinstance(order, Strategy):
        raise InvalidInput("key functions are not supported on a site", field="strategy")
    if order.code == codes.MULTIFACTOR:
        raise InvalidInput("'multifactor' is not supported on a site", field="strategy")
    return to_result(setup, run_on_nodes(setup, order.code, str(rules.get("backfill", "easy"))), spec)


def to_result(setup: NodeSetup, run: NodeRun, spec: dict[str, object]) -> QueueResult:
    """Name what a replay on nodes left behind."""
    site, n = setup.site, setup.trace.num_jobs
    hours = math.ceil(float(run.end_s.max())) / 3600.0
    price = sum(node.price_usd_per_hour for node in site.nodes)
    return QueueResult(
        trace=setup.trace,
        pools=(Pool(site.name, site.num_cpus, price_usd_per_hour=price / site.num_cpus),),
        start_s=run.start_s,
        end_s=run.end_s,
        ready_s=run.ready_s,
        pool=np.zeros(n, np.int32),
        is_killed=setup.is_killed,
        num_interruptions=np.zeros(n, np.int32),
        cost_usd=np.array([hours * price]),
        billed_node_s=np.array([hours * 3600.0 * site.num_cpus]),
        num_dropped=setup.num_dropped,
        spec=spec,
        notes=setup.notes,
        site=site,
        shift_s=setup.shift_s,
        place_ptr=run.place_ptr,
        node=run.node,
        tasks=run.tasks,
    )
