"""Routes that read: runs, their events and views, explanations; health and metrics."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from sse_starlette import EventSourceResponse
from starlette.responses import PlainTextResponse, Response

import stretto
from stretto import catalog
from stretto.api import logs
from stretto.api.documents import unpack
from stretto.errors import UnknownName
from stretto.registry import known
from stretto.reports.page.view import ENGINE_PLAN, run_header
from stretto.reports.page.view_types import JsonObject
from stretto.reports.problem import PLAN
from stretto.runlog import RunInfo, RunLog
from stretto.web.metrics import ServerMetrics
from stretto.web.models import EventList, Health, Names, RunDetail, RunList, TaskOutput
from stretto.web.replies import JsonReply, Refusal, refusals
from stretto.web.stream import event_json, event_stream, follow_list, follow_run, listed
from stretto.web.views import Views

router = APIRouter()
RunId = Annotated[
    str, Path(pattern=r"^[0-9A-Za-z_.-]{1,64}$", description="The id of a run, its first characters, or `latest`.")
]
_READ_S = 60.0
#: Of each output of a task; the end of it says most.
_MAX_OUTPUT_BYTES = 65_536
#: Runs that one page compares: more curves could not be told apart.
_MAX_COMPARED = 12


def find(log: RunLog, run_id: str) -> RunInfo:
    """Return a run, or refuse with 404."""
    try:
        return log.run(run_id)
    except UnknownName as error:
        raise Refusal(404, str(error), "run_id", run_id) from None


@router.get("/api/health", responses=refusals(), response_model=Health)
async def health(request: Request) -> JsonReply:
    """Check that the server is running."""
    state = request.app.state
    return JsonReply(
        {
            "status": "ok",
            "version": stretto.__version__,
            "uptime_s": time.monotonic() - state.requests.began_s,
            "num_workers": state.pool.size,
            "num_busy": state.pool.num_busy,
            "num_waiting": state.jobs.num_waiting,
        }
    )


@router.get("/api/names", responses=refusals(), response_model=Names)
def names() -> JsonReply:
    """List the policies, workloads, strategies and formats that requests may name."""
    tables = {
        "policies": known("policy", catalog.PLANNERS),
        "workloads": known("workload", catalog.WORKLOADS),
        "strategies": [*known("strategy", catalog.STRATEGIES), *catalog.SELECTORS],
        "backfills": catalog.BACKFILLS,
        "estimates": catalog.ESTIMATES,
        "pool_rules": catalog.POOL_RULES,
        "generators": known("trace generator", catalog.TRACE_GENERATORS),
        "graph_formats": known("format", catalog.FORMATS),
        "trace_formats": known("trace format", catalog.TRACES),
    }
    return JsonReply({name: sorted(table) for name, table in tables.items()})


@router.get("/metrics", responses=refusals(), response_class=PlainTextResponse)
async def prometheus(request: Request) -> Response:
    """Return the metrics of the server in Prometheus's text format."""
    state = request.app.state
    found = ServerMetrics(state.requests, state.jobs, state.log)
    return Response(await asyncio.to_thread(found.exposition), media_type=CONTENT_TYPE_PLAIN_0_0_4)


@router.get("/api/runs", responses=refusals(422), response_model=RunList)
def list_runs(
    request: Request,
    kind: Annotated[str | None, Query(max_length=32, pattern=r"^[a-z-]+$")] = None,
    status: Annotated[Literal["running", "done", "failed", "interrupted"] | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JsonReply:
    """List the latest runs, the newest first."""
    log: RunLog = request.app.state.log
    return JsonReply({"runs": listed(log, log.runs(kind, status, limit))})


@router.get("/api/runs/{run_id}", responses=refusals(404, 422), response_model=RunDetail)
def run_detail(request: Request, run_id: RunId) -> JsonReply:
    """Return a run and the names of its attachments."""
    log: RunLog = request.app.state.log
    info = find(log, run_id)
    return JsonReply(run_header(info) | {"artifacts": log.artifacts(info.id)})


@router.get("/api/runs/{run_id}/plan", responses=refusals(404, 422), response_model=JsonObject)
def run_plan(request: Request, run_id: RunId) -> JsonReply:
    """Return the plan of a run as `stretto plan --output json` prints it; `stretto simulate` reads it."""
    log: RunLog = request.app.state.log
    info = find(log, run_id)
    for name in (PLAN, ENGINE_PLAN):
        data = log.artifact(info.id, name)
        if data is not None:
            return JsonReply(unpack(data, name), headers={"Content-Disposition": f'inline; filename="{info.id}.json"'})
    raise Refusal(404, "this run has no plan", "run_id", info.id)


@router.get("/api/runs/{run_id}/events", responses=refusals(404, 422), response_model=EventList)
def run_events(
    request: Request,
    run_id: RunId,
    after: Annotated[int, Query(ge=0, lt=2**53, description="Only events after this number.")] = 0,
    kind: Annotated[str | None, Query(max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> JsonReply:
    """Return events of a run in order."""
    log: RunLog = request.app.state.log
    events = log.events(find(log, run_id).id, after, None if kind is None else [kind], limit)
    return JsonReply({"events": [event_json(event) for event in events]})


_STREAM: dict[int | str, JsonObject] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Server-sent events."},
}


@router.get("/api/runs/{run_id}/stream", responses=_STREAM | refusals(404, 422), response_class=EventSourceResponse)
async def run_stream(
    request: Request,
    run_id: RunId,
    after: Annotated[int, Query(ge=0, lt=2**53, description="Only events after this number.")] = 0,
) -> EventSourceResponse:
    """Stream the events of a run as they are written, and its end. `Last-Event-ID` resumes a broken stream."""
    log: RunLog = request.app.state.log
    info = await asyncio.to_thread(find, log, run_id)
    last = request.headers.get("last-event-id", "")
    place = int(last) if last.isdecimal() and len(last) < 16 else after
    return event_stream(follow_run(log, info.id, place))


@router.get("/api/stream", include_in_schema=False)
async def list_stream(request: Request) -> EventSourceResponse:
    """Stream the list of runs, without end."""
    return event_stream(follow_list(request.app.state.log, 200))


@router.get("/api/runs/{run_id}/view", responses=refusals(404, 408, 413, 422), response_model=JsonObject)
async def run_view(request: Request, run_id: RunId) -> JsonReply:
    """Return everything that the page of a run shows."""
    info = await asyncio.to_thread(find, request.app.state.log, run_id)
    views: Views = request.app.state.views
    key = (info.id, info.num_events, info.status, info.ended_s)
    view = views.get(key)
    if view is None:
        view = await _read(request, {"kind": "view", "body": {"run": info.id}})
        views.keep(key, view)
    return JsonReply(view)


@router.get("/api/compare", responses=refusals(404, 408, 413, 422), response_model=JsonObject)
async def compare(
    request: Request,
    runs: Annotated[str, Query(pattern=r"^[0-9A-Za-z_.,-]{3,800}$", description="Ids of two or more runs, by commas.")],
) -> JsonReply:
    """Return runs side by side: tables of their figures, and policies on each instance with intervals."""
    chosen = [find(request.app.state.log, run_id).id for run_id in dict.fromkeys(runs.split(","))]
    if not 2 <= len(chosen) <= _MAX_COMPARED:
        raise Refusal(422, f"name 2 to {_MAX_COMPARED} runs, by commas", "runs", runs)
    return JsonReply(await _read(request, {"kind": "compare", "body": {"runs": chosen}}))


@router.get("/api/explain/{run_id}/{what}", responses=refusals(404, 408, 413, 422), response_model=JsonObject)
async def explain(
    request: Request,
    run_id: RunId,
    what: Annotated[str, Path(max_length=200, description="A task, by name or number; or an epoch of a replay.")],
) -> JsonReply:
    """Explain why a task is placed where it is, or why a strategy was chosen."""
    info = await asyncio.to_thread(find, request.app.state.log, run_id)
    return JsonReply(await _read(request, {"kind": "explain", "body": {"run": info.id, "what": what}}))


@router.get("/api/runs/{run_id}/output/{task}", responses=refusals(404, 422), response_model=TaskOutput)
def task_output(
    request: Request, run_id: RunId, task: Annotated[str, Path(max_length=400, description="The name of a task.")]
) -> JsonReply:
    """Return what a task of a run has written to stdout and stderr, the last of it where it is long."""
    log: RunLog = request.app.state.log
    pieces: dict[tuple[int, str], bytes] = {}
    for piece in logs(find(log, run_id).id, task, runs=log.path):
        key = (piece.attempt, piece.stream)
        pieces[key] = (pieces.get(key, b"") + piece.data)[-_MAX_OUTPUT_BYTES - 1 :]
    told = [
        {
            "attempt": attempt,
            "stream": stream,
            "text": data[-_MAX_OUTPUT_BYTES:].decode(errors="replace"),
            "is_cut": len(data) > _MAX_OUTPUT_BYTES,
        }
        for (attempt, stream), data in sorted(pieces.items())
        if data
    ]
    return JsonReply({"task": task, "pieces": told})


async def _read(request: Request, asked: JsonObject) -> bytes:
    """Have the reading worker do something; planning never keeps it busy."""
    try:
        async with request.app.state.readers.worker() as worker, asyncio.timeout(_READ_S):
            found: bytes = await worker.do(asked, lambda news: None)
            return found
    except TimeoutError:
        raise Refusal(408, f"took longer than {_READ_S:g} s", "run_id") from None
