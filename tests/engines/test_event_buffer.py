"""Events that wait for the run log stay within a bound, and what is left out is told."""

from __future__ import annotations

import pytest

from stretto.engines import event_writer
from stretto.engines.completion_log import Completion
from stretto.engines.driver.events import TaskStarted
from stretto.engines.event_writer import EventBuffer
from stretto.errors import EngineFailure


def test_what_waits_is_bounded_and_ends_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_writer, "MAX_EVENTS", 100)
    monkeypatch.setattr(event_writer, "MAX_BUFFERED_BYTES", 1000)
    told: list[str] = []
    waiting = EventBuffer(told.append)
    waiting.add([TaskStarted(0, 0, 1, 0.0)])
    waiting.failed(OSError("disk full"), is_last=False)
    for task in range(90):
        waiting.add([TaskStarted(task, 0, 1, 0.0), Completion(f"t{task}", {}, b"x" * 100)])
    ends = [item for item in waiting.items if isinstance(item, Completion)]
    assert [end.task for end in ends] == [f"t{task}" for task in range(90)]
    assert sum(len(end.output or b"") for end in ends) == 1000
    assert len(waiting.items) <= 100
    assert len(told) == 1
    assert "disk full" in told[0]
    loss = waiting.loss()
    assert isinstance(loss, EngineFailure)
    assert "the outputs of 80 tasks were left out" in str(loss)


def test_nothing_is_left_out_of_a_log_that_can_be_written() -> None:
    waiting = EventBuffer(lambda text: None)
    waiting.add([Completion("a", {}, b"x")])
    waiting.written()
    assert waiting.items == []
    assert waiting.loss() is None
