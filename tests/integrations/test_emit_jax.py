"""A placed JAX function as a file: it runs without its source, and gives the same results."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto
from stretto.errors import InvalidInput, StrettoError
from stretto.integrations.emit_jax import load_program

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

MODEL = """
import jax, jax.numpy as jnp

def apply(weights, x):
    return jax.lax.scan(lambda row, w: (jnp.tanh(row @ w), None), x, weights)[0]

def build():
    return apply, (jnp.ones((4, 8, 8)) * 0.1, jnp.ones((2, 8)))

def wrong():
    return 3
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def test_an_emitted_function_gives_the_same_results(tmp_path: Path) -> None:
    captured = jnp.arange(8.0)

    def loss(weights: Any, x: Any) -> Any:
        halves = [jnp.tanh(x @ weights[i]) for i in range(2)]
        return jnp.sum((halves[0] * halves[1] + captured) ** 2)

    weights, x = jax.random.normal(jax.random.key(0), (2, 8, 8)), jnp.ones((4, 8))
    placement = stretto.place(
        jax.value_and_grad(loss), weights, x, devices=2, policy="round-robin", weights=0, group=False
    )
    assert placement.program.arguments.parts, "the weights are cut into slices"
    stretto.api.emit_placement(placement, "jax", tmp_path / "loss.zip")
    run = load_program(tmp_path / "loss.zip", jax.devices()[:1] * 2)
    expected = jax.tree.leaves(jax.value_and_grad(loss)(weights, x))
    for found, wanted in zip(run(weights, x), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    with zipfile.ZipFile(tmp_path / "loss.zip") as archive:
        document = json.loads(archive.read("program.json"))
    assert {row["device"] for row in document["stretches"]} == {0, 1}
    assert document["costs"].startswith("assumed")
    with pytest.raises(InvalidInput, match="1 devices of JAX for 2"):
        load_program(tmp_path / "loss.zip", jax.devices()[:1])


def test_a_python_file_is_executed_only_when_allowed(model: Path) -> None:
    with pytest.raises(InvalidInput, match="allow-code"):
        stretto.api.place_model(f"{model}:build", devices=2, policy="heft")
    placement = stretto.api.place_model(f"{model}:build", devices=2, policy="heft", allow_code=True)
    assert [row.primitive for row in placement.operations] == ["dot_general"] * 4
    assert all("model.py:" in row.source for row in placement.operations)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("model.py", {}, "say which function builds the model"),
        ("model.py:none", {"allow_code": True}, "unknown function of model.py 'none'; known: apply, build, wrong"),
        ("model.py:wrong", {"allow_code": True}, "wrong returned int, expected two values"),
        ("model.py:build", {"allow_code": True, "dims": {"batch": 2}}, "only ONNX models have open dimensions"),
        ("missing.py:build", {"allow_code": True}, "no such file"),
        ("workload:ffnn", {"allow_code": True}, "is read, not executed"),
        ("workload:ffnn", {"costs": "costs.json"}, "only to functions of JAX"),
    ],
)
def test_mistakes_are_explained(
    model: Path, source: str, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    with pytest.raises(StrettoError, match=message):
        stretto.api.place_model(source, devices=2, policy="heft", **options)


def test_only_functions_of_jax_become_programs_of_jax() -> None:
    placement = stretto.api.place_model("workload:ffnn", devices=2, policy="heft")
    with pytest.raises(InvalidInput, match="--emit json writes any placement"):
        stretto.api.emit_placement(placement, "jax")
    document = json.loads(stretto.api.emit_placement(placement, "json"))
    assert len(document["operations"]) == placement.graph.num_tasks
    assert [row["device"] for row in document["memory"]] == ["gpu0", "gpu1"]
