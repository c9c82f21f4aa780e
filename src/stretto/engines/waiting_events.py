"""Events that wait for a run log which cannot be written just now: a full disk is often full for moments only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from stretto.engines.ends import End
from stretto.engines.events import Event
from stretto.errors import EngineFailure
from stretto.runlog import Run

#: What waits at most: outputs of tasks beyond it are left out (their tasks run again when the run is resumed), and so
#: are events other than ends.
MAX_EVENTS = 100_000
MAX_OUTPUT_BYTES = 64 << 20
#: How long the end of a run waits for a log that cannot be written.
LAST_PATIENCE_S = 5.0
_PAUSE_S = 0.2


class WaitingEvents:
    """Holds events until they are written, within a bound, and says so when they have to wait."""

    def __init__(self, on_notice: Callable[[str], None]) -> None:
        self.items: list[Event | End] = []
        self._on_notice = on_notice
        self._since_s: float | None = None  # when the log could no longer be written
        self._last_s: float | None = None  # when the run had ended, and the log could not be written
        self._num_lost = self._num_stripped = 0

    def add(self, items: Iterable[Event | End]) -> None:
        """Take events; where too much waits already, take what matters most of them."""
        self.items += items
        if self._since_s is None:
            return
        if len(self.items) > MAX_EVENTS:
            kept: list[Event | End] = []
            kept += [item for item in self.items if isinstance(item, End)][:MAX_EVENTS]
            self._num_lost += len(self.items) - len(kept)
            self.items = kept
        room = MAX_OUTPUT_BYTES
        for place, item in enumerate(self.items):
            size = len(item.output or b"") if isinstance(item, End) else 0
            if size > room:
                assert isinstance(item, End)
                self.items[place] = item._replace(output=None)
                self._num_stripped += 1
            else:
                room -= size

    def failed(self, error: Exception, *, is_last: bool) -> None:
        """Note that nothing could be written; wait a moment, or raise the error where the run has waited enough."""
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
            self._on_notice(f"{error}; the run goes on, and its events wait until the log can be written")
        if is_last:
            self._last_s = now_s if self._last_s is None else self._last_s
            if now_s - self._last_s > LAST_PATIENCE_S:
                raise error
        time.sleep(_PAUSE_S)

    def note_delay(self, run: Run) -> None:
        """Record with the events that wait how long they did."""
        if self._since_s is not None:
            run.record("record-delayed", "", seconds=time.monotonic() - self._since_s, num_lost=self._num_lost)

    def written(self) -> None:
        """Note that all that waited is in the log."""
        if self._since_s is not None:
            waited_s = time.monotonic() - self._since_s
            self._on_notice(f"the run log can be written again; {len(self.items):,} events waited for {waited_s:.1f} s")
        self.items = []
        self._since_s = self._last_s = None

    def loss(self) -> Exception | None:
        """Return what the record lacks in the end, None where it is complete."""
        if not (self._num_lost or self._num_stripped):
            return None
        return EngineFailure(
            f"while the run log could not be written, {self._num_lost:,} events and the outputs of"
            f" {self._num_stripped:,} tasks were left out"
        )
