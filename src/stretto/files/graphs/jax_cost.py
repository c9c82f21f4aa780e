"""What an equation of JAX costs: arithmetic, bytes, type of numbers, class of operation."""

from __future__ import annotations

import math
from collections.abc import Callable

from stretto.files.graphs.jax_equations import Jax, bodies
from stretto.files.graphs.roofline import OpCost

VIEWS = frozenset(["reshape", "squeeze", "expand_dims", "copy", "stop_gradient", "bitcast_convert_type"])
PARTIAL_READS = frozenset(["gather", "dynamic_slice", "slice"])
#: Classes that ``stretto calibrate`` measures; whatever is not named here is counted as element-wise.
OP_CLASSES = {
    "dot_general": "matmul",
    "conv_general_dilated": "convolution",
    "reduce_sum": "reduction",
    "reduce_max": "reduction",
    "reduce_min": "reduction",
    "reduce_prod": "reduction",
}


def _num_elements(aval: Jax) -> float:
    return math.prod(getattr(aval, "shape", ()), start=1.0)


def aval_bytes(aval: Jax) -> float:
    return _num_elements(aval) * float(getattr(getattr(aval, "dtype", None), "itemsize", 4))


def eqn_cost(eqn: Jax) -> OpCost:
    """Return the arithmetic and the bytes of one equation."""
    costs = [_body_cost(getattr(body, "jaxpr", body)) for body in bodies(eqn)]
    name = str(eqn.primitive.name)
    if costs:
        if name == "cond":
            return max(costs, key=lambda cost: (cost.num_bytes + cost.flops, cost.flops))
        return sum(costs, OpCost()).times(float(eqn.params.get("length", 1)) if name == "scan" else 1.0)
    return OpCost(_flops(eqn, name), _bytes(eqn, name), _dtype(eqn), OP_CLASSES.get(name, "elementwise"))


def _dtype(eqn: Jax) -> str:
    """Return the type of the numbers that an equation computes with: that of its first operand."""
    atoms = [*eqn.invars, *eqn.outvars]
    return str(getattr(atoms[0].aval, "dtype", "float32")) if atoms else "float32"


def _body_cost(body: Jax) -> OpCost:
    return sum((eqn_cost(eqn) for eqn in body.eqns), OpCost())


def _bytes(eqn: Jax, name: str) -> float:
    if name in VIEWS:
        return 0.0
    written = sum(aval_bytes(var.aval) for var in eqn.outvars)
    if name in PARTIAL_READS:
        return 2 * written + sum(aval_bytes(atom.aval) for atom in eqn.invars[1:])
    return written + sum(aval_bytes(atom.aval) for atom in eqn.invars)


def _flops(eqn: Jax, name: str) -> float:
    num_out = sum(_num_elements(var.aval) for var in eqn.outvars)
    if name in _RULES:
        return _RULES[name](eqn, num_out)
    if name.startswith(("reduce_", "arg", "cum")):
        return sum(_num_elements(atom.aval) for atom in eqn.invars[:1])
    return PER_ELEMENT.get(name, 0) * num_out


def _dot_general(eqn: Jax, num_out: float) -> float:
    (contracted, _), _ = eqn.params["dimension_numbers"]
    shape = eqn.invars[0].aval.shape
    return 2 * num_out * math.prod((shape[axis] for axis in contracted), start=1.0)


def _convolution(eqn: Jax, num_out: float) -> float:
    """Each output element is a dot product over its group's input channels and the window."""
    shape = eqn.invars[1].aval.shape
    out_axis = eqn.params["dimension_numbers"].rhs_spec[0]
    return 2 * num_out * math.prod((n for axis, n in enumerate(shape) if axis != out_axis), start=1.0)


def _sort(eqn: Jax, num_out: float) -> float:
    shape = eqn.invars[0].aval.shape
    return num_out * math.log2(max(2, shape[-1] if shape else 2))


def _window(eqn: Jax, num_out: float) -> float:
    return num_out * math.prod(eqn.params.get("window_dimensions", ()), start=1.0)


def _fft(eqn: Jax, num_out: float) -> float:
    size = math.prod(eqn.params.get("fft_lengths", ()), start=1.0)
    return 5 * num_out * math.log2(max(2.0, size))


_RULES: dict[str, Callable[[Jax, float], float]] = {
    "dot_general": _dot_general,
    "conv_general_dilated": _convolution,
    "sort": _sort,
    "top_k": _sort,
    "fft": _fft,
    "reduce_window_sum": _window,
    "reduce_window_max": _window,
    "reduce_window_min": _window,
}
_WEIGHTS = {
    1: "add sub mul div neg abs max min sign floor ceil round clamp select_n eq ne lt le gt ge and or not xor rem "
    "convert_element_type add_any square integer_pow is_finite shift_left shift_right_logical",
    4: "exp exp2 log log1p expm1 sqrt rsqrt cbrt pow sin cos tan tanh logistic asin acos atan atan2 sinh cosh",
    8: "erf erfc erf_inv lgamma digamma",
    30: "random_bits threefry2x32",
}
PER_ELEMENT = {name: weight for weight, names in _WEIGHTS.items() for name in names.split()}
