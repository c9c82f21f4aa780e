"""Sentences about a wait; the same for machines, pools and sites."""

from __future__ import annotations

from stretto.core.units import format_count, format_percent, format_wait
from stretto.queues.explain.names import Clock, JobNames
from stretto.queues.explain.stretches import Cause, JobWait, ResourceHolder, WaitStretch

#: Stretches that the first sentence tells one after the other; more are summed up by cause.
_TOLD_IN_TURN = 3
_HOW = {
    "running": "already running",
    "before": "submitted before it",
    "after": "submitted after it",
}


class WaitWords:
    """Writes a job's wait for people."""

    def __init__(self, names: JobNames, clock: Clock, *, is_selector: bool = False) -> None:
        self._names, self._clock, self._is_selector = names, clock, is_selector

    def answer(self, wait: JobWait) -> str:
        """Return the wait in one sentence."""
        job = f"Job {self._names.of(wait.row)}"
        if wait.wait_s <= 0:
            return f"{job} started at once: what it needs ({wait.needs}) was free when it was submitted."
        told = self._in_turn(wait) if len(wait.stretches) <= _TOLD_IN_TURN else self._by_cause(wait)
        return f"{job} waited {format_wait(wait.wait_s)} for {wait.needs}: {told}."

    def _in_turn(self, wait: JobWait) -> str:
        parts = []
        for i, one in enumerate(wait.stretches):
            until = ""
            if i + 1 < len(wait.stretches):
                until = f" until {self._clock.at(one.end_s, beside_s=wait.submit_s if i == 0 else one.begin_s)}"
            parts.append(("then " if i else "") + self._clause(one) + until)
        return ", ".join(parts)

    def _by_cause(self, wait: JobWait) -> str:
        groups: dict[tuple[Cause, tuple[str, ...]], list[WaitStretch]] = {}
        for one in wait.stretches:
            groups.setdefault((one.cause, one.resources), []).append(one)
        ranked = sorted(groups.values(), key=lambda group: -sum(one.length_s for one in group))
        parts = []
        for group in ranked:
            longest = max(group, key=lambda one: one.length_s)
            parts.append(f"for {format_wait(sum(one.length_s for one in group))} {self._clause(longest)}")
        return "; ".join(parts)

    def _clause(self, one: WaitStretch) -> str:
        """Return what held in a stretch, short enough for a sentence."""
        if one.cause is Cause.RESOURCE:
            where = f" in partition {' or '.join(one.names)}" if one.names else ""
            return f"too few {' and '.join(one.resources)} were free{where}"
        if one.ahead and one.cause is Cause.DEPENDENCY:
            return f"job {self._names.of(one.ahead[0])}, which it depends on, had not ended"
        if one.ahead:
            first = f"job {self._names.of(one.ahead[0])}"
            many = len(one.ahead) > 1
            who = f"{first} and {format_count(len(one.ahead) - 1, 'other')}" if many else first
            if one.cause is Cause.RESERVATION:
                return f"{who} had {'reservations' if many else 'a reservation'}"
            return f"{who} {'were' if many else 'was'} before it in the queue"
        return self._without_names(one)

    def _without_names(self, one: WaitStretch) -> str:
        if one.cause is Cause.MAINTENANCE:
            return f"nodes were closed by {' and '.join(one.names)}" if one.names else "nodes were closed"
        if one.cause is Cause.LIMIT:
            if one.names:
                return one.names[0]
            return f"as many jobs of its group ran as its limit of {one.needed} allows"
        if one.cause is Cause.POOL:
            return f"it waited for nodes of {' or '.join(one.names)} to come up, or for a better price"
        if one.cause is Cause.DEPENDENCY:
            return "a job that it depends on had not ended"
        if one.cause is Cause.UNKNOWN and one.is_head:
            return "it was first in the queue and would have fitted; the rules do not say why it did not start"
        if one.cause is Cause.UNKNOWN:
            return "it would have fitted; the record does not say why it did not start"
        if self._is_selector:
            return "it would have fitted, and was held back for jobs before it or for a reserve for short jobs"
        return "it would have fitted, and was held back for jobs before it in the queue"

    def detail(self, one: WaitStretch) -> str:
        """Return everything about a stretch."""
        text = self._clause(one)
        where = f" in partition {' or '.join(one.names)}" if one.names else ""
        if one.cause is Cause.RESOURCE:
            if one.needed is not None and one.free_least is not None:
                least = "" if one.free_least == one.free_most else f"{one.free_least:,} to "
                text = f"{least}{one.free_most:,} {one.resources[0]} free{where}, {one.needed:,} needed"
                if one.free_least >= one.needed:
                    text += " on fewer or other nodes than have them"
            text += self._held_by(one)
        if one.cause is Cause.RESERVATION and one.ahead:
            if one.reserved_s is not None:
                text += f" (at first for {self._clock.at(one.reserved_s, beside_s=one.begin_s)})"
            text += "; this job fitted, but would have delayed it"
        return text + ("; it was first in the queue" if one.is_head and one.cause is not Cause.UNKNOWN else "")

    def _held_by(self, one: WaitStretch) -> str:
        if not one.holders:
            return ""
        first = one.holders[0]
        if one.num_holders == 1:
            return f"; {self.holder(first)} held them"
        share = format_percent(first.share, decimals=0)
        return f"; {one.num_holders:,} jobs held them, {self.holder(first)} the most ({share})"

    def holder(self, one: ResourceHolder) -> str:
        """Return a job with its user."""
        user = self._names.user(one.row)
        return f"job {self._names.of(one.row)}" + (f" of user {user}" if user is not None else "")

    def how(self, one: ResourceHolder) -> str:
        """Return why a job was ahead."""
        return _HOW[one.how]

    def head(self, wait: JobWait) -> str:
        """Return since when the job was first in the queue."""
        if not wait.is_order_known:
            return "Who was first in the queue is not told: its order changed, or run times were predicted."
        if wait.head_since_s is None:
            return "It was not first in the queue before it started." if wait.wait_s > 0 else ""
        since = self._clock.at(wait.head_since_s, beside_s=wait.submit_s)
        return f"It was first in the queue since {since}, for {format_wait(wait.start_s - wait.head_since_s)}."
