"""Strategies from other distributions: a fixed key per job, played by the compiled queue like any other order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.pool import Pool
from stretto.core.trace import UNKNOWN, Trace
from stretto.errors import InvalidInput
from stretto.queues.replay import replay
from stretto.queues.result import QueueResult
from stretto.registry import lookup


class Submitted(NamedTuple):
    """What is known of jobs when they are submitted; true run times are not among it."""

    submit_s: Floats  # [n]
    estimate_s: Floats  # [n] inf = the user gave none
    num_procs: Ints  # [n]
    user: Ints  # [n] -1 = not known
    memory_bytes: Floats  # [n] of the job, 0 = not known
    num_gpus: Ints  # [n]


class KeyStrategy(Protocol):
    """A strategy of a plugin, the object that its entry point names."""

    #: One line for ``stretto list strategies``.
    summary: str

    def key(self, jobs: Submitted) -> Floats:
        """Return a number per job; the lowest goes first, and among equals the first submitted."""
        ...


def play_plugin(
    trace: Trace, machine: int | Sequence[Pool], *, strategy: str, seed: int = 0, **rules: Any
) -> QueueResult:
    """Replay a trace in the order of a plugin's key."""
    component: KeyStrategy = lookup("strategy", strategy, {})
    # The kernels know one order by a number that comes with the job: its deadline. The key takes its place.
    if trace.deadline_s is not None or rules.get("pool_rule") == "burst":
        raise InvalidInput("strategies of plugins know no deadlines, and no pool rule burst", field=strategy)
    key = np.asarray(component.key(submitted(trace)), dtype=np.float64)
    if key.shape != (trace.num_jobs,) or bool(np.isnan(key).any()):
        raise InvalidInput(f"its key must be {trace.num_jobs} numbers, one per job", field=f"strategy {strategy}")
    found = replay(replace(trace, deadline_s=key), machine, strategy="edf", seed=seed, **rules)
    spec = {**found.spec, "strategy": strategy}
    return replace(found, trace=replace(found.trace, deadline_s=None), spec=spec)


def submitted(trace: Trace) -> Submitted:
    """Return what a strategy may know of the jobs of a trace."""
    n = trace.num_jobs
    return Submitted(
        trace.submit_s.copy(),
        np.where(np.isnan(trace.estimate_s), np.inf, trace.estimate_s),
        trace.num_procs.copy(),
        trace.user.copy() if trace.user is not None else np.full(n, UNKNOWN, np.int32),
        trace.memory_bytes.copy() if trace.memory_bytes is not None else np.zeros(n),
        trace.num_gpus.copy() if trace.num_gpus is not None else np.zeros(n, np.int32),
    )
