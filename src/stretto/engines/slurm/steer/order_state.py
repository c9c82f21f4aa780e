"""The state of a learning order in the run log, so that a restarted steerer resumes where it stopped."""

from __future__ import annotations

import json

from stretto.engines.slurm.steer.label_store import LabelStore
from stretto.queues.view import KeptOrder, QueueOrder
from stretto.runlog import Run, RunLog

_STATE = "order.json"
#: States that are older than this are not resumed.
_FRESH_S = 7 * 86400.0
#: How many of the latest runs are searched.
_MOST_RUNS = 50


def queue_identity(store: LabelStore, partition: str | None) -> list[str | None]:
    """Return which queue is steered: a state is resumed only for the same queue."""
    return [store.conf, store.rest.url if store.rest is not None else None, partition]


class OrderStateWriter:
    """Saves the state of an order whenever it has changed; most orders have none."""

    def __init__(self, run: Run, order: QueueOrder, place: list[str | None]) -> None:
        self._run, self._order, self._place = run, order, place
        self._last: dict[str, object] | None = None

    def keep(self, now_s: float) -> None:
        """Write the state into the run if it is new; no decision may be running meanwhile."""
        if not isinstance(self._order, KeptOrder):
            return
        state = self._order.state()
        if state != self._last:
            self._run.attach(_STATE, json.dumps({"at_s": now_s, "place": self._place, "state": state}).encode())
            self._last = state


def resume_order(log: RunLog, order: QueueOrder, place: list[str | None], now_s: float) -> bool:
    """Restore the state of the last order of this kind for the same queue; return whether there was one."""
    if not isinstance(order, KeptOrder):
        return False
    for info in log.runs("steer", limit=_MOST_RUNS):
        content = log.artifact(info.id, _STATE)
        kept = json.loads(content) if content is not None else None
        if kept is not None and kept["place"] == place and now_s - kept["at_s"] <= _FRESH_S:
            return order.restore(kept["state"])
    return False
