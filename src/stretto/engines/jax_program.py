"""A placed JAX function as a callable: a jitted function per stretch of a device, ``device_put`` at the cuts."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from stretto.core.schedule import Schedule
from stretto.engines.jax_stretches import Stretch, stretches
from stretto.errors import InvalidInput
from stretto.files.graphs.jax_equations import FlatEquation, Jax
from stretto.files.graphs.jax_trace import JaxProgram

#: Where a value is kept: its number, and the planned device that has a copy.
Place = tuple[int, int]


@dataclass(frozen=True)
class _Step:
    """One compiled stretch: places of what it reads and writes, what is sent after it, and what nobody needs then."""

    run: Callable[..., Sequence[Jax]]
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]
    sends: tuple[tuple[Jax, tuple[Place, ...], tuple[Place, ...]], ...]
    dead: tuple[Place, ...]


class PlacedFunction:
    """A function that runs where its placement says; results stay on the device that computed them.

    Calls return before the devices are done, as everything in JAX. Arguments are copied to the devices that read
    them; the copies are kept for the next call with the same arrays, so that weights are sent once.
    """

    def __init__(self, program: JaxProgram, schedule: Schedule, devices: Sequence[Jax]) -> None:
        self.name = program.flat.name
        self.stretches = stretches(program.operations, schedule)
        self._program = program
        self._devices = tuple(devices)
        self._needs = _argument_places(program, self.stretches)
        self._constants = _send_constants(program, self.stretches, self._devices)
        self._copies: dict[Place, tuple[weakref.ref[Jax], Jax]] = {}
        home = {value: places[0] for value, places in self._needs.items() if places}
        home |= {v: s.device for s in self.stretches for task in s.operations for v in program.operations[task].writes}
        home |= dict(reversed(self._constants))
        self._outputs = [(value, home[value]) if isinstance(value, int) else value for value in program.flat.outputs]
        kept = {place for place in self._outputs if isinstance(place, tuple)} | set(self._constants)
        self._steps = _compile(program, self.stretches, self._devices, kept)

    @property
    def num_cuts(self) -> int:
        """How many times a call sends values from one device to another."""
        return sum(len(step.sends) for step in self._steps)

    def __call__(self, *args: object, **kwargs: object) -> Jax:
        """Run the function; arguments have the shapes and types that it was placed with."""
        import jax

        values = dict(self._constants)
        self._send_arguments(values, self._checked_leaves(args, kwargs))
        for step in self._steps:
            results = step.run(*[values[place] for place in step.reads])
            values.update(zip(step.writes, results, strict=True))
            for device, sources, targets in step.sends:
                copies = jax.device_put([values[place] for place in sources], device)
                values.update(zip(targets, copies, strict=True))
            for place in step.dead:
                del values[place]
        leaves = [values[where] if isinstance(where, tuple) else where.val for where in self._outputs]
        return jax.tree.unflatten(self._program.flat.out_tree, leaves)

    def _checked_leaves(self, args: tuple[object, ...], kwargs: dict[str, object]) -> list[Jax]:
        import jax

        leaves, tree = jax.tree.flatten((args, kwargs))
        if tree != self._program.flat.in_tree:
            raise InvalidInput(
                f"called with {tree}, placed with {self._program.flat.in_tree}: "
                "call it with arguments like the examples",
                field=f"fn {self.name}",
            )
        return [self._checked(number, leaf) for number, leaf in enumerate(leaves)]

    def _checked(self, number: int, leaf: Jax) -> Jax:
        import jax
        import numpy as np

        aval = self._program.flat.avals[self._program.flat.inputs[number]]
        if isinstance(leaf, jax.core.Tracer):
            raise InvalidInput(
                "a placed function cannot be transformed by JAX: transform first, then place, as in "
                "stretto.place(jax.value_and_grad(fn), ...)",
                field=f"fn {self.name}",
            )
        if isinstance(leaf, (bool, int, float, complex)):
            leaf = np.asarray(leaf, aval.dtype)
        is_like = getattr(leaf, "shape", None) == aval.shape
        if is_like and leaf.dtype != aval.dtype:  # numpy's 64 bits become 32 unless JAX is told otherwise
            is_like = (
                isinstance(leaf, np.ndarray | np.generic) and jax.dtypes.canonicalize_dtype(leaf.dtype) == aval.dtype
            )
        if not is_like:
            got = f"{getattr(leaf, 'dtype', type(leaf).__name__)}{list(getattr(leaf, 'shape', ()))}"
            raise InvalidInput(
                f"argument {number} is {got}, but the function was placed with {aval.dtype}{list(aval.shape)}: "
                "place it again for other shapes",
                field=f"fn {self.name}",
            )
        return leaf

    def _send_arguments(self, values: dict[Place, Jax], leaves: Sequence[Jax]) -> None:
        import jax

        leaf_of = dict(zip(self._program.flat.inputs, leaves, strict=True))
        for value, devices in self._needs.items():
            leaf = leaf_of[self._program.arguments.origin.get(value, value)]
            for device in devices:
                place = (value, device)
                kept = self._copies.get(place)
                if kept is not None and kept[0]() is leaf and not kept[1].is_deleted():
                    values[place] = kept[1]
                    continue
                values[place] = jax.device_put(self._part(value, leaf), self._devices[device])
                if isinstance(leaf, jax.Array):  # others, such as numpy's, can change in place
                    forget = partial(_forget, self._copies, place)
                    self._copies[place] = (weakref.ref(leaf, forget), values[place])

    def _part(self, value: int, leaf: Jax) -> Jax:
        """Return an argument, or the part of a weight that operations read."""
        arguments = self._program.arguments
        if value not in arguments.origin:
            return leaf
        found = {arguments.origin[value]: leaf}
        for number in arguments.parts:
            equation = self._program.flat.equations[number]
            if equation.reads[0] in found:
                found[equation.writes[0]] = _evaluate(equation, found)[0]
            if value in found:
                break
        return found[value]


def _forget(copies: dict[Place, tuple[weakref.ref[Jax], Jax]], place: Place, _: weakref.ref[Jax]) -> None:
    """Drop the copy of an argument that is gone."""
    copies.pop(place, None)


def local_devices() -> Sequence[Jax]:
    """Return the devices that JAX sees."""
    import jax

    return tuple(jax.devices())


def _readers(program: JaxProgram, cut: Sequence[Stretch]) -> dict[int, list[int]]:
    """Return the devices that read each value, in the order of their first read."""
    readers: dict[int, list[int]] = {}
    for stretch in cut:
        for task in stretch.operations:
            for value in program.operations[task].reads:
                if stretch.device not in readers.setdefault(value, []):
                    readers[value].append(stretch.device)
    return readers


def _argument_places(program: JaxProgram, cut: Sequence[Stretch]) -> dict[int, tuple[int, ...]]:
    """Return the devices of each argument and part: those that read it; the first for one that is only returned."""
    readers, flat = _readers(program, cut), program.flat
    places = {value: readers.get(value, [0] if value in flat.outputs else []) for value in flat.inputs}
    places |= {value: readers[value] for value in program.arguments.origin if value in readers}
    return {value: tuple(devices) for value, devices in places.items()}


def _send_constants(program: JaxProgram, cut: Sequence[Stretch], devices: Sequence[Jax]) -> dict[Place, Jax]:
    import jax

    readers = _readers(program, cut)
    return {
        (value, device): jax.device_put(constant, devices[device])
        for value, constant in program.flat.constants.items()
        for device in readers.get(value, [0])
    }


def _compile(program: JaxProgram, cut: Sequence[Stretch], devices: Sequence[Jax], kept: set[Place]) -> list[_Step]:
    """Return a step per stretch; the places in ``kept`` outlive their last reader."""
    import jax

    readers = _readers(program, cut)
    last_read = {place: number for number, stretch in enumerate(cut) for place in _outside_reads(program, stretch)}
    needed = {value for value, _ in [*last_read, *kept]}
    steps = []
    for number, stretch in enumerate(cut):
        here = stretch.device
        reads = _outside_reads(program, stretch)
        results = [v for task in stretch.operations for v in program.operations[task].writes if v in needed]
        function = group_function(equations_of(program, stretch.operations), [value for value, _ in reads], results)
        run = jax.jit(function, out_shardings=jax.sharding.SingleDeviceSharding(devices[here]))
        sends = _sends(readers, results, here, devices)
        writes = tuple((value, here) for value in results)
        dead = {place for place in (*reads, *writes) if last_read.get(place, number) == number} - kept
        steps.append(_Step(run, reads, writes, sends, tuple(dead)))
    return steps


def _sends(
    readers: dict[int, list[int]], results: Sequence[int], here: int, devices: Sequence[Jax]
) -> tuple[tuple[Jax, tuple[Place, ...], tuple[Place, ...]], ...]:
    """Return what is sent after a stretch: a device, the values here, and there."""
    sent: dict[int, list[int]] = {}
    for value in results:
        for other in readers.get(value, []):
            if other != here:
                sent.setdefault(other, []).append(value)
    return tuple(
        (devices[other], tuple((v, here) for v in values), tuple((v, other) for v in values))
        for other, values in sent.items()
    )


def equations_of(program: JaxProgram, tasks: Sequence[int]) -> list[FlatEquation]:
    """Return the equations of some operations, each once."""
    numbers = dict.fromkeys(number for task in tasks for number in program.operations[task].equations)
    return [program.flat.equations[number] for number in numbers]


def _outside_reads(program: JaxProgram, stretch: Stretch) -> tuple[Place, ...]:
    """Return what a stretch reads and does not compute itself."""
    reads = [value for task in stretch.operations for value in program.operations[task].reads]
    own = {value for task in stretch.operations for value in program.operations[task].writes}
    return tuple((value, stretch.device) for value in dict.fromkeys(reads) if value not in own)


def group_function(
    equations: Sequence[FlatEquation], reads: Sequence[int], results: Sequence[int]
) -> Callable[..., Sequence[Jax]]:
    """Return a function that evaluates equations, for ``jax.jit`` to compile."""

    def group(*operands: Jax) -> Sequence[Jax]:
        values = dict(zip(reads, operands, strict=True))
        for equation in equations:
            values.update(zip(equation.writes, _evaluate(equation, values), strict=True))
        return [values[value] for value in results]

    return group


def _evaluate(equation: FlatEquation, values: dict[int, Jax]) -> Sequence[Jax]:
    """Evaluate one equation as JAX would, in the context that it was traced in."""
    eqn = equation.eqn
    operands = [
        atom.val if value is None else values[value] for atom, value in zip(eqn.invars, equation.reads, strict=True)
    ]
    with eqn.ctx.manager:
        result = eqn.primitive.bind(*operands, **eqn.primitive.get_bind_params(eqn.params))
    return result if eqn.primitive.multiple_results else [result]
