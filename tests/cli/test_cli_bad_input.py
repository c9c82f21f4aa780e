"""Wrong input: one line that names the fault, exit code 2, nothing half-written."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import CLUSTER, DIAMOND, Run

Variant = Callable[..., Path]


def test_a_missing_file(run: Run, tmp_path: Path) -> None:
    run("plan", tmp_path / "none.json", "-c", CLUSTER).assert_refused("none.json", "No such file")


def test_a_cycle(run: Run, variant: Variant) -> None:
    cyclic = variant(read_task=[1, 2, 3, 0], read_object=[0, 1, 2, 3])
    run("plan", cyclic, "-c", CLUSTER).assert_refused("variant.json", "cycle", "split -> right")


def test_an_unknown_parent(run: Run, tmp_path: Path) -> None:
    tasks = [
        {"name": "a", "id": "a", "parents": ["ghost"], "children": [], "runtimeInSeconds": 1.0, "files": []},
    ]
    path = tmp_path / "flow.json"
    path.write_text(json.dumps({"name": "f", "schemaVersion": "1.4", "workflow": {"tasks": tasks}}))
    run("plan", path, "-c", CLUSTER).assert_refused("flow.json", "ghost")


def test_a_negative_duration(run: Run, variant: Variant) -> None:
    run("plan", variant(work_s=[1, -2, 3, 1]), "-c", CLUSTER).assert_refused("variant.json", "'left'", "-2")


def test_a_duration_that_is_no_number(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "nan.json"
    path.write_text(json.dumps(DIAMOND | {"work_s": [1.0, float("nan"), 3.0, 1.0]}))
    run("plan", path, "-c", CLUSTER).assert_refused("nan.json", "NaN")


def test_a_truncated_gzip(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(json.dumps(DIAMOND).encode())[:-20])
    run("plan", path, "-c", CLUSTER).assert_refused("cut.json.gz", "truncated gzip")


def test_wrong_json_names_the_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text('{\n"format": "stretto-graph",\n"version" 1}')
    run("plan", path, "-c", CLUSTER).assert_refused("wrong.json:3", "JSON")


def test_an_unknown_policy_gets_a_suggestion(run: Run, diamond: Path) -> None:
    run("plan", diamond, "-c", CLUSTER, "--policy", "hetf").assert_refused("did you mean", "heft")


def test_an_unknown_policy_in_a_comparison(run: Run, diamond: Path) -> None:
    run("compare", diamond, "-c", CLUSTER, "--policies", "heft,petf").assert_refused("did you mean", "peft")


def test_an_unknown_workload_gets_a_suggestion(run: Run) -> None:
    run("show", "workload:cholezky").assert_refused("did you mean cholesky")


def test_an_unknown_workload_parameter_gets_a_suggestion(run: Run) -> None:
    run("show", "workload:cholesky?num_tile=3").assert_refused("num_tiles")


def test_an_unknown_format_gets_a_suggestion(run: Run, diamond: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    run("convert", diamond, target, "--format", "wfformatt").assert_refused("did you mean wfformat")
    assert not target.exists()


def test_an_unknown_parameter_of_a_policy(run: Run, diamond: Path) -> None:
    ran = run("plan", diamond, "-c", CLUSTER, "--policy", "annealing", "--param", "max_evaluation=3")
    ran.assert_refused("max_evaluations")


@pytest.mark.parametrize("cluster", ["cpu:", "cpu:0", "8 cpus", "cpu:2x", "cpu:2@fast", "cpu:2xx3", "cpu:2x0"])
def test_wrong_cluster_shorthand(run: Run, diamond: Path, cluster: str) -> None:
    run("plan", diamond, "-c", cluster).assert_refused()


def test_a_missing_cluster_file_is_not_taken_for_shorthand(run: Run, diamond: Path, tmp_path: Path) -> None:
    run("plan", diamond, "-c", tmp_path / "none.toml").assert_refused("none.toml")


def test_no_cluster_at_all(run: Run, diamond: Path) -> None:
    run("plan", diamond).assert_refused("--cluster")
    run("compare", diamond).assert_refused("--cluster")


def test_a_task_that_fits_nowhere(run: Run, variant: Variant) -> None:
    graph = variant(kinds=["gpu"], kind_duration_s=[[1.0, None, 1.0, 1.0]])
    run("plan", graph, "-c", "gpu:2").assert_refused("'left'", "fits no device")


def test_durations_for_other_kinds_only(run: Run, variant: Variant) -> None:
    graph = variant(kinds=["fpga"], kind_duration_s=[[1.0, 1.0, 1.0, 1.0]])
    run("plan", graph, "-c", "cpu:2").assert_refused("fpga", "cpu")


@pytest.mark.parametrize("option", ["--save", "--gantt"])
def test_an_output_in_a_missing_directory_is_refused_before_the_work(
    run: Run, diamond: Path, tmp_path: Path, option: str
) -> None:
    target = tmp_path / "nowhere" / "out.png"
    run("plan", diamond, "-c", CLUSTER, option, target).assert_refused("nowhere")
    assert not target.parent.exists()


def test_nothing_is_left_when_a_later_step_fails(run: Run, diamond: Path, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    run("gantt", diamond, "-c", CLUSTER, "-o", tmp_path / "picture.bmp").assert_refused("bmp")
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        ("--time-limit", "0"),
        ("--time-limit", "-1"),
        ("--time-limit", "nan"),
        ("--seed", "-1"),
        ("--seed", "one"),
        ("--param", "novalue"),
        ("--discipline", "lazy"),
        ("--contention", "some"),
        ("--output", "xml"),
        ("--polcy", "heft"),
    ],
)
def test_wrong_options_of_plan(run: Run, diamond: Path, words: tuple[str, str]) -> None:
    run("plan", diamond, "-c", CLUSTER, *words).assert_refused()


@pytest.mark.parametrize("words", [("--noise", "-1"), ("--noise", "nan"), ("--noise", "inf"), ("--seed", "-3")])
def test_wrong_options_of_simulate(run: Run, diamond: Path, tmp_path: Path, words: tuple[str, str]) -> None:
    saved = tmp_path / "plan.json"
    run("plan", diamond, "-c", CLUSTER, "--save", saved)
    run("simulate", saved, *words).assert_refused()


@pytest.mark.parametrize("seeds", ["", "a", "1,-2", "1.5"])
def test_wrong_seeds(run: Run, diamond: Path, seeds: str) -> None:
    run("compare", diamond, "-c", CLUSTER, "--policies", "heft", "--seeds", seeds).assert_refused("--seeds")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"assignment": [0, 0, 0]}, "assignment"),
        ({"assignment": [0, 0, 0, 9]}, "device 9"),
        ({"order": [0, 1, 2, 2]}, "twice"),
        ({"order": [3, 2, 1, 0], "assignment": [0, 0, 0, 0]}, ""),
        ({"discipline": "lazy"}, "lazy"),
        ({"graph_source": None}, "--graph"),
        ({"graph_source": 7}, "graph_source"),
        ({"contention": "some"}, "some"),
    ],
)
def test_a_damaged_plan(run: Run, diamond: Path, tmp_path: Path, changes: dict[str, object], word: str) -> None:
    saved = tmp_path / "plan.json"
    run("plan", diamond, "-c", CLUSTER, "--save", saved)
    saved.write_text(json.dumps(json.loads(saved.read_text()) | changes))
    run("simulate", saved).assert_refused(word)


def test_a_graph_is_no_plan(run: Run, diamond: Path) -> None:
    run("simulate", diamond).assert_refused("diamond.json")


def test_a_list_is_no_plan(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text("[1, 2]")
    run("simulate", path).assert_refused("list.json")


def test_a_mistyped_command_gets_a_suggestion(run: Run) -> None:
    run("plna").assert_refused("'plan'")


def test_not_enough_memory_is_no_traceback(run: Run, diamond: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("stretto.graphs.planners.heft.Heft.plan", fail)
    run("plan", diamond, "-c", CLUSTER).assert_refused("memory")


def test_an_internal_error_is_one_line_with_a_hint(run: Run, diamond: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken\ninside")

    monkeypatch.setattr("stretto.graphs.planners.heft.Heft.plan", fail)
    ran = run("plan", diamond, "-c", CLUSTER)
    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert "RuntimeError: broken inside" in ran.err
    assert "STRETTO_DEBUG=1" in ran.err
    monkeypatch.setenv("STRETTO_DEBUG", "1")
    assert "Traceback" in run("plan", diamond, "-c", CLUSTER).err


@pytest.mark.parametrize("name", ["plan", "compare", "replay", "simulate", "bound", "show", "explain", "train"])
def test_a_command_without_its_input_says_what_to_type(run: Run, name: str) -> None:
    run(name).assert_refused(f"stretto {name} ")
