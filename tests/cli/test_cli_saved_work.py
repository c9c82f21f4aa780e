"""Workflow files, kernels and saved plans, wherever a command reads a graph."""

from __future__ import annotations

from pathlib import Path

import pytest

import stretto
from stretto import catalog

from .conftest import Run

FLOW = """
name = "two"
[[task]]
name = "make"
run = "seq 10 > numbers"
writes = ["numbers"]
[[task]]
name = "add"
argv = ["cat", "numbers"]
reads = ["numbers"]
"""


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    path = tmp_path / "flow.toml"
    path.write_text(FLOW)
    return path


def test_a_workflow_file_is_read_as_a_graph(run: Run, flow: Path, tmp_path: Path) -> None:
    shown = run("show", flow, "--output", "json").json
    assert (shown["what"], shown["num_tasks"], shown["num_edges"]) == ("graph", 2, 1)
    assert shown["durations"] == "assumed (1 s for every task: no seconds stated)"
    assert run("plan", flow, "-c", "cpu:2", "--save", tmp_path / "p.json", "--output", "quiet").out == "2.0\n"
    assert run("simulate", tmp_path / "p.json", "--output", "quiet").out == "2.0\n"
    assert stretto.plan(str(flow), "cpu:2").makespan_s == 2.0


def test_a_workflow_becomes_wfformat_whose_commands_run(run: Run, flow: Path, tmp_path: Path) -> None:
    target = tmp_path / "flow.wf.json"
    wrote = run("convert", flow, target)
    assert "cannot hold retries, timeouts, variables and files of the commands" in wrote.err
    ran = run("run", target, "-c", "cpu:1", "--commands", "--output", "json")
    assert ran.code == 0, ran.err
    assert (tmp_path / "numbers").read_text().split() == [str(i) for i in range(1, 11)]


def test_a_category_is_not_run_as_a_command(run: Run, tmp_path: Path) -> None:
    """A generated graph has categories and no commands: its WfFormat file has nothing to run."""
    target = tmp_path / "montage.wf.json"
    run("convert", "workload:montage", target)
    run("run", target, "-c", "cpu:2", "--commands").assert_refused("--commands", "WfFormat with commands")
    names = stretto.load(target)
    assert names.category_name(0) == stretto.load("workload:montage").category_name(0)


def test_assumed_durations_rule_out_the_word_optimal(run: Run, flow: Path) -> None:
    told = run("plan", flow, "-c", "cpu:2")
    assert "at its lower bound when tasks take the assumed time" in " ".join(told.out.split())
    assert "optimal" not in told.out
    assert "optimal" not in run("compare", flow, "-c", "cpu:2", "--policies", "heft,mct").out
    assert "optimal" not in run("plan", flow, "-c", "cpu:2", "--output", "json").json["verdict"]


def test_a_workflow_file_in_place_of_a_cluster_is_called_what_it_is(run: Run, flow: Path, tmp_path: Path) -> None:
    run("plan", flow, "-c", flow).assert_refused("workflow", "stretto run")
    (tmp_path / "pools.toml").write_text('[[pool]]\nname = "own"\nnum_nodes = 2\n')
    run("plan", flow, "-c", tmp_path / "pools.toml").assert_refused("pools", "--pools")


def test_a_saved_plan_is_run_as_it_is(run: Run, diamond: Path, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    planned = run("plan", diamond, "-c", "cpu:2", "--policy", "etf", "--save", saved, "--output", "json").json
    ran = run("run", saved, "--scale", "0.001", "--output", "json")
    assert ran.code == 0, ran.err
    assert ran.json["device"] == planned["assignment"]
    assert ran.json["status"] == "done"
    run("run", saved, "--policy", "heft").assert_refused("--policy", "plan.json")


def test_kernels_on_gpus_that_are_not_there_are_called_emulated(run: Run) -> None:
    source = "kernels:tiled-matmul?num_tiles=2&tile=8"
    ran = run("run", source, "-c", "gpu:1", "--output", "json").json
    assert any("gpu emulated" in note and "CPU core" in note for note in ran["notes"])
    assert not any("emulated" in note for note in run("run", source, "-c", "cpu:1", "--output", "json").json["notes"])


def test_a_plan_trained_on_measured_kernels_is_simulated_and_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(catalog.TRAINERS, "pretend", "learning.pretend_trainer:PretendTrainer")
    saved = tmp_path / "plan.json"
    source = ("kernels:tiled-matmul?num_tiles=2&tile=8", "-c", "cpu:2", "--engine", "local")
    trained = run("train", "pretend", *source, "--episodes", "4", "--save", saved, "--output", "json")
    assert trained.code == 0, trained.err
    assert trained.json["durations"] == "measured"
    simulated = run("simulate", saved, "--output", "json")
    assert simulated.json["makespan_s"] == pytest.approx(trained.json["makespan_s"], rel=1e-9)
    ran = run("run", saved, "--output", "json")
    assert (ran.code, ran.json["status"]) == (0, "done")
    assert ran.json["planned_device"] == trained.json["assignment"]
