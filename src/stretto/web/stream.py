"""Server-sent events: what happens in a run, and changes of the list of runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from sse_starlette import EventSourceResponse, ServerSentEvent

from stretto.reports.page.live import live_progress
from stretto.reports.page.view import run_header
from stretto.reports.page.view_types import RunHeader
from stretto.reports.strict_json import dumps
from stretto.runlog import Event, RunInfo, RunLog

#: How often the log is read; a page shows news within a second.
POLL_S = 0.25
_ALIVE_EVERY_S = 10.0
#: When a browser connects again after a stream broke.
_RETRY_MS = 1000
_BATCH = 500


def event_json(event: Event) -> dict[str, object]:
    """Return an event as the API shows it."""
    return dict(vars(event))


def event_stream(events: AsyncIterator[ServerSentEvent]) -> EventSourceResponse:
    """Return events as a response; comments in between tell proxies, and us, that the connection is alive.

    A client that does not read holds the generator at its ``yield``; the connection itself limits for how long.
    """
    return EventSourceResponse(events, ping=_ALIVE_EVERY_S, sep="\n")


async def follow_run(log: RunLog, run_id: str, after: int) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of a run after a position, and its end; the stream ends with the run."""
    yield ServerSentEvent(retry=_RETRY_MS)
    while True:
        # The state is read before the events: what was written before the end is then not missed.
        info = await asyncio.to_thread(log.run, run_id)
        events = await asyncio.to_thread(log.events, run_id, after, None, _BATCH)
        if events:
            after = events[-1].seq
            yield _message("events", dumps({"events": [event_json(event) for event in events]}), after)
        elif info.status != "running":
            yield _message("end", dumps(run_header(info)), after)
            return
        if len(events) < _BATCH:
            await asyncio.sleep(POLL_S)


def listed(log: RunLog, runs: Sequence[RunInfo]) -> list[RunHeader]:
    """Return runs as lists show them, live ones with how far they have come."""
    now_s = time.time()
    return [{**run_header(info), "live": live_progress(log, info, now_s)} for info in runs]


async def follow_list(log: RunLog, limit: int) -> AsyncIterator[ServerSentEvent]:
    """Yield the list of runs, and again whenever it has changed."""
    text, last, has_live = "", "", True
    mark: tuple[int, ...] = ()
    yield ServerSentEvent(retry=_RETRY_MS)
    while True:
        now = _mark(log.path)
        # A log that nobody has written to is not read again; a live run may end silently, when its writer dies.
        if has_live or now != mark:
            mark = now
            runs = await asyncio.to_thread(log.runs, None, None, limit)
            has_live = any(info.status == "running" for info in runs)
            text = dumps({"runs": await asyncio.to_thread(listed, log, runs)})
        if text != last:
            last = text
            yield _message("runs", text)
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


def _message(kind: str, text: str, position: int | None = None) -> ServerSentEvent:
    readable = text.encode(errors="replace").decode()  # no encoding can write lone surrogates
    return ServerSentEvent(readable, event=kind, id=None if position is None else str(position))
