"""What Prometheus reads: parsed by Prometheus's own parser, named by its conventions, and enough for the dashboard."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from web_serving import serving

from stretto.engines.slurm.client.jobs import SlurmJob
from stretto.engines.slurm.steer.queue_figures import QueueFigures
from stretto.runlog import RunLog

DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana" / "stretto.json"
Families = dict[str, Any]


def _job(number: int, state: str, partition: str, *, submit_s: float, start_s: float = float("nan")) -> SlurmJob:
    times = {"submit_s": submit_s, "eligible_s": submit_s, "start_s": start_s, "end_s": float("nan")}
    place = {"nodes": "", "required_nodes": "", "num_nodes": 1, "is_exclusive": False, "array_tasks": ""}
    text = {"name": f"job {number}", "user": "ann", "reason": "Resources", "comment": ""}
    rest = {"time_limit_s": 60.0, "priority": 1.0, "exit_code": 0, "signal": 0}
    return SlurmJob(number, state=state, partition=partition, num_cpus=2, **times, **place, **text, **rest)


def _figures() -> dict[str, Any]:
    """The figures of a queue of two partitions in which a job waits, starts, and another one waits on."""
    figures = QueueFigures()
    waiting = [_job(1, "PENDING", "batch", submit_s=100.0), _job(2, "PENDING", "gpu", submit_s=150.0)]
    figures.take_jobs([*waiting, _job(9, "RUNNING", "batch", submit_s=0.0, start_s=10.0)])
    figures.take_decision(0.02, "")
    figures.take_jobs([_job(1, "RUNNING", "batch", submit_s=100.0, start_s=220.0), waiting[1]])
    figures.take_decision(2.0, "no decision within 1 s")
    return figures.to_json(num_procs=8)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Families:
    """The metrics of a real server beside a log with a live run of each kind; families by name."""
    path = tmp_path_factory.mktemp("live") / "runs.db"
    with RunLog.open(path) as log:
        steer = log.start("steer", "slurm by saf", {"strategy": "saf", "mode": "sitefactor", "apply": True})
        promises = {"given": 5, "kept": 3, "broken": 1, "at_risk": 0}
        steer.record("decision", "2", fallback="no decision within 1 s", figures=_figures(), promises=promises)
        train = log.start("train", "montage", {"algorithm": "doppler", "budget_s": 60.0})
        train.record("row", episode=40, seconds=15.0, best_s=3.5, mean_s=None, stage="imitation")
        run = log.start("run", "flow", {"num_tasks": 10})
        for task in ("a", "b", "c"):
            run.record("task-started", task)
        run.record("task-failed", "a")
        run.record("task-finished", "b")
        with serving(path, num_workers=1, rate_per_s=1e6, burst=1_000_000) as server, server.client() as client:
            _plan(client)
            text = client.get("/metrics").text
    return {family.name: family for family in text_string_to_metric_families(text)}


def _plan(client: httpx.Client) -> None:
    reply = client.post("/api/plan", json={"workload": "fft", "cluster": "cpu:2", "policy": "heft"})
    assert reply.status_code == 200, reply.text


def _value(families: Families, name: str, /, **labels: str) -> float:
    """Return the value of the only sample that has these labels."""
    family = next(found for found in families.values() if any(one.name == name for one in found.samples))
    found = [one.value for one in family.samples if one.name == name and labels.items() <= one.labels.items()]
    assert len(found) == 1, (name, labels, found)
    return float(found[0])


def test_the_state_of_a_steered_queue_is_told(live: Families) -> None:
    assert _value(live, "stretto_steering_applied", strategy="saf", mode="sitefactor") == 1
    assert _value(live, "stretto_steering_fallback") == 1
    assert _value(live, "stretto_steering_decisions_total", outcome="used") == 1
    assert _value(live, "stretto_steering_decision_duration_seconds_count") == 2
    assert _value(live, "stretto_steering_decision_duration_seconds_bucket", le="0.03") == 1
    assert _value(live, "stretto_steering_promises_total", outcome="broken") == 1
    assert _value(live, "stretto_queue_jobs", partition="batch", state="running") == 1
    assert _value(live, "stretto_queue_jobs", partition="batch", state="waiting") == 0
    assert _value(live, "stretto_queue_jobs", partition="gpu", state="waiting") == 1
    assert _value(live, "stretto_queue_wait_seconds_sum", partition="batch") == 120
    assert _value(live, "stretto_queue_utilization_ratio") == 2 / 8
    assert _value(live, "stretto_queue_longest_wait_seconds", partition="gpu") > 1e9


def test_trainings_workflows_and_jobs_of_the_server_are_told(live: Families) -> None:
    assert _value(live, "stretto_training_seconds", algorithm="doppler") == 15
    assert _value(live, "stretto_training_budget_seconds", algorithm="doppler") == 60
    assert _value(live, "stretto_training_figure", name="best_s") == 3.5
    states = {state: _value(live, "stretto_run_tasks", state=state) for state in ("waiting", "running", "finished")}
    assert states == {"waiting": 8, "running": 1, "finished": 1}  # a failed attempt waits again
    assert _value(live, "stretto_run_task_failures_total") == 1
    assert _value(live, "stretto_job_duration_seconds_count", kind="plan") == 1
    assert _value(live, "stretto_runs", kind="steer", status="running") == 1


def test_names_and_types_follow_the_conventions(live: Families) -> None:
    for name, family in live.items():
        assert re.fullmatch(r"stretto_[a-z_]+", name), name
        assert family.type in ("counter", "gauge", "histogram"), name
        assert family.documentation.endswith("."), name
        assert not re.search(r"_(ms|minutes|hours|percent|mb)\b", name), f"{name}: base units are seconds and ratios"
        assert (family.type == "counter") <= all(one.name.endswith("_total") for one in family.samples), name
        keys = [(one.name, tuple(sorted(one.labels.items()))) for one in family.samples]
        assert len(keys) == len(set(keys)), f"{name} has a sample twice"
        if family.type == "histogram":
            _check_histogram(family)


def _check_histogram(family: Any) -> None:
    buckets: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for one in family.samples:
        key = tuple(sorted((name, value) for name, value in one.labels.items() if name != "le"))
        if one.name.endswith("_bucket"):
            buckets.setdefault(key, []).append((float(one.labels["le"]), one.value))
    counts = {tuple(sorted(one.labels.items())): one.value for one in family.samples if one.name.endswith("_count")}
    assert buckets.keys() == counts.keys()
    for key, found in buckets.items():
        assert found == sorted(found), family.name
        assert [count for _, count in found] == sorted(count for _, count in found), family.name
        assert found[-1] == (float("inf"), counts[key]), family.name


def _expressions() -> list[str]:
    dashboard = json.loads(DASHBOARD.read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]


def test_the_dashboard_asks_only_for_what_the_server_tells(live: Families) -> None:
    labels: dict[str, set[str]] = {}
    for family in live.values():
        for one in family.samples:
            labels.setdefault(one.name, set()).update(one.labels)
    expressions = _expressions()
    assert len(expressions) > 15
    for expression in expressions:
        names = re.findall(r"stretto_\w+", expression)
        assert names, expression
        for name in names:
            assert name in labels, f"{expression}: the server does not tell {name}"
        known = set.union(*(labels[name] for name in names))
        grouped = [word for part in re.findall(r"by \(([^)]*)\)", expression) for word in part.split(", ")]
        chosen = re.findall(r'(\w+)="', expression)
        assert {*grouped, *chosen} <= known, expression


def test_every_live_figure_is_on_the_dashboard(live: Families) -> None:
    asked = " ".join(_expressions())
    elsewhere = {"stretto_steering_last_change_timestamp_seconds", "stretto_steering_promises_at_risk"}
    shown = ("stretto_steering_", "stretto_queue_", "stretto_training_", "stretto_run_")
    assert {name for name in live if name.startswith(shown) and name not in asked} == elsewhere


def test_the_dashboard_has_a_place_and_a_source_for_each_panel() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)), "panels overlap"
    assert max(x for x, _ in cells) < 24
    variable = dashboard["templating"]["list"][0]["name"]
    for panel in panels:
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == f"${{{variable}}}"
