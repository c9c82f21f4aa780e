"""Metrics of what is running now: steered queues, trainings, workflows. The run log has all of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import Metric

from stretto.runlog import RunInfo, RunLog
from stretto.runlog.record import Json
from stretto.web.metric_families import counter, gauge, histogram

#: Live runs that are told of; more would be a fault elsewhere.
_MAX_RUNS = 100
_RUN = ["run"]


def live_metrics(log: RunLog, now_s: float) -> Iterator[Metric]:
    """Yield the metrics of all live runs; one that has ended is gone from them."""
    live = log.runs(status="running", limit=_MAX_RUNS)
    yield from _steering(log, [info for info in live if info.kind == "steer"], now_s)
    yield from _trainings(log, [info for info in live if info.kind == "train"])
    yield from _workflows(log, [info for info in live if info.kind == "run"])


def _steering(log: RunLog, runs: list[RunInfo], now_s: float) -> Iterator[Metric]:
    """Yield the state of steering, and the queues as the last recorded decisions saw them."""
    found = {info.id: log.latest_event(info.id, "decision") for info in runs}
    last = {run: event for run, event in found.items() if event is not None and "figures" in event.fields}
    applied = {(i.id, i.settings["strategy"], i.settings["mode"]): bool(i.settings["apply"]) for i in runs}
    about = "1 while Slurm is told the order, 0 while it is only recorded."
    yield gauge("stretto_steering_applied", about, ["run", "strategy", "mode"], applied)
    about = "1 while Slurm's own order applies because there is no decision."
    fallback = {run: bool(event.fields["fallback"]) for run, event in last.items()}
    yield gauge("stretto_steering_fallback", about, _RUN, fallback)
    about = "When the last decision that changed anything was recorded."
    at_s = {run: event.at_s for run, event in last.items()}
    yield gauge("stretto_steering_last_change_timestamp_seconds", about, _RUN, at_s)
    yield from _promises({run: event.fields["promises"] for run, event in last.items() if "promises" in event.fields})
    yield from _queues({run: event.fields["figures"] for run, event in last.items()}, now_s)


def _promises(counts: Mapping[str, Json]) -> Iterator[Metric]:
    about = "Promised latest starts: given, and of the jobs that have started those kept and broken."
    totals = {(run, name): found[name] for run, found in counts.items() for name in ("given", "kept", "broken")}
    yield counter("stretto_steering_promises", about, ["run", "outcome"], totals)
    at_risk = {run: found["at_risk"] for run, found in counts.items()}
    yield gauge("stretto_steering_promises_at_risk", "Jobs that come first to keep their promise.", _RUN, at_risk)


def _queues(figures: Mapping[str, Json], now_s: float) -> Iterator[Metric]:
    def spread(name: str) -> dict[tuple[str, str], Json]:
        return {(run, key): value for run, found in figures.items() for key, value in found[name].items()}

    by_partition = ["run", "partition"]
    took = {run: found["decisions"] for run, found in figures.items()}
    yield histogram("stretto_steering_decision_duration_seconds", "Time of a decision.", _RUN, took)
    about = "Decisions, by whether they were used."
    yield counter("stretto_steering_decisions", about, ["run", "outcome"], spread("outcomes"))
    about = "Wait of jobs that started while the queue was steered."
    yield histogram("stretto_queue_wait_seconds", about, by_partition, spread("waits"))
    jobs = {(run, *key): count for run, found in figures.items() for *key, count in found["jobs"]}
    about = "Jobs of a steered queue: running, waiting, or blocked by a hold, a dependency or a begin time."
    yield gauge("stretto_queue_jobs", about, [*by_partition, "state"], jobs)
    longest = {key: now_s - at_s for key, at_s in spread("oldest_submit_s").items()}
    yield gauge("stretto_queue_longest_wait_seconds", "Longest wait of a waiting job so far.", by_partition, longest)
    about = "Processors of running jobs."
    yield gauge("stretto_queue_used_processors", about, by_partition, spread("used_procs"))
    total = {run: found["num_procs"] for run, found in figures.items()}
    yield gauge("stretto_queue_processors", "Processors of usable nodes.", _RUN, total)
    share = {run: sum(found["used_procs"].values()) / total[run] for run, found in figures.items()}
    yield gauge("stretto_queue_utilization_ratio", "Processors of running jobs / of usable nodes.", _RUN, share)


def _trainings(log: RunLog, runs: list[RunInfo]) -> Iterator[Metric]:
    labels = ["run", "algorithm"]
    key = {info.id: (info.id, str(info.settings.get("algorithm"))) for info in runs}
    found = {key[info.id]: log.latest_event(info.id, "row") for info in runs}
    last = {labeled: event.fields for labeled, event in found.items() if event is not None}
    budget = {key[info.id]: info.settings["budget_s"] for info in runs if info.settings.get("budget_s") is not None}
    yield gauge("stretto_training_budget_seconds", "Time that the training may take.", labels, budget)
    seconds = {labeled: row["seconds"] for labeled, row in last.items()}
    yield gauge("stretto_training_seconds", "Time trained so far.", labels, seconds)
    episodes = {labeled: row["episode"] for labeled, row in last.items()}
    yield gauge("stretto_training_episodes", "Episodes so far, in the unit of the algorithm.", labels, episodes)
    figures = {
        (*labeled, name): float(value)
        for labeled, row in last.items()
        for name, value in row.items()
        if name not in ("seconds", "episode") and isinstance(value, (int, float)) and math.isfinite(value)
    }
    yield gauge("stretto_training_figure", "Other figures of the latest step, by name.", [*labels, "name"], figures)


def _workflows(log: RunLog, runs: list[RunInfo]) -> Iterator[Metric]:
    tasks: dict[tuple[str, str], float] = {}
    failures: dict[str, float] = {}
    for info in runs:
        events = log.event_counts(info.id)
        finished, failures[info.id] = events["task-finished"], events["task-failed"]
        running = max(0, events["task-started"] - finished - events["task-failed"])
        tasks |= {(info.id, "finished"): finished, (info.id, "running"): running}
        if "num_tasks" in info.settings:
            tasks[info.id, "waiting"] = max(0, info.settings["num_tasks"] - finished - running)
    yield gauge("stretto_run_tasks", "Tasks of a live run.", ["run", "state"], tasks)
    yield counter("stretto_run_task_failures", "Attempts of tasks that failed.", _RUN, failures)
