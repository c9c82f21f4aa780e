"""Backfill ``promise`` of replays: what ``queues.replay`` needs of promises."""

from __future__ import annotations

import math

import numpy as np

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.queues.kernels import codes
from stretto.queues.kernels.outcome import ReplayOutcome
from stretto.queues.promises.queue import BY_ESTIMATE, BY_LENGTH, GIVEN, Preference, PromiseQueue, preference
from stretto.queues.promises.slack import DEFAULT_SLACK, Slack, SlackTable
from stretto.queues.setup import ReplaySetup
from stretto.queues.strategies import Submitted, WaitKey, checked_key, submitted

#: The share of its estimate by which backfill ``slack`` may delay the head.
DEFAULT_SHARE = 0.5


def slack_table(slack: float | str | None) -> SlackTable:
    """Return the slack of backfill ``promise``, for all jobs and for some."""
    return SlackTable.parse(DEFAULT_SLACK if slack is None else slack)


def slack_rule(backfill: int, slack: float | str | None) -> Slack:
    """Return the slack of a replay; of other backfillings than ``promise`` it is a share of the estimate."""
    if backfill == codes.PROMISE:
        return slack_table(slack).default
    try:
        share = DEFAULT_SHARE if slack is None else float(slack)
    except ValueError:
        message = f"{slack!r} is not a share of the estimate, such as 0.5; times are for backfill 'promise'"
        raise InvalidInput(message, field="slack") from None
    if not (share >= 0 and math.isfinite(share)):
        raise InvalidInput(f"{share} must be finite and not negative", field="slack")
    return Slack(0.0, share)


class KeyedOrder:
    """A key function of a user that is told how long jobs have waited.

    Parameters
    ----------
    origin_s
        When the first job was submitted, which is zero in the set-up.
    """

    def __init__(self, setup: ReplaySetup, key: WaitKey, name: str, origin_s: float) -> None:
        self._key, self._name, self._jobs = key, name, submitted(setup.trace)
        self._jobs.submit_s[:] += origin_s
        self._submit = setup.jobs.submit

    def fill(self, queue: PromiseQueue) -> None:
        """Compute the keys of all waiting jobs."""
        rows = queue.waiting
        jobs = Submitted._make(column[rows] for column in self._jobs)
        found = self._key(jobs, queue.now_s - self._submit[rows])
        queue.state.key[rows] = checked_key(found, len(rows), self._name)


def fill_promised(setup: ReplaySetup, out: ReplayOutcome, key: KeyedOrder | None = None) -> None:
    """Replay a set-up with promises; raise where they are not known. Money is billed by the caller on one machine."""
    rules = setup.rules
    if rules.one_event:
        raise InvalidInput("works with tie 'batch' only", field="backfill promise")
    if not setup.is_one_machine:
        _fill_pools(setup, out, key)
        return
    run = np.minimum(setup.jobs.run, setup.limit) if rules.kill else setup.jobs.run
    jobs = setup.jobs._replace(run=run)
    slack_s = setup.slack_s
    if slack_s is None:
        slack_s = Slack(rules.slack_s, rules.slack, rules.slack_wait).of(jobs.estimate)
    if len(jobs.child):
        _fill_dependent(setup, run, slack_s, out, key)
        return
    queue = PromiseQueue.of(jobs, setup.pools[0].num_procs, slack_s)
    if key is None:
        predicts = rules.estimates >= codes.LAST_TWO
        reservation = BY_LENGTH if predicts else BY_ESTIMATE
        queue.advance(preference(rules.strategy, by_length=predicts, reservation=reservation, rules=rules))
    else:
        _lead(queue, preference(GIVEN, rules=rules), key)
    out.start[:] = queue.state.start
    out.due[:] = queue.state.due
    np.add(out.start, run, out=out.end)
    out.ready[:] = jobs.submit
    out.killed[:] = run < setup.jobs.run


def _lead(queue: PromiseQueue, order: Preference, key: KeyedOrder) -> None:
    """Go from event to event with keys that are computed anew at each."""
    while queue.next_event_s() < np.inf:
        if queue.happen(order):
            key.fill(queue)
            queue.propose(order)
            queue.settle()


def _fill_dependent(
    setup: ReplaySetup, run: Floats, slack_s: Floats, out: ReplayOutcome, key: KeyedOrder | None
) -> None:
    """Replay jobs that wait for others, on a site of one node: a job is promised a start when it becomes eligible."""
    from stretto.queues.nodes.one_node import run_on_one_node

    rules = setup.rules
    if key is not None or rules.strategy == codes.MULTIFACTOR or rules.estimates >= codes.LAST_TWO:
        message = "with dependencies works for fixed orders and estimates 'user' and 'perfect', without weights"
        raise InvalidInput(message, field="backfill promise")
    estimate = np.maximum(setup.jobs.estimate, run)  # nobody outlives it: promises hold
    jobs = setup.jobs._replace(run=run, estimate=estimate)
    out.start[:], out.ready[:], out.due[:] = run_on_one_node(jobs, setup.pools[0].num_procs, rules.strategy, slack_s)
    np.add(out.start, run, out=out.end)
    out.killed[:] = run < setup.jobs.run


def _fill_pools(setup: ReplaySetup, out: ReplayOutcome, key: KeyedOrder | None) -> None:
    """Replay in pools; a job is promised a start when it becomes eligible, and again when it is interrupted."""
    from stretto.queues.pools.queue import PoolQueue

    if key is not None:
        message = "in pools works for orders of the catalog and keys that do not depend on the wait"
        raise InvalidInput(message, field="backfill promise")
    slack_s = Slack(setup.rules.slack_s, setup.rules.slack).of(setup.jobs.estimate)
    queue = PoolQueue.of(setup, slack_s if setup.slack_s is None else setup.slack_s)
    queue.advance(setup.rules)
    for ours, theirs in zip(out, queue.out, strict=True):
        ours[:] = theirs
    out.due[:] = queue.plan.due
    out.margin[:] = queue.plan.margin
