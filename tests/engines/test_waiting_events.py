"""Events that wait for the run log stay within a bound, and what is left out is told."""

from __future__ import annotations

import pytest

from stretto.engines import waiting_events
from stretto.engines.ends import End
from stretto.engines.events import TaskStarted
from stretto.engines.waiting_events import WaitingEvents
from stretto.errors import EngineFailure


def test_what_waits_is_bounded_and_ends_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_events, "MAX_EVENTS", 100)
    monkeypatch.setattr(waiting_events, "MAX_OUTPUT_BYTES", 1000)
    told: list[str] = []
    waiting = WaitingEvents(told.append)
    waiting.add([TaskStarted(0, 0, 1, 0.0)])
    waiting.failed(OSError("disk full"), is_last=False)
    for task in range(90):
        waiting.add([TaskStarted(task, 0, 1, 0.0), End(f"t{task}", {}, b"x" * 100)])
    ends = [item for item in waiting.items if isinstance(item, End)]
    assert [end.task for end in ends] == [f"t{task}" for task in range(90)]
    assert sum(len(end.output or b"") for end in ends) == 1000
    assert len(waiting.items) <= 100
    assert len(told) == 1
    assert "disk full" in told[0]
    loss = waiting.loss()
    assert isinstance(loss, EngineFailure)
    assert "the outputs of 80 tasks were left out" in str(loss)


def test_nothing_is_left_out_of_a_log_that_can_be_written() -> None:
    waiting = WaitingEvents(lambda text: None)
    waiting.add([End("a", {}, b"x")])
    waiting.written()
    assert waiting.items == []
    assert waiting.loss() is None
