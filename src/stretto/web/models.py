"""Requests and answers of the API, as its description shows them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from stretto.reports.page.view_types import JsonObject

Scalar = bool | int | float | str
Name = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")]
#: Parameters take numbers and words; a path is neither, so that nobody reads files through them.
WORD = r"^[A-Za-z0-9_,+-]{0,80}$"


class Request(BaseModel):
    """Unknown fields are errors, and so are NaN and infinity."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class JobRequest(Request):
    """What all jobs have in common."""

    seed: int = Field(default=0, ge=0, lt=2**31)
    wait: bool = Field(default=True, description="Wait for the result; false returns the job at once.")
    name: str | None = Field(default=None, max_length=120, description="Name of the run in lists.")


class PlanRequest(JobRequest):
    """A graph, given or generated, to be planned on a cluster."""

    graph: str | JsonObject | None = Field(
        default=None,
        description="The document itself, in any format that Stretto reads; the format is recognized by content.",
    )
    encoding: Literal["text", "base64"] = Field(default="text", description="Encoding of `graph` if it is text.")
    workload: Name | None = Field(default=None, description="A built-in generator, in place of a graph.")
    workload_params: dict[str, Scalar] = Field(default_factory=dict, max_length=20)
    cluster: str | None = Field(
        default=None, max_length=1_000_000, description="Shorthand such as cpu:8x1.0,gpu:2x5.0@10GB/s, or TOML."
    )
    policy: Name = "heft"
    policy_params: dict[str, Scalar] = Field(default_factory=dict, max_length=20)
    time_limit_s: float | None = Field(default=None, gt=0, le=3600, description="Time limit of the search.")
    contention: Literal["none", "fifo", "fair"] = "none"
    discipline: Literal["sequence", "work-conserving"] | None = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "workload": "random-dag",
                    "workload_params": {"num_tasks": 50, "seed": 1},
                    "cluster": "cpu:4x1.0,gpu:2x5.0",
                    "policy": "heft",
                }
            ]
        },
    )


class TraceRequest(Request):
    """Jobs, given or generated."""

    trace: str | None = Field(
        default=None,
        description="The document itself: SWF, sacct, CSV and others; the format is recognized by content.",
    )
    encoding: Literal["text", "base64"] = Field(default="text", description="Encoding of `trace`; gzip needs base64.")
    generator: Name | None = Field(default=None, description="A generator, in place of a trace.")
    generator_params: dict[str, Scalar] = Field(default_factory=dict, max_length=20)


class ReplayRequest(TraceRequest, JobRequest):
    """Recorded or generated jobs, to be replayed with a strategy."""

    strategy: Name = "fcfs"
    backfill: Name = "easy"
    estimates: Name = "user"
    procs: int | None = Field(default=None, ge=1, le=2**31 - 1, description="Processors; as recorded when null.")
    pools: str | None = Field(
        default=None, max_length=1_000_000, description="Pools in place of procs: shorthand or TOML."
    )
    pool_rule: Name = "cheapest"
    kill: bool = False

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "generator": "lublin",
                    "generator_params": {"num_jobs": 200, "num_procs": 64, "seed": 1},
                    "strategy": "saf",
                }
            ]
        },
    )


class WhenRequest(TraceRequest):
    """Recorded or generated jobs, of which one, or all that wait at a moment, are asked for."""

    job: str | None = Field(default=None, max_length=64, description="Id of the job, or row:N; null = the last job.")
    at: str | float | None = Field(
        default=None, description="Seconds of the trace, a time such as 36h, or a date; null = the job's submission."
    )
    all: bool = Field(default=False, description="Every job that waits at the time `at`, in place of one job.")
    change: str | None = Field(default=None, max_length=200, description="Another request, such as limit=2h,procs=16.")
    strategy: Name = "fcfs"
    backfill: Literal["easy", "none", "promise"] = "easy"
    slack: str | None = Field(
        default=None, max_length=40, description="Slack of backfill promise, such as 24h+4e+1wait."
    )
    procs: int | None = Field(default=None, ge=1, le=2**31 - 1, description="Processors; as recorded when null.")
    coverage: float = Field(default=0.9, ge=0.5, le=0.99)
    learn: int = Field(default=500, ge=0, le=5000, description="How many past jobs to learn from.")
    seed: int = Field(default=0, ge=0, lt=2**31)

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "generator": "lublin",
                    "generator_params": {"num_jobs": 200, "num_procs": 64, "seed": 1},
                    "job": "row:150",
                    "learn": 50,
                }
            ]
        },
    )


class WhatIfRequest(JobRequest):
    """The problem of a run again, with another policy, strategy or machine."""

    policy: Name | None = Field(default=None, description="Policy of a plan, or rule of a rack.")
    policy_params: dict[str, Scalar] = Field(default_factory=dict, max_length=20)
    cluster: str | None = Field(default=None, max_length=1_000_000, description="Another cluster for the same graph.")
    strategy: Name | None = Field(default=None, description="Strategy of a replay.")
    backfill: Name | None = Field(default=None, description="Backfilling of a replay.")
    pool_rule: Name | None = Field(default=None, description="Rule that picks the pool of a job, in a replay on pools.")
    pools: str | None = Field(default=None, max_length=1_000_000, description="Other pools for the same jobs.")
    wait_usd_per_hour: float | None = Field(
        default=None, ge=0, le=1e9, description="For the pool rule burst: value of reducing the wait by an hour."
    )
    time_limit_s: float | None = Field(default=None, gt=0, le=3600)


class SteeringRequest(Request):
    """Whether the steering of a live queue is allowed."""

    is_on: bool = Field(description="False stops all steering, or that of the partition.")
    partition: Name | None = Field(default=None, description="Only this partition.")


class SteeringState(BaseModel):
    """What became of the switch."""

    is_on: bool
    notices: list[str]


class Names(BaseModel):
    """Names that requests accept."""

    policies: list[str]
    workloads: list[str]
    strategies: list[str]
    backfills: list[str]
    estimates: list[str]
    pool_rules: list[str]
    generators: list[str]
    graph_formats: list[str]
    trace_formats: list[str]


class RunSummary(BaseModel):
    """A run, as lists show it."""

    id: str
    kind: str
    name: str
    status: Literal["running", "done", "failed", "interrupted"]
    started_s: float = Field(description="Unix time.")
    ended_s: float | None
    num_events: int
    settings: JsonObject
    summary: JsonObject
    live: JsonObject | None = Field(default=None, description="For a live run: the completed `share`, and `text`.")


class RunDetail(RunSummary):
    """A run with what was attached to it."""

    artifacts: list[str]


class RunList(BaseModel):
    """The latest runs, the newest first."""

    runs: list[RunSummary]


class LogEvent(BaseModel):
    """An event of a run."""

    seq: int
    at_s: float = Field(description="Unix time.")
    kind: str
    subject: str
    fields: JsonObject


class EventList(BaseModel):
    """Events of a run in order."""

    events: list[LogEvent]


class OutputPiece(BaseModel):
    """What one attempt of a task has written to one stream."""

    attempt: int
    stream: Literal["stdout", "stderr"]
    text: str
    is_cut: bool = Field(description="Whether this is only the end of the output.")


class TaskOutput(BaseModel):
    """The output of a task."""

    task: str
    pieces: list[OutputPiece]


class JobState(BaseModel):
    """A job of this server."""

    id: str
    kind: Literal["plan", "replay", "when", "what-if"]
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    run_id: str | None = Field(description="The run that the job writes, once it has started.")
    seconds: float = Field(description="Time since the request, or until the end.")
    error: str | None = None


class JobList(BaseModel):
    """The latest jobs, the newest first."""

    jobs: list[JobState]


class Health(BaseModel):
    """State of the server."""

    status: Literal["ok"]
    version: str
    uptime_s: float
    num_workers: int
    num_busy: int
    num_waiting: int
