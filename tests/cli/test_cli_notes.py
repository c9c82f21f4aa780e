"""What a plan takes for granted is said: packing, memory, assumed durations, open dimensions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import stretto
from stretto.reports.record import plan_summary

from .conftest import Run

BIG = '[[device]]\ncores = 16\nmemory = "64GB"\n'
PACKING = "Packing is not modeled: a device runs one task at a time."


def wfformat(path: Path, **needs: float) -> Path:
    """Write four independent tasks of ten seconds with some needs."""
    task = {"parents": [], "children": [], "runtimeInSeconds": 10, "files": [], **needs}
    tasks = [task | {"name": name, "id": name} for name in "abcd"]
    path.write_text(json.dumps({"name": "f", "schemaVersion": "1.4", "workflow": {"tasks": tasks}}))
    return path


def test_tasks_that_state_cores_are_optimal_one_at_a_time_only(run: Run, tmp_path: Path) -> None:
    flow, one = wfformat(tmp_path / "flow.json", coreCount=4), tmp_path / "one.toml"
    one.write_text("[[device]]\ncores = 16\n")
    ran = run("plan", flow, "-c", one)
    assert "proven optimal" not in ran.out
    assert "optimal when a device runs one task at a time" in ran.out
    assert PACKING in ran.out
    document = run("plan", flow, "-c", one, "--output", "json").json
    assert document["notes"] == [PACKING]
    assert document["verdict"] == "optimal when a device runs one task at a time"
    assert PACKING in run("bound", flow, "-c", one).out
    assert run("compare", flow, "-c", one, "--policies", "heft", "--output", "json").json["notes"] == [PACKING]


def test_python_json_and_the_run_log_agree(tmp_path: Path) -> None:
    result = stretto.plan(str(wfformat(tmp_path / "flow.json", coreCount=4)), "cpu:1")
    document = result.to_json()
    assert list(result.notes) == document["notes"] == plan_summary(document)["notes"] == [PACKING]
    assert result.verdict == document["verdict"] == plan_summary(document)["verdict"]


def test_tasks_that_state_nothing_are_proven_optimal(run: Run, diamond: Path) -> None:
    document = run("plan", diamond, "-c", "cpu:1", "--output", "json").json
    assert (document["notes"], document["verdict"]) == ([], "proven optimal")


def test_a_memory_limit_that_was_not_checked_is_never_beside_a_bare_optimal(
    run: Run, diamond: Path, tmp_path: Path
) -> None:
    one = tmp_path / "one.toml"
    one.write_text(BIG)
    document = run("plan", diamond, "-c", one, "--output", "json").json
    assert document["verdict"] == "optimal when memory suffices (not checked)"
    assert document["notes"] == ["Memory limits were not checked for tasks: the graph does not state their needs."]


def test_a_memory_limit_that_the_simulator_keeps_is_no_condition(run: Run, tmp_path: Path) -> None:
    flow, one = wfformat(tmp_path / "flow.json", memoryInBytes=1e9), tmp_path / "one.toml"
    one.write_text(BIG)
    document = run("plan", flow, "-c", one, "--output", "json").json
    assert document["verdict"] == "optimal when a device runs one task at a time"
    assert document["notes"] == [PACKING]


def test_links_that_nobody_builds_are_asked_about(run: Run, diamond: Path, tmp_path: Path) -> None:
    lab = tmp_path / "lab.toml"
    lab.write_text('[network]\nbandwidth = 16\n[[device]]\nkind = "cpu"\ncount = 2\n')
    document = run("plan", diamond, "-c", lab, "--output", "json").json
    assert document["notes"] == ["The fastest link carries 16 B/s: is a unit missing in the cluster?"]


def test_show_says_where_durations_come_from(run: Run, diamond: Path, tmp_path: Path) -> None:
    shown = {
        diamond: "as given",
        wfformat(tmp_path / "flow.json"): "recorded",
        "workload:cholesky?num_tiles=3": "assumed (by the generator)",
    }
    for source, basis in shown.items():
        assert run("show", source, "--output", "json").json["durations"] == basis
    assert "measured" not in run("show", "workload:cholesky?num_tiles=3").out


def test_default_durations_are_called_assumed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "g.dot"
    path.write_text("digraph { a -> b }")
    note = "Durations are assumed (1 s for every task: the file states none), not measured."
    assert run("plan", path, "-c", "cpu:1", "--output", "json").json["notes"] == [note]
    assert run("convert", path, tmp_path / "g.json", "--output", "json").json["notes"] == [note]
    assert run("show", tmp_path / "g.json", "--output", "json").json["notes"] == [note]


def test_a_workload_of_several_graphs_keeps_the_notes(tmp_path: Path) -> None:
    (tmp_path / "g.dot").write_text("digraph { a -> b }")
    graph = stretto.load(tmp_path / "g.dot")
    assert isinstance(graph, stretto.TaskGraph)
    work = stretto.Workload.of([graph, graph])
    assert "assumed" in stretto.plan(work, "cpu:1").notes[0]


def test_notes_fit_a_narrow_terminal(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    flow, one = wfformat(tmp_path / "flow.json", coreCount=4, memoryInBytes=1e9), tmp_path / "one.toml"
    one.write_text(BIG)
    lines = run("plan", flow, "-c", one).out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert f"  note: {PACKING}" in [line.rstrip() for line in lines]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """An ONNX model whose batch and sequence length are open."""
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    ends = [helper.make_tensor_value_info(name, kind, ["batch", "seq", 64]) for name in "xy"]
    weights = helper.make_tensor("w", kind, [64, 64], [0.0] * 4096)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node("Relu", ["z"], ["y"])]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [weights])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph), path)
    return path


def test_open_dimensions_are_named_and_can_be_set(run: Run, model: Path) -> None:
    open_ones = run("show", model, "--output", "json").json
    assert "Open dimensions of the model were taken as batch=1, seq=1 (set with --dim batch=N)." in open_ones["notes"]
    assert open_ones["durations"] == "assumed (roofline, typical CPU and GPU)"
    set_ones = run("show", model, "--dim", "batch=8", "--dim", "seq=128", "--output", "json").json
    assert not any("Open dimensions" in note for note in set_ones["notes"])
    assert set_ones["data"] == pytest.approx(8 * 128 * open_ones["data"])
    assert stretto.load(model, dims={"batch": 8, "seq": 128}).object_size.max() == 8 * 128 * 64 * 4  # type: ignore[union-attr]
    assert run("show", f"{model}?batch=8&seq=128", "--output", "json").json["data"] == set_ones["data"]


def test_dimensions_last_in_a_saved_plan(run: Run, model: Path, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    planned = run("plan", model, "-c", "gpu:2", "--dim", "batch=64", "--save", saved, "--output", "json").json
    assert run("simulate", saved, "--output", "json").json["makespan_s"] == planned["makespan_s"]
    assert "Memory is not planned for: weights (16.38 kB) are taken to be everywhere." in planned["notes"]
    assert planned["makespan_s"] > run("plan", model, "-c", "gpu:2", "--output", "json").json["makespan_s"]


def test_wrong_dimensions_are_refused(run: Run, model: Path, diamond: Path) -> None:
    run("show", model, "--dim", "bach=8").assert_refused("bach", "did you mean batch?")
    run("show", model, "--dim", "batch").assert_refused("--dim", "batch=8")
    run("show", model, "--dim", "batch=0").assert_refused("batch", "above 0")
    run("show", diamond, "--dim", "batch=8").assert_refused("--dim batch", "ONNX")
    run("show", "workload:fft", "--dim", "batch=8").assert_refused("--dim", "ONNX")


def test_a_placed_function_says_what_it_takes_for_granted() -> None:
    jax = pytest.importorskip("jax")
    shape = jax.ShapeDtypeStruct((256, 256), "float32")
    placed = stretto.place(lambda x, w: x @ w, shape, shape, devices=2, policy="heft")
    assert placed.notes == (
        "Durations are assumed (roofline, typical CPU and GPU), not measured.",
        "No device states its memory: weights and data fit wherever they are put.",
        "Arrays of 1.049 MB or more are assumed to be weights (say weights=0 for the first). "
        "Weights: 0 B, inputs: 524.3 kB.",
    )
    assert all(f"note: {note}" in repr(placed) for note in placed.notes)
    limited = stretto.Cluster.uniform([stretto.Device("gpu0", "gpu", memory_bytes=1e9)])
    small = stretto.place(lambda x, w: x @ w, shape, shape, devices=limited, policy="heft")
    assert "proven optimal" not in repr(small)
    assert "at its lower bound when tasks take the assumed time" in repr(small)
    assert "786.4 kB of 1 GB" in repr(small)
