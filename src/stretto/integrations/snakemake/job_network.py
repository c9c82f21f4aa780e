"""The jobs of a Snakemake run as numbers: forecasts, and the expected seconds from each start to the end of the run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from stretto.core.csr import Floats
from stretto.files.graphs.snakemake.forecast import NOTHING, DurationForecast, DurationForecaster
from stretto.files.graphs.snakemake.jobs import (
    JobGraph,
    SnakemakeJob,
    is_empty,
    members_of,
    output_of,
    rule_of,
    wildcards_of,
)
from stretto.files.graphs.snakemake.records import JobRecord, read_benchmark, total_bytes

#: Beyond this many jobs no file is looked at before its job is ready: that would take seconds.
MAX_LOOKED_AT = 20_000


def benchmark_record(job: SnakemakeJob, directory: Path) -> JobRecord | None:
    """Return what the benchmark file of a job's last run says; None where there is none."""
    path = getattr(job, "benchmark", None)
    found = read_benchmark(directory / str(path)) if path else None
    if found is None:
        return None
    ended_s = (directory / str(path)).stat().st_mtime
    return JobRecord(
        rule_of(job), found[0], output_of(job), wildcards_of(job), memory_bytes=found[1], end_unix_s=ended_s
    )


class JobNetwork:
    """All jobs that have to be run, with forecasts and ranks.

    The rank of a job is the expected time from its start until everything that waits for it has ended, along the
    longest path. Jobs with the largest rank come first.
    """

    def __init__(self, dag: JobGraph, forecaster: DurationForecaster, directory: Path) -> None:
        self.jobs: list[SnakemakeJob] = list(dag.needrun_jobs())
        self.index: dict[SnakemakeJob, int] = {job: number for number, job in enumerate(self.jobs)}
        self.forecaster, self.directory = forecaster, directory
        self.parents = [
            [self.index[other] for other in dag.job_dependencies(job) if other in self.index] for job in self.jobs
        ]
        self._looks = len(self.jobs) <= MAX_LOOKED_AT
        self._input_bytes: list[float | None] = [self._size(job) for job in self.jobs]
        self._order = topological_order(self.parents)
        self.duration_s: Floats = np.zeros(len(self.jobs))
        self.rank_s: Floats = np.zeros(len(self.jobs))
        self.num_assumed = 0
        self._groups: list[list[int]] = []
        self._identities: dict[int, tuple[str, str, Mapping[str, str]]] = {}
        self.forecast()

    def _size(self, job: SnakemakeJob) -> float | None:
        """Return the size of the inputs of a job that are there already."""
        return total_bytes([self.directory / str(path) for path in job.input]) if self._looks else None

    def forecast(self) -> None:
        """Forecast every job from all that is known now, and compute the ranks from it."""
        self.forecaster.refresh()
        jobs = [self.forecast_job(number) for number in range(len(self.parents))]
        self.num_assumed = sum(item.basis == "assumed" for item in jobs)
        self.duration_s = np.array([item.mean_s for item in jobs])
        self.rank_s = upward_ranks(self.parents, self._order, self.duration_s)
        for members in self._groups:
            self._append_group(members)

    def forecast_job(self, number: int) -> DurationForecast:
        """Return the forecast of one job."""
        job = self.jobs[number]
        if is_empty(job):
            return NOTHING
        if number not in self._identities:
            if not self.forecaster.knows(rule_of(job)):
                return self.forecaster.forecast(rule_of(job))
            self._identities[number] = rule_of(job), output_of(job), wildcards_of(job)
        return self.forecaster.forecast(*self._identities[number], self._input_bytes[number])

    def set_input_bytes(self, number: int, size: float) -> None:
        """Take the size of a job's inputs once they are there; its forecast and its rank follow."""
        if number >= len(self.parents) or self._input_bytes[number] == size:
            return
        self._input_bytes[number] = size
        before, self.duration_s[number] = self.duration_s[number], self.forecast_job(number).mean_s
        self.rank_s[number] += self.duration_s[number] - before

    def input_bytes(self, number: int) -> float | None:
        """Return the size of a job's inputs; None while it is unknown."""
        return self._input_bytes[number]

    def add_group(self, job: SnakemakeJob, members: list[int]) -> None:
        """Add a job that runs several others, after all the jobs of the graph."""
        self._groups.append(members)
        self._input_bytes.append(None)
        self._append_group(members)

    def _append_group(self, members: list[int]) -> None:
        """Append the figures of a group: it takes its members one after the other, and comes as its first does."""
        self.duration_s = np.append(self.duration_s, self.duration_s[members].sum())
        self.rank_s = np.append(self.rank_s, self.rank_s[members].max())

    def numbers_of(self, job: SnakemakeJob) -> list[int]:
        """Return the jobs that run when this one is started; empty where one of them is unknown."""
        if job in self.index:
            return [self.index[job]]
        members = members_of(job)
        return [self.index[member] for member in members] if all(item in self.index for item in members) else []


def topological_order(parents: list[list[int]]) -> list[int]:
    """Return all jobs, each after its parents."""
    waiting = [len(row) for row in parents]
    children: list[list[int]] = [[] for _ in parents]
    for child, row in enumerate(parents):
        for parent in row:
            children[parent].append(child)
    order = [number for number, count in enumerate(waiting) if count == 0]
    for number in order:  # grows
        for child in children[number]:
            waiting[child] -= 1
            if waiting[child] == 0:
                order.append(child)
    return order


def upward_ranks(parents: list[list[int]], order: list[int], duration_s: Floats) -> Floats:
    """Return the longest path from each job to an end, in expected seconds, the job included."""
    after, rank = [0.0] * len(parents), duration_s.tolist()
    for number in reversed(order):
        rank[number] += after[number]
        for parent in parents[number]:
            if rank[number] > after[parent]:
                after[parent] = rank[number]
    return np.array(rank)
