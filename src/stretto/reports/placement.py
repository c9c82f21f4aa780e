"""Place the operations of a JAX function on devices: trace it, plan it, say what goes where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from stretto import catalog
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.core.units import format_seconds, format_seconds_alike
from stretto.errors import Infeasible, InvalidInput, StrettoError
from stretto.files.graphs.jax_equations import FlatProgram, trace
from stretto.files.graphs.jax_graph import from_program
from stretto.files.load import load_cluster
from stretto.graphs.evaluate import PlanResult, Setting, evaluate, planner_named
from stretto.runlog.record import Json

if TYPE_CHECKING:
    from stretto.engines.jax_program import PlacedFunction

#: A traced function may take and return anything that JAX can trace.
Argument: TypeAlias = object
Function: TypeAlias = Callable[..., Argument]

#: A number of GPUs, the shorthand, a file, a cluster, or ``jax.devices()``.
DevicesLike: TypeAlias = int | str | Path | Cluster | Sequence[Argument]

#: Links of devices that are given as a number: 16 lanes of the third generation of PCI Express.
DEFAULT_LINK = "16GB/s"
#: Tried in this order when nobody names a policy; the first that is in the catalog is taken.
DEFAULT_POLICIES = ("doppler", "heft")
#: Operations that ``repr`` shows.
_NUM_SHOWN = 12


class PlacedOperation(NamedTuple):
    """One operation: where it runs, and when."""

    operation: str
    primitive: str
    device: str
    start_s: float
    end_s: float


@dataclass(frozen=True, eq=False, repr=False)
class Placement:
    """A function's operations on devices, with times; printing it shows the gist."""

    result: PlanResult
    #: The traced function, where there is one to run.
    program: FlatProgram | None = None
    #: The devices of JAX that it was placed on, where they were given as such.
    jax_devices: tuple[Argument, ...] | None = None

    @property
    def graph(self) -> TaskGraph:
        return self.result.problem.graph

    @property
    def plan(self) -> Plan:
        return self.result.plan

    @property
    def schedule(self) -> Schedule:
        return self.result.schedule

    @property
    def makespan_s(self) -> float:
        return self.result.makespan_s

    @property
    def lower_bound_s(self) -> float:
        return self.result.lower_bound_s

    @property
    def notes(self) -> tuple[str, ...]:
        """What the placement takes for granted: assumed durations, memory that is not planned for."""
        return self.result.notes

    @cached_property
    def operations(self) -> tuple[PlacedOperation, ...]:
        """All operations by start; equal starts by end, then as the function has them."""
        devices, when = self.result.problem.cluster.devices, self.schedule
        return tuple(
            PlacedOperation(
                self.graph.task_name(task),
                self.graph.category_name(task),
                devices[int(when.device[task])].name,
                float(when.start_s[task]),
                float(when.finish_s[task]),
            )
            for task in np.lexsort((when.finish_s, when.start_s)).tolist()
        )

    @cached_property
    def device_of(self) -> Mapping[str, str]:
        """The device of each operation, by name."""
        return {row.operation: row.device for row in self.operations}

    @cached_property
    def single_device_s(self) -> float:
        """How long the best single device takes for everything; infinite where none can run all of it."""
        try:
            return evaluate(self.result.problem, "single-device", setting=self.result.setting).makespan_s
        except Infeasible:
            return float("inf")

    @property
    def speedup_over_single(self) -> float:
        """How many times faster this is than the best single device."""
        return self.single_device_s / self.makespan_s if self.makespan_s > 0 else 1.0

    def jit(self, devices: Sequence[Argument] | None = None) -> PlacedFunction:
        """Return the function as a callable that runs each operation on its device.

        Parameters
        ----------
        devices
            A device of JAX for each device of the placement, in its order; by default those that were given to
            ``place``, or else ``jax.devices()``. A device may occur more than once.
        """
        from stretto.engines.jax_program import PlacedFunction, local_devices

        if self.program is None:
            raise InvalidInput("the placement has no traced function: make it with stretto.place", field="placement")
        chosen = local_devices() if devices is None and self.jax_devices is None else devices or self.jax_devices or ()
        num_devices = self.result.problem.cluster.num_devices
        if len(chosen) < num_devices or (devices is not None and len(chosen) > num_devices):
            raise InvalidInput(
                f"{len(chosen)} devices of JAX for a placement on {num_devices}: pass devices= with one for each, or "
                f"start Python with XLA_FLAGS=--xla_force_host_platform_device_count={num_devices}",
                field="devices",
            )
        return PlacedFunction(self.program, self.schedule, chosen[:num_devices])

    def gantt(self, path: str | Path) -> None:
        """Draw which device runs what and when: ``.png``, ``.svg``, ``.pdf`` or ``.html``."""
        from stretto.reports.gantt.draw import draw_gantt

        title = f"{self.graph.name} by {self.result.policy}"
        draw_gantt(self.result.problem, self.schedule, path, title=title, lower_bound_s=self.lower_bound_s)

    def to_json(self) -> dict[str, Json]:
        """Return what ``stretto plan --output json`` prints."""
        return self.result.to_json()

    def summary(self) -> str:
        """Return the gist in a few lines: how long it takes, how good that is, and the first operations."""
        cluster = self.result.problem.cluster
        used = len(np.unique(self.plan.assignment))
        head = [
            f"{self.graph.name}: {self.graph.num_tasks:,} operations on {used} of {cluster.num_devices} devices "
            f"({cluster.name}), by {self.result.policy}",
            f"{format_seconds(self.makespan_s)}, {self.speedup_over_single:.2f} times as fast as one device, "
            + self.result.verdict,
        ]
        rows = self.operations[:_NUM_SHOWN]
        cells = [("operation", "device", "start", "end")]
        starts, ends = (format_seconds_alike([getattr(row, name) for row in rows]) for name in ("start_s", "end_s"))
        cells += [(row.operation, row.device, start, end) for row, start, end in zip(rows, starts, ends, strict=True)]
        rest = len(self.operations) - len(rows)
        return "\n".join([*head, *_columns(cells), *[f"... and {rest:,} more"] * bool(rest)])

    def __repr__(self) -> str:
        return "\n".join([self.summary(), *(f"note: {note}" for note in self.notes)])


def _columns(cells: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(text.ljust(width) if column < 2 else text.rjust(width)
                  for column, (text, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in cells
    ]  # fmt: skip


def chosen_policy(policy: str | None) -> str:
    """Return the policy that is meant; by default the first of ``DEFAULT_POLICIES`` that there is."""
    return policy if policy is not None else next(name for name in DEFAULT_POLICIES if name in catalog.PLANNERS)


def place_function(
    fn: Function,
    args: Sequence[Argument],
    kwargs: Mapping[str, Argument],
    devices: DevicesLike,
    policy: str | None,
    params: Mapping[str, Json] | None,
    budget: Budget,
    setting: Setting,
) -> Placement:
    """Trace a function on example arguments and plan its operations on devices."""
    chosen = chosen_policy(policy)
    planner_named(chosen, params)  # a misspelt name is found before anything is traced
    jax_devices = _jax_devices(devices)
    cluster = cluster_of(_jax_shorthand(jax_devices) if jax_devices else devices)
    program, graph = _trace(fn, args, kwargs)
    result = evaluate(Problem.of(graph, cluster), chosen, params=params, budget=budget, setting=setting)
    return Placement(result, program, jax_devices)


def _jax_devices(devices: DevicesLike) -> tuple[Argument, ...] | None:
    """Return ``jax.devices()`` or part of it as a tuple, and None for everything else."""
    if not isinstance(devices, (list, tuple)) or not devices:
        return None
    return tuple(devices) if all(hasattr(device, "device_kind") for device in devices) else None


def _jax_shorthand(devices: Sequence[Argument]) -> str:
    """Describe devices of JAX as a cluster; whatever is no CPU is assumed to be as fast as a typical GPU."""
    kinds = ["cpu" if getattr(device, "platform", "") == "cpu" else "gpu" for device in devices]
    return ",".join(f"{kind}:{len(list(alike))}" for kind, alike in groupby(kinds)) + f"@{DEFAULT_LINK}"


def cluster_of(devices: DevicesLike) -> Cluster:
    """Return a cluster from a number of GPUs, the shorthand, a file, or a cluster."""
    if isinstance(devices, bool) or not isinstance(devices, (int, np.integer, str, Path, Cluster)):
        raise InvalidInput(
            f"{type(devices).__name__} is not a number of devices, a cluster, or text such as 'gpu:4@16GB/s'",
            field="devices",
        )
    if isinstance(devices, (int, np.integer)):
        if devices < 1:
            raise InvalidInput(f"{devices} is not a number of devices: at least 1", field="devices")
        return Cluster.parse(f"gpu:{devices}@{DEFAULT_LINK}")
    return load_cluster(devices)


def _trace(fn: Function, args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> tuple[FlatProgram, TaskGraph]:
    if not callable(fn):
        raise InvalidInput(f"{type(fn).__name__} is not a function that can be called", field="fn")
    name = getattr(fn, "__name__", type(fn).__name__)
    try:
        program = trace(fn, args, kwargs)
        return program, from_program(program)
    except StrettoError as error:
        if "has no tasks" in str(error):
            raise InvalidInput("it computes nothing that could be placed", field=f"fn {name}") from None
        raise
    except Exception as error:  # whatever the function, or JAX on its behalf, finds wrong with the arguments
        reason = " ".join(str(error).split())[:300]
        raise InvalidInput(
            f"cannot be traced on {_shapes(args, kwargs)}: {type(error).__name__}: {reason}", field=f"fn {name}"
        ) from error


def _shapes(args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> str:
    """Describe example arguments as their author would: types and shapes."""

    def one(value: Argument) -> str:
        shape = getattr(value, "shape", None)
        if shape is None:
            return type(value).__name__
        return f"{getattr(value, 'dtype', '?')}[{','.join(map(str, shape))}]"

    words = [one(value) for value in args] + [f"{key}={one(value)}" for key, value in kwargs.items()]
    return f"({', '.join(words)})"
