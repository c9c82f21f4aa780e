"""Routes that start work: plan, replay, when and what-if; and the jobs that they become."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from stretto.api import steer_off, steer_on
from stretto.reports.page.view_types import JsonObject
from stretto.web.jobs import JobTable, ServerJob
from stretto.web.models import (
    JobList,
    JobState,
    PlanRequest,
    ReplayRequest,
    SteeringRequest,
    SteeringState,
    WhatIfRequest,
    WhenRequest,
)
from stretto.web.replies import JsonReply, Refusal, refusals
from stretto.web.routes_runs import RunId

router = APIRouter(prefix="/api")
JobId = Annotated[str, Path(pattern=r"^[0-9a-f]{12}$", description="The id of a job.")]
_ASKED_EVERY_S = 0.2
_WORK = {
    202: {"model": JobState, "description": "The job, where `wait` is false."},
    **refusals(404, 408, 409, 413, 415, 422),
}


@router.post("/plan", responses=_WORK, response_model=None)
async def plan(request: Request, asked: PlanRequest) -> Response:
    """Plan a graph on a cluster, as `stretto plan` does; the plan is recorded as a run."""
    return await _answer(request, "plan", asked.model_dump(), asked.wait)


@router.post("/replay", responses=_WORK, response_model=None)
async def replay(request: Request, asked: ReplayRequest) -> Response:
    """Replay jobs with a strategy, as `stretto replay` does; the replay is recorded as a run."""
    return await _answer(request, "replay", asked.model_dump(), asked.wait)


@router.post("/when", responses=refusals(408, 409, 413, 415, 422), response_model=None)
async def when(request: Request, asked: WhenRequest) -> Response:
    """Say when a job, or every waiting one, will start, as `stretto when` does; nothing is recorded."""
    return await _answer(request, "when", asked.model_dump(), True)


@router.post("/runs/{run_id}/what-if", responses=_WORK, response_model=None)
async def what_if(request: Request, run_id: RunId, asked: WhatIfRequest) -> Response:
    """Solve the problem of a run in another way, and return both results."""
    return await _answer(request, "what-if", asked.model_dump() | {"run": run_id}, asked.wait)


@router.post("/steering", responses=refusals(415, 422), response_model=SteeringState)
async def switch_steering(request: Request, asked: SteeringRequest) -> JsonReply:
    """Stop the steering of this machine's Slurm and restore Slurm's own order, or allow it again; needs a token."""
    if request.app.state.tokens is None:
        raise Refusal(403, "the switch needs a server with a token: start it without --no-token", "token")
    said: list[str] = []
    switch = steer_on if asked.is_on else steer_off
    await asyncio.to_thread(switch, asked.partition, on_notice=said.append)
    return JsonReply({"is_on": asked.is_on, "notices": said})


@router.get("/jobs", responses=refusals(), response_model=JobList)
async def list_jobs(request: Request) -> JsonReply:
    """List the jobs of this server, the newest first."""
    table: JobTable = request.app.state.jobs
    return JsonReply({"jobs": [job.to_json() for job in reversed(table.jobs.values())]})


@router.get("/jobs/{job_id}", responses=refusals(404, 422), response_model=JobState)
async def job_state(request: Request, job_id: JobId) -> JsonReply:
    """Return the state of a job."""
    return JsonReply(request.app.state.jobs.find(job_id).to_json())


@router.delete("/jobs/{job_id}", responses=refusals(404, 422), response_model=JobState)
async def cancel_job(request: Request, job_id: JobId) -> JsonReply:
    """Cancel a job; a finished job stays as it is."""
    job = request.app.state.jobs.find(job_id)
    await request.app.state.jobs.cancel(job)
    return JsonReply(job.to_json())


async def _answer(request: Request, kind: str, body: JsonObject, wait: bool) -> JsonReply:
    table: JobTable = request.app.state.jobs
    job = table.start(kind, body, is_kept=not wait)
    task = job.task  # the job lets go of it when it is over
    assert task is not None
    if wait:
        return JsonReply(await _while_connected(request, table, job, task))
    await job.has_run.wait()  # input that cannot be used is told here rather than later
    if job.state == "failed":
        await table.result(job, task)
    return JsonReply(job.to_json(), 202)


async def _while_connected(request: Request, table: JobTable, job: ServerJob, task: asyncio.Task[bytes]) -> bytes:
    """Wait for a job as long as somebody is there to hear of it."""
    while not task.done():
        await asyncio.wait([task], timeout=_ASKED_EVERY_S)
        if not task.done() and await request.is_disconnected():
            await table.cancel(job)
            raise Refusal(409, "the client disconnected", "job", job.id)
    return await table.result(job, task)
