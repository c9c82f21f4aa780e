"""Replay a trace in HPC-cloud pools with MARS: the same epochs, selector and guard as on a machine.

Candidates are pairs of an order and a pool rule (``pool_candidates.py``), judged by counterfactual replays of all the
past with what they paid (``pool_replays.py``). The operator's present order and pool rule come first and are the guard.
MARS begins with the trained pair, which has a prior as trained networks have on a plain machine.
Networks that order jobs are no candidates here: they know neither prices nor pools.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from stretto.core.csr import Floats
from stretto.core.pool import Pool
from stretto.core.pool_fit import runnable
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.kernels.codes import RuleCodes
from stretto.queues.kernels.outcome import ReplayOutcome
from stretto.queues.mars.cost import USUAL, JobCost
from stretto.queues.mars.epochs import Epochs
from stretto.queues.mars.parameters import MARS_PARAMETERS, MarsParameters
from stretto.queues.mars.pool_candidates import POOL_PARAMETERS, PoolCandidate, pool_candidates
from stretto.queues.mars.pool_replays import PoolReplays
from stretto.queues.mars.replay import MarsReplay, MarsSettings
from stretto.queues.mars.run_record import ChoiceRecorder
from stretto.queues.pools.queue import PoolQueue
from stretto.queues.promises.slack import SlackTable
from stretto.queues.result import QueueResult, Watch
from stretto.queues.setup import ReplaySetup, prepare
from stretto.runlog import Run

#: As on a plain machine, with shorter epochs.
POOL_RULES_OF_CHOICE = replace(MARS_PARAMETERS, epoch_jobs=POOL_PARAMETERS.epoch_jobs)
#: Weight of a USD where the operator says none: as much as one unit of the measure.
DEFAULT_MONEY = 1.0
ASSUMED_MONEY = "assumed: one USD counts as much as one unit of the measure; --money says otherwise"


def mars_in_pools(
    trace: Trace,
    pools: Sequence[Pool],
    base: RuleCodes,
    *,
    pool_rule: str = "cheapest",
    settings: MarsSettings | None = None,
    slack: SlackTable | None = None,
    rules: MarsParameters = POOL_RULES_OF_CHOICE,
    run: Run | None = None,
    watch: Watch | None = None,
    seed: int = 0,
    spec: dict[str, object] | None = None,
) -> tuple[QueueResult, MarsReplay]:
    """Replay a trace in pools, following at each epoch the pair that the selector trusts.

    Parameters
    ----------
    base
        The rules of the replay; order and pool rule are those of the candidates.
    pool_rule
        The operator's present one.
    settings
        Of the operator; without a weight of money, one USD counts as much as one unit of the measure.
    slack, rules, run, watch, seed
        As for ``mars_replay``.
    spec
        The rules by name, for the result.
    """
    said = settings if settings is not None else MarsSettings()
    if said.nets is not None:
        message = "trained networks know neither prices nor pools: leave --nets out in pools"
        raise InvalidInput(message, field="nets")
    if said.cost.price_usd_per_proc_hour != USUAL.price_usd_per_proc_hour:
        raise InvalidInput("prices are those of the pools: leave --price out", field="price")
    setup = checked_setup(trace, pools, base, seed, "MARS")
    cost = said.cost if said.cost.money > 0 else replace(said.cost, money=DEFAULT_MONEY)
    notes = setup.notes if said.cost.money > 0 else (*setup.notes, ASSUMED_MONEY)
    given = pool_candidates(base, cost, default=said.default, pool_rule=pool_rule)
    slack_s = np.inf if slack is None else slack.of(trace.keep(runnable(trace, pools)), setup.jobs.estimate)
    epochs = PoolEpochs(setup, given, slack_s, rules, cost, seed)
    names = tuple(one.name for one in given)
    epochs.recorder = None if run is None else ChoiceRecorder(run, names[epochs.selector.chosen], cost)
    with ThreadPoolExecutor(2) as executor:
        count = epochs.play(executor, watch)
    queue = epochs.queue
    result = pool_result(setup, queue, count, spec or {}, notes, with_promises=slack is not None)
    told = MarsReplay(
        result.trace,
        names,
        result.start_s,
        queue.plan.due[:count],
        epochs.chosen[:count],
        tuple(epochs.choices),
        setup.num_dropped,
        cost,
        setup.trace.num_jobs - count,
        tuple(one.name for one in given if not one.is_trained),
    )
    return result, told


def checked_setup(trace: Trace, pools: Sequence[Pool], base: RuleCodes, seed: int, who: str) -> ReplaySetup:
    """Return a set-up for a selector; raise where jobs depend on others."""
    if trace.parent is not None and len(trace.parent):
        raise InvalidInput(f"{who} replays jobs without dependencies only", field="dependencies")
    if seed < 0:
        raise InvalidInput(f"{seed} must not be negative", field="seed")
    setup = prepare(trace, tuple(pools), base, seed)
    if setup.trace.user is None:
        return setup
    user = np.unique(setup.trace.user, return_inverse=True)[1].astype(np.int32)
    return replace(setup, jobs=setup.jobs._replace(user=user))


def pool_result(
    setup: ReplaySetup,
    queue: PoolQueue,
    count: int,
    spec: dict[str, object],
    notes: tuple[str, ...],
    *,
    with_promises: bool,
) -> QueueResult:
    """Return what happened to the first jobs of a queue in pools."""
    out: ReplayOutcome = queue.out
    n = setup.trace.num_jobs
    return QueueResult(
        trace=setup.trace if count == n else setup.trace.window(0, count),
        pools=setup.pools,
        start_s=out.start[:count],
        end_s=out.end[:count],
        ready_s=out.ready[:count],
        pool=out.pool[:count],
        is_killed=out.killed[:count],
        num_interruptions=out.interruptions[:count],
        cost_usd=out.usd,
        billed_node_s=out.node_s,
        num_dropped=setup.num_dropped,
        due_s=queue.plan.due[:count] if with_promises else None,
        margin_s=queue.plan.margin[:count] if with_promises else None,
        spec=spec,
        notes=notes,
    )


class PoolEpochs(Epochs):
    """One replay in pools, from epoch to epoch."""

    queue: PoolQueue
    _replays: PoolReplays

    def __init__(
        self,
        setup: ReplaySetup,
        candidates: list[PoolCandidate],
        slack_s: Floats | float,
        rules: MarsParameters,
        cost: JobCost,
        seed: int,
    ) -> None:
        self.queue = PoolQueue.of(setup, slack_s)
        self._candidates = candidates
        self._replays = PoolReplays(self.queue, setup, candidates, slack_s, cost, seed)
        self._begin(setup.trace.num_jobs, candidates, rules, seed)

    def _advance(self, num_jobs: int) -> None:
        self.queue.advance(self._candidates[self.selector.chosen].rules, num_jobs)

    def _finish(self, num_arrived: int) -> int:
        self.queue.first(num_arrived).advance(self._candidates[self.selector.chosen].rules)
        return num_arrived

    def _reconsider(self, done: int, executor: Executor) -> None:
        rules, replays = self._rules, self._replays
        now = float(self.queue.jobs.submit[done - 1])
        replays.learn(done, now)
        played = min(done - rules.lag_jobs, replays.num_playable)
        if played < rules.epoch_jobs:
            return
        replays.play(played, executor)
        epochs = replays.epochs(played, rules.epoch_jobs)
        if epochs.shape[1] >= POOL_PARAMETERS.fewest_epochs:
            self._choose(epochs, done, now)
