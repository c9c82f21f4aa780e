"""What an actor does: one task after the other, in the order in which they were sent."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from stretto.engines.events import Blame
from stretto.engines.local.perform import TaskError, perform
from stretto.engines.outputs import digest
from stretto.engines.work import Action


@dataclass(frozen=True)
class Told:
    """How an attempt went; small, so that it is read without fetching the output."""

    start: float
    end: float
    digest: str | None = None
    blame: Blame | None = None
    reason: str = ""


class Runner:
    """One device."""

    def greet(self) -> None:
        """Return once the actor is up, which takes a second or two."""

    def run(self, action: Action, task: int, seconds: float, wants_digest: bool, *inputs: Any) -> tuple[Told, Any]:
        """Do a task; a failure is told, not raised, so that the actor lives on."""
        start, begin_s = time.time(), time.perf_counter()
        try:
            output = perform(action, task, inputs, seconds, threading.Event())
        except TaskError as error:
            return Told(start, start + time.perf_counter() - begin_s, None, error.blame, error.reason), None
        end = start + time.perf_counter() - begin_s
        return Told(start, end, digest(output) if wants_digest else None), output
