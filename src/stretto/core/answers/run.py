"""How a run went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stretto.core.answers.words import named, quoted
from stretto.core.units import format_count, format_seconds

if TYPE_CHECKING:
    from stretto.engines.session import Session


def run_answer(session: Session) -> str:
    """Say what ran in which time, what was predicted, and what failed."""
    result = session.result
    now, total = int(np.sum(result.is_finished)), len(result.device)
    earlier = session.num_done_before + session.num_up_to_date
    done = f"{now + earlier:,} of {format_count(total, 'task')} of {session.name} {'is' if total == 1 else 'are'} done"
    if result.status == "failed":
        return f"Failed: {_failures(session)}; {done}."
    if result.status != "done":
        return f"{result.status.capitalize()}: {done}."
    if not now:
        return f"Nothing had to run: {done}."
    ran = f"{format_count(now, 'task')} of {session.name} ran in {format_seconds(result.makespan_s)} ({result.engine})"
    by = " from assumed durations" if session.durations.startswith("assumed") and not result.is_timed else ""
    predicted = f"; {format_seconds(session.predicted_s)} predicted{by}"
    more = f"; {earlier:,} were done before" if earlier else predicted
    timed = "; tasks only passed time, so this says nothing about real machines" if result.is_timed else ""
    retried = sum(failure.blame != "cancelled" for failure in result.failures)
    again = f"; {format_count(retried, 'attempt')} failed and ran again" if retried else ""
    return f"{ran}{more}{again}{timed}."


def _failures(session: Session) -> str:
    if not session.failed:
        return "no task could go on"
    first = session.failed[0]
    others = [one["task"] for one in session.failed[1:]]
    also = f"; also {named(others)}" if others else ""
    return f"task {first['task']} ({quoted(first['reason'])}){also}"
