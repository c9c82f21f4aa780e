"""Live queues in the order of a strategy from another distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.errors import InvalidInput
from stretto.queues.plugins import KeyStrategy, Submitted
from stretto.queues.view import QueueDecision, QueueView
from stretto.registry import lookup


@dataclass(frozen=True)
class PluginOrder:
    """The order of a plugin's key; of memory and GPUs a live queue tells nothing, so both are zero."""

    name: str

    def __post_init__(self) -> None:
        if not callable(getattr(self._component(), "key", None)):
            raise InvalidInput("this plugin has no key(jobs): see docs/howto/add-a-strategy.md", field=self.name)

    def decide(self, view: QueueView) -> QueueDecision:
        """Order the waiting jobs by their keys, those that do not fit the machine behind the others."""
        jobs = view.waiting
        n = len(jobs)
        known = Submitted(
            view.submit_s[jobs],
            view.estimate_s[jobs],
            view.procs[jobs],
            view.user[jobs],
            np.zeros(n),
            np.zeros(n, np.int32),
        )
        try:
            key = np.asarray(self._component().key(known), dtype=np.float64)
        except Exception as error:  # somebody else's code may fail in any way
            raise InvalidInput(f"the plugin's key failed: {type(error).__name__}: {error}", field=self.name) from error
        if key.shape != (n,) or bool(np.isnan(key).any()):
            raise InvalidInput(f"the plugin's key must be {n} numbers, one per job", field=self.name)
        is_wide = view.procs[jobs] > view.num_procs
        return QueueDecision(tuple(jobs[np.lexsort((np.arange(n), key, is_wide))].tolist()), self.name)

    def _component(self) -> KeyStrategy:
        found: KeyStrategy = lookup("strategy", self.name, {})
        return found
