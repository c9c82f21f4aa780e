"""The equations of a traced JAX function as one flat list, with nested calls opened and short loops unrolled."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from stretto.errors import InvalidInput, MissingExtra

#: An object of jax (a jaxpr, an equation, an abstract value), which has no stable types.
Jax: TypeAlias = Any
#: Rounds up to which a ``scan`` is unrolled, and the equations that unrolling may add up to.
DEFAULT_UNROLL = 64
MAX_EQUATIONS = 50_000
#: Calls whose body belongs to the caller; the others with bodies (long scans, while, cond) are one task.
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


@dataclass(frozen=True)
class FlatEquation:
    """One equation; ``reads`` has the number of a value per operand, or None for a literal."""

    eqn: Jax
    reads: tuple[int | None, ...]
    writes: tuple[int, ...]

    @property
    def primitive(self) -> str:
        return str(self.eqn.primitive.name)

    @property
    def source(self) -> str:
        """Return the line of the user's program that it comes from, or an empty text."""
        try:
            from jax._src.source_info_util import summarize
        except ImportError:  # not part of what JAX promises to keep
            return ""
        path, colon, rest = str(summarize(self.eqn.source_info)).partition(":")
        if path == __file__:  # a loop that was unrolled here
            return "scan"
        return f"{os.path.basename(path)}{colon}{rest}"


@dataclass
class FlatProgram:
    """A traced function without nested calls; values are numbered, and ``avals`` has the type of each."""

    name: str
    avals: list[Jax] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    #: Arrays that the function closes over, by value.
    constants: dict[int, Jax] = field(default_factory=dict)
    equations: list[FlatEquation] = field(default_factory=list)
    #: The number of a value, or a literal of jax.
    outputs: list[Jax] = field(default_factory=list)
    #: The pytrees of ``(args, kwargs)`` and of the result; None for a bare jaxpr.
    in_tree: Jax = None
    out_tree: Jax = None
    #: Rounds up to which loops are unrolled; what was left as it is, in sentences.
    unroll: int = DEFAULT_UNROLL
    notes: list[str] = field(default_factory=list)

    def new_value(self, aval: Jax) -> int:
        """Number another value."""
        self.avals.append(aval)
        return len(self.avals) - 1


def trace(
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    *,
    unroll: int = DEFAULT_UNROLL,
) -> FlatProgram:
    """Trace a function on example arguments: arrays or ``jax.ShapeDtypeStruct``; nothing is computed."""
    if unroll < 0:
        raise InvalidInput(f"{unroll} rounds; 0 keeps loops as they are", field="unroll")
    try:
        import jax
    except ImportError:
        raise MissingExtra("jax", "jax", "tracing JAX functions") from None
    closed_jaxpr, result = jax.make_jaxpr(fun, return_shape=True)(*args, **kwargs)
    program = flatten(closed_jaxpr, name=getattr(fun, "__name__", "jax"), unroll=unroll)
    program.in_tree = jax.tree.structure((tuple(args), dict(kwargs)))
    program.out_tree = jax.tree.structure(result)
    return program


def flatten(closed_jaxpr: Jax, *, name: str = "jax", unroll: int = DEFAULT_UNROLL) -> FlatProgram:
    """Return the equations of a closed jaxpr, with nested ``jit`` opened and a ``scan`` of few rounds unrolled."""
    program = FlatProgram(name, unroll=unroll)
    jaxpr = closed_jaxpr.jaxpr
    program.inputs = [program.new_value(var.aval) for var in jaxpr.invars]
    program.outputs = _walk(program, jaxpr, closed_jaxpr.consts, list(program.inputs))
    return program


def _walk(program: FlatProgram, jaxpr: Jax, constants: Sequence[Jax], operands: Sequence[Jax]) -> list[Jax]:
    """Add the equations of a jaxpr; return its outputs. A value is its number, a literal is itself."""
    # Bodies are shared between calls, so each call has variables of its own.
    env: dict[Jax, Jax] = dict(zip(jaxpr.invars, operands, strict=True))
    for var, constant in zip(jaxpr.constvars, constants, strict=True):
        env[var] = program.new_value(var.aval)
        program.constants[env[var]] = constant

    def value(atom: Jax) -> Jax:
        return atom if hasattr(atom, "val") else env[atom]

    for eqn in jaxpr.eqns:
        reads = [value(atom) for atom in eqn.invars]
        inlined = _inlined_body(eqn) or _unrolled_body(program, eqn)
        if inlined is not None:
            results = _walk(program, *inlined, reads)
        else:
            results = _add(program, eqn, reads)
        env.update(zip(eqn.outvars, results, strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def _add(program: FlatProgram, eqn: Jax, reads: Sequence[Jax]) -> list[int]:
    """Add one equation; literals passed to an opened call stand where its body has variables."""
    atoms = [own if isinstance(read, int) else read for read, own in zip(reads, eqn.invars, strict=True)]
    writes = tuple(program.new_value(var.aval) for var in eqn.outvars)
    numbers = tuple(read if isinstance(read, int) else None for read in reads)
    program.equations.append(FlatEquation(eqn.replace(invars=atoms), numbers, writes))
    return list(writes)


def bodies(eqn: Jax) -> Iterator[Jax]:
    """Yield the jaxprs inside an equation, closed ones as they are."""
    for value in eqn.params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            inner = getattr(item, "jaxpr", item)
            if hasattr(inner, "eqns") and hasattr(inner, "constvars"):
                yield item


def _inlined_body(eqn: Jax) -> tuple[Jax, Sequence[Jax]] | None:
    """Return the open jaxpr and the constants of a call that belongs to its caller, or None."""
    if eqn.primitive.name not in INLINED:
        return None
    body = next(bodies(eqn), None)
    inner, constants = getattr(body, "jaxpr", body), getattr(body, "consts", ())
    if inner is None or len(inner.constvars) != len(constants):
        return None
    fits = len(inner.invars) == len(eqn.invars) and len(inner.outvars) == len(eqn.outvars)
    return (inner, constants) if fits else None


def _unrolled_body(program: FlatProgram, eqn: Jax) -> tuple[Jax, Sequence[Jax]] | None:
    """Return a ``scan`` as one round after the other, or None for other equations and for loops beyond the limit."""
    if eqn.primitive.name != "scan":
        return None
    length, body = int(eqn.params["length"]), eqn.params["jaxpr"]
    num_after = len(program.equations) + length * len(body.jaxpr.eqns)
    if length > program.unroll or num_after > MAX_EQUATIONS:
        limit = f"unroll={program.unroll}" if length > program.unroll else f"{MAX_EQUATIONS:,} equations"
        note = f"A scan of {length:,} rounds is one operation: the limit is {limit}."
        program.notes += [note] * (note not in program.notes)
        return None
    import jax

    unrolled = jax.make_jaxpr(_rounds(eqn))(*[var.aval for var in eqn.invars])
    return unrolled.jaxpr, unrolled.consts


def _rounds(eqn: Jax) -> Callable[..., list[Jax]]:
    """Return a function that does what a ``scan`` does, without a loop."""
    import jax
    from jax.extend.core import jaxpr_as_fun

    body = jaxpr_as_fun(eqn.params["jaxpr"])
    num_consts, num_carry = eqn.params["num_consts"], eqn.params["num_carry"]
    rounds = range(eqn.params["length"])

    def unrolled(*operands: Jax) -> list[Jax]:
        consts, carry = operands[:num_consts], list(operands[num_consts : num_consts + num_carry])
        stacked = operands[num_consts + num_carry :]
        rows: dict[int, list[Jax]] = {}
        for number in reversed(rounds) if eqn.params["reverse"] else rounds:
            slices = [jax.lax.index_in_dim(one, number, keepdims=False) for one in stacked]
            results = body(*consts, *carry, *slices)
            carry, rows[number] = list(results[:num_carry]), list(results[num_carry:])
        num_stacked = len(eqn.outvars) - num_carry
        return carry + [jax.numpy.stack([rows[number][column] for number in rounds]) for column in range(num_stacked)]

    return unrolled
