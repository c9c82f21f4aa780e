"""The order of a queue at a moment, worked out again from the rules and the outcome of a replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from stretto.core.csr import Floats
from stretto.queues.kernels import codes, keys
from stretto.queues.kernels.keys import static_key
from stretto.queues.replay import RuleArguments, make_rules
from stretto.queues.result import QueueResult
from stretto.queues.strategies import (
    PlainKey,
    Strategy,
    StrategyLike,
    StrategySelector,
    Submitted,
    WaitKey,
    checked_key,
    name_of_strategy,
    strategy_of,
    submitted,
    takes_wait,
)

Rows = np.ndarray[tuple[int], np.dtype[np.intp]]
#: Returns the keys of some jobs at a moment, the lowest first; moments are asked for in ascending order.
KeyAt = Callable[[Rows, float], Floats]


def key_at(result: QueueResult, strategy: StrategyLike, origin_s: float, rules: RuleArguments) -> KeyAt | None:
    """Return the keys by which a replay ordered its queue; None where the outcome does not tell them.

    Selectors change between orders, and predictions of run times change what an order sees.

    Parameters
    ----------
    origin_s
        When the first job was submitted, which is zero in the result.
    """
    if strategy == "recorded":  # starts as they were; nobody wrote down the order
        return None
    found = strategy_of(strategy)
    if isinstance(found, StrategySelector) or rules.get("estimates", "user") not in ("user", "perfect"):
        return None
    estimate = result.trace.run_s if rules.get("estimates") == "perfect" else result.trace.estimate_s
    if not isinstance(found, Strategy):
        return _own_key(result, found, name_of_strategy(strategy), origin_s)
    if found.code == codes.MULTIFACTOR and result.site is not None:
        return None  # factors of partitions, accounts and QOS are not worked out again here
    if found.code == codes.MULTIFACTOR:
        return MultifactorKey(result, make_rules(found, **rules))
    if found.code >= keys.FIRST_DYNAMIC:
        return _dynamic(result, found.code, estimate)
    return _static(result, found.code, estimate)


def _static(result: QueueResult, code: int, estimate: Floats) -> KeyAt:
    trace = result.trace
    deadline = trace.deadline_s if trace.deadline_s is not None else np.full(trace.num_jobs, np.inf)
    known: dict[int, float] = {}

    def key(rows: Rows, now: float) -> Floats:
        for row in rows.tolist():
            if row not in known:
                submit, procs = float(trace.submit_s[row]), int(trace.num_procs[row])
                known[row] = static_key(code, row, submit, float(estimate[row]), procs, float(deadline[row]))
        return np.array([known[row] for row in rows.tolist()])

    return key


def _dynamic(result: QueueResult, code: int, estimate: Floats) -> KeyAt:
    """Return the formulas of ``kernels.keys.dynamic_key`` for many jobs at once."""
    at_least_1 = np.maximum(1.0, estimate)
    procs = result.trace.num_procs.astype(np.float64)
    width = np.maximum(1e-12, np.log2(procs))

    def key(rows: Rows, now: float) -> Floats:
        wait, length = now - result.ready_s[rows], at_least_1[rows]
        found: Floats = -wait / (width[rows] * length)
        if code == keys.EXPANSION:
            found = -(wait + length) / length
        elif code == keys.WFP3:
            found = -((wait / length) ** 3) * procs[rows]
        return found

    return key


def _own_key(result: QueueResult, function: PlainKey | WaitKey, name: str, origin_s: float) -> KeyAt:
    jobs = submitted(result.trace)
    jobs.submit_s[:] += origin_s
    if takes_wait(function):

        def by_wait(rows: Rows, now: float) -> Floats:
            some = Submitted._make(column[rows] for column in jobs)
            return checked_key(cast("WaitKey", function)(some, now - result.ready_s[rows]), len(rows), name)

        return by_wait
    fixed = checked_key(cast("PlainKey", function)(jobs), result.trace.num_jobs, name)
    return lambda rows, now: fixed[rows]


class MultifactorKey:
    """Age, size and fair share, with the usage of ended jobs charged to their users as time goes on."""

    def __init__(self, result: QueueResult, rules: codes.RuleCodes) -> None:
        trace = result.trace
        users = trace.user if trace.user is not None else np.zeros(trace.num_jobs, np.int32)
        self._user = np.unique(users, return_inverse=True)[1]
        self._by_end = np.argsort(result.end_s, kind="stable")
        self._ends = result.end_s[self._by_end]
        self._work = (trace.num_procs * result.run_s)[self._by_end]
        self._usage = np.zeros(int(self._user.max()) + 1)
        self._at, self._since = 0, 0.0
        self._ready = result.ready_s
        self._size = trace.num_procs / sum(pool.num_procs for pool in result.pools)
        self._rules = rules

    def __call__(self, rows: Rows, now: float) -> Floats:
        self._charge(now)
        rules, total = self._rules, float(self._usage.sum())
        share = self._usage / total if total > 0 else np.zeros_like(self._usage)
        fair = np.exp2(-share * len(self._usage))[self._user[rows]]
        age = np.minimum(1.0, (now - self._ready[rows]) / rules.max_age)
        return -(rules.age * age + rules.size * self._size[rows] + rules.fair_share * fair)

    def _charge(self, now: float) -> None:
        """Charge what has ended by now, each part with its own age."""
        upto = int(np.searchsorted(self._ends, now, side="right"))
        half_life = self._rules.half_life
        self._usage *= 2.0 ** (-(now - self._since) / half_life)
        new = self._by_end[self._at : upto]
        aged = self._work[self._at : upto] * np.exp2(-(now - self._ends[self._at : upto]) / half_life)
        np.add.at(self._usage, self._user[new], aged)
        self._at, self._since = upto, now
