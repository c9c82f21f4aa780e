"""A problem inside a run: its graph and cluster are kept with it, so that a run can be asked again years later."""

from __future__ import annotations

import dataclasses

import numpy as np

from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.engines.session import CLUSTER, GRAPH, keep_problem
from stretto.errors import InvalidInput
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.document import Document, unpack
from stretto.files.graphs.native import FORMAT
from stretto.files.plan_json import read_plan
from stretto.reports.strict_json import packed, unpacked
from stretto.runlog import Run, RunLog

ARRIVALS, PLAN = "arrivals.json.gz", "plan.json.gz"


def attach_problem(run: Run, problem: Problem) -> None:
    """Keep graph, cluster and arrivals with a run."""
    keep_problem(run, problem)
    if len(problem.job_ptr) > 2 or bool(np.any(problem.arrays.release)):
        run.attach(ARRIVALS, packed({"job_ptr": problem.job_ptr, "release_s": problem.arrays.release}))


def has_problem(log: RunLog, run_id: str) -> bool:
    """Say whether graph and cluster of a run are known."""
    return {GRAPH, CLUSTER} <= set(log.artifacts(run_id))


def problem_of(log: RunLog, run_id: str) -> Problem:
    """Return the problem that a run was about."""
    graph, cluster = log.artifact(run_id, GRAPH), log.artifact(run_id, CLUSTER)
    if graph is None or cluster is None:
        raise InvalidInput("keeps no graph and cluster", field=f"run {run_id}")
    work = FORMAT.read(Document(GRAPH, unpack(graph, GRAPH)))
    assert isinstance(work, TaskGraph)
    problem = Problem.of(work, read_cluster(Document(CLUSTER, cluster)))
    arrivals = log.artifact(run_id, ARRIVALS)
    if arrivals is None:
        return problem
    known = unpacked(arrivals, ARRIVALS)
    release = np.array(known["release_s"], dtype=np.float64)
    job_ptr = np.array(known["job_ptr"], dtype=problem.job_ptr.dtype)
    return dataclasses.replace(problem, arrays=problem.arrays._replace(release=release), job_ptr=job_ptr)


def plan_of(log: RunLog, run_id: str, problem: Problem) -> tuple[Plan, Schedule] | None:
    """Return the plan of a run and its simulated times, None where it has none yet."""
    data = log.artifact(run_id, PLAN)
    return None if data is None else read_times(Document(PLAN, unpack(data, PLAN)), problem)


def read_times(document: Document, problem: Problem) -> tuple[Plan, Schedule]:
    """Return the plan in a document, and the schedule that it wrote down with it."""
    plan = read_plan(document, problem)
    body = document.json
    start, finish = (np.array(body.get(name) or [], dtype=np.float64) for name in ("start_s", "finish_s"))
    if not len(start) == len(finish) == problem.num_tasks:
        document.fail(f"{len(start)} starts and {len(finish)} ends for {problem.num_tasks} tasks", field="start_s")
    schedule = Schedule(plan.assignment, start, finish, plan.discipline, str(body.get("contention", "none")))
    return plan, schedule
