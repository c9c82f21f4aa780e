"""What an order of a live queue goes by, kept in the run log: a steerer that is started again goes on where it was."""

from __future__ import annotations

import json
from typing import Any

from stretto.engines.slurm.steer.book import Book
from stretto.queues.view import KeptOrder, QueueOrder
from stretto.runlog import Run, RunLog

_STATE = "order.json"
#: Of a queue that was left for longer than this, somebody else's past is as good.
_FRESH_S = 7 * 86400.0
#: Runs that are looked at, the latest first.
_MOST_RUNS = 50


def place_of(book: Book, partition: str | None) -> list[str | None]:
    """Return which queue is steered: what is known of one says nothing of another."""
    return [book.conf, book.rest.url if book.rest is not None else None, partition]


class OrderKeeper:
    """Puts away what an order goes by, whenever that has changed; most orders go by nothing but the queue."""

    def __init__(self, run: Run, order: QueueOrder, place: list[str | None]) -> None:
        self._run, self._order, self._place = run, order, place
        self._last: dict[str, Any] | None = None

    def keep(self, now_s: float) -> None:
        """Write it into the run, where there is anything new; nobody may be deciding meanwhile."""
        if not isinstance(self._order, KeptOrder):
            return
        state = self._order.state()
        if state != self._last:
            self._run.attach(_STATE, json.dumps({"at_s": now_s, "place": self._place, "state": state}).encode())
            self._last = state


def take_up(log: RunLog, order: QueueOrder, place: list[str | None], now_s: float) -> bool:
    """Let an order go on where the last one of its kind left the same queue; tell whether it could."""
    if not isinstance(order, KeptOrder):
        return False
    for info in log.runs("steer", limit=_MOST_RUNS):
        content = log.artifact(info.id, _STATE)
        kept = json.loads(content) if content is not None else None
        if kept is not None and kept["place"] == place and now_s - kept["at_s"] <= _FRESH_S:
            return order.restore(kept["state"])
    return False
