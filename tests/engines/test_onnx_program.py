"""Split ONNX models compute what the whole models compute."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto
from real_data import find_data
from stretto.core.plan import Plan
from stretto.errors import InvalidInput
from stretto.graphs.simulator import simulate

onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed (extra 'onnx')")
ort: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra 'onnxruntime')")

from stretto.engines.onnx_program import OnnxRunner, fill_weights, missing_weights, split_model  # noqa: E402

#: Real models and the sizes of their open dimensions that keep them small.
MODELS: dict[str, dict[str, int]] = {
    "onnx-basic-pitch-nmp.onnx.gz": {},
    "onnx-ddddocr-common_old.noweights.onnx.gz": {},
    "onnx-magika-model.noweights.onnx.gz": {},
    "onnx-onnx-asr-nemo128.onnx.gz": {},
    "onnx-onnx-light_bvlc_alexnet.onnx.gz": {},
    "onnx-onnx-light_resnet50.onnx.gz": {},
    "onnx-nudenet-320n.noweights.onnx.gz": {},
    "onnx-rapidocr-onnxruntime-ch_ppocr_mobile_v2.0_cls_infer.onnx.gz": {},
    "onnx-rapidocr-onnxruntime-ch_PP-OCRv4_det_infer.noweights.onnx.gz": {},
    "onnx-silero-vad-silero_vad_16k_op15.onnx.gz": {},
}
#: Sizes of inputs that a model's own file leaves open, by name of the input.
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "onnx-basic-pitch-nmp.onnx.gz": {"serving_default_input_2:0": (1, 43844, 1)},
    "onnx-ddddocr-common_old.noweights.onnx.gz": {"input1": (1, 1, 64, 96)},
    "onnx-onnx-asr-nemo128.onnx.gz": {"waveforms": (1, 4000), "waveforms_lens": (1,)},
    "onnx-nudenet-320n.noweights.onnx.gz": {"images": (1, 3, 64, 64)},
    "onnx-rapidocr-onnxruntime-ch_ppocr_mobile_v2.0_cls_infer.onnx.gz": {"x": (1, 3, 48, 192)},
    "onnx-rapidocr-onnxruntime-ch_PP-OCRv4_det_infer.noweights.onnx.gz": {"x": (1, 3, 64, 64)},
    "onnx-silero-vad-silero_vad_16k_op15.onnx.gz": {"input": (1, 512), "state": (2, 1, 128)},
}


def read_model(path: Path, seed: int = 0) -> Any:
    model = onnx.load_model_from_string(gzip.decompress(path.read_bytes()))
    fill_weights(model, seed)
    return model


def example(model: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    weights = {tensor.name for tensor in model.graph.initializer}
    feed = {}
    for value in model.graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        shape = shapes.get(value.name, tuple(max(1, dim.dim_value) for dim in tensor.shape.dim))
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if np.issubdtype(kind, np.integer):
            feed[value.name] = np.full(
                shape, 4000 if "lens" in value.name else 16000 if value.name == "sr" else 3, kind
            )
        else:
            feed[value.name] = rng.uniform(0, 1, shape).astype(kind)
    return feed


def whole(model: Any, feed: dict[str, Any]) -> dict[str, Any]:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in model.graph.output]
    return dict(zip(names, session.run(names, feed), strict=True))


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-5, err_msg=name)


def parts_of(placement: Any, assignment: Any, *, merge: bool = True) -> list[Any]:
    """Split a placed model along any assignment."""
    problem = placement.result.problem
    schedule = simulate(problem, Plan(np.asarray(assignment, dtype=np.int32), problem.arrays.topo))
    names = [device.name for device in problem.cluster.devices]
    return split_model(placement.program, placement.graph, schedule, names, merge=merge)


@pytest.mark.parametrize("name", MODELS)
def test_real_models_split_in_two_to_four(name: str) -> None:
    data = find_data()
    if data is None:
        pytest.skip("the folder of real data is absent (STRETTO_DATA)")
    model = read_model(data / "dataflow" / name)
    placement = stretto.place(model, devices=4, policy="heft", dims=MODELS[name])
    feed = example(model, SHAPES.get(name, {}))
    expected = whole(model, feed)
    results = [value.name for value in model.graph.output]
    n = placement.graph.num_tasks
    rank = np.empty(n, dtype=np.int64)
    rank[placement.graph.topo] = np.arange(n)
    for num_parts in (2, 3, 4):
        parts = parts_of(placement, rank * num_parts // n)
        assert len({part.device for part in parts}) == num_parts
        assert len(parts) <= num_parts + 1
        assert len(parts_of(placement, rank * num_parts // n, merge=False)) >= num_parts
        assert sum(part.num_nodes for part in parts) >= n
        same(OnnxRunner(parts, results)(feed), expected)


def small_model() -> Any:
    """Two branches, unnamed nodes, a constant result, an input that is a result, and a function of weights."""
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    agraph (float[batch, 4] x, float[4] same) => (float[batch, 3] y, float[4] same, float[2] fixed)
    <float[4, 3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4, 3] v = {1,0,1,0,1,0,1,0,1,0,1,0}, float[2] c = {1, 2}>
    {
        a = MatMul(x, w)
        doubled = Add(v, v)
        b = MatMul(x, doubled)
        l = Tanh(a)
        r = Relu(b)
        y = Add(l, r)
        fixed = Neg(c)
    }
    """
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize("seed", range(6))
def test_any_assignment_gives_the_same_results(seed: int) -> None:
    model = small_model()
    placement = stretto.place(model, devices=3, policy="heft", dims={"batch": 5})
    rng = np.random.default_rng(seed)
    feed = {"x": rng.normal(size=(5, 4)).astype(np.float32), "same": np.arange(4, dtype=np.float32)}
    assignment = rng.integers(0, 3, placement.graph.num_tasks)
    for merge in (True, False):
        parts = parts_of(placement, assignment, merge=merge)
        same(OnnxRunner(parts, ["y", "same", "fixed"])(feed), whole(model, feed))


def test_memory_limits_split_a_model() -> None:
    rng = np.random.default_rng(0)
    weights = [onnx.numpy_helper.from_array(rng.normal(size=(64, 64)).astype(np.float32), f"w{i}") for i in range(4)]
    nodes = [onnx.helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"]) for i in range(4)]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "chain", [value("t0", 1, [2, 64])], [value("t4", 1, [2, 64])], initializer=weights
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 8
    placement = stretto.place(model, devices=2, policy="heft", memory=2 * 64 * 64 * 4 + 4096)
    parts = placement.split()
    assert {part.device for part in parts} == {"gpu0", "gpu1"}
    feed = {"t0": rng.normal(size=(2, 64)).astype(np.float32)}
    same(placement.runner()(feed), whole(model, feed))
    assert [placement.node_of(name)[1] for name in placement.graph.task_names or ()] == ["t1", "t2", "t3", "t4"]


def test_dimensions_are_arguments() -> None:
    model = small_model()
    small, large = (stretto.place(model, devices=1, policy="heft", dims={"batch": size}) for size in (1, 1000))
    assert large.graph.meta["total_flops"] > 100 * small.graph.meta["total_flops"]
    assert not any("Open dimensions" in note for note in large.notes)
    assumed = stretto.place(model, devices=1, policy="heft")
    assert any("batch=1" in note for note in assumed.notes)
    with pytest.raises(stretto.StrettoError, match=r"(?s)batc.*batch"):
        stretto.place(model, devices=1, dims={"batc": 2})


def test_lost_weights_and_missing_inputs_are_said() -> None:
    model = small_model()
    model.graph.initializer[0].ClearField("float_data")
    assert [tensor.name for tensor in missing_weights(model)] == ["w"]
    placement = stretto.place(model, devices=1, policy="heft")
    with pytest.raises(InvalidInput, match="no values for 1 weights, such as 'w'"):
        placement.split()
    with pytest.raises(InvalidInput, match="needs the input 'x'; given: same"):
        placement.runner(random_weights=0)({"same": np.zeros(4, np.float32)})
    with pytest.raises(InvalidInput, match="takes no example arguments"):
        stretto.place(model, 1, devices=1)
