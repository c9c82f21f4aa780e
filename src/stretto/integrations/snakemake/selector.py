"""Which jobs Snakemake starts next: those on the longest path first, as many as fit.

Nothing here imports Snakemake; the plugin module passes what Snakemake passes to it.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stretto.core.csr import Floats
from stretto.files.graphs.snakemake.forecast import DurationForecaster
from stretto.files.graphs.snakemake.jobs import (
    JobGraph,
    SnakemakeJob,
    is_empty,
    members_of,
    output_of,
    rule_of,
    wildcards_of,
)
from stretto.files.graphs.snakemake.records import OWN_LOG, JobRecord, append_own_log, read_history
from stretto.integrations.snakemake.job_network import MAX_LOOKED_AT, JobNetwork, benchmark_record
from stretto.integrations.snakemake.ready_table import ReadyTable

#: Forecasts are made anew when this many times their own cost has passed: learning takes 0.2 % of the time at most. A
#: decision holds up a free core, so on jobs of a quarter of a second 2 % could be seen in the makespan.
REFRESH_RATIO = 500.0
#: Snakemake says "unlimited" by a number that no longer changes when one is taken away.
UNLIMITED = 2.0**52


@dataclass(frozen=True)
class StartedJob:
    """A job that was started in this run."""

    start_s: float
    input_bytes: float | None
    cores: float | None


class SnakemakeSelector:
    """Selects jobs for Snakemake, learns from those that finish, and logs why where it cannot.

    Parameters
    ----------
    directory
        The working directory of the workflow, with ``.snakemake``.
    is_learning
        Append finished jobs to Stretto's log of jobs below ``.snakemake/stretto``.
    """

    def __init__(
        self, dag: JobGraph, logger: logging.Logger, directory: Path | None = None, *, is_learning: bool = True
    ) -> None:
        self.dag, self.logger, self.is_learning = dag, logger, is_learning
        self.directory = (directory or Path(os.curdir)).resolve()  # Snakemake may change it back at the end
        self.history = read_history(self.directory)
        self.forecaster = DurationForecaster(self.history.records)
        self.running: dict[SnakemakeJob, StartedJob] = {}
        self._network: JobNetwork | None = None
        self._table: ReadyTable | None = None
        self._num_learned = 0
        self._refreshed_s = self._refresh_cost_s = 0.0
        self._is_broken = False
        self._most: Floats | None = None  # the most that was ever free
        if is_learning:
            atexit.register(self._note_finished)

    def prepare(self) -> None:
        """Read the graph of jobs and forecast them, where the graph is known already."""
        with contextlib.suppress(Exception):  # the first decision tries again, and says why it cannot
            self._build()

    def select(
        self,
        ready: Collection[SnakemakeJob],
        available: Mapping[str, int | str],
        input_sizes: Mapping[object, int | None],
    ) -> list[SnakemakeJob] | None:
        """Return the jobs to start now; None lets Snakemake's greedy scheduler decide, and the log says why."""
        if self._is_broken:
            return None
        try:
            return self._select(ready, available, input_sizes)
        except Exception as error:  # a scheduler that fails must not stop the workflow
            self._is_broken = True
            self.logger.warning(
                f"Stretto cannot schedule this workflow ({type(error).__name__}: {error}); Snakemake's greedy"
                " scheduler decides from here on."
            )
            return None

    def _select(
        self,
        ready: Collection[SnakemakeJob],
        available: Mapping[str, int | str],
        input_sizes: Mapping[object, int | None],
    ) -> list[SnakemakeJob] | None:
        capacity = {name: float(value) for name, value in available.items() if not isinstance(value, str)}
        self._note_finished()
        network, table = self._current(capacity)
        fresh = table.fresh(ready)
        if any(job not in network.index and not network.numbers_of(job) for job in fresh):
            network, table = self._build(tuple(capacity))  # the graph was updated, for instance at a checkpoint
            fresh = table.fresh(ready)
        self._add_groups(network, table, fresh)
        for job, row in zip(fresh, table.enter(fresh), strict=True):
            if len(fresh) <= MAX_LOOKED_AT:
                _take_sizes(network, job, row, input_sizes)
        self._refresh(network)
        running = self._expected_ends(network, table, capacity)
        rows = table.select(network.rank_s, capacity, network.duration_s, running)
        chosen = [table.jobs[row] for row in rows]
        if not chosen and ready and not self.running:
            self.logger.warning("Stretto found no job that fits while none is running; the greedy scheduler decides.")
            return None
        self._note_started(network, chosen)
        return chosen

    def _expected_ends(
        self, network: JobNetwork, table: ReadyTable, available: Mapping[str, float]
    ) -> list[tuple[float, Floats]]:
        """Return in how many seconds each running job is expected to end, and what it holds.

        Snakemake does not tell of jobs that have failed for good. What they held is free again, so the jobs that are
        most overdue are left out until the others hold no more than is missing.
        """
        for job in [job for job in self.running if table.is_ready[network.index.get(job, 0)]]:
            del self.running[job]  # it failed, and is ready again
        now_s, found = time.time(), []
        for job, started in self.running.items():
            row = network.index.get(job)
            if row is not None and not np.isnan(table.needs[row, 0]):
                found.append((started.start_s + float(network.duration_s[row]) - now_s, table.needs[row]))
        free = np.array([available[name] for name in table.resources])
        self._most = free if self._most is None or len(self._most) != len(free) else np.maximum(self._most, free)
        counted = (self._most < UNLIMITED) & np.array([name != "_job_count" for name in table.resources])
        missing = (self._most - free)[counted]
        found.sort(key=lambda item: item[0])
        while found and bool(np.any(np.sum([held[counted] for _, held in found], axis=0) > missing)):
            found.pop(0)
        return found

    def _current(self, capacity: Mapping[str, float]) -> tuple[JobNetwork, ReadyTable]:
        """Return the graph and the table; they are built at the first decision, or when resources were added."""
        if self._network is not None and self._table is None:
            return self._network, self._new_table(self._network, tuple(capacity))
        if self._network is None or self._table is None or set(self._table.resources) != capacity.keys():
            return self._build(tuple(capacity))
        return self._network, self._table

    def _build(self, resources: tuple[str, ...] | None = None) -> tuple[JobNetwork, ReadyTable]:
        begin_s = time.perf_counter()
        jobs = list(self.dag.needrun_jobs())
        if self._network is None and len(jobs) <= MAX_LOOKED_AT:
            self._learn_from_benchmarks(jobs)
        network = self._network = JobNetwork(self.dag, self.forecaster, self.directory)
        self._refresh_cost_s = time.perf_counter() - begin_s
        self._refreshed_s = time.perf_counter()
        known = len(network.jobs) - network.num_assumed
        self.logger.info(
            f"Stretto: {known} of {len(network.jobs)} jobs have forecasts ({self.history.text});"
            f" {network.num_assumed} durations are assumed."
        )
        table = self._new_table(network, resources or ())
        self._table = table if resources is not None else None
        return network, table

    def _new_table(self, network: JobNetwork, resources: tuple[str, ...]) -> ReadyTable:
        priority = [float(job.priority) for job in network.jobs]
        self._table = ReadyTable(resources, network.jobs, network.index, priority)
        return self._table

    def _learn_from_benchmarks(self, jobs: list[SnakemakeJob]) -> None:
        for job in jobs:
            record = benchmark_record(job, self.directory)
            if record is not None:
                self.forecaster.add(record)

    def _add_groups(self, network: JobNetwork, table: ReadyTable, fresh: list[SnakemakeJob]) -> None:
        for job in fresh:
            if job not in network.index:
                network.add_group(job, network.numbers_of(job))
                table.add(job, float(job.priority))

    def _refresh(self, network: JobNetwork) -> None:
        """Forecast anew after jobs have finished, unless that would take too much of the time."""
        passed_s = time.perf_counter() - self._refreshed_s
        if self._num_learned == 0 or passed_s < REFRESH_RATIO * self._refresh_cost_s:
            return
        begin_s = time.perf_counter()
        network.forecast()
        self._refreshed_s = time.perf_counter()
        self._refresh_cost_s, self._num_learned = self._refreshed_s - begin_s, 0

    def _note_started(self, network: JobNetwork, chosen: list[SnakemakeJob]) -> None:
        now_s = time.time()
        for job in chosen:
            row, cores = network.index[job], job.scheduler_resources.get("_cores")
            size = network.input_bytes(row)
            self.running[job] = StartedJob(now_s, size, None if cores is None else float(cores))

    def _note_finished(self) -> None:
        """Learn from the jobs that have finished since the last decision."""
        done = [job for job in self.running if all(self.dag.finished(member) for member in members_of(job))]
        records = []
        for job in done:
            started = self.running.pop(job)
            if len(members_of(job)) == 1 and not is_empty(job):
                records.append(self._record(job, started))
        for record in records:
            self.forecaster.add(record)
        self._num_learned += len(records)
        if self.is_learning:
            with contextlib.suppress(OSError):  # a directory that cannot be written to: forecasts rest on metadata
                append_own_log(self.directory / OWN_LOG, records)

    def _record(self, job: SnakemakeJob, started: StartedJob) -> JobRecord:
        now_s, ends = time.time(), []
        for path in job.output:
            with contextlib.suppress(OSError):
                ends.append(os.stat(self.directory / str(path)).st_mtime)
        end_s = max(ends, default=now_s)
        end_s = end_s if started.start_s < end_s <= now_s else now_s
        seconds = max(end_s - started.start_s, 1e-3)
        return JobRecord(
            rule_of(job),
            seconds,
            output_of(job),
            dict(wildcards_of(job)),
            started.input_bytes,
            started.cores,
            end_unix_s=end_s,
        )


def _take_sizes(network: JobNetwork, job: SnakemakeJob, row: int, input_sizes: Mapping[object, int | None]) -> None:
    """Take the sizes of a ready job's inputs, which Snakemake has looked up."""
    sizes = [input_sizes.get(path) for path in job.input]
    if all(size is not None for size in sizes):
        network.set_input_bytes(row, float(sum(size or 0 for size in sizes)))
