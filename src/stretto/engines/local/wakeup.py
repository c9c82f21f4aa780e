"""How thread devices wait for their next order: they spin for a moment, then they sleep.

Waking a sleeping thread costs more than all other steps of reaching another device. So an idle device first watches a
word of memory for a moment, in compiled code and without the interpreter's lock. Only the queue says whether there is
an order: a word that is set too early, too late or not at all costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from queue import SimpleQueue

import numpy as np
import numpy.typing as npt

from stretto.engines.driver.events import Start

#: How long an idle device keeps its core busy before it sleeps.
_SPIN_S = 200e-6
_STRIDE = 8  # words between those of two devices, so that they share no cache line


class Wakeup:
    """Wakes the threads of devices, which spin before they sleep.

    Parameters
    ----------
    spins
        False where devices share cores: spinning would take time from those that have work.
    """

    def __init__(self, num_devices: int, spins: bool) -> None:
        self._words: npt.NDArray[np.int64] = np.zeros(_STRIDE * num_devices, dtype=np.int64)
        self._others: list[npt.NDArray[np.int64]] = [np.zeros(num_devices, dtype=np.int64) for _ in range(num_devices)]
        self._num_rounds = 0
        if spins:
            from stretto.core.kernels.spin import rounds_in, signal_and_watch

            self._num_rounds, self._watch = rounds_in(_SPIN_S), signal_and_watch

    def wake(self, devices: Sequence[int]) -> None:
        """Signal devices that have an order; for callers that do not wait themselves."""
        for device in devices:
            self._words[_STRIDE * device] = 1

    def next_order(self, device: int, inbox: SimpleQueue[Start | None], others: Sequence[int]) -> Start | None:
        """Wake others, and wait for the next order of a device."""
        if self._num_rounds == 0:
            return inbox.get()
        if not inbox.empty():
            self.wake([other for other in others if other != device])
            return inbox.get()
        mine, num_others = self._others[device], len(others)
        for i in range(num_others):
            mine[i] = others[i]
        # A word may be left over from an order that was taken long ago.
        while self._watch(self._words, device, mine, num_others, self._num_rounds) and inbox.empty():
            num_others = 0
        return inbox.get()
