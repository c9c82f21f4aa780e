"""Replay a trace on the nodes and partitions of a site."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stretto.catalog import BACKFILLS
from stretto.core.csr import Floats
from stretto.core.pool import Pool
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.kernels.codes import PROMISE
from stretto.queues.nodes.rules import node_rules
from stretto.queues.nodes.run import NodeRun, run_on_nodes
from stretto.queues.nodes.setup import NodeSetup, prepare_nodes
from stretto.queues.promises.facade import slack_table
from stretto.queues.result import QueueResult
from stretto.queues.strategies import (
    DEADLINE,
    KeyFunction,
    PlainKey,
    Strategy,
    Submitted,
    WaitKey,
    checked_key,
    submitted,
    takes_wait,
)
from stretto.registry import lookup

if TYPE_CHECKING:
    from stretto.queues.nodes.promised import NodePromiseQueue

#: What a replay on nodes knows of each rule, the default first; the rest is for plain machines and pools.
NODE_RULES: Mapping[str, tuple[str, ...]] = {
    "backfill": ("easy", "none", "conservative", "promise"),
    "estimates": ("user", "perfect"),
    "tie": ("batch",),
}


def check_node_rules(rules: Mapping[str, Any]) -> None:
    """Raise where a rule is not known on nodes."""
    for name, known in NODE_RULES.items():
        value = rules.get(name, known[0])
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
    they end before it or leave these nodes their room. With ``conservative`` every waiting job gets one. With
    ``promise`` every job is promised a latest start when it becomes eligible.
    """
    check_node_rules(rules)
    setup = prepare_nodes(
        trace, site, kill=bool(rules.get("kill", False)), perfect=rules.get("estimates", "user") == "perfect"
    )
    backfill = int(lookup("backfill", str(rules.get("backfill", "easy")), BACKFILLS).code)
    if backfill == PROMISE:
        slack_s = slack_table(rules.get("slack")).of(setup.trace, setup.arrays.estimate)
        return _replay_promised(setup, order, rules, slack_s, spec)
    if isinstance(order, Strategy):
        found = run_on_nodes(setup, node_rules(setup, order.code, backfill, rules.get("weights")))
        return to_result(setup, found, spec)
    return to_result(setup, run_by_key(setup, order, str(spec["strategy"]), backfill), spec)


def _replay_promised(
    setup: NodeSetup, order: Strategy | KeyFunction, rules: Mapping[str, Any], slack_s: Floats, spec: dict[str, object]
) -> QueueResult:
    """Replay with promises, in the order of a strategy or of a key function."""
    from stretto.queues.nodes.promised import NodePromiseQueue

    if isinstance(order, Strategy):
        own, codes = setup, node_rules(setup, order.code, PROMISE, rules.get("weights"))
        queue = NodePromiseQueue.of(own, slack_s, codes)
        queue.advance(codes)
    else:
        codes = node_rules(setup, DEADLINE.code, PROMISE)
        name = str(spec["strategy"])
        own = setup if takes_wait(order) else _with_key(setup, cast("PlainKey", order), name)
        queue = NodePromiseQueue.of(own, slack_s, codes)
        if takes_wait(order):
            _lead(queue, cast("WaitKey", order), name)
        else:
            queue.advance(codes)
    return replace(to_result(setup, queue.result(), spec), due_s=queue.due_s)


def _lead(queue: NodePromiseQueue, key: WaitKey, name: str) -> None:
    """Go from event to event with keys that are computed anew at each."""
    setup = queue.replay.setup
    codes = node_rules(setup, DEADLINE.code, PROMISE)
    jobs = submitted(setup.trace)
    jobs.submit_s[:] += setup.shift_s
    keys = np.zeros(setup.trace.num_jobs)
    while queue.next_event_s() < np.inf:
        if queue.happen(codes):
            rows = queue.waiting
            part = Submitted._make(column[rows] for column in jobs)
            wait_s = queue.now_s - queue.replay.state.ready[rows]
            keys[rows] = checked_key(key(part, wait_s), len(rows), name)
            queue.set_keys(keys, codes)
            queue.propose(codes)
        queue.settle()


def run_by_key(setup: NodeSetup, key: KeyFunction, name: str, backfill: int) -> NodeRun:
    """Replay in the order of a key function: compiled where the key does not change, by the reference otherwise."""
    if takes_wait(key):
        from stretto.queues.nodes.reference.keyed import run_keyed

        return run_keyed(setup, cast("WaitKey", key), name, backfill)
    own = _with_key(setup, cast("PlainKey", key), name)
    return run_on_nodes(own, node_rules(own, DEADLINE.code, backfill))


def _with_key(setup: NodeSetup, key: PlainKey, name: str) -> NodeSetup:
    """Return a set-up whose jobs have a key in place of the deadline: the one order that comes with the job."""
    jobs = submitted(setup.trace)
    jobs.submit_s[:] += setup.shift_s
    fixed = checked_key(key(jobs), len(jobs.submit_s), name)
    return replace(setup, arrays=setup.arrays._replace(deadline=fixed))


def to_result(setup: NodeSetup, run: NodeRun, spec: dict[str, object]) -> QueueResult:
    """Name what a replay on nodes left behind."""
    site, n = setup.site, setup.trace.num_jobs
    hours = math.ceil(float(run.end_s.max())) / 3600.0
    price = sum(node.price_usd_per_hour for node in site.nodes)
    number = {partition.name: i for i, partition in enumerate(site.partitions)}
    partition_of_shape = np.array([number[name] for name in setup.shape_partition], np.int32)
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
        partition=partition_of_shape[run.shape],
    )
