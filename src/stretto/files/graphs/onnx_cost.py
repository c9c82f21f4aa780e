"""Arithmetic and memory traffic of ONNX operators, from the shapes of their inputs and outputs.

A multiply-add counts as two operations. Operators without a rule are bounded by their bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stretto.files.graphs.roofline import OpCost


@dataclass(frozen=True)
class OnnxTensor:
    """A tensor's shape and the bytes of one element."""

    shape: tuple[int, ...] = ()
    item_bytes: float = 4.0

    @property
    def num_elements(self) -> float:
        # Floats, so that absurd shapes become inf instead of an endless integer.
        return math.prod(self.shape, start=1.0)

    @property
    def num_bytes(self) -> float:
        return self.num_elements * self.item_bytes


@dataclass(frozen=True)
class OnnxCall:
    """One operator with its attributes and tensors; absent optional inputs are None."""

    op: str
    attributes: Mapping[str, Any]
    inputs: Sequence[OnnxTensor | None]
    outputs: Sequence[OnnxTensor]

    def shape(self, index: int) -> tuple[int, ...]:
        tensor = self.inputs[index] if index < len(self.inputs) else None
        return tensor.shape if tensor is not None else ()

    @property
    def num_in(self) -> float:
        return math.prod(self.shape(0), start=1.0)

    @property
    def num_out(self) -> float:
        return self.outputs[0].num_elements if self.outputs else 0.0


def op_cost(call: OnnxCall) -> OpCost:
    """Return the cost of one operator."""
    rule = FLOPS.get(call.op)
    flops = rule(call) if rule is not None else 0.0
    return OpCost(flops, _bytes(call))


def _bytes(call: OnnxCall) -> float:
    if call.op in VIEWS:
        return 0.0
    written = sum(tensor.num_bytes for tensor in call.outputs)
    if call.op in PARTIAL_READS:
        # They touch only the part of their first input that they return, and their indices.
        return 2 * written + sum(tensor.num_bytes for tensor in call.inputs[1:] if tensor is not None)
    return written + sum(tensor.num_bytes for tensor in call.inputs if tensor is not None)


def _conv(weight: int) -> Callable[[OnnxCall], float]:
    """Each output element is a dot product over the kernel of its group's channels."""

    def flops(call: OnnxCall) -> float:
        return 2 * call.num_out * math.prod(call.shape(weight)[1:], start=1.0)

    return flops


def _conv_transpose(call: OnnxCall) -> float:
    return 2 * call.num_in * math.prod(call.shape(1)[1:], start=1.0)


def _matmul(call: OnnxCall) -> float:
    shape = call.shape(0)
    return 2 * call.num_out * (shape[-1] if shape else 1)


def _gemm(call: OnnxCall) -> float:
    shape = call.shape(0)
    if len(shape) != 2:
        return 2 * call.num_out
    inner = shape[0] if call.attributes.get("transA") else shape[1]
    return 2 * call.num_out * inner + (call.num_out if len(call.inputs) > 2 else 0)


def _recurrent(call: OnnxCall) -> float:
    """Per step and batch element, one product with the input and one with the state weights.

    X is [steps, batch, features]; W and R hold all gates and directions.
    """
    steps = math.prod(call.shape(0)[:2], start=1.0)
    weights = math.prod(call.shape(1), start=1.0) + math.prod(call.shape(2), start=1.0)
    return 2 * steps * weights + 10 * sum(tensor.num_elements for tensor in call.outputs)


def _pool(call: OnnxCall) -> float:
    kernel = call.attributes.get("kernel_shape") or ()
    return call.num_out * math.prod(kernel, start=1.0)


def _local_response(call: OnnxCall) -> float:
    size = call.attributes.get("size")
    return call.num_out * (2 * (size if isinstance(size, int) else 5) + 3)


def _einsum(call: OnnxCall) -> float:
    """Every combination of index values costs one multiply per operand beyond the first, and an add."""
    equation = call.attributes.get("equation", b"")
    text = equation.decode("ascii", "replace") if isinstance(equation, bytes) else str(equation)
    extent: dict[str, int] = {}
    for number, term in enumerate(text.replace(" ", "").split("->")[0].split(",")):
        letters = term.replace("...", "")
        shape = call.shape(number)
        for letter, size in zip(letters, shape[len(shape) - len(letters) :], strict=False):
            extent[letter] = max(size, extent.get(letter, 1))
    return max(1, len(call.inputs)) * math.prod(extent.values(), start=1.0)


def _fourier(call: OnnxCall) -> float:
    """The usual 5 n log2 n of a fast transform, for every frame of the output."""
    shape = call.outputs[0].shape if call.outputs else ()
    if len(shape) < 2:
        return 0.0
    size = max(2, shape[-2])
    return 5 * math.prod(shape[:-1], start=1.0) * math.log2(size)


def _top_k(call: OnnxCall) -> float:
    return call.num_in * max(1.0, math.log2(max(2.0, call.shape(0)[-1] if call.shape(0) else 2.0)))


def _per_output(weight: float) -> Callable[[OnnxCall], float]:
    def flops(call: OnnxCall) -> float:
        return weight * call.num_out

    return flops


def _per_input(weight: float) -> Callable[[OnnxCall], float]:
    def flops(call: OnnxCall) -> float:
        return weight * call.num_in

    return flops


def _combine(call: OnnxCall) -> float:
    return call.num_out * max(1, len(call.inputs) - 1)


#: Only the description of the tensor changes.
VIEWS = frozenset(
    ["Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Shape", "Size", "Dropout", "Optional", "SequenceAt"]
)
PARTIAL_READS = frozenset(
    ["Gather", "GatherElements", "GatherND", "Slice", "Split", "Expand", "Tile", "EmbedLayerNormalization"]
)

FLOPS: dict[str, Callable[[OnnxCall], float]] = {
    "Conv": _conv(1),
    "ConvInteger": _conv(1),
    "FusedConv": _conv(1),
    "QLinearConv": _conv(3),
    "DeformConv": _conv(1),
    "ConvTranspose": _conv_transpose,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "QLinearMatMul": _matmul,
    "FusedMatMul": _matmul,
    "DynamicQuantizeMatMul": _matmul,
    "MatMulIntegerToFloat": _matmul,
    "Gemm": _gemm,
    "FusedGemm": _gemm,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "DynamicQuantizeLSTM": _recurrent,
    "MaxPool": _pool,
    "AveragePool": _pool,
    "LpPool": _pool,
    "LRN": _local_response,
    "Einsum": _einsum,
    "STFT": _fourier,
    "DFT": _fourier,
    "TopK": _top_k,
    "Resize": _per_output(8),
    "Upsample": _per_output(8),
    "GridSample": _per_output(12),
    "Sum": _combine,
    "Max": _combine,
    "Min": _combine,
    "Mean": _combine,
    "BatchNormalization": _per_output(2),
    "QuantizeLinear": _per_output(3),
    "DequantizeLinear": _per_output(2),
    "DynamicQuantizeLinear": _per_output(5),
}
_WEIGHT_PER_OUTPUT = {
    1: "Add Sub Mul Div Neg Abs Relu LeakyRelu PRelu ThresholdedRelu Clip Floor Ceil Round Sign Where Equal Less "
    "LessOrEqual Greater GreaterOrEqual And Or Not Xor Mod Cast Range CumSum BitShift IsNaN IsInf Reciprocal",
    4: "Exp Log Sqrt Pow Sin Cos Tan Tanh Sigmoid HardSigmoid HardSwish Softsign Sinh Cosh Asin Acos Atan",
    5: "Softmax Elu Selu Celu Softplus Swish",
    8: "LayerNormalization InstanceNormalization GroupNormalization LogSoftmax Gelu Erf Mish FastGelu QuickGelu "
    "SkipLayerNormalization SimplifiedLayerNormalization RMSNormalization BiasGelu",
}
_WEIGHT_PER_INPUT = {
    1: "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ArgMax ArgMin GlobalAveragePool GlobalMaxPool NonZero",
    2: "ReduceSumSquare ReduceL1 ReduceL2 GlobalLpPool LpNormalization MeanVarianceNormalization",
    5: "ReduceLogSum ReduceLogSumExp Hardmax",
}
FLOPS |= {op: _per_output(weight) for weight, ops in _WEIGHT_PER_OUTPUT.items() for op in ops.split()}
FLOPS |= {op: _per_input(weight) for weight, ops in _WEIGHT_PER_INPUT.items() for op in ops.split()}
