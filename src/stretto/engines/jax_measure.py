"""A placed JAX function as an engine: operations and whole programs are timed, and the simulator takes the figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stretto.core.csr import Floats
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS
from stretto.core.schedule import Schedule
from stretto.engines.calibrate import replace_durations
from stretto.engines.jax_calibrate import shortest_s
from stretto.engines.jax_program import PlacedFunction, equations_of, group_function
from stretto.files.graphs.jax_equations import Jax
from stretto.files.graphs.jax_trace import JaxProgram

#: Where the durations of operations that were timed one by one come from.
TIMED = "measured (each operation, on the devices of this machine)"


class TimedPlacement(NamedTuple):
    """One placement that ran: who planned it, the simulated time before and after calibration, the measured time."""

    name: str
    assumed_s: float
    simulated_s: float
    measured_s: float


@dataclass(frozen=True)
class MeasuredPlans:
    """Placements that ran on the real devices, and how well the simulator ranks them."""

    plans: tuple[TimedPlacement, ...]

    @property
    def rank_before(self) -> float:
        """Spearman's correlation of the times by assumed costs with the measured ones."""
        return rank_correlation([one.assumed_s for one in self.plans], [one.measured_s for one in self.plans])

    @property
    def rank_after(self) -> float:
        """Spearman's correlation of the times by measured costs with the measured ones."""
        return rank_correlation([one.simulated_s for one in self.plans], [one.measured_s for one in self.plans])


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation; equal values share their mean rank. NaN where one side is constant."""
    ranks = [_ranks(np.asarray(values, dtype=np.float64)) for values in (first, second)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return float("nan")
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2.0)[inverse], dtype=np.float64)


def time_operations(program: JaxProgram, device: Jax, *, repeats: int = 5) -> Floats:
    """Return the seconds of each operation on a device, without those of a call that does nothing.

    Operations of equal equations on equal shapes are timed once.
    """
    import jax

    idle = jax.device_put(jax.numpy.zeros(()), device)
    nothing = jax.jit(lambda x: x + 1)
    call_s = shortest_s(lambda: nothing(idle), 4 * repeats)
    known: dict[str, float] = {}
    found = []
    for task in range(len(program.operations)):
        key = _signature(program, task)
        if key not in known:
            known[key] = max(shortest_s(_alone(program, task, device), repeats) - call_s, 1e-7)
        found.append(known[key])
    return np.array(found)


def _signature(program: JaxProgram, task: int) -> str:
    """Describe an operation such that equal ones are described alike: equations, shapes and reads."""
    flat, number = program.flat, dict[int, int]()
    words = []
    for equation in equations_of(program, [task]):
        reads = [number.setdefault(v, len(number)) if v is not None else "literal" for v in equation.reads]
        writes = [number.setdefault(v, len(number)) for v in equation.writes]
        types = [str(flat.avals[v]) for v in (*equation.reads, *equation.writes) if v is not None]
        words.append(f"{equation.primitive} {reads} {writes} {types} {equation.eqn.params}")
    return "; ".join(words)


def _alone(program: JaxProgram, task: int, device: Jax) -> Callable[[], Jax]:
    """Return an operation as a call with made-up operands."""
    import jax

    operation = program.operations[task]
    function = jax.jit(group_function(equations_of(program, [task]), operation.reads, operation.writes))
    operands = [jax.device_put(example(program.flat.avals[value]), device) for value in operation.reads]
    return lambda: function(*operands)


def example(aval: Jax) -> Jax:
    """Return an array of a shape and type, with small values that no operation turns into infinity."""
    import jax

    if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        return jax.random.key(0)
    if np.issubdtype(aval.dtype, np.floating) or str(aval.dtype) in ("bfloat16", "float16"):
        return jax.numpy.full(aval.shape, 0.01, aval.dtype)
    return jax.numpy.zeros(aval.shape, aval.dtype)


def time_programs(
    program: JaxProgram, schedules: Sequence[Schedule], devices: Sequence[Jax], *, repeats: int = 5
) -> list[float]:
    """Return the shortest wall time of each placed program on made-up arguments.

    The programs take turns, so that whatever else runs on the machine disturbs all of them alike.
    """
    import jax

    placed = [PlacedFunction(program, schedule, devices) for schedule in schedules]
    flat = program.flat
    args, kwargs = jax.tree.unflatten(flat.in_tree, [example(flat.avals[value]) for value in flat.inputs])
    times: list[list[float]] = [[] for _ in placed]
    for turn in range(repeats + 1):
        for column, run in zip(times, placed, strict=True):
            begin = time.perf_counter()
            jax.block_until_ready(run(*args, **kwargs))
            if turn:  # the first compiles
                column.append(time.perf_counter() - begin)
    return [min(column) for column in times]


def with_times(graph: TaskGraph, seconds: Floats) -> TaskGraph:
    """Return the graph with the measured seconds of its operations on every device."""
    return replace_durations(graph, seconds).with_meta(**{DURATIONS: TIMED})
