"""How thread devices wait for their next order: they listen for a moment, then they sleep.

Waking a sleeper costs more than all the rest of the way to another device. So an idle device watches a word of memory
for a moment first, in compiled code and without the interpreter's lock. The queue stays the truth: a word that was set
too early, late or not at all costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np

from stretto.engines.events import Start

#: How long an idle device keeps its core busy before it sleeps.
_LISTEN_S = 200e-6
_STRIDE = 8  # words between those of two devices, so that they share no cache line


class Doorbell:
    """Queues of orders, one per device, whose readers listen before they sleep.

    Parameters
    ----------
    listens
        Whether to do so. Where devices share cores, listening would take time from those that have work.
    """

    def __init__(self, num_devices: int, listens: bool) -> None:
        self._words: Any = np.zeros(_STRIDE * num_devices, dtype=np.int64)
        self._others: list[Any] = [np.zeros(num_devices, dtype=np.int64) for _ in range(num_devices)]
        self._num_rounds = 0
        if listens:
            from stretto.core.kernels.spin import rounds_in, signal_and_watch

            self._num_rounds, self._watch = rounds_in(_LISTEN_S), signal_and_watch

    def ring(self, devices: Sequence[int]) -> None:
        """Tell those who listen that there is something for them; for callers that go on with work of their own."""
        for device in devices:
            self._words[_STRIDE * device] = 1

    def next_order(self, device: int, inbox: SimpleQueue[Start | None], others: Sequence[int]) -> Start | None:
        """Ring for others, and wait for the next order of a device."""
        if self._num_rounds == 0:
            return inbox.get()
        if not inbox.empty():
            self.ring([other for other in others if other != device])
            return inbox.get()
        mine, num_others = self._others[device], len(others)
        for i in range(num_others):
            mine[i] = others[i]
        # A word may stand for an order that was taken long ago: only the queue says whether there is one.
        while self._watch(self._words, device, mine, num_others, self._num_rounds) and inbox.empty():
            num_others = 0
        return inbox.get()
