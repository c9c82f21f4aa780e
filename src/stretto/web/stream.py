"""News as they happen: events of a run, and changes of the list of runs, as server-sent events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from stretto.experiments.report_json import dumps
from stretto.experiments.report_view import run_header
from stretto.runlog import Event, RunLog

#: How often the log is asked; a page is to know within a second.
POLL_S = 0.25
#: A line now and then tells proxies, and us, that the other side is still there.
_ALIVE_EVERY_S = 10.0
_BATCH = 500


def event_json(event: Event) -> dict[str, Any]:
    """Return an event as the API tells it."""
    return {
        "seq": event.seq,
        "at_s": event.at_s,
        "kind": event.kind,
        "subject": event.subject,
        "fields": dict(event.fields),
    }


async def follow_run(log: RunLog, run_id: str, after: int) -> AsyncIterator[bytes]:
    """Yield the events of a run from a place on, and its end; the stream ends with the run."""
    told_s = time.monotonic()
    yield b"retry: 1000\n\n"
    while True:
        # The state is read before the events: what was written before the end is then not missed.
        info = await asyncio.to_thread(log.run, run_id)
        events = await asyncio.to_thread(log.events, run_id, after, None, _BATCH)
        if events:
            after, told_s = events[-1].seq, time.monotonic()
            yield _message("events", {"events": [event_json(event) for event in events]}, after)
        elif info.status != "running":
            yield _message("end", run_header(info), after)
            return
        elif time.monotonic() - told_s > _ALIVE_EVERY_S:
            told_s = time.monotonic()
            yield b": still here\n\n"
        if len(events) < _BATCH:
            await asyncio.sleep(POLL_S)


async def follow_list(log: RunLog, limit: int) -> AsyncIterator[bytes]:
    """Yield the list of runs, and again whenever it has changed."""
    last, told_s = "", time.monotonic()
    yield b"retry: 1000\n\n"
    while True:
        runs = await asyncio.to_thread(log.runs, None, None, limit)
        text = dumps({"runs": [run_header(info) for info in runs]})
        if text != last:
            last, told_s = text, time.monotonic()
            yield b"event: runs\ndata: " + text.encode(errors="replace") + b"\n\n"
        elif time.monotonic() - told_s > _ALIVE_EVERY_S:
            told_s = time.monotonic()
            yield b": still here\n\n"
        await asyncio.sleep(2 * POLL_S)


def _message(kind: str, content: dict[str, Any], place: int) -> bytes:
    return f"id: {place}\nevent: {kind}\ndata: {dumps(content)}\n\n".encode(errors="replace")
