"""A JAX function as work: one task per primitive, the tasks of ``files.graphs.jax_graph`` with what they compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stretto.engines.work import Call, Work
from stretto.errors import MissingExtra
from stretto.files.graphs.jax_equations import _inlined_body
from stretto.files.graphs.jax_graph import from_jaxpr


@dataclass(frozen=True)
class _Slot:
    """Where a value comes from: an output of a task, or something known from the start."""

    task: int = -1
    output: int = 0
    value: Any = None


@dataclass(frozen=True, eq=False)
class JaxWork:
    """The work of a function on given arguments, and the way back from its tasks to its result."""

    work: Work
    slots: tuple[_Slot, ...]
    tree: Any

    def result(self, outputs: Mapping[int, Any]) -> Any:
        """Return what the function returns; ``outputs`` are those of a run with ``keep="all"``."""
        import jax

        return jax.tree.unflatten(self.tree, [_value(slot, outputs) for slot in self.slots])


def jax_work(function: Callable[..., Any], *args: Any, **kwargs: Any) -> JaxWork:
    """Trace a function and return its operations as tasks that compute; its arguments are there from the start.

    Run it on threads: JAX does not survive being forked.
    """
    try:
        import jax
    except ImportError:
        raise MissingExtra("jax", "jax", "running JAX functions") from None
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*args, **kwargs)
    graph = from_jaxpr(closed, name=getattr(function, "__name__", "jax"))
    walker = _Walker()
    inputs = [_Slot(value=leaf) for leaf in jax.tree.leaves((args, kwargs))]
    slots = walker.walk(closed.jaxpr, [_Slot(value=constant) for constant in closed.consts], inputs)
    assert len(walker.actions) == graph.num_tasks, "both walks take the same steps"
    return JaxWork(Work(graph, tuple(walker.actions)), tuple(slots), jax.tree.structure(shapes))


class _Walker:
    def __init__(self) -> None:
        self.actions: list[Call] = []

    def walk(self, jaxpr: Any, constants: Sequence[_Slot], inputs: Sequence[_Slot]) -> list[_Slot]:
        env: dict[Any, _Slot] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *inputs], strict=True))

        def slot(atom: Any) -> _Slot:
            return _Slot(value=atom.val) if hasattr(atom, "val") else env[atom]

        for eqn in jaxpr.eqns:
            operands = [slot(atom) for atom in eqn.invars]
            body = _inlined_body(eqn)
            if body is not None:
                closed = next((p for p in eqn.params.values() if getattr(p, "jaxpr", None) is body), None)
                found = self.walk(body, [_Slot(value=c) for c in getattr(closed, "consts", ())], operands)
            else:
                found = self._task(eqn, operands)
            env.update(zip(eqn.outvars, found, strict=True))
        return [slot(atom) for atom in jaxpr.outvars]

    def _task(self, eqn: Any, operands: Sequence[_Slot]) -> list[_Slot]:
        parents = tuple(dict.fromkeys(slot.task for slot in operands if slot.task >= 0))
        self.actions.append(Call(_operation(eqn, tuple(operands), parents), inputs=parents))
        return [_Slot(len(self.actions) - 1, number) for number in range(len(eqn.outvars))]


def _operation(eqn: Any, operands: tuple[_Slot, ...], parents: tuple[int, ...]) -> Callable[..., Any]:
    """Return a function of the parents' outputs that computes one equation, as a tuple of its results."""
    import jax

    def bind(*values: Any) -> tuple[Any, ...]:
        bound = eqn.primitive.get_bind_params(eqn.params)
        functions, params = bound if isinstance(bound, tuple) else ((), bound)  # older releases split it
        found = eqn.primitive.bind(*functions, *values, **params)
        return tuple(found) if eqn.primitive.multiple_results else (found,)

    compiled = jax.jit(bind)

    def operation(*outputs: Any) -> tuple[Any, ...]:
        by_task = dict(zip(parents, outputs, strict=True))
        # Waiting here is what makes the measured time that of the operation, not of its dispatch.
        found: tuple[Any, ...] = jax.block_until_ready(compiled(*(_value(slot, by_task) for slot in operands)))
        return found

    return operation


def _value(slot: _Slot, outputs: Mapping[int, Any]) -> Any:
    return slot.value if slot.task < 0 else outputs[slot.task][slot.output]
