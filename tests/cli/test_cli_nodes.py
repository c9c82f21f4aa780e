"""Nodes that pack on the command line: the cases that users met, and what mistyped clusters say."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run
from .test_cli_notes import wfformat

NODE = '[[node]]\nname = "big"\ncores = 16\nmemory = "64GB"\n'


@pytest.mark.parametrize("policy", ["heft", "peft", "minmin", "annealing", "cp-sat"])
def test_four_tasks_of_four_cores_take_ten_seconds_on_sixteen(run: Run, tmp_path: Path, policy: str) -> None:
    flow, lab = wfformat(tmp_path / "flow.json", coreCount=4, memoryInBytes=1e9), tmp_path / "lab.toml"
    lab.write_text(NODE)
    for cluster in (str(lab), "node:1*16c64GB"):
        found = run("plan", flow, "-c", cluster, "--policy", policy, "--time-limit", "1", "--output", "json").json
        assert found["makespan_s"] == 10.0
        assert found["verdict"] == "proven optimal"
        assert found["notes"] == []
        assert found["utilization"] == 1.0


def test_what_tasks_do_not_state_is_assumed(run: Run, tmp_path: Path) -> None:
    flow = wfformat(tmp_path / "flow.json")
    ran = run("plan", flow, "-c", "node:1*4c64GB")
    assert "4 of 4 tasks state no cores: 1 core each is assumed." in " ".join(ran.out.split())
    assert "at its lower bound when tasks need what was assumed" in ran.out
    assert "proven optimal" not in ran.out


def test_a_saved_plan_of_nodes_is_simulated_and_drawn(run: Run, tmp_path: Path) -> None:
    flow, saved = wfformat(tmp_path / "flow.json", coreCount=4), tmp_path / "plan.json"
    run("plan", flow, "-c", "node:1*8c", "--save", saved, "--gantt", tmp_path / "plan.html")
    assert run("simulate", saved, "--output", "json").json["makespan_s"] == 20.0
    assert "a (4 cores)" in (tmp_path / "plan.html").read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[nodes]]\ncores = 4\n", "unknown key 'nodes'; did you mean node"),
        ('[[node]]\nmemory = "4GB"\n', "a node states its cores"),
        ('[[node]]\ncores = 4\nmemroy = "4GB"\n', "did you mean memory?"),
        ("[[node]]\ncores = 4\nresources = { gpus = 1 }\n", "a key of the node itself"),
        ('[[node]]\ncores = "16c"\n', "is not a number"),
        ("[[node]]\ncores = 0\n", "states its cores, not 0.0"),
        ("", "no devices and no nodes"),
    ],
)
def test_mistyped_nodes_are_errors(run: Run, diamond: Path, tmp_path: Path, text: str, words: str) -> None:
    lab = tmp_path / "lab.toml"
    lab.write_text(text)
    run("plan", diamond, "-c", lab).assert_refused("lab.toml", words)


@pytest.mark.parametrize("word", ["node:4*16", "node:4*64GB", "node:4*16c16c", "node:4*16cores", "node:4*16c64"])
def test_mistyped_shorthand_is_an_error(run: Run, diamond: Path, word: str) -> None:
    run("plan", diamond, "-c", word).assert_refused(word, "node:4*16c64GB")


def test_a_task_that_no_node_can_hold_is_named(run: Run, tmp_path: Path) -> None:
    flow = wfformat(tmp_path / "flow.json", coreCount=32)
    ran = run("plan", flow, "-c", "node:4*16c")
    assert ran.code != 0
    assert "'a' (and 3 more)" in ran.err
    assert "cores 32 (most: 16)" in ran.err
