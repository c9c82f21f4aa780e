"""``stretto plan`` and ``stretto simulate``, which reads what plan saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import CLUSTER, Run

KEYS = {
    "policy",
    "makespan_s",
    "lower_bound_s",
    "gap",
    "cost_usd",
    "plan_seconds",
    "num_tasks",
    "assignment",
    "order",
    "graph_source",
    "cluster_source",
}


def test_json_is_one_document_with_the_promised_keys(run: Run, diamond: Path) -> None:
    ran = run("plan", diamond, "-c", CLUSTER, "--policy", "heft", "--output", "json")
    assert ran.code == 0
    assert set(ran.json) >= KEYS
    assert ran.json["num_tasks"] == 4
    assert sorted(ran.json["order"]) == [0, 1, 2, 3]
    # All on the GPU takes 7/4 s; no schedule is faster than the critical path 5/4 s there.
    assert 1.25 <= ran.json["lower_bound_s"] <= ran.json["makespan_s"] <= 1.75
    assert ran.json["gap"] == pytest.approx(ran.json["makespan_s"] / ran.json["lower_bound_s"] - 1)


def test_quiet_prints_the_makespan_and_nothing_else(run: Run, diamond: Path) -> None:
    quiet = run("plan", diamond, "-c", CLUSTER, "--output", "quiet")
    full = run("plan", diamond, "-c", CLUSTER, "--output", "json")
    assert float(quiet.out) == full.json["makespan_s"]


def test_the_table_fits_into_80_columns(run: Run, diamond: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = run("plan", diamond, "-c", CLUSTER)
    assert ran.code == 0
    assert "diamond by heft" in ran.out
    assert "makespan" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "\x1b" not in ran.out


def test_a_saved_plan_is_simulated_alone_and_reproduces(run: Run, diamond: Path, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    planned = run("plan", diamond, "-c", CLUSTER, "--save", saved, "--output", "json")
    again = run("simulate", saved, "--output", "json")
    assert again.code == 0
    assert again.json["makespan_s"] == planned.json["makespan_s"]
    assert again.json["start_s"] == planned.json["start_s"]
    assert again.json["stretch"] == 1.0


def test_a_plan_moves_together_with_its_graph(run: Run, diamond: Path, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    run("plan", diamond, "-c", CLUSTER, "--save", saved)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    diamond.rename(elsewhere / diamond.name)
    saved.rename(elsewhere / saved.name)
    assert run("simulate", elsewhere / saved.name, "--output", "quiet").code == 0


def test_noise_is_reproducible_and_changes_the_outcome(run: Run, diamond: Path, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    run("plan", diamond, "-c", CLUSTER, "--save", saved)
    first, again, other = (
        float(run("simulate", saved, "--noise", "0.3", "--seed", seed, "--output", "quiet").out)
        for seed in ("1", "1", "2")
    )
    assert first == again
    assert first != other


def test_simulate_writes_a_trace_with_all_tasks(run: Run, diamond: Path, tmp_path: Path) -> None:
    saved, trace = tmp_path / "plan.json", tmp_path / "trace.json"
    run("plan", diamond, "-c", CLUSTER, "--save", saved)
    ran = run("simulate", saved, "--trace", trace, "--contention", "fifo", "--discipline", "work-conserving")
    assert ran.code == 0
    assert "work-conserving, contention fifo" in ran.out
    names = {event.get("name") for event in json.loads(trace.read_text())["traceEvents"]}
    assert names >= {"split", "left", "right", "join"}


def test_a_built_in_workload_needs_no_file(run: Run) -> None:
    ran = run("plan", "workload:cholesky?num_tiles=4&seed=3", "-c", "cpu:2,gpu:1", "--output", "json")
    assert ran.json["num_tasks"] == 20
    assert ran.json["graph_source"] == "workload:cholesky?num_tiles=4&seed=3"


def test_parameters_reach_the_policy_as_json_literals(run: Run, diamond: Path) -> None:
    ran = run(
        *("plan", diamond, "-c", CLUSTER, "--policy", "annealing", "--seed", "5", "--output", "json"),
        *("--param", "max_evaluations=2000", "--time-limit", "20"),
    )
    assert ran.code == 0, ran.err
    assert ran.json["params"] == {"max_evaluations": 2000}
    assert ran.json["seed"] == 5


def test_a_gantt_chart_is_drawn_on_the_way(run: Run, diamond: Path, tmp_path: Path) -> None:
    picture = tmp_path / "picture.svg"
    assert run("plan", diamond, "-c", CLUSTER, "--gantt", picture).code == 0
    assert b"<svg" in picture.read_bytes()


def test_a_priced_cluster_shows_its_cost(run: Run, diamond: Path, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.toml"
    cluster.write_text('[[device]]\nkind = "cpu"\ncount = 2\nprice_usd_per_hour = 3.6\n')
    assert run("plan", diamond, "-c", cluster, "--output", "json").json["cost_usd"] > 0
    assert "cost" in run("plan", diamond, "-c", cluster).out
    assert "cost" not in run("plan", diamond, "-c", CLUSTER).out
