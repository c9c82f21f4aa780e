"""Live JAX functions: one task per primitive, its duration from a roofline."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import ARGUMENT_BYTES, DURATIONS, ROOFLINE
from stretto.errors import MissingExtra
from stretto.files.graphs.roofline import ROOFLINES, OpCost, Roofline, durations

#: An object of jax (a jaxpr, an equation, an abstract value), which has no stable types.
Jax: TypeAlias = Any
#: Calls whose body belongs to the caller; the others with bodies (scan, while, cond) are one task.
INLINED = frozenset(
    [
        "jit",
        "pjit",
        "closed_call",
        "core_call",
        "custom_jvp_call",
        "custom_vjp_call",
        "custom_vjp_call_jaxpr",
        "checkpoint",
        "remat",
        "remat2",
    ]
)
VIEWS = frozenset(["reshape", "squeeze", "expand_dims", "copy", "stop_gradient", "bitcast_convert_type"])
PARTIAL_READS = frozenset(["gather", "dynamic_slice", "slice"])


def from_jax(fun: Callable[..., object], *args: object, **kwargs: object) -> TaskGraph:
    """Trace a function on example arguments and return the graph of its primitives.

    The arguments may be arrays or ``jax.ShapeDtypeStruct``: nothing is computed. They are
    inputs, not tasks; arrays that the function closes over are resident bytes of the tasks
    that read them. Nested ``jit`` is inlined. A ``scan`` is one task that costs its body times
    its length, a ``cond`` costs its longest branch, a ``while`` one round of its body.
    """
    try:
        import jax
    except ImportError:
        raise MissingExtra("jax", "jax", "tracing JAX functions") from None
    return from_jaxpr(jax.make_jaxpr(fun)(*args, **kwargs), name=getattr(fun, "__name__", "jax"))


def from_jaxpr(closed_jaxpr: Jax, *, rooflines: Mapping[str, Roofline] = ROOFLINES, name: str = "jax") -> TaskGraph:
    """Return the graph of a closed jaxpr, with durations for each kind of ``rooflines``."""
    tracer = _Tracer(GraphBuilder(name), rooflines)
    jaxpr = closed_jaxpr.jaxpr
    constants = [_Value(resident_bytes=_aval_bytes(var.aval)) for var in jaxpr.constvars]
    tracer.walk(jaxpr, constants, [_Value() for _ in jaxpr.invars])
    tracer.build.meta |= {
        DURATIONS: ROOFLINE if rooflines is ROOFLINES else "assumed (roofline model)",
        ARGUMENT_BYTES: sum(_aval_bytes(var.aval) for var in jaxpr.invars),
    }
    tracer.build.meta |= {"total_flops": tracer.total.flops, "total_bytes": tracer.total.num_bytes}
    return tracer.build.graph()


@dataclass(frozen=True)
class _Value:
    """What a variable holds: a task's object, or something that is there from the start."""

    handle: int | None = None
    resident_bytes: float = 0.0


class _Tracer:
    def __init__(self, build: GraphBuilder, rooflines: Mapping[str, Roofline]) -> None:
        self.build = build
        self.rooflines = rooflines
        self.total = OpCost()

    def walk(self, jaxpr: Jax, constants: Sequence[_Value], inputs: Sequence[_Value]) -> list[_Value]:
        """Add the tasks of a jaxpr; return the values of its outputs."""
        # Bodies are shared between calls, so each call has variables of its own.
        env: dict[Jax, _Value] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *inputs], strict=True))

        def value(atom: Jax) -> _Value:
            return _Value() if hasattr(atom, "val") else env[atom]

        for eqn in jaxpr.eqns:
            operands = [value(atom) for atom in eqn.invars]
            body = _inlined_body(eqn)
            if body is not None:
                closed = [_Value(resident_bytes=_aval_bytes(var.aval)) for var in body.constvars]
                results = self.walk(body, closed, operands)
            else:
                results = self._task(eqn, operands)
            env.update(zip(eqn.outvars, results, strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def _task(self, eqn: Jax, operands: Sequence[_Value]) -> list[_Value]:
        cost = eqn_cost(eqn)
        self.total += cost
        seconds = durations(cost, self.rooflines)
        primitive = str(eqn.primitive.name)
        task = self.build.task(
            f"{primitive}_{self.build.num_tasks}",
            next(iter(seconds.values())),
            durations=seconds,
            resident_bytes=sum(operand.resident_bytes for operand in operands),
            category=primitive,
        )
        for operand in operands:
            if operand.handle is not None:
                self.build.read(task, operand.handle)
        return [_Value(self.build.object(task, _aval_bytes(var.aval))) for var in eqn.outvars]


def _as_jaxpr(value: Jax) -> Jax:
    """Return the open jaxpr inside a parameter, or None."""
    inner = getattr(value, "jaxpr", value)
    return inner if hasattr(inner, "eqns") and hasattr(inner, "constvars") else None


def _bodies(eqn: Jax) -> Iterator[Jax]:
    for value in eqn.params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            body = _as_jaxpr(item)
            if body is not None:
                yield body


def _inlined_body(eqn: Jax) -> Jax:
    if eqn.primitive.name not in INLINED:
        return None
    body = next(_bodies(eqn), None)
    fits = body is not None and len(body.invars) == len(eqn.invars) and len(body.outvars) == len(eqn.outvars)
    return body if fits else None


def _num_elements(aval: Jax) -> float:
    return math.prod(getattr(aval, "shape", ()), start=1.0)


def _aval_bytes(aval: Jax) -> float:
    return _num_elements(aval) * float(getattr(getattr(aval, "dtype", None), "itemsize", 4))


def eqn_cost(eqn: Jax) -> OpCost:
    """Return the arithmetic and the bytes of one equation."""
    bodies = [_body_cost(body) for body in _bodies(eqn)]
    name = str(eqn.primitive.name)
    if bodies:
        if name == "cond":
            return max(bodies, key=lambda cost: (cost.num_bytes + cost.flops, cost.flops))
        return sum(bodies, OpCost()).times(float(eqn.params.get("length", 1)) if name == "scan" else 1.0)
    return OpCost(_flops(eqn, name), _bytes(eqn, name))


def _body_cost(body: Jax) -> OpCost:
    return sum((eqn_cost(eqn) for eqn in body.eqns), OpCost())


def _bytes(eqn: Jax, name: str) -> float:
    if name in VIEWS:
        return 0.0
    written = sum(_aval_bytes(var.aval) for var in eqn.outvars)
    if name in PARTIAL_READS:
        return 2 * written + sum(_aval_bytes(atom.aval) for atom in eqn.invars[1:])
    return written + sum(_aval_bytes(atom.aval) for atom in eqn.invars)


def _flops(eqn: Jax, name: str) -> float:
    num_out = sum(_num_elements(var.aval) for var in eqn.outvars)
    if name in _RULES:
        return _RULES[name](eqn, num_out)
    if name.startswith(("reduce_", "arg", "cum")):
        return sum(_num_elements(atom.aval) for atom in eqn.invars[:1])
    return _PER_ELEMENT.get(name, 0) * num_out


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
_PER_ELEMENT = {name: weight for weight, names in _WEIGHTS.items() for name in names.split()}
