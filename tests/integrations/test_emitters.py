"""What a placement is written as runs without Stretto, and gives the model's own results."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
import pytest

import stretto
from stretto import catalog
from stretto.errors import InvalidInput
from stretto.registry import resolve


def test_a_torch_file_runs_alone() -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed (extra 'torch')")
    from torch_cases import CASES, KWARGS

    for name in ("resnet", "tied"):
        module, args = CASES[name]()
        kwargs = KWARGS.get(name, {})
        placement = stretto.place(module, *args, devices=2, policy="random", seed=1, example_kwargs=kwargs)
        text = resolve(catalog.EMITTERS["torch"])(placement).decode()
        assert "stretto" not in text
        space: dict[str, Any] = {}
        exec(compile(text, "placed.py", "exec"), space)
        assert set(space["DEVICE_OF"].values()) == {0, 1}
        run = space["placed"](module, args, kwargs, devices=["cpu", "cpu"])
        torch.testing.assert_close(run(*args, **kwargs), module(*args, **kwargs), rtol=0, atol=0)


def test_a_device_map_is_json() -> None:
    pytest.importorskip("torch", reason="torch is not installed (extra 'torch')")
    from torch_cases import perceptron

    module, args = perceptron()
    placement = stretto.place(module, *args, devices=2, policy="random")
    assert json.loads(resolve(catalog.EMITTERS["accelerate"])(placement)) == placement.device_map()


def test_onnx_parts_run_in_their_order() -> None:
    onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed (extra 'onnx')")
    ort: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra 'onnxruntime')")
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] y)
        { a = Tanh(x)  b = Relu(x)  c = Mul(a, b)  y = Add(c, a) }"""
    )
    placement = stretto.place(model, devices=2, policy="random")
    emit = resolve(catalog.EMITTERS["onnx"])
    archive = zipfile.ZipFile(io.BytesIO(emit(placement)))
    manifest = json.loads(archive.read("manifest.json"))
    values = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    for part in manifest["parts"]:
        session = ort.InferenceSession(archive.read(part["file"]), providers=["CPUExecutionProvider"])
        feed = {name: values[name] for name in part["inputs"]}
        values |= dict(zip(part["outputs"], session.run(part["outputs"], feed), strict=True))
    tanh = np.tanh(values["x"])
    np.testing.assert_allclose(values["y"], tanh * np.maximum(values["x"], 0) + tanh, rtol=1e-6)
    assert emit(placement) == emit(placement)
    for name in ("torch", "accelerate"):
        with pytest.raises(InvalidInput, match="PyTorch modules"):
            resolve(catalog.EMITTERS[name])(placement)
