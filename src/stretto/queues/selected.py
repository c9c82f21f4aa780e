"""What a selector is told, what it returns, and its result in the form that every replay has."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from stretto.core.csr import Floats
from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.queues.result import QueueResult


class SelectorSettings(Protocol):
    """What an operator sets of a selector."""

    def spec(self) -> dict[str, object]:
        """Return what is not the default, by name."""
        ...


class SelectorReplay(Protocol):
    """What every selector returns of a replay."""

    @property
    def trace(self) -> Trace: ...
    @property
    def start_s(self) -> Floats: ...
    @property
    def num_dropped(self) -> int: ...


def selected(found: SelectorReplay, machine: int, spec: dict[str, object], notes: tuple[str, ...]) -> QueueResult:
    """Return what a selector did with a trace in the form that every replay has."""
    n = found.trace.num_jobs
    end = found.start_s + found.trace.run_s
    return QueueResult(
        trace=found.trace,
        pools=(Pool("machine", machine),),
        start_s=found.start_s,
        end_s=end,
        ready_s=found.trace.submit_s,
        pool=np.zeros(n, np.int32),
        is_killed=np.zeros(n, np.bool_),
        num_interruptions=np.zeros(n, np.int32),
        cost_usd=np.zeros(1),
        billed_node_s=np.array([float(np.ceil(end.max())) * machine]),
        num_dropped=found.num_dropped,
        due_s=getattr(found, "due_s", None) if "slack" in spec else None,
        spec=spec,
        notes=notes,
    )
