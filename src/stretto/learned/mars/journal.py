"""What MARS did, in the run log: choices, rewards of ended jobs, and what a restart needs to go on."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from stretto.domain.csr import Floats
from stretto.domain.trace import QueueArrays
from stretto.learned.mars.network import MarsNet, net_of
from stretto.learned.mars.selector import Choice, Selector
from stretto.runlog import Run, RunLog

_STATE, _NET = "mars-selector.json", "mars-learned.npz"
_BOUND_S = 10.0


class Journal:
    """Writes one run; an epoch is written whole or not at all."""

    def __init__(self, run: Run, num_jobs: int) -> None:
        self._run = run
        self._is_told = np.zeros(num_jobs, np.bool_)

    def epoch(self, choice: Choice, selector: Selector, jobs: QueueArrays, start: Floats, now: float) -> None:
        """Write a choice, and the rewards of the jobs that have ended since the last one: minus their slowdowns."""
        ended = np.flatnonzero((start >= 0) & (start + jobs.run <= now) & ~self._is_told)
        self._is_told[ended] = True
        flow = start[ended] - jobs.submit[ended] + jobs.run[ended]
        reward = -np.maximum(1.0, flow / np.maximum(jobs.run[ended], _BOUND_S))
        with self._run.batch():
            self._run.record(
                "choice",
                choice.chosen,
                job=choice.job,
                time_s=choice.time_s,
                is_fallback=choice.is_fallback,
                has_drifted=choice.has_drifted,
                cost=dict(choice.cost),
            )
            self._run.record("reward", choice.chosen, job=ended.tolist(), reward=reward.round(6).tolist())
            self._run.attach(_STATE, json.dumps(selector.state()).encode())

    def learned(self, net: MarsNet, job: int) -> None:
        """Keep a network that was learned while the queue ran."""
        buffer = io.BytesIO()
        arrays: dict[str, Any] = net.to_arrays()
        np.savez(buffer, **arrays)
        with self._run.batch():
            self._run.record("learned", net.name, job=job)
            self._run.attach(_NET, buffer.getvalue())


def resume(log: RunLog, run_id: str, selector: Selector) -> MarsNet | None:
    """Give a selector the state in which a run left its own; return what was learned, where anything was."""
    state = log.artifact(run_id, _STATE)
    if state is not None:
        selector.restore(json.loads(state))
    content = log.artifact(run_id, _NET)
    if content is None:
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return net_of("learned", dict(arrays))
