"""News as they happen: events of a run, and changes of the list of runs, as server-sent events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from stretto.reports.strict_json import dumps
from stretto.reports.view import run_header
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
    text, last, told_s, has_live = "", "", time.monotonic(), True
    mark: tuple[int, ...] = ()
    yield b"retry: 1000\n\n"
    while True:
        now = _mark(log.path)
        # A log that nobody has touched is not read again; a live run may end without a word, when its writer dies.
        if has_live or now != mark:
            mark = now
            runs = await asyncio.to_thread(log.runs, None, None, limit)
            has_live = any(info.status == "running" for info in runs)
            text = dumps({"runs": [run_header(info) for info in runs]})
        if text != last:
            last, told_s = text, time.monotonic()
            yield b"event: runs\ndata: " + text.encode(errors="replace") + b"\n\n"
        elif time.monotonic() - told_s > _ALIVE_EVERY_S:
            told_s = time.monotonic()
            yield b": still here\n\n"
        await asyncio.sleep(2 * POLL_S)


def _mark(path: Path) -> tuple[int, ...]:
    """Return what changes whenever somebody writes to the log."""
    found = []
    for name in (path, path.with_name(path.name + "-wal")):
        try:
            state = name.stat()
            found += [state.st_mtime_ns, state.st_size]
        except OSError:
            found += [0, 0]
    return tuple(found)


def _message(kind: str, content: dict[str, Any], place: int) -> bytes:
    return f"id: {place}\nevent: {kind}\ndata: {dumps(content)}\n\n".encode(errors="replace")
