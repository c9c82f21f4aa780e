"""A placement: which device runs which operation of a model, when, with how much memory, and by which costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stretto.core.answers.placement import placement_answer
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.provenance import duration_basis
from stretto.core.schedule import Schedule
from stretto.core.units import format_bytes, format_seconds_alike
from stretto.errors import Infeasible, InvalidInput
from stretto.graphs.evaluate import PlanResult, evaluate
from stretto.graphs.memory.peak import peak_memory
from stretto.runlog.record import Json

if TYPE_CHECKING:
    from stretto.engines.jax_measure import MeasuredPlans
    from stretto.engines.jax_program import PlacedFunction

#: Operations that ``repr`` shows.
_NUM_SHOWN = 12


class PlacedOperation(NamedTuple):
    """One operation: where it runs, and when."""

    operation: str
    primitive: str
    device: str
    start_s: float
    end_s: float
    #: Lines of the program that it comes from.
    source: str = ""


class DeviceShare(NamedTuple):
    """What one device has to do, and the most that it holds at one moment."""

    device: str
    num_operations: int
    busy_s: float
    peak_bytes: float
    limit_bytes: float


@dataclass(frozen=True, eq=False, repr=False)
class Placement:
    """A model's operations on devices, with times; printing it shows the gist.

    Attributes
    ----------
    program
        The model in its framework's form, where there is one to run: a ``JaxProgram`` for functions of JAX.
    jax_devices
        The devices of JAX that it was placed on, where they were given as such.
    remarks
        What was assumed when the model was read.
    busy_factor
        How many times as long operations take while all devices are busy, where that was measured; a device alone
        is that much faster than in the schedule.
    measured
        Placements that ran on the real devices, where ``measure`` asked for it.
    """

    result: PlanResult
    program: Any = None
    jax_devices: tuple[Any, ...] | None = None
    remarks: tuple[str, ...] = ()
    busy_factor: float = 1.0
    measured: MeasuredPlans | None = None

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
        """What the placement takes for granted: assumed costs, what counts as a weight, what is not modeled."""
        return (*self.result.notes, *getattr(self.program, "notes", ()), *self.remarks)

    @property
    def costs(self) -> str:
        """Where the durations come from: measured, estimated or assumed, and by what."""
        return duration_basis(self.graph)

    @property
    def verdict(self) -> str:
        """How good the placement is, in words; with assumed costs nothing is called optimal."""
        return self.result.verdict

    @property
    def answer(self) -> str:
        """The result in one sentence."""
        return placement_answer(self)

    @cached_property
    def shares(self) -> tuple[DeviceShare, ...]:
        """Operations, busy time and peak memory of each device."""
        problem, when = self.result.problem, self.schedule
        moved = self.result.setting.run(problem, self.plan, record_transfers=True)
        peak = peak_memory(problem, moved).tolist()
        busy = np.bincount(when.device, weights=when.finish_s - when.start_s, minlength=problem.num_devices)
        count = np.bincount(when.device, minlength=problem.num_devices)
        return tuple(
            DeviceShare(device.name, int(count[d]), float(busy[d]), peak[d], device.memory_bytes)
            for d, device in enumerate(problem.cluster.devices)
        )

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
                "; ".join(self._way_back(task)[1]),
            )
            for task in np.lexsort((when.finish_s, when.start_s)).tolist()
        )

    def _way_back(self, task: int) -> tuple[Sequence[str], Sequence[str]]:
        """Return the equations and the source lines of an operation, where the program knows them."""
        source = getattr(self.program, "source", None)
        return source(task) if source is not None else ((), ())

    @cached_property
    def device_of(self) -> Mapping[str, str]:
        """The device of each operation, by name."""
        return {row.operation: row.device for row in self.operations}

    @cached_property
    def single_device_s(self) -> float:
        """How long the best single device takes for everything; infinite where none can run all of it."""
        try:
            found = evaluate(self.result.problem, "single-device", setting=self.result.setting)
        except Infeasible:
            return float("inf")
        is_single = len(np.unique(found.plan.assignment)) == 1  # memory may have forced it onto more
        return found.makespan_s / self.busy_factor if is_single else float("inf")

    @property
    def speedup_over_single(self) -> float:
        """How many times faster this is than the best single device."""
        return self.single_device_s / self.makespan_s if self.makespan_s > 0 else 1.0

    def jit(self, devices: Sequence[Any] | None = None) -> PlacedFunction:
        """Return the function as a callable that runs each operation on its device.

        Parameters
        ----------
        devices
            A device of JAX for each device of the placement, in its order; by default those that were given to
            ``place``, or else ``jax.devices()``. A device may occur more than once.
        """
        from stretto.engines.jax_program import PlacedFunction
        from stretto.files.graphs.jax_trace import JaxProgram

        if not isinstance(self.program, JaxProgram):
            raise InvalidInput(
                "the placement has no traced function of JAX: make it with stretto.place", field="placement"
            )
        return PlacedFunction(self.program, self.schedule, self.real_devices(devices))

    def real_devices(self, devices: Sequence[Any] | None = None) -> Sequence[Any]:
        """Return a device of JAX for each device of the placement."""
        from stretto.engines.jax_program import local_devices

        chosen = local_devices() if devices is None and self.jax_devices is None else devices or self.jax_devices or ()
        num_devices = self.result.problem.cluster.num_devices
        if len(chosen) < num_devices or (devices is not None and len(chosen) > num_devices):
            raise InvalidInput(
                f"{len(chosen)} devices of JAX for a placement on {num_devices}: pass devices= with one for each, or "
                f"start Python with XLA_FLAGS=--xla_force_host_platform_device_count={num_devices}",
                field="devices",
            )
        return chosen[:num_devices]

    def gantt(self, path: str | Path) -> None:
        """Draw which device runs what and when: ``.png``, ``.svg``, ``.pdf`` or ``.html``."""
        from stretto.reports.gantt.draw import draw_gantt

        title = f"{self.graph.name} by {self.result.policy}"
        draw_gantt(
            self.result.problem, self.schedule, path, title=title, lower_bound_s=self.lower_bound_s, answer=self.answer
        )

    def to_json(self) -> dict[str, Json]:
        """Return what ``stretto plan --output json`` prints, with costs, memory and the way back to the model."""
        rows: list[Json] = []
        for task in range(self.graph.num_tasks):
            equations, lines = self._way_back(task)
            device = self.result.problem.cluster.devices[int(self.plan.assignment[task])].name
            row: dict[str, Json] = {"operation": self.graph.task_name(task), "device": device}
            rows.append(row | ({"equations": list(equations), "source": list(lines)} if equations else {}))
        memory: list[Json] = [
            {
                "device": share.device,
                "peak_bytes": share.peak_bytes,
                "limit_bytes": share.limit_bytes if np.isfinite(share.limit_bytes) else None,
            }
            for share in self.shares
        ]
        told = {"answer": self.answer, "costs": self.costs, "verdict": self.verdict, "notes": list(self.notes)}
        document = self.result.to_json() | told | {"memory": memory, "operations": rows}
        if self.measured is not None:
            runs: list[Json] = [one._asdict() for one in self.measured.plans]
            ranks = {"rank_before": self.measured.rank_before, "rank_after": self.measured.rank_after}
            document["measured"] = {"plans": runs, **ranks}
        return document

    def summary(self) -> str:
        """Return the gist in a few lines: the answer, and :meth:`details`."""
        return f"{self.answer}\n{self.details()}"

    def details(self) -> str:
        """Return what each device does and holds, and what comes first."""
        cluster = self.result.problem.cluster
        used = len(np.unique(self.plan.assignment))
        head = [
            f"{self.graph.name}: {self.graph.num_tasks:,} operations on {used} of {cluster.num_devices} devices "
            f"({cluster.name}), by {self.result.policy}",
            f"costs: {self.costs}",
        ]
        rows = self.operations[:_NUM_SHOWN]
        cells = [("operation", "device", "start", "end")]
        times = format_seconds_alike([at for row in rows for at in (row.start_s, row.end_s)])
        cells += [
            (row.operation, row.device, start, end)
            for row, start, end in zip(rows, times[::2], times[1::2], strict=True)
        ]
        rest = len(self.operations) - len(rows)
        return "\n".join(
            [
                *head,
                "",
                *_columns(self._device_cells(), num_words=1),
                "",
                *_columns(cells, num_words=2),
                *[f"... and {rest:,} more"] * bool(rest),
            ]
        )

    def _device_cells(self) -> list[tuple[str, ...]]:
        busy = format_seconds_alike([share.busy_s for share in self.shares])
        cells: list[tuple[str, ...]] = [("device", "operations", "busy", "peak memory")]
        for share, seconds in zip(self.shares, busy, strict=True):
            limit = f" of {format_bytes(share.limit_bytes)}" if np.isfinite(share.limit_bytes) else ""
            cells.append((share.device, f"{share.num_operations:,}", seconds, format_bytes(share.peak_bytes) + limit))
        return cells

    def __repr__(self) -> str:
        return "\n".join([self.summary(), *(f"note: {note}" for note in self.notes)])


def _columns(cells: Sequence[tuple[str, ...]], num_words: int) -> list[str]:
    """Align columns: those of words to the left, the figures after them to the right."""
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(text.ljust(width) if column < num_words else text.rjust(width)
                  for column, (text, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in cells
    ]  # fmt: skip
