"""A job's wait as JSON."""

from __future__ import annotations

from stretto.queues.explain.alternatives import JobAlternative
from stretto.queues.explain.names import Clock, JobNames
from stretto.queues.explain.sentences import WaitWords
from stretto.queues.explain.stretches import JobWait, ResourceHolder, WaitStretch
from stretto.queues.result import QueueResult

Fields = dict[str, object]


def wait_fields(wait: JobWait, result: QueueResult, names: JobNames, words: WaitWords, clock: Clock) -> Fields:
    """Return a wait with times in seconds of the replay; ``zero_unix_s`` is its begin, where that is known."""
    return {
        "strategy": result.spec.get("strategy"),
        "backfill": result.spec.get("backfill"),
        "needs": wait.needs,
        "zero_unix_s": clock.zero_unix_s,
        "submit_s": wait.submit_s,
        "ready_s": wait.ready_s,
        "start_s": wait.start_s,
        "end_s": wait.end_s,
        "wait_s": wait.wait_s,
        "is_order_known": wait.is_order_known,
        "head_since_s": wait.head_since_s,
        "stretches": [_stretch(one, names, words) for one in wait.stretches],
        "holders": [_holder(one, names) for one in wait.holders],
        "users": [{"user": names.user_named(user), "share": share} for user, share in wait.users],
    }


def _stretch(one: WaitStretch, names: JobNames, words: WaitWords) -> Fields:
    return {
        "begin_s": one.begin_s,
        "end_s": one.end_s,
        "cause": str(one.cause),
        "text": words.detail(one),
        "resources": list(one.resources),
        "needed": one.needed,
        "free_least": one.free_least,
        "free_most": one.free_most,
        "is_head": one.is_head,
        "holders": [_holder(holder, names) for holder in one.holders],
        "num_holders": one.num_holders,
        "ahead": [names.of(row) for row in one.ahead],
        "reserved_s": one.reserved_s,
        "names": list(one.names),
    }


def _holder(one: ResourceHolder, names: JobNames) -> Fields:
    return {"job": names.of(one.row), "user": names.user(one.row), "share": one.share, "how": one.how}


def alternative_fields(one: JobAlternative) -> Fields:
    """Return an alternative; what could not be replayed has no times."""
    fields = vars(one)
    return {name: fields[name] if fields[name] == fields[name] else None for name in fields}
