"""Replay what steering can do with a Slurm: give waiting jobs an order every so often, while Slurm starts them itself.

It is the model of Slurm with one more event. At every look the order decides on the same view that a live steerer has,
jobs get the same labels, which are added to their priorities, and jobs that arrive between two looks have none yet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stretto.catalog import ONLINE_ORDERS
from stretto.core.csr import Floats
from stretto.core.site import Site
from stretto.core.site_policy import SchedulerTiming
from stretto.core.trace import Trace
from stretto.core.units import parse_seconds
from stretto.errors import InvalidInput
from stretto.queues.live_order import StrategyOrder
from stretto.queues.nodes.replay import to_result
from stretto.queues.nodes.setup import NodeSetup, prepare_nodes
from stretto.queues.nodes.slurm_model.model import SlurmModel
from stretto.queues.nodes.slurm_model.parameters import DaemonTiming
from stretto.queues.nodes.slurm_model.replay import run_of
from stretto.queues.promises.live import PromisedOrder
from stretto.queues.promises.slack import DEFAULT_SLACK, Slack
from stretto.queues.relabel import relabel
from stretto.queues.result import QueueResult
from stretto.queues.view import QueueOrder, QueueView
from stretto.registry import construct

#: What a steered replay knows of each rule, the default first; Slurm backfills as its site says.
STEERED_RULES: Mapping[str, tuple[object, ...]] = {
    "backfill": ("easy", "promise"),
    "estimates": ("user",),
    "tie": ("batch",),
    "weights": (None,),
}


@dataclass(frozen=True)
class SteeringTiming:
    """How a queue is steered: seconds between two looks, the first look, and how many jobs get labels."""

    interval_s: float
    first_s: float = 0.0
    depth: int = 200

    def __post_init__(self) -> None:
        if not (0.05 <= self.interval_s < math.inf):
            raise InvalidInput(f"{self.interval_s} s between looks must be at least 0.05", field="as_steered")

    @property
    def margin_s(self) -> float:
        """How much earlier than promised a plan must start jobs: two looks and one of Slurm's backfill intervals."""
        return 2 * self.interval_s + 30.0


class SteeredModel(SlurmModel):
    """A Slurm whose waiting jobs get labels from an order."""

    def __init__(
        self,
        setup: NodeSetup,
        scheduler: SchedulerTiming,
        timing: DaemonTiming,
        order: QueueOrder,
        steering: SteeringTiming,
    ) -> None:
        super().__init__(setup, scheduler, timing)
        self.order_of, self.steering = order, steering
        self.look_at = steering.first_s
        users = setup.trace.user
        self.user = np.zeros(setup.trace.num_jobs, np.int32) if users is None else users
        self.latest_start: Floats = np.full(setup.trace.num_jobs, np.inf)

    def other_turn(self, now: float) -> float:
        """Return the next look at a queue in which jobs wait."""
        if not self.state.pending:
            return math.inf
        if self.look_at < now:
            self.look_at += math.ceil((now - self.look_at) / self.steering.interval_s) * self.steering.interval_s
        return max(self.look_at, now)

    def handle_other(self, now: float) -> None:
        """Decide, and give waiting jobs their labels."""
        self.look_at = now + self.steering.interval_s
        state, view = self.state, self.view(now)
        decision = self.order_of.decide(view)
        for index, due in decision.due_s.items():
            self.latest_start[int(view.job_id[index])] = due
        ours = [int(view.job_id[index]) for index in decision.order]
        current = {job: label for job, label in state.label.items() if job in state.pending}
        state.label = {job: current[job] for job in ours[: self.steering.depth] if job in current}
        state.label |= relabel(ours[: self.steering.depth], current)
        for job in ours:
            if state.label.get(job, 0) != current.get(job, 0):
                state.set_priority(job, now)

    def view(self, now: float) -> QueueView:
        """Return what a steerer sees of the queue."""
        state, q = self.state, self.state.q
        jobs = np.array(self.order[: self.next_submit], np.int64)
        start, end = (np.array(values)[jobs] for values in (state.start, state.end))
        return QueueView(
            now_s=now,
            num_procs=state.setup.site.num_cpus,
            job_id=jobs,
            submit_s=q.submit[jobs],
            estimate_s=np.maximum(q.estimate[jobs], 1.0),
            procs=q.procs[jobs].astype(np.int32),
            user=self.user[jobs],
            start_s=start,
            end_s=np.where(end <= now, end, np.nan),
            is_ready=np.array([job in state.pending for job in jobs.tolist()], np.bool_),
        )


def replay_as_steered(
    trace: Trace,
    site: Site,
    order: QueueOrder,
    steering: SteeringTiming,
    *,
    timing: DaemonTiming | None = None,
    kill: bool = False,
    spec: dict[str, object] | None = None,
) -> QueueResult:
    """Replay jobs on a site whose Slurm is steered; promised latest starts are in the result where the order gives any.

    Parameters
    ----------
    order
        As of a live queue; its state is that of this replay afterwards.
    timing
        Delays and phases of the daemons.
    """
    setup = prepare_nodes(trace, site, kill=kill)
    scheduler = site.policy.scheduler or SchedulerTiming()
    model = SteeredModel(setup, scheduler, timing or DaemonTiming(), order, steering)
    model.run()
    told = spec or {"strategy": "slurm", "estimates": "user"}
    found = to_result(setup, run_of(model.state), told | {"as_steered_s": steering.interval_s})
    return replace(found, due_s=model.latest_start) if isinstance(order, PromisedOrder) else found


def steered_by_rules(trace: Trace, machine: object, name: str, rules: Mapping[str, Any]) -> QueueResult:
    """Replay as steering by a strategy would have it; ``rules`` are those of :func:`stretto.queues.replay.replay`."""
    if not isinstance(machine, Site):
        raise InvalidInput(
            "needs --site: what steering can do depends on Slurm's nodes and partitions", field="as_steered"
        )
    for rule, known in STEERED_RULES.items():
        if rules.get(rule, known[0]) not in known:
            raise InvalidInput(f"{rules[rule]!r} is not what steering can do: Slurm starts jobs itself", field=rule)
    steering = SteeringTiming(parse_seconds(str(rules["as_steered"])))
    inner: QueueOrder = construct("order", name, ONLINE_ORDERS, {}) if name in ONLINE_ORDERS else StrategyOrder(name)
    is_promise = rules.get("backfill") == "promise"
    slack = Slack.parse(DEFAULT_SLACK if rules.get("slack") is None else rules["slack"])
    order = PromisedOrder(inner, slack, steering.margin_s) if is_promise else inner
    spec: dict[str, object] = {"strategy": name, "backfill": "promise" if is_promise else "slurm", "estimates": "user"}
    spec |= {"slack": str(slack)} if is_promise else {}
    return replay_as_steered(trace, machine, order, steering, kill=bool(rules.get("kill", False)), spec=spec)
